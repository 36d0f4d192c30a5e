//! What happens in each sandbox: upload, a failing run, the patch, a second run, and the report back.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gym_sandbox::{
    AsyncSandbox, Error, ErrorKind, ExecErrorType, ExecOptions, ExecResult, PathProblem, SandboxHandle,
    SandboxProvider, SandboxResources, SandboxSpec,
};
use serde::Deserialize;

use crate::candidate::Candidate;
use crate::story;

const PROJECT: &str = "/work";
const RUNNER: &str = "/judge/run_tests.py";
const PROCESSES: &str = "/judge/processes.py";
/// How long one run of the tests may take; they need about a second.
const TEST_TIMEOUT: Duration = Duration::from_secs(15);
/// What a sandbox may use: a candidate that wants all of it must not slow down the others.
const MEMORY_MIB: u64 = 256;
const CPUS: f64 = 1.0;

/// Judges candidates, each in a sandbox of its own.
pub(crate) struct Judge {
    provider: Arc<dyn SandboxProvider>,
    image: String,
    folder: PathBuf,
    handles: Mutex<Vec<SandboxHandle>>,
}

/// What came of one candidate.
pub(crate) struct Judgement {
    pub(crate) name: String,
    pub(crate) expected: f64,
    /// The reward, or why none could be given: then it is the judge that failed, and not the candidate.
    pub(crate) reward: Result<f64, Error>,
    /// The exit code of the second run.
    pub(crate) exit: Option<i32>,
    /// From create to removal.
    pub(crate) duration: Duration,
    pub(crate) story: String,
}

/// What `run_tests.py` writes.
#[derive(Deserialize)]
struct Report {
    tests: usize,
    failed: Vec<String>,
    reward: f64,
}

/// What happened in a sandbox.
struct Verdict {
    reward: f64,
    exit: Option<i32>,
    story: String,
}

impl Judge {
    pub(crate) fn new(provider: Arc<dyn SandboxProvider>, image: String, folder: PathBuf) -> Self {
        Self {
            provider,
            image,
            folder,
            handles: Mutex::new(Vec::new()),
        }
    }

