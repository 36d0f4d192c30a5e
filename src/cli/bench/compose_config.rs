//! `compose config` by the library in this process, by this program as a command, and by docker compose. The methods take
//! turns file by file; what is compared is the time of all files together.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use gym_sandbox::compose::config::{self, Format};
use gym_sandbox::{Error, ErrorKind, Operation, Result};
use tokio::process::Command;

use super::context::Context;
use super::corpus::{self, Case};
use super::docker_compose::{DockerCompose, MISSING};
use super::report::{Comparison, RowReport};
use super::rows::Amount;
use super::sample::Samples;
use super::scratch::on_disk;

/// At most this part of docker compose's time.
const GOAL: f64 = 1.0 / 20.0;

/// How often all files have their turn.
const CORPUS_ROUNDS: usize = 4;
const LARGE_ROUNDS: usize = 20;
const QUICK_ROUNDS: usize = 2;
/// Of the corpus every so many-th case is enough to see that it works.
const QUICK_PART: usize = 12;

const SERVICES: usize = 200;

/// Which files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Files {
    /// Those of `COMPOSE_CORPUS`.
    Corpus,
    /// One with 200 services.
    Large,
}

impl Files {
    /// What the rows are called: in process, and as a command.
    const fn names(self) -> [&'static str; 2] {
        match self {
            Self::Corpus => ["compose config corpus", "compose config corpus command"],
            Self::Large => [
                "compose config 200 services",
                "compose config 200 services command",
            ],
        }
    }

    /// None where there is no corpus.
    async fn cases(self, context: &Context<'_>) -> Result<Option<Vec<Case>>> {
        match self {
            Self::Corpus => {
                let cases = on_disk(|| Ok(corpus::cases())).await?;
                let part = if context.is_quick { QUICK_PART } else { 1 };
                Ok(cases.map(|cases| cases.into_iter().step_by(part).collect()))
            }
            Self::Large => {
                let file = "services.yaml";
                let text = corpus::many_services(SERVICES);
                let folder = context.scratch.file(file, text).await?;
                Ok(Some(vec![Case {
                    folder,
                    files: vec![file.to_owned()],
                    variables: Vec::new(),
                }]))
            }
        }
    }
}

/// Who loads the files.
enum Method<'a> {
    Process,
    Program(PathBuf),
    DockerCompose(&'a DockerCompose),
}

/// Measures both rows at once: docker compose takes most of the time, and stands beside both.
///
/// # Errors
/// A program could not be started.
pub(super) async fn measure(context: &Context<'_>, files: Files) -> Result<Vec<RowReport>> {
    let names = files.names();
    let cases = match files.cases(context).await? {
        Some(cases) if !cases.is_empty() => cases,
        _ => {
            let why = format!("{} names no folder with cases", corpus::VARIABLE);
            return Ok(names.map(|name| RowReport::not_measured(name, GOAL, &why)).into());
        }
    };
    let program = on_disk(std::env::current_exe).await?;
    let mut methods = vec![Method::Process, Method::Program(program)];
    methods.extend(context.docker_compose.as_ref().map(Method::DockerCompose));
    let rounds = match files {
        _ if context.is_quick => QUICK_ROUNDS,
        Files::Corpus => CORPUS_ROUNDS,
        Files::Large => LARGE_ROUNDS,
    };
    let mut samples = vec![Samples { blocks: Vec::new() }; methods.len()];
    let mut accepted = vec![0; methods.len()];
    // One more: the first is no sample, it only brings files and programs into memory.
    for round in 0..=rounds {
        let taken = take_round(&methods, &cases, round).await?;
        accepted = taken.accepted;
        if round > 0 {
            for (samples, time) in samples.iter_mut().zip(taken.seconds) {
                samples.blocks.push(vec![time]);
            }
        }
    }
    let baseline = context.docker_compose.as_ref();
    let counts: Vec<String> = accepted.iter().map(ToString::to_string).collect();
    let note = format!(
        "files accepted of {}: {} ({})",
        cases.len(),
        counts.join(", "),
        if baseline.is_some() {
            "in process, as a command, by docker compose"
        } else {
            "in process, as a command"
        }
    );
    let reports = names.into_iter().zip(&samples).filter_map(|(name, ours)| {
        let compared = Comparison {
            ours,
            theirs: samples.get(2),
            baseline: baseline.map_or_else(|| "docker compose".to_owned(), DockerCompose::name),
            goal: GOAL,
            amount: Amount::One,
        };
        let report = RowReport::of_pair(name, compared)?.with_note(note.clone());
        Some(match baseline {
            Some(_) => report,
            None => report.with_note(MISSING.to_owned()),
        })
    });
    Ok(reports.collect())
}

/// What one round took, by method.
struct Round {
    seconds: Vec<f64>,
    accepted: Vec<usize>,
}

async fn take_round(methods: &[Method<'_>], cases: &[Case], round: usize) -> Result<Round> {
    let mut taken = Round {
        seconds: vec![0.0; methods.len()],
        accepted: vec![0; methods.len()],
    };
    for (number, case) in cases.iter().enumerate() {
        for turn in 0..methods.len() {
            // Who begins moves on with every file: coming first must not be an advantage.
            let index = (turn + number + round) % methods.len();
            let (seconds, is_accepted) = methods[index].run(case).await?;
            taken.seconds[index] += seconds;
            taken.accepted[index] += usize::from(is_accepted);
        }
    }
    Ok(taken)
}

impl Method<'_> {
    /// Loads and prints one case. Gives the seconds, and whether the files were accepted: refused ones take time, too.
    async fn run(&self, case: &Case) -> Result<(f64, bool)> {
        let mut command = match self {
            Self::Process => {
                let case = case.clone();
                return on_disk(move || {
                    let start = Instant::now();
                    let is_accepted = config::render(&case.loader(), Format::Json).is_ok();
                    Ok((start.elapsed().as_secs_f64(), is_accepted))
                })
                .await;
            }
            Self::Program(program) => {
                let mut command = Command::new(program);
                command
                    .args(["compose", "config", "--format", "json", "--profile", "*"])
                    .args(["--allow-outside-paths", "--strictness", "compatible"])
                    .args(["--project-name", corpus::PROJECT])
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .kill_on_drop(true);
                for (name, value) in &case.variables {
                    command.arg("--env").arg(format!("{name}={value}"));
                }
                for file in &case.files {
                    command.args(["--file", file]);
                }
                command
            }
            Self::DockerCompose(compose) => {
                let mut command = compose.command();
                command.args(["--profile", "*", "--project-name", corpus::PROJECT]);
                for file in &case.files {
                    command.args(["--file", file]);
                }
                command.args(["config", "--format", "json"]);
                only_variables(&mut command, case);
                command
            }
        };
        command.current_dir(&case.folder);
        let start = Instant::now();
        let status = command.status().await.map_err(|error| {
            let text = "a program that is measured could not be started";
            Error::new(ErrorKind::Io, Operation::Configure, text).with_source(error)
        })?;
        Ok((start.elapsed().as_secs_f64(), status.success()))
    }
}

/// docker compose reads variables from its environment, so that it has those of the case and no others.
fn only_variables(command: &mut Command, case: &Case) {
    command.env_clear();
    for name in ["PATH", "HOME"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.envs(case.variables.iter().map(|(name, value)| (name, value)));
}
