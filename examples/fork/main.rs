//! One prepared sandbox, many copies: prepares a project once, forks it, and shows how long that takes beside preparing
//! each sandbox for itself.
//!
//! ```sh
//! cargo run --release --example fork
//! ```
//!
//! Preparing copies the project in, makes a larger one of it and compiles it. The exit code is 0 only when every copy
//! has what was prepared, the forked set was there sooner, and nothing is left on the engine.
//!
//! | option | default |
//! |---|---|
//! | `--image REF` | `gym-sandbox/debian:test`; it needs `python3` |
//! | `--count N` | 16 |

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

#[path = "../common/mod.rs"]
mod common;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use gym_sandbox::docker::{DockerConfig, DockerProvider};
use gym_sandbox::{AsyncSandbox, ExecOptions, SandboxProvider, SandboxSpec};

use common::{Arguments, Failure, ended, unknown, verdict};

/// Makes 300 modules and compiles them: what a checkout and a build are elsewhere.
const PREPARE: &str = "set -e
for n in $(seq 300); do
    { echo \"def f$n(x):\"; for m in $(seq 20); do echo \"    x = x * $m + $n\"; done; echo '    return x'; } > m$n.py
done
python3 -m compileall -q .
echo prepared > state";

struct Options {
    image: String,
    count: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    ended(async { run(&Options::read()?).await }.await)
}

async fn run(options: &Options) -> Result<ExitCode, Failure> {
    let provider: Arc<dyn SandboxProvider> =
        Arc::new(DockerProvider::connect(DockerConfig::default()).await?);
    let count = options.count;
    println!(
        "{count} sandboxes of {}, each with the same prepared project",
        options.image
    );

    let began = Instant::now();
    let sandboxes = try_join_all((0..count).map(|_| prepared(&provider, &options.image))).await?;
    let alone = began.elapsed();
    println!("  each prepared for itself  {:>7.2} s", alone.as_secs_f64());
    try_join_all(sandboxes.iter().map(AsyncSandbox::stop)).await?;

    let began = Instant::now();
    let sandbox = prepared(&provider, &options.image).await?;
    let once = began.elapsed();
    let mut fork = sandbox.fork(count).await?;
    let forked = began.elapsed();
    println!(
        "  prepared once and forked  {:>7.2} s, of which {:.2} s are the preparation",
        forked.as_secs_f64(),
        once.as_secs_f64(),
    );
    let states = try_join_all(
        fork.sandboxes()
            .iter()
            .map(|copy| copy.exec("cat state; ls | wc -l")),
    )
    .await?;
    let whole = states
        .iter()
        .filter(|state| {
            state
                .stdout()
                .is_some_and(|text| text.starts_with("prepared\n303"))
        })
        .count();
    println!("  {whole} of {count} copies have everything");
    fork.stop().await?;
    sandbox.stop().await?;
    provider.aclose().await?;

    println!(
        "forking is {:.1} times as fast",
        alone.as_secs_f64() / forked.as_secs_f64()
    );
    Ok(verdict(whole == count && forked < alone))
}

/// A sandbox with the project in it, ready to work in.
async fn prepared(provider: &Arc<dyn SandboxProvider>, image: &str) -> Result<AsyncSandbox, Failure> {
    let spec = SandboxSpec::new(image)
        .with_workdir("/project")
        .with_file("/project/README", "a project\n");
    let sandbox = AsyncSandbox::new(Arc::clone(provider)).with_spec(spec);
    sandbox.start().await?;
    let prepare = ExecOptions::new(PREPARE).with_timeout(Duration::from_secs(600));
    let result = sandbox.exec_with(prepare).await?;
    if !result.is_success() {
        sandbox.stop().await?;
        return Err(format!("preparing failed: {result:?}").into());
    }
    Ok(sandbox)
}

impl Options {
    fn read() -> Result<Self, Failure> {
        let mut options = Self {
            image: "gym-sandbox/debian:test".to_owned(),
            count: 16,
        };
        let mut arguments = Arguments::of_process();
        while let Some(option) = arguments.option() {
            match option.as_str() {
                "--image" => options.image = arguments.value(&option)?,
                "--count" => options.count = arguments.value(&option)?.parse()?,
                _ => return Err(unknown(&option, "--image and --count")),
            }
        }
        Ok(options)
    }
}