    /// The handles of all sandboxes that were made.
    pub(crate) fn handles(&self) -> Vec<SandboxHandle> {
        self.handles
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Judges one candidate. The sandbox is removed on every way out.
    pub(crate) async fn judge(&self, candidate: &Candidate) -> Judgement {
        let start = Instant::now();
        let spec = SandboxSpec::new(&self.image)
            .with_workdir(PROJECT)
            .with_resources(
                SandboxResources::default()
                    .with_memory_mib(MEMORY_MIB)
                    .with_cpu(CPUS),
            )
            .with_env("PYTHONDONTWRITEBYTECODE", "1")
            .with_metadata("rollout.candidate", &candidate.name);
        let verdict = AsyncSandbox::scope(Arc::clone(&self.provider), spec, async |sandbox| {
            self.handles
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(sandbox.handle());
            self.rollout(sandbox, candidate).await
        })
        .await;
        let (reward, exit, story) = match verdict {
            Ok(verdict) => (Ok(verdict.reward), verdict.exit, verdict.story),
            Err(error) => {
                let story = format!("not judged: {error}");
                (Err(error), None, story)
            }
        };
        Judgement {
            name: candidate.name.clone(),
            expected: candidate.expected,
            reward,
            exit,
            duration: start.elapsed(),
            story,
        }
    }

    async fn rollout(&self, sandbox: &AsyncSandbox, candidate: &Candidate) -> Result<Verdict, Error> {
        sandbox.upload(self.folder.join("project"), PROJECT).await?;
        for tool in [RUNNER, PROCESSES] {
            let name = tool.trim_start_matches("/judge/");
            sandbox.upload(self.folder.join(name), tool).await?;
        }

        let (_, before) = self.run_tests(sandbox, "before").await?;
        let worthless = |exit, story| {
            Ok(Verdict {
                reward: 0.0,
                exit,
                story,
            })
        };
        let Some(before) = before.filter(|report| !report.failed.is_empty()) else {
            return Err(unfit("the project's tests did not fail before the patch"));
        };
        let ours = processes(sandbox).await?;

        sandbox.upload(&candidate.patch, "/judge/candidate.patch").await?;
        let applied = sandbox.exec(["git", "apply", "/judge/candidate.patch"]).await?;
        if !applied.is_success() {
            return worthless(
                None,
                format!("the patch does not apply: {}", story::last_line(&applied)),
            );
        }
        // The tests are the judge's: whatever a patch does to them is undone.
        let removed = sandbox.exec(["rm", "-rf", "tests"]).await?;
        if !removed.is_success() {
            return Err(unfit("the patched tests could not be removed"));
        }
        sandbox
            .upload(self.folder.join("project/tests"), format!("{PROJECT}/tests"))
            .await?;

        let (result, after) = self.run_tests(sandbox, "after").await?;
        let exit = Some(result.return_code);
        if result.error_type == Some(ExecErrorType::Timeout) {
            let alive = processes(sandbox).await?;
            if !alive.is_subset(&ours) {
                return Err(unfit("processes of a test run live on after its timeout"));
            }
        }
        let Some(after) = after else {
            return worthless(exit, story::without_report(&result, TEST_TIMEOUT));
        };
        let failed = after.failed.len();
        if failed > 0 {
            let first = after
                .failed
                .first()
                .and_then(|id| id.rsplit('.').next())
                .unwrap_or_default();
            let story = format!("{failed} of {} tests fail, the first is {first}", after.tests);
            return Ok(Verdict {
                reward: after.reward,
                exit,
                story,
            });
        }
        if after.tests != before.tests {
            return worthless(
                exit,
                format!("{} tests ran, {} did before", after.tests, before.tests),
            );
        }
        Ok(Verdict {
            reward: after.reward,
            exit,
            story: format!("all {} tests pass{}", after.tests, story::output(&result)),
        })
    }

    /// Runs the tests under the timeout and fetches the report. None where the run wrote none.
    async fn run_tests(
        &self,
        sandbox: &AsyncSandbox,
        name: &str,
    ) -> Result<(ExecResult, Option<Report>), Error> {
        let remote = format!("/judge/{name}.json");
        let run = ExecOptions::new(["python3", RUNNER, PROJECT, &remote]).with_timeout(TEST_TIMEOUT);
        let result = sandbox.exec_with(run).await?;
        let folder =
            tempfile::tempdir().map_err(|error| local(error, "no folder for the report can be made"))?;
        let file = folder.path().join("report.json");
        match sandbox.download(&remote, &file).await {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Path(PathProblem::NotFound) => {
                return Ok((result, None));
            }
            Err(error) => return Err(error),
        }
        let text = std::fs::read(file).map_err(|error| local(error, "the report can't be read"))?;
        // A report that a candidate has spoilt is none.
        Ok((result, serde_json::from_slice(&text).ok()))
    }
}

impl Judgement {
    /// Says whether the candidate got what it is worth.
    pub(crate) fn is_right(&self) -> bool {
        self.reward
            .as_ref()
            .is_ok_and(|reward| (reward - self.expected).abs() < 1e-9)
    }
}

/// The processes that live in the sandbox.
async fn processes(sandbox: &AsyncSandbox) -> Result<BTreeSet<u32>, Error> {
    let listed = sandbox.exec(["python3", PROCESSES]).await?;
    if !listed.is_success() {
        return Err(unfit("the processes of the sandbox can't be listed"));
    }
    let text = listed.stdout().unwrap_or_default();
    text.lines()
        .map(|line| {
            line.parse()
                .map_err(|_| unfit("the list of processes holds more than ids"))
        })
        .collect()
}

fn unfit(text: &'static str) -> Error {
    Error::new(ErrorKind::Internal, gym_sandbox::Operation::Exec, text)
}

fn local(error: std::io::Error, text: &'static str) -> Error {
    Error::new(ErrorKind::Io, gym_sandbox::Operation::Download, text).with_source(error)
}
