//! Where to look for an engine and in which order. Reads the docker command's configuration, opens no connection.

use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Operation, Result};

use super::address::{Address, Presence, TlsFiles, TlsSettings, redacted};
use super::context;
use super::environment::Environment;
use super::tried::Attempt;

/// The places to try.
#[derive(Debug)]
pub(super) struct Plan {
    /// In order; the first that answers is used.
    pub(super) candidates: Vec<Candidate>,
    /// What was looked at and gave no candidate.
    pub(super) failed: Vec<Attempt>,
    pub(super) choice: Choice,
}

/// Who chose the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// The user: there is one candidate, and no other engine is used in its place.
    Named,
    /// Nobody: there are several.
    Searched,
}

/// An address and who said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) address: Address,
    pub(super) how: String,
}

/// Lists where to look: the configured host, else `DOCKER_HOST`, else the docker context, else the usual sockets.
///
/// `DOCKER_HOST` wins over `DOCKER_CONTEXT`, as in the docker command.
pub(super) fn plan(host: Option<&str>, environment: &Environment) -> Result<Plan> {
    let mut failed = Vec::new();
    let settings = tls_settings(environment);
    if let Some(host) = host {
        return named(host, "the configured host", &settings);
    }
    if let Some(host) = environment.variable("DOCKER_HOST") {
        return named(host, "DOCKER_HOST", &settings);
    }
    if let Some((name, from)) = context_name(environment, &mut failed) {
        return of_context(&name, &from, environment, failed);
    }
    Ok(Plan {
        candidates: sockets(environment),
        failed,
        choice: Choice::Searched,
    })
}

fn named(host: &str, how: &str, settings: &TlsSettings) -> Result<Plan> {
    let address = Address::parse(host, settings).map_err(|problem| bad_address(host, how, &problem))?;
    Ok(Plan {
        candidates: vec![Candidate {
            address,
            how: how.to_owned(),
        }],
        failed: Vec::new(),
        choice: Choice::Named,
    })
}

fn bad_address(host: &str, how: &str, problem: &str) -> Error {
    Error::invalid(
        Operation::Connect,
        format!(
            "the engine address `{}` ({how}) can't be used: {problem}",
            redacted(host)
        ),
    )
    .with_hint("use an address such as `unix:///var/run/docker.sock`, `tcp://host:2376` or `ssh://user@host`")
}

/// The name of the context in use and where it is from; none for the context `default`, which means "no context".
fn context_name(environment: &Environment, failed: &mut Vec<Attempt>) -> Option<(String, String)> {
    let (name, from) = if let Some(name) = environment.variable("DOCKER_CONTEXT") {
        (name.to_owned(), "DOCKER_CONTEXT".to_owned())
    } else {
        let config = environment.docker_config()?;
        let file = config.join("config.json");
        match context::current(&config) {
            Ok(name) => (name?, format!("currentContext of `{}`", file.display())),
            // The docker command goes on without its configuration file, too; the reason is kept for the error.
            Err(problem) => {
                failed.push(Attempt::new(file.display(), "docker context", problem));
                return None;
            }
        }
    };
    (name != "default").then_some((name, from))
}

fn of_context(name: &str, from: &str, environment: &Environment, failed: Vec<Attempt>) -> Result<Plan> {
    let refused = |kind, problem: String| {
        Error::new(
            kind,
            Operation::Connect,
            format!("docker context `{name}` ({from}) can't be used: {problem}"),
        )
        .with_hint(
            "`docker context ls` lists the contexts; set DOCKER_HOST or DOCKER_CONTEXT to use another engine",
        )
    };
    let Some(config) = environment.docker_config() else {
        return Err(refused(
            ErrorKind::InvalidArgument,
            "there is no home folder and DOCKER_CONFIG is not set".to_owned(),
        ));
    };
    let context =
        context::load(&config, name).map_err(|problem| refused(ErrorKind::InvalidArgument, problem))?;
    let how = format!("docker context `{name}`, {from}");
    let files = context.tls.map(|directory| TlsFiles {
        directory,
        presence: Presence::Any,
    });
    let settings = TlsSettings {
        https: files.clone().unwrap_or_else(|| default_files(&config)),
        tcp: files,
    };
    let host = if context.host.is_empty() {
        "unix:///var/run/docker.sock"
    } else {
        &context.host
    };
    let address = Address::parse(host, &settings).map_err(|problem| bad_address(host, &how, &problem))?;
    if context.skip_tls_verify && matches!(address, Address::Tcp { .. }) {
        return Err(refused(
            ErrorKind::Unsupported,
            "it skips the verification of the engine's certificate, which is not supported".to_owned(),
        ));
    }
    Ok(Plan {
        candidates: vec![Candidate { address, how }],
        failed,
        choice: Choice::Named,
    })
}

fn tls_settings(environment: &Environment) -> TlsSettings {
    let files = match (
        environment.variable("DOCKER_CERT_PATH"),
        environment.docker_config(),
    ) {
        (Some(directory), _) => TlsFiles {
            directory: directory.into(),
            presence: Presence::All,
        },
        (None, config) => default_files(&config.unwrap_or_default()),
    };
    // As for the docker command, any value turns it on, also `0`.
    let tcp = environment.variable("DOCKER_TLS_VERIFY").map(|_| files.clone());
    TlsSettings { tcp, https: files }
}

fn default_files(config: &Path) -> TlsFiles {
    TlsFiles {
        directory: config.to_owned(),
        presence: Presence::Any,
    }
}

/// The sockets that engines listen on when nobody says otherwise; each once.
fn sockets(environment: &Environment) -> Vec<Candidate> {
    let runtime = environment
        .variable("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let run_user = environment
        .user_id()
        .map(|id| PathBuf::from(format!("/run/user/{id}")));
    let docker = environment.home().map(|home| home.join(".docker"));
    let below = |folder: &Option<PathBuf>, name: &str| folder.as_ref().map(|folder| folder.join(name));
    let places = [
        (Some(PathBuf::from("/var/run/docker.sock")), "default socket"),
        (below(&runtime, "docker.sock"), "rootless socket, XDG_RUNTIME_DIR"),
        (below(&run_user, "docker.sock"), "rootless socket"),
        (below(&docker, "run/docker.sock"), "socket in the home folder"),
        (below(&docker, "desktop/docker.sock"), "Docker Desktop socket"),
        (
            below(&runtime, "podman/podman.sock"),
            "podman socket, XDG_RUNTIME_DIR",
        ),
        (below(&run_user, "podman/podman.sock"), "podman socket"),
        (
            Some(PathBuf::from("/run/podman/podman.sock")),
            "podman system socket",
        ),
    ];
    let mut candidates: Vec<Candidate> = Vec::new();
    for (path, how) in places {
        let Some(path) = path else { continue };
        let address = Address::Unix(path);
        if !candidates.iter().any(|candidate| candidate.address == address) {
            candidates.push(Candidate {
                address,
                how: how.to_owned(),
            });
        }
    }
    candidates
}

#[cfg(test)]
mod tests;
