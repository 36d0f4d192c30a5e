//! Background services: what a provider must do, and a way to do it with commands alone, for providers whose sandboxes
//! have a `sh`.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::{
    CapturedOutput, Command, DEFAULT_OUTPUT_CAP_BYTES, ExecErrorType, ExecOptions, ExecReason, ExecResult,
    ServiceSpec, ServiceStatus, StartProblem, check_service_name,
};

use super::{SandboxHandle, SandboxProvider};

/// Where the services of a sandbox keep their notes.
const FOLDER: &str = "/tmp/.gym-sandbox-services";

const START: &str = include_str!("start.sh");
const LOGS: &str = include_str!("logs.sh");
const STATUS: &str = include_str!("status.sh");
const SIGNAL: &str = include_str!("signal.sh");

/// How much of the beginning of a service's output is kept, and at least of its end: what `service_logs` gives.
const LOG_PART_BYTES: usize = DEFAULT_OUTPUT_CAP_BYTES / 2;

/// How long one of the scripts may take.
const SCRIPT: Duration = Duration::from_secs(60);

/// How long a killed service may take to be gone.
const AFTER_KILL: Duration = Duration::from_secs(30);

/// Programs that run beside the commands of a sandbox (contract L16).
#[async_trait]
pub trait ServicesProvider: SandboxProvider {
    /// Runs a command after which services that it started live on. They must send their output elsewhere.
    ///
    /// # Errors
    /// As [`SandboxProvider::exec`]; [`ErrorKind::InvalidArgument`] for variables or a user of the call.
    ///
    /// # Cancel safety
    /// As [`SandboxProvider::exec`].
    async fn exec_with_services(&self, handle: &SandboxHandle, options: ExecOptions) -> Result<ExecResult>;

    /// Starts a service. It runs until it ends, is stopped, or the sandbox is gone; who started it may go away.
    ///
    /// # Behavior
    /// - The output of an earlier service of that name is replaced.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] while a service of that name runs; [`ErrorKind::InvalidArgument`];
    /// [`ErrorKind::Sandbox`] when the sandbox runs no commands.
    ///
    /// # Cancel safety
    /// Dropping the future may leave the service started or not.
    async fn start_service(&self, handle: &SandboxHandle, spec: &ServiceSpec) -> Result<()>;

    /// Says what a service is doing; None for one that was never started.
    ///
    /// # Errors
    /// [`ErrorKind::Sandbox`] when the sandbox runs no commands.
    async fn service_status(&self, handle: &SandboxHandle, name: &str) -> Result<Option<ServiceStatus>>;

    /// Gives what a service printed, standard output and standard error together: the first and the last 8 MiB.
    /// No more than that is kept in the sandbox, up to 30 MiB.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for one that was never started; [`ErrorKind::Sandbox`].
    async fn service_logs(&self, handle: &SandboxHandle, name: &str) -> Result<CapturedOutput>;

    /// Asks a service to end (`TERM`), kills it when it has not after that time, and says what became of it; None for
    /// one that was never started. One that has ended is left as it is.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] when it can't be killed; [`ErrorKind::Sandbox`].
    ///
    /// # Cancel safety
    /// Dropping the future may leave the service; call it again.
    async fn stop_service(
        &self,
        handle: &SandboxHandle,
        name: &str,
        grace: Duration,
    ) -> Result<Option<ServiceStatus>>;
}

/// Services by commands: a `sh` of the sandbox starts them, watches them and writes down what came of them.
pub(crate) struct ByCommands<'a> {
    provider: &'a dyn SandboxProvider,
    handle: &'a SandboxHandle,
}

/// A service that was found, and who runs it.
enum Found {
    Running { uid: String },
    Exited { code: Option<i32> },
}

impl From<Found> for ServiceStatus {
    fn from(found: Found) -> Self {
        match found {
            Found::Running { .. } => Self::Running,
            Found::Exited { code } => Self::Exited { code },
        }
    }
}

impl<'a> ByCommands<'a> {
    pub(crate) fn new(provider: &'a dyn SandboxProvider, handle: &'a SandboxHandle) -> Self {
        Self { provider, handle }
    }

    pub(crate) async fn start(&self, spec: &ServiceSpec) -> Result<()> {
        spec.check(Operation::Service)?;
        let argv = match &spec.command {
            Command::Argv(argv) => argv.clone(),
            Command::Shell(line) => vec!["sh".to_owned(), "-c".to_owned(), line.clone()],
        };
        let mut arguments = vec![folder(&spec.name), spec.name.clone(), LOG_PART_BYTES.to_string()];
        arguments.extend(argv);
        let mut options = script(START, arguments);
        options.cwd.clone_from(&spec.cwd);
        options.user.clone_from(&spec.user);
        options.env.clone_from(&spec.env);
        let result = self.run(options).await?;
        let refused = |kind, text: String| Err(self.error(kind, text));
        match result.return_code {
            0 => Ok(()),
            121 => {
                let text = format!("service `{}` runs already", spec.name);
                Err(self
                    .error(ErrorKind::Conflict, text)
                    .with_hint("stop it first, or give this one another name"))
            }
            120 => {
                let text = format!(
                    "the user of service `{0}` can't write to `{FOLDER}/{0}` in the sandbox",
                    spec.name
                );
                Err(self.error(ErrorKind::Unsupported, text).with_hint(
                    "a read-only sandbox needs a tmpfs at `/tmp`; a name that another user's service has had is that user's",
                ))
            }
            code => refused(
                ErrorKind::Internal,
                format!("service `{}` did not begin (code {code})", spec.name),
            ),
        }
    }

