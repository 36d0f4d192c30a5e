//! The docker compose command, which some rows stand beside.

use std::process::Stdio;

use gym_sandbox::{Error, ErrorKind, Operation, Result};
use tokio::process::Command;

/// Names the program where it is none of the usual ones.
const VARIABLE: &str = "GYM_SANDBOX_DOCKER_COMPOSE";

/// What a row says that would stand beside it.
pub(super) const MISSING: &str = "docker compose v2 is not here, so nothing is compared with it; \
                                  GYM_SANDBOX_DOCKER_COMPOSE can name its program";

/// It, found.
#[derive(Debug)]
pub(in crate::cli) struct DockerCompose {
    words: Vec<String>,
    version: String,
}

impl DockerCompose {
    /// Looks for version 2: what the variable names, `docker-compose` on `PATH`, the plugin of the docker CLI.
    pub(in crate::cli) async fn find() -> Option<Self> {
        let named = std::env::var(VARIABLE).ok().map(|program| vec![program]);
        let usual = [
            vec!["docker-compose".to_owned()],
            vec!["docker".to_owned(), "compose".to_owned()],
        ];
        for words in named.into_iter().chain(usual) {
            let asked = program(&words)
                .args(["version", "--short"])
                .stdout(Stdio::piped())
                .output();
            let Ok(output) = asked.await else { continue };
            let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if output.status.success() && !version.starts_with("1.") {
                return Some(Self { words, version });
            }
        }
        None
    }

    /// What it is called in tables.
    pub(super) fn name(&self) -> String {
        format!("docker compose {}", self.version)
    }

    /// It, without arguments.
    pub(super) fn command(&self) -> Command {
        program(&self.words)
    }

    /// Runs it for a project on an engine.
    ///
    /// # Errors
    /// It did not start, or did not exit with 0; with the last thing it said.
    pub(super) async fn run(&self, engine: &str, arguments: &[&str]) -> Result<()> {
        let failed = |text| {
            Error::new(ErrorKind::Internal, Operation::Compose, text).with_hint("run it by hand to see more")
        };
        let output = self
            .command()
            .env("DOCKER_HOST", engine)
            .args(arguments)
            .stderr(Stdio::piped())
            .output()
            .await
            .map_err(|error| failed("docker compose could not be started".to_owned()).with_source(error))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or("nothing");
        Err(failed(format!("docker compose did not succeed; it said: {last}")))
    }
}

fn program(words: &[String]) -> Command {
    let (first, rest) = words
        .split_first()
        .map_or(("docker", &[][..]), |(first, rest)| (first.as_str(), rest));
    let mut command = Command::new(first);
    command
        .args(rest)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command
}
