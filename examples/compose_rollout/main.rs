//! Rollouts of a task of several services: eight candidate solutions for one application, each judged in a copy of the
//! whole project of its own. All copies are up at the same time.
//!
//! ```sh
//! cargo run --release --example compose_rollout
//! ```
//!
//! The project is `project/compose.yaml`: a store with a health check, a one-shot service that fills it, an application,
//! and a container for the tests. Each copy runs the tests (which must fail at first), gets its candidate's `answer.py`,
//! runs the tests again, and is taken down. Some candidates are wrong in ways that only a judge outside of the
//! application sees: one has written the answers down, one alters the store, one ends the application. The exit code is
//! 0 only when every reward is the expected one and nothing of the copies is left on the engine.
//!
//! | option | default |
//! |---|---|
//! | `--image REF` | `gym-sandbox/debian:test`; it needs `python3`, and must be there: nothing is pulled |
//! | `--folder DIR` | this folder: `project`, `candidates` and `expected.json` |
//! | `--shared-network NAME` | a bridge for each copy; with a name that network for all, see `docs/compose.md` |

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

#[path = "../common/clear.rs"]
mod clear;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/table.rs"]
mod common_table;
#[path = "../common/expected.rs"]
mod expected;
mod judge;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use futures::future::join_all;
use gym_sandbox::SandboxProvider;
use gym_sandbox::docker::{DockerConfig, DockerProvider};

use common::{Arguments, Failure, ended, unknown};
use common_table::table;
use expected::{Summary, read_expected, until_interrupt};
use judge::{Judge, Judgement, Task};

#[tokio::main]
async fn main() -> ExitCode {
    ended(async { run(read()?).await }.await)
}

async fn run(task: Task) -> Result<ExitCode, Failure> {
    let candidates = read_expected(&task.folder, "candidates", "py")?;
    let provider: Arc<dyn SandboxProvider> =
        Arc::new(DockerProvider::connect(DockerConfig::default()).await?);
    let judge = Judge::new(Arc::clone(&provider), task);
    let start = Instant::now();
    let judging = join_all(candidates.iter().map(|candidate| judge.judge(candidate)));
    let judgements = match until_interrupt(&*provider, judging).await? {
        Ok(judgements) => judgements,
        Err(interrupted) => return Ok(interrupted),
    };
    let seconds = start.elapsed().as_secs_f64();
    let head = ["candidate", "reward", "up", "all", "what happened"].map(str::to_owned);
    let mut rows = vec![head.to_vec()];
    rows.extend(judgements.iter().map(Judgement::row));
    print!("{}", table(&rows));

    let left = judge.left().await?;
    provider.aclose().await?;
    let summary = Summary {
        total: judgements.iter().filter_map(Judgement::reward).sum(),
        count: judgements.len(),
        wrong: judgements
            .iter()
            .filter(|judgement| !judgement.is_right())
            .count(),
        seconds,
        what: "copies",
        left: &left,
        left_where: "on the engine",
    };
    Ok(summary.tell())
}

fn read() -> Result<Task, Failure> {
    let mut task = Task {
        folder: concat!(env!("CARGO_MANIFEST_DIR"), "/examples/compose_rollout").into(),
        image: "gym-sandbox/debian:test".to_owned(),
        shared_network: None,
    };
    let mut arguments = Arguments::of_process();
    while let Some(option) = arguments.option() {
        match option.as_str() {
            "--folder" => task.folder = arguments.value(&option)?.into(),
            "--image" => task.image = arguments.value(&option)?,
            "--shared-network" => task.shared_network = Some(arguments.value(&option)?),
            _ => return Err(unknown(&option, "--image, --folder and --shared-network")),
        }
    }
    Ok(task)
}