    pub(crate) async fn status(&self, name: &str) -> Result<Option<ServiceStatus>> {
        check_service_name(Operation::Service, name)?;
        Ok(self.find(name).await?.map(ServiceStatus::from))
    }

    pub(crate) async fn logs(&self, name: &str) -> Result<CapturedOutput> {
        check_service_name(Operation::Service, name)?;
        let result = self.run(script(LOGS, vec![folder(name)])).await?;
        match result.return_code {
            0 => {
                let lost = result.stderr().and_then(|said| said.trim().parse().ok());
                Ok(result.captured_stdout.with_lost(lost.unwrap_or(0)))
            }
            120 => Err(self.error(ErrorKind::NotFound, format!("there was never a service `{name}`"))),
            code => Err(self.error(
                ErrorKind::Internal,
                format!("the output of service `{name}` can't be read (code {code})"),
            )),
        }
    }

    pub(crate) async fn stop(&self, name: &str, grace: Duration) -> Result<Option<ServiceStatus>> {
        check_service_name(Operation::Service, name)?;
        for (signal, patience) in [("TERM", grace), ("KILL", AFTER_KILL)] {
            let uid = match self.find(name).await? {
                None => return Ok(None),
                Some(Found::Running { uid }) => uid,
                Some(ended @ Found::Exited { .. }) => return Ok(Some(ended.into())),
            };
            // Who runs it may signal it also where root has no capability left.
            let arguments = vec![name.to_owned(), signal.to_owned()];
            self.run(script(SIGNAL, arguments).with_user(uid.as_str()))
                .await?;
            // None is later than there is a time for.
            let deadline = Instant::now().checked_add(patience);
            loop {
                if let Some(ended @ Found::Exited { .. }) = self.find(name).await? {
                    return Ok(Some(ended.into()));
                }
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Err(self.error(
            ErrorKind::Timeout,
            format!("service `{name}` was killed and does not end"),
        ))
    }

    async fn find(&self, name: &str) -> Result<Option<Found>> {
        let result = self.run(script(STATUS, vec![folder(name)])).await?;
        let said = result.stdout().unwrap_or_default();
        parse_status(&said).map_err(|()| {
            self.error(
                ErrorKind::Internal,
                format!("the sandbox says of service `{name}` what can't be understood"),
            )
        })
    }

    /// Runs a script; what keeps it from running is an error.
    async fn run(&self, options: ExecOptions) -> Result<ExecResult> {
        let result = self.provider.exec(self.handle, options).await?;
        let text = result.message.clone().unwrap_or_default();
        let kind = match (result.error_type, result.reason) {
            (None, _) => return Ok(result),
            (_, Some(ExecReason::Sandbox(reason))) => ErrorKind::Sandbox(reason),
            (Some(ExecErrorType::Timeout), _) => ErrorKind::Timeout,
            (_, Some(ExecReason::Start(StartProblem::NotFound))) => {
                return Err(self
                    .error(ErrorKind::Unsupported, "the sandbox has no `sh`".to_owned())
                    .with_hint(
                        "services are started and watched by one; run the program as the entrypoint instead",
                    ));
            }
            (_, Some(ExecReason::Start(StartProblem::User | StartProblem::Cwd))) => {
                ErrorKind::InvalidArgument
            }
            _ => ErrorKind::Internal,
        };
        Err(self.error(kind, text))
    }

    fn error(&self, kind: ErrorKind, text: String) -> Error {
        Error::new(kind, Operation::Service, text).with_sandbox(self.handle.sandbox_id())
    }
}

fn folder(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

fn script(text: &str, arguments: Vec<String>) -> ExecOptions {
    let mut argv = vec![
        "sh".to_owned(),
        "-c".to_owned(),
        text.to_owned(),
        "service".to_owned(),
    ];
    argv.extend(arguments);
    ExecOptions::new(argv).with_timeout(SCRIPT)
}

/// What the script says comes out of the sandbox: anything else than its few words is refused.
fn parse_status(said: &str) -> std::result::Result<Option<Found>, ()> {
    let mut words = said.trim_end().split(' ');
    let found = match (words.next(), words.next(), words.next()) {
        (Some("none"), None, None) => None,
        (Some("lost"), None, None) => Some(Found::Exited { code: None }),
        (Some("running"), Some(uid), None) => Some(Found::Running {
            uid: uid.parse::<u32>().map_err(|_| ())?.to_string(),
        }),
        (Some("exited"), Some(code), None) => Some(Found::Exited {
            code: Some(code.parse().map_err(|_| ())?),
        }),
        _ => return Err(()),
    };
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_script_says_is_read_strictly() {
        let read = |said: &str| parse_status(said).map(|found| found.map(ServiceStatus::from));
        for (said, expected) in [
            ("none\n", None),
            ("running 0\n", Some(ServiceStatus::Running)),
            ("exited 3\n", Some(ServiceStatus::Exited { code: Some(3) })),
            ("lost\n", Some(ServiceStatus::Exited { code: None })),
        ] {
            assert_eq!(read(said), Ok(expected), "{said}");
        }
        for said in [
            "",
            "running",
            "running x",
            "running -1",
            "exited",
            "exited x y",
            "none 1",
            "$(reboot)",
        ] {
            assert_eq!(read(said), Err(()), "{said}");
        }
    }

    #[test]
    fn names_stay_within_the_folder() {
        for name in ["web", "a.b-c_1", &"x".repeat(64)] {
            ServiceSpec::new(name, "true").check(Operation::Service).unwrap();
        }
        for name in ["", ".", "..", "a/b", "-a", "a b", "é", &"x".repeat(65)] {
            let error = ServiceSpec::new(name, "true")
                .check(Operation::Service)
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{name}");
        }
    }
}
