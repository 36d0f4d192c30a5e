//! Creating and starting one exec of the engine.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;

use bollard::container::LogOutput;
use bollard::errors::Error as BollardError;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::ExecConfig;
use futures::Stream;
use tokio::io::AsyncWrite;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::{ExecOptions, SandboxPtySpec, StartProblem, Stdin, User};

use super::super::DockerProvider;
use super::super::connect::EngineTime;
use super::super::failure::{EngineFailure, QUICK, call};
use super::super::starting::starting;
use super::guard::{KillGuard, KillTarget};
use super::{MARKER, classify, state};

/// How many bytes are read from the engine at once.
const READ_BYTES: usize = 64 * 1024;

pub(in crate::docker) type Output = Pin<Box<dyn Stream<Item = Result<LogOutput, BollardError>> + Send>>;

pub(in crate::docker) type Input = Pin<Box<dyn AsyncWrite + Send>>;

/// Names one exec of one container to its engine.
#[derive(Debug, Clone)]
pub(in crate::docker) struct ExecCall {
    pub(in crate::docker) client: bollard::Docker,
    pub(in crate::docker) container_id: String,
    pub(in crate::docker) exec_id: String,
    /// By the engine's clock, for a look at its events.
    pub(in crate::docker) started_at: EngineTime,
}

/// A started exec and its streams.
pub(in crate::docker) struct Running {
    pub(in crate::docker) exec: ExecCall,
    pub(in crate::docker) output: Output,
    pub(in crate::docker) input: Option<Input>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("exec", &self.exec)
            .finish_non_exhaustive()
    }
}

/// Why there is no running exec.
#[derive(Debug)]
pub(in crate::docker) enum Refusal {
    /// The command itself can't be started.
    Start(StartProblem, String),
    /// The engine or the state of the sandbox is in the way.
    Engine(EngineFailure),
}

impl Refusal {
    /// Says whether the command may run all the same, because the answer was lost.
    pub(in crate::docker) fn may_have_started(&self) -> bool {
        match self {
            Self::Start(..) => false,
            Self::Engine(failure) => !failure.began_nothing(),
        }
    }
}

impl ExecCall {
    /// The exec that a kill is about.
    pub(in crate::docker) async fn of(provider: &DockerProvider, target: &KillTarget) -> Result<Self> {
        let engine = provider.engine().await?;
        Ok(Self {
            client: engine.client.clone(),
            container_id: target.container_id.clone(),
            exec_id: target.exec_id.clone().unwrap_or_default(),
            started_at: engine.engine_now(),
        })
    }
}

impl Refusal {
    /// The error of a call that is no command: the state of the sandbox decides.
    pub(in crate::docker) async fn into_error(self, provider: &DockerProvider, container_id: &str) -> Error {
        match self {
            Self::Start(_, text) => Error::new(ErrorKind::Pty, Operation::Pty, text),
            Self::Engine(failure) => {
                let (reason, message) = state::sandbox_problem(provider, container_id, &failure).await;
                Error::new(ErrorKind::Sandbox(reason), Operation::Pty, message).with_source(failure)
            }
        }
    }
}

/// What the engine is asked to run.
pub(super) fn exec_config(options: &ExecOptions, argv: Vec<String>, marker: &str) -> ExecConfig {
    let mut env: Vec<String> = options
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    env.push(format!("{MARKER}={marker}"));
    ExecConfig {
        attach_stdin: Some(!matches!(options.stdin, Stdin::Empty)),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(false),
        env: Some(env),
        cmd: Some(argv),
        user: options.user.as_ref().map(|user| user.as_str().to_owned()),
        working_dir: options.cwd.clone(),
        ..ExecConfig::default()
    }
}

/// Starts a command. The guard is armed as soon as there may be something to kill.
pub(in crate::docker) async fn start(
    provider: &DockerProvider,
    container_id: &str,
    mut config: ExecConfig,
    guard: &mut KillGuard,
) -> Result<Running, Refusal> {
    config.privileged = provider.exec_defaults().privileged.then_some(true);
    let engine = provider.engine().await.map_err(|error| {
        Refusal::Engine(EngineFailure::Unreached {
            text: error.to_string(),
        })
    })?;
    let has_input = config.attach_stdin == Some(true);
    let _starting = starting(container_id).await;
    let started_at = engine.engine_now();
    let exec_id = call(QUICK, engine.client.create_exec(container_id, config))
        .await
        .map_err(refusal)?
        .id;
    guard.arm(&exec_id);
    let start = StartExecOptions {
        detach: false,
        tty: false,
        output_capacity: Some(READ_BYTES),
    };
    // The start answers when the process runs; under load, or with a slow runtime, that takes longer than other calls.
    let started = call(2 * QUICK, engine.client.start_exec(&exec_id, Some(start)))
        .await
        .map_err(refusal)?;
    match started {
        // The client waits for the answer before it hands the input out, so that no byte is lost (engine-facts S1).
        StartExecResults::Attached { output, input } => Ok(Running {
            exec: ExecCall {
                client: engine.client.clone(),
                container_id: container_id.to_owned(),
                exec_id,
                started_at,
            },
            output,
            input: has_input.then_some(input),
        }),
        StartExecResults::Detached => Err(Refusal::Engine(EngineFailure::Unreadable {
            text: "an attached exec was started detached".to_owned(),
        })),
    }
}

impl DockerProvider {
    /// Lays a command over what the configuration says of all of them.
    pub(super) fn with_exec_defaults(&self, mut options: ExecOptions) -> ExecOptions {
        self.lay_under(&mut options.env, &mut options.user, &mut options.cwd);
        options
    }

    /// The same for the program of a session.
    pub(in crate::docker) fn with_pty_defaults(&self, spec: &SandboxPtySpec) -> SandboxPtySpec {
        let mut spec = spec.clone();
        self.lay_under(&mut spec.env, &mut spec.user, &mut spec.cwd);
        spec
    }

    fn lay_under(
        &self,
        env: &mut BTreeMap<String, String>,
        user: &mut Option<User>,
        cwd: &mut Option<String>,
    ) {
        let defaults = self.exec_defaults();
        for (name, value) in &defaults.env {
            env.entry(name.clone()).or_insert_with(|| value.clone());
        }
        if user.is_none() {
            *user = defaults.user.as_deref().map(Into::into);
        }
        if cwd.is_none() {
            cwd.clone_from(&defaults.workdir);
        }
    }
}

/// Newer engines refuse an unknown user before the start (engine-facts S6).
fn refusal(failure: EngineFailure) -> Refusal {
    match failure.text() {
        Some(text) if failure.is_status(400) => {
            let problem = classify::start_problem(text);
            Refusal::Start(problem, text.to_owned())
        }
        _ => Refusal::Engine(failure),
    }
}
