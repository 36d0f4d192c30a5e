//! Carries out the plan of a provider without containers (contract section 4): a sandbox a service, its program run beside
//! what keeps the sandbox alive, as a command that ends with it. Knows no backend.
//!
//! | part | file |
//! |---|---|
//! | the sandboxes in order, names, waiting for others | `start.rs` |
//! | a service's program, its relay, its end, its output | `process.rs`, `run.sh` |
//! | its health | `health.rs` |
//! | the shared storage | `storage.rs`, `seed.sh` |
//! | taking it down | `stop.rs` |

mod health;
mod process;
mod start;
mod stop;
mod storage;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::{AbortHandle, JoinHandle};

use crate::compose::plan::GenericPlan;
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::SandboxProvider;
use crate::sandbox::AsyncSandbox;
use crate::spec::{ExecErrorType, ExecOptions, ExecResult, SandboxSpec};

use super::failure::kind_of;
use super::progress::{ComposeEvent, ProgressCallback, ServiceProgress};

pub(crate) use stop::remove_generic_in_background;

/// How long one of the short commands may take.
const SHORT: Duration = Duration::from_secs(60);

/// Who runs what has nothing to do with the service's own user.
const ROOT: &str = "0";

/// What all parts of a start or stop share.
pub(crate) struct GenericCrew {
    provider: Arc<dyn SandboxProvider>,
    pub(crate) plan: GenericPlan,
    progress: Option<ProgressCallback>,
    made: Mutex<Made>,
    /// What this start writes on what it makes in the shared storage.
    start: String,
}

/// Everything that exists because of one start.
#[derive(Default)]
struct Made {
    /// By the places of their services, which is the order in which they are made.
    services: BTreeMap<usize, Arc<AsyncSandbox>>,
    /// The programs and relays of services: they end when these are aborted.
    tasks: Vec<JoinHandle<()>>,
    /// The programs of services, until their hooks before a stop are run.
    programs: BTreeMap<usize, AbortHandle>,
    /// The sandbox with all of the storage, while the project's folder may be there.
    helper: Option<Arc<AsyncSandbox>>,
    /// Sandboxes that copy, and helpers that were killed; one that could not be removed is left here.
    seeds: Vec<Arc<AsyncSandbox>>,
}

impl GenericCrew {
    pub(crate) fn new(
        provider: Arc<dyn SandboxProvider>,
        plan: GenericPlan,
        progress: Option<ProgressCallback>,
    ) -> Self {
        Self {
            provider,
            plan,
            progress,
            made: Mutex::default(),
            start: uuid::Uuid::new_v4().simple().to_string(),
        }
    }

    /// The sandboxes of the services, in the order in which they were made.
    pub(crate) fn sandboxes(&self) -> Vec<(String, Arc<AsyncSandbox>)> {
        let made = self.made();
        let services = made.services.iter();
        services
            .map(|(&service, sandbox)| (self.plan.services[service].name.clone(), Arc::clone(sandbox)))
            .collect()
    }

    pub(crate) fn has_made_something(&self) -> bool {
        let made = self.made();
        !made.services.is_empty() || made.helper.is_some() || !made.seeds.is_empty()
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        // Maps and lists are only added to and taken from: a panic elsewhere leaves none half-way.
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sandbox(&self, service: usize) -> Result<Arc<AsyncSandbox>> {
        self.made().services.get(&service).cloned().ok_or_else(|| {
            let text = format!("service `{}` has no sandbox", self.plan.services[service].name);
            Error::new(ErrorKind::NotFound, Operation::ComposeUp, text)
        })
    }

    /// A sandbox that is not started yet.
    fn new_sandbox(&self, spec: SandboxSpec) -> Arc<AsyncSandbox> {
        Arc::new(AsyncSandbox::new(Arc::clone(&self.provider)).with_spec(spec))
    }

    fn say_service(&self, service: usize, progress: ServiceProgress) {
        if let Some(callback) = &self.progress {
            callback.call(&ComposeEvent::Service {
                service: self.plan.services[service].name.clone(),
                progress,
            });
        }
    }

    /// Where a service's sandbox keeps what its program says.
    fn folder(&self, service: usize) -> String {
        format!("/tmp/{}/{}", self.plan.project, self.plan.services[service].name)
    }
}

impl Drop for GenericCrew {
    fn drop(&mut self) {
        for task in &self.made().tasks {
            task.abort();
        }
    }
}

impl fmt::Debug for GenericCrew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GenericCrew")
            .field("project", &self.plan.project)
            .finish_non_exhaustive()
    }
}

/// A script with its arguments, run as root.
fn script(text: &str, arguments: &[&str]) -> ExecOptions {
    let mut argv = vec![
        "sh".to_owned(),
        "-c".to_owned(),
        text.to_owned(),
        "compose".to_owned(),
    ];
    argv.extend(arguments.iter().map(|&argument| argument.to_owned()));
    let mut options = ExecOptions::new(argv).with_user(ROOT).with_timeout(SHORT);
    // The service's own directory may not be there yet, or only be visible to its user.
    options.cwd = Some("/".to_owned());
    options
}

/// Runs a short command that must succeed.
async fn run_short(sandbox: &AsyncSandbox, what: &str, options: ExecOptions) -> Result<ExecResult> {
    checked(what, sandbox.exec_with(options).await?)
}

/// The result of a command that must have succeeded.
fn checked(what: &str, result: ExecResult) -> Result<ExecResult> {
    if result.is_success() {
        return Ok(result);
    }
    let kind = match result.error_type {
        Some(ExecErrorType::Start) => ErrorKind::Unsupported,
        _ => kind_of(&result),
    };
    let mut error = Error::new(
        kind,
        Operation::ComposeUp,
        format!(
            "{what} (code {}): {}",
            result.return_code,
            result.stderr().unwrap_or_default().trim_end().escape_debug()
        ),
    );
    if kind == ErrorKind::Unsupported {
        error = error.with_hint("on a provider without containers the image of a service must have `sh`");
    }
    Err(error)
}
