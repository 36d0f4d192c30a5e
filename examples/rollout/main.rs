//! Agent rollouts: twelve candidate patches for one failing project, each judged in a sandbox of its own. Some of them
//! fix it; others loop for ever, leave daemons, eat all memory, print 200 MB, or pretend to be the engine.
//!
//! ```sh
//! cargo run --release --example rollout
//! ```
//!
//! All sandboxes run at the same time. Each gets the project, runs its tests (which must fail at first), applies its
//! patch, runs the tests again under a timeout, and gives back the report from which the reward is read. After a timeout
//! the judge looks for itself that no process of the run is left alive. The exit code is 0 only when every reward is the
//! expected one and nothing of the run is left on the engine.
//!
//! | option | variable | default |
//! |---|---|---|
//! | `--image REF` | `ROLLOUT_IMAGE` | `gym-sandbox/debian:test`; it needs `python3` and `git` |
//! | `--provider NAME` | `ROLLOUT_PROVIDER` | `docker`; `local` runs on this machine, **without isolation** and without the candidates that need a wall |
//! | `--folder DIR` | `ROLLOUT_FOLDER` | this folder: `project`, `patches`, `expected.json` and the judge's two programs |
//! | `--test-timeout-s N` | `ROLLOUT_TEST_TIMEOUT_S` | `45`: how long one run of the tests may take, which need about a second, and a patch that prints 200 MB some more |

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

mod candidate;
#[path = "../common/clear.rs"]
mod clear;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/table.rs"]
mod common_table;
#[path = "../common/expected.rs"]
mod expected;
mod judge;
mod story;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gym_sandbox::docker::{DockerConfig, DockerProvider};
use gym_sandbox::local::{LocalConfig, LocalProvider};
use gym_sandbox::{ErrorKind, SandboxHandle, SandboxProvider};

use common::{Arguments, Failure, ended, unknown};
use expected::{Summary, until_interrupt};
use judge::{Judge, Judgement, Place};

#[tokio::main]
async fn main() -> ExitCode {
    ended(async { run(Options::read()?).await }.await)
}

async fn run(options: Options) -> Result<ExitCode, Failure> {
    let mut candidates = candidate::read_all(&options.folder)?;
    let (provider, place): (Arc<dyn SandboxProvider>, Place) = match options.backend {
        Backend::Docker => {
            let provider = DockerProvider::connect(DockerConfig::default()).await?;
            (Arc::new(provider), Place::Sandbox)
        }
        Backend::Local => {
            eprintln!("not isolated: the rollouts run on this machine, as you");
            candidates.retain(|candidate| {
                let harmless = !candidate::needs_a_wall(candidate);
                if !harmless {
                    eprintln!("{} is left out: it needs a wall around it", candidate.name);
                }
                harmless
            });
            let folder = tempfile::tempdir()?;
            let config = LocalConfig::default()
                .with_shell("/bin/sh")
                .with_file_root(folder.path());
            (Arc::new(LocalProvider::new(config)?), Place::Below(folder))
        }
    };
    let judge = Judge::new(
        Arc::clone(&provider),
        options.image,
        options.folder,
        place,
        options.test_timeout,
    );
    let start = Instant::now();
    let judging = futures::future::join_all(candidates.iter().map(|candidate| judge.judge(candidate)));
    let judgements = match until_interrupt(&*provider, judging).await? {
        Ok(judgements) => judgements,
        Err(interrupted) => return Ok(interrupted),
    };
    let seconds = start.elapsed().as_secs_f64();
    print!("{}", table::of(&judgements));

    let left = left(&*provider, &judge.handles()).await?;
    provider.aclose().await?;
    let summary = Summary {
        total: total(&judgements),
        count: judgements.len(),
        wrong: judgements
            .iter()
            .filter(|judgement| !judgement.is_right())
            .count(),
        seconds,
        what: "candidates",
        left: &left,
        left_where: match options.backend {
            Backend::Docker => "on the engine",
            Backend::Local => "of the sandboxes",
        },
    };
    Ok(summary.tell())
}

fn total(judgements: &[Judgement]) -> f64 {
    judgements
        .iter()
        .filter_map(|judgement| judgement.reward.as_ref().ok())
        .sum()
}

/// Asks the engine for each sandbox that was made; those that it still knows are left.
async fn left(provider: &dyn SandboxProvider, handles: &[SandboxHandle]) -> Result<Vec<String>, Failure> {
    let inspect = provider
        .as_inspect()
        .ok_or("the provider can't say what is left")?;
    let mut left = Vec::new();
    for handle in handles {
        match inspect.inspect(handle).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Ok(_) => left.push(handle.sandbox_id().to_string()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(left)
}

/// What runs the rollouts.
#[derive(Clone, Copy)]
enum Backend {
    Docker,
    Local,
}

impl Backend {
    fn read(name: &str) -> Result<Self, Failure> {
        match name {
            "docker" => Ok(Self::Docker),
            "local" => Ok(Self::Local),
            other => Err(format!("unknown provider `{other}`; there are docker and local").into()),
        }
    }
}

struct Options {
    backend: Backend,
    image: String,
    folder: PathBuf,
    test_timeout: Duration,
}

fn seconds(text: &str) -> Result<Duration, Failure> {
    match text.parse() {
        Ok(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => Err(format!("`{text}` is no number of seconds").into()),
    }
}

impl Options {
    fn read() -> Result<Self, Failure> {
        let variable = |name, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
        let mut options = Self {
            backend: Backend::read(&variable("ROLLOUT_PROVIDER", "docker"))?,
            image: variable("ROLLOUT_IMAGE", "gym-sandbox/debian:test"),
            folder: variable(
                "ROLLOUT_FOLDER",
                concat!(env!("CARGO_MANIFEST_DIR"), "/examples/rollout"),
            )
            .into(),
            test_timeout: seconds(&variable("ROLLOUT_TEST_TIMEOUT_S", "45"))?,
        };
        let mut arguments = Arguments::of_process();
        while let Some(option) = arguments.option() {
            match option.as_str() {
                "--image" => options.image = arguments.value(&option)?,
                "--provider" => options.backend = Backend::read(&arguments.value(&option)?)?,
                "--folder" => options.folder = arguments.value(&option)?.into(),
                "--test-timeout-s" => options.test_timeout = seconds(&arguments.value(&option)?)?,
                _ => {
                    return Err(unknown(
                        &option,
                        "--provider, --image, --folder and --test-timeout-s",
                    ));
                }
            }
        }
        Ok(options)
    }
}
