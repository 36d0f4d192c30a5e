//! Tasks as three benchmark harnesses write them, each run without their programs and without the docker command: a base
//! file with overlays and variables, services marked by `x-default`, and a file that is full of one harness's variables.
//!
//! ```sh
//! cargo run --example compose_styles
//! cargo run --example compose_styles -- harbor
//! ```
//!
//! | style | files | what it shows |
//! |---|---|---|
//! | `harbor` | base, image, task and no-network, merged | a project directory, an environment map, limits from it, a log folder of this machine under policy, the reward in a file |
//! | `inspect` | one | the default service, an internal network, variables of the sample, a score by text |
//! | `terminal-bench` | one | `T_BENCH_` variables, an image that need not be built, a container name that copies share, test lines |
//!
//! Every task is tried twice at the same time: with its solution, which must get 1, and with nothing done, which must get 0.
//! The exit code is 0 only when it is so.
//!
//! | option | default |
//! |---|---|
//! | `--image REF` | `gym-sandbox/busybox:test`; it must be there: nothing is pulled |

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

#[path = "../common/clear.rs"]
mod clear;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/table.rs"]
mod common_table;
mod harbor;
mod inspect;
mod terminal_bench;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use futures::future::try_join_all;
use gym_sandbox::docker::{DockerConfig, DockerProvider};
use gym_sandbox::{ExecResult, SandboxProvider};

use clear::clear;
use common::{Arguments, Failure, ended, unknown, verdict};
use common_table::table;

/// What is done with a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// What its solution says.
    Solved,
    /// Nothing.
    Untouched,
}

/// What all styles need.
pub(crate) struct Bench {
    pub(crate) provider: Arc<dyn SandboxProvider>,
    pub(crate) image: String,
}

impl Bench {
    /// A folder of this example.
    pub(crate) fn folder(style: &str) -> PathBuf {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/compose_styles");
        PathBuf::from(root).join(style)
    }
}

/// A command of a solution or a harness has to succeed.
pub(crate) fn succeeded(result: ExecResult) -> Result<ExecResult, Failure> {
    if result.is_success() {
        return Ok(result);
    }
    Err(format!("a command did not succeed: {result:?}").into())
}

const STYLES: [&str; 3] = ["harbor", "inspect", "terminal-bench"];

async fn run_style(bench: &Bench, style: &str, attempt: Attempt) -> Result<u8, Failure> {
    match style {
        "harbor" => Box::pin(harbor::run(bench, attempt)).await,
        "inspect" => Box::pin(inspect::run(bench, attempt)).await,
        _ => Box::pin(terminal_bench::run(bench, attempt)).await,
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    ended(match read() {
        Ok((image, styles)) => run(image, &styles).await,
        Err(failure) => Err(failure),
    })
}

async fn run(image: String, styles: &[&'static str]) -> Result<ExitCode, Failure> {
    let provider: Arc<dyn SandboxProvider> =
        Arc::new(DockerProvider::connect(DockerConfig::default()).await?);
    let bench = Bench {
        provider: Arc::clone(&provider),
        image,
    };
    let attempts = styles
        .iter()
        .flat_map(|style| [(*style, Attempt::Solved, 1), (*style, Attempt::Untouched, 0)]);
    let bench = &bench;
    let judged = try_join_all(attempts.map(|(style, attempt, expected)| async move {
        let reward = run_style(bench, style, attempt).await?;
        Ok::<_, Failure>((style, attempt, reward, reward == expected))
    }))
    .await;
    // Also after a failure, which drops the other attempts.
    clear(&*provider).await?;
    let judged = judged?;
    let mut rows = vec![["style", "attempt", "reward", ""].map(str::to_owned).to_vec()];
    for (style, attempt, reward, is_right) in &judged {
        let word = if *is_right { "as expected" } else { "WRONG" };
        let attempt = match attempt {
            Attempt::Solved => "solved",
            Attempt::Untouched => "untouched",
        };
        rows.push(vec![
            (*style).to_owned(),
            attempt.to_owned(),
            reward.to_string(),
            word.to_owned(),
        ]);
    }
    print!("{}", table(&rows));
    let is_right = judged.iter().all(|(_, _, _, is_right)| *is_right);
    println!(
        "{}",
        if is_right {
            "every reward is right"
        } else {
            "a reward is wrong"
        }
    );
    Ok(verdict(is_right))
}

fn read() -> Result<(String, Vec<&'static str>), Failure> {
    let mut image = "gym-sandbox/busybox:test".to_owned();
    let mut chosen = Vec::new();
    let mut arguments = Arguments::of_process();
    while let Some(word) = arguments.option() {
        match STYLES.iter().find(|style| **style == word) {
            Some(style) => chosen.push(*style),
            None if word == "--image" => image = arguments.value(&word)?,
            None => return Err(unknown(&word, "--image, harbor, inspect and terminal-bench")),
        }
    }
    if chosen.is_empty() {
        chosen.extend(STYLES);
    }
    Ok((image, chosen))
}
