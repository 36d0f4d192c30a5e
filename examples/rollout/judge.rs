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

use crate::expected::{Expected, is_expected};
use crate::story;

const RUNNER: &str = "run_tests.py";
const PROCESSES: &str = "processes.py";
/// How long one run of the tests may take; they need about a second, and a patch that prints 200 MB some more.
const TEST_TIMEOUT: Duration = Duration::from_secs(45);
/// What a sandbox may use: a candidate that wants all of it must not slow down the others.
const MEMORY_MIB: u64 = 256;
const CPUS: f64 = 1.0;

/// Where a rollout has its files.
pub(crate) enum Place {
    /// At fixed places of a file system that is the sandbox's own.
    Sandbox,
    /// Below a folder of this machine, in one for each candidate.
    Below(tempfile::TempDir),
}

/// The directories of one rollout.
struct Directories {
    project: String,
    judge: String,
}

impl Directories {
    fn tool(&self, name: &str) -> String {
        format!("{}/{name}", self.judge)
    }
}

/// Judges candidates, each in a sandbox of its own.
pub(crate) struct Judge {
    place: Place,
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
    pub(crate) fn new(
        provider: Arc<dyn SandboxProvider>,
        image: String,
        folder: PathBuf,
        place: Place,
    ) -> Self {
        Self {
            place,
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
    pub(crate) async fn judge(&self, candidate: &Expected) -> Judgement {
        let start = Instant::now();
        let directories = self.directories(candidate);
        let spec = match self.place {
            Place::Sandbox => SandboxSpec::new(&self.image).with_resources(
                SandboxResources::default()
                    .with_memory_mib(MEMORY_MIB)
                    .with_cpu(CPUS),
            ),
            // This machine has neither images nor limits.
            Place::Below(_) => SandboxSpec::default(),
        };
        let spec = spec
            .with_workdir(&directories.project)
            .with_env("PYTHONDONTWRITEBYTECODE", "1")
            .with_metadata("rollout.candidate", &candidate.name);
        let verdict = AsyncSandbox::scope(Arc::clone(&self.provider), spec, async |sandbox| {
            self.handles
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(sandbox.handle());
            self.rollout(sandbox, candidate, &directories).await
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
            expected: candidate.reward,
            reward,
            exit,
            duration: start.elapsed(),
            story,
        }
    }

    fn directories(&self, candidate: &Expected) -> Directories {
        let root = match &self.place {
            Place::Sandbox => String::new(),
            Place::Below(folder) => folder.path().join(&candidate.name).display().to_string(),
        };
        Directories {
            project: format!("{root}/work"),
            judge: format!("{root}/judge"),
        }
    }

    /// The processes that live in the sandbox. None where it has none of its own.
    async fn processes(
        &self,
        sandbox: &AsyncSandbox,
        directories: &Directories,
    ) -> Result<BTreeSet<u32>, Error> {
        match self.place {
            Place::Sandbox => processes(sandbox, &directories.tool(PROCESSES)).await,
            Place::Below(_) => Ok(BTreeSet::new()),
        }
    }

    async fn rollout(
        &self,
        sandbox: &AsyncSandbox,
        candidate: &Expected,
        directories: &Directories,
    ) -> Result<Verdict, Error> {
        let project = directories.project.as_str();
        sandbox.upload(self.folder.join("project"), project).await?;
        for name in [RUNNER, PROCESSES] {
            sandbox
                .upload(self.folder.join(name), directories.tool(name))
                .await?;
        }

        let (_, before) = self.run_tests(sandbox, directories, "before").await?;
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
        let ours = self.processes(sandbox, directories).await?;

        let patch = directories.tool("candidate.patch");
        sandbox.upload(&candidate.file, &patch).await?;
        let applied = sandbox.exec(["git", "apply", &patch]).await?;
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
            .upload(self.folder.join("project/tests"), format!("{project}/tests"))
            .await?;

        let (result, after) = self.run_tests(sandbox, directories, "after").await?;
        let exit = Some(result.return_code);
        if result.error_type == Some(ExecErrorType::Timeout) {
            let alive = self.processes(sandbox, directories).await?;
            if !alive.is_subset(&ours) || result.survivors.is_some_and(|survivors| survivors > 0) {
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
        directories: &Directories,
        name: &str,
    ) -> Result<(ExecResult, Option<Report>), Error> {
        let remote = directories.tool(&format!("{name}.json"));
        let (runner, project) = (directories.tool(RUNNER), directories.project.as_str());
        let run = ExecOptions::new(["python3", &runner, project, &remote]).with_timeout(TEST_TIMEOUT);
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
            .is_ok_and(|&reward| is_expected(reward, self.expected))
    }
}

/// The processes that live in the sandbox.
async fn processes(sandbox: &AsyncSandbox, tool: &str) -> Result<BTreeSet<u32>, Error> {
    let listed = sandbox.exec(["python3", tool]).await?;
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
