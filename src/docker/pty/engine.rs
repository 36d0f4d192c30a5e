//! A session over the hijacked stream of an engine's exec.
//!
//! The exec is created with a terminal and started without: the first decides what the program gets, the second how its
//! bytes come. So they always come in frames, and the client's decoder, which else guesses by the first byte of a chunk
//! whether there are frames, has nothing to guess (engine-facts, notes on B36).

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bollard::exec::ResizeExecOptions;
use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::task::AbortHandle;

use crate::error::{Error, ErrorKind, Operation, Result, SandboxReason};
use crate::provider::PtySession;
use crate::spec::{ExecPath, PtyMode, SandboxId, SandboxPtySpec, check_terminal_size};

use super::super::exec::{
    ExecCall, Input, KillGuard, KillTarget, Refusal, is_paused, kill_tree, signal_group, signal_name, start,
};
use super::super::failure::{EngineFailure, QUICK, call};
use super::super::lanes::Lane;
use super::super::{DockerProvider, DockerRaw, PROVIDER};
use super::core::{Core, Over};
use super::pump::Pump;
use super::request;

/// How long a close waits for the end of the program; then it is done in the background.
const CLOSE: Duration = Duration::from_secs(20);

pub(super) struct EnginePty {
    core: Arc<Core>,
    provider: DockerProvider,
    /// None when the program could not be started.
    running: Option<Running>,
}

struct Running {
    exec_id: String,
    input: tokio::sync::Mutex<Option<Input>>,
    /// Kills the program's tree when the session is dropped.
    guard: Arc<Mutex<KillGuard>>,
    task: AbortHandle,
    /// Resizes go to the engine one after the other, so that the last one asked for is the last one done.
    resizing: tokio::sync::Mutex<()>,
}

impl Running {
    fn guard(&self) -> MutexGuard<'_, KillGuard> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a session.
pub(super) async fn create(
    provider: &DockerProvider,
    id: &SandboxId,
    raw: &DockerRaw,
    spec: &SandboxPtySpec,
    argv: Vec<String>,
) -> Result<Arc<dyn PtySession>> {
    let api = provider
        .engine()
        .await
        .map_err(|error| error.with_sandbox(id))?
        .api_version;
    let mut guard = KillGuard::new(provider, raw, spec.user.as_ref());
    let marker = guard.marker().to_owned();
    let config = request::exec_config(spec, argv, raw.shell.as_deref(), &marker, api);
    // A session may live as long as its sandbox: it holds a slot only while it is started.
    let slot = provider.lanes().slot(Lane::Exec).await?;
    let started = start(provider, &raw.container_id, config, &mut guard).await;
    drop(slot);
    let running = match started {
        Ok(running) => running,
        Err(Refusal::Start(problem, text)) => {
            guard.disarm();
            let core = Core::ended(id, &marker, spec.mode, &text, problem.return_code());
            return Ok(Arc::new(EnginePty {
                core,
                provider: provider.clone(),
                running: None,
            }));
        }
        Err(refusal) => {
            if !refusal.may_have_started() {
                guard.disarm();
            }
            return Err(refusal
                .into_error(provider, &raw.container_id)
                .await
                .with_sandbox(id));
        }
    };
    let (core, taps) = Core::new(id, &marker, spec.mode);
    let guard = Arc::new(Mutex::new(guard));
    let exec = running.exec.clone();
    let pump = Pump {
        core: Arc::clone(&core),
        provider: provider.clone(),
        guard: Arc::clone(&guard),
        exec: exec.clone(),
        word: Vec::new(),
    };
    let task = tokio::spawn(pump.run(running.output, taps)).abort_handle();
    let session = EnginePty {
        core,
        provider: provider.clone(),
        running: Some(Running {
            exec_id: exec.exec_id,
            input: tokio::sync::Mutex::new(running.input),
            guard,
            task,
            resizing: tokio::sync::Mutex::default(),
        }),
    };
    if request::needs_resize(spec, api) {
        // For an image that can't set it from inside; a program that has ended by now needs none.
        let _unset = session.resize(spec.rows, spec.cols).await.is_err();
    }
    Ok(Arc::new(session))
}

impl EnginePty {
    fn running(&self) -> Result<&Running> {
        self.core.check_live()?;
        self.running
            .as_ref()
            .ok_or_else(|| self.core.error(&Over::Closed))
    }

    fn target(running: &Running) -> KillTarget {
        running.guard().target().clone()
    }

    /// Why a program lives on that could not be killed from inside. None where it has ended, or is gone with its sandbox.
    async fn why_not_killed(&self, target: &KillTarget) -> Option<Error> {
        let exec = match ExecCall::of(&self.provider, target).await {
            Ok(exec) => exec,
            Err(error) => return Some(error),
        };
        match call(CLOSE, exec.client.inspect_exec(&exec.exec_id)).await {
            Ok(inspected) if inspected.running == Some(true) => {
                if is_paused(&self.provider, &exec.container_id).await {
                    return Some(Self::paused());
                }
                Some(self.no_shell("closing a session"))
            }
            Ok(_) | Err(EngineFailure::Refused { .. }) => None,
            Err(failure) => Some(failure.into_error(
                Operation::Pty,
                "whether the program of the session has ended is not known",
                ErrorKind::Pty,
            )),
        }
    }

    fn paused() -> Error {
        Error::new(
            ErrorKind::Sandbox(SandboxReason::Paused),
            Operation::Pty,
            "the sandbox is paused, so that the program of the session could not be ended",
        )
        .with_hint("resume the sandbox within a minute, and it is; or remove the sandbox")
    }

    fn no_shell(&self, what: &str) -> Error {
        Error::unsupported(
            Operation::Pty,
            PROVIDER,
            &format!("{what} in a sandbox that has no shell or does not run"),
        )
        .with_sandbox(&self.core.sandbox_id)
        .with_hint("the engine has no call for it, and it is done by a shell inside the sandbox; remove the sandbox instead")
    }
}

#[async_trait]
impl PtySession for EnginePty {
    fn session_id(&self) -> &str {
        &self.core.session_id
    }

    fn mode(&self) -> PtyMode {
        self.core.mode
    }

    fn exec_path(&self) -> ExecPath {
        ExecPath::Engine
    }

    fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    fn replay_offset(&self) -> u64 {
        0
    }

    async fn read(&self) -> Result<Bytes> {
        self.core.read().await
    }

    async fn read_stderr(&self) -> Result<Bytes> {
        self.core.read_stderr().await
    }

    async fn write(&self, bytes: &[u8]) -> Result<()> {
        let running = self.running()?;
        let writing = async {
            let mut input = running.input.lock().await;
            match input.as_mut() {
                Some(input) => {
                    input.write_all(bytes).await?;
                    input.flush().await
                }
                None => Err(std::io::ErrorKind::BrokenPipe.into()),
            }
        };
        self.core.while_live(writing).await?.map_err(|error| {
            self.core
                .pty_error(format!("the session takes no input: {error}"))
        })
    }

    async fn close_input(&self) -> Result<()> {
        let running = self.running()?;
        if self.core.mode == PtyMode::Pty {
            return Err(self.core.no_input_end(PROVIDER));
        }
        let closing = async {
            if let Some(mut input) = running.input.lock().await.take() {
                // A program that has closed its end already needs none.
                let _closed = input.shutdown().await;
            }
        };
        self.core.while_live(closing).await
    }

    async fn resize(&self, rows: u16, cols: u16) -> Result<()> {
        check_terminal_size(Operation::Pty, rows, cols)?;
        let running = self.running()?;
        if self.core.mode == PtyMode::Pipe {
            return Err(self.core.no_size(PROVIDER));
        }
        let resizing = async {
            let _turn = running.resizing.lock().await;
            let engine = self.provider.engine().await?;
            let options = ResizeExecOptions {
                height: rows,
                width: cols,
            };
            call(QUICK, engine.client.resize_exec(&running.exec_id, options))
                .await
                .map_err(|failure| {
                    failure
                        .into_error(
                            Operation::Pty,
                            "the engine did not resize the terminal",
                            ErrorKind::Pty,
                        )
                        .with_sandbox(&self.core.sandbox_id)
                })
        };
        self.core.while_live(resizing).await?
    }

    async fn send_signal(&self, name: &str) -> Result<()> {
        let signal = signal_name(name, Operation::Pty)?;
        let running = self.running()?;
        match signal_group(&self.provider, &Self::target(running), signal).await {
            Some(true) => Ok(()),
            Some(false) => {
                self.core.check_live()?;
                Err(self
                    .core
                    .pty_error("the program of the session was not found".to_owned()))
            }
            None => Err(self.no_shell("signals")),
        }
    }

    async fn wait_exit(&self) -> Result<i32> {
        self.core.wait_exit().await
    }

    async fn close(&self) -> Result<()> {
        let was_running = self.core.exit().is_none();
        if !self.core.end(Over::Closed) || !was_running {
            if let (Some(Over::Lost(_)), Some(running)) = (self.core.over(), &self.running) {
                // It may live on where it can't be reached now.
                running.guard().fire();
            }
            return Ok(());
        }
        let Some(running) = &self.running else {
            return Ok(());
        };
        let target = Self::target(running);
        let killing = kill_tree(&self.provider, &target);
        let outcome = match tokio::time::timeout(CLOSE, killing).await {
            Ok(Some(0)) => {
                running.guard().disarm();
                return Ok(());
            }
            // What lives on although it was killed is pursued by the guard.
            Ok(Some(_)) => return Ok(()),
            Ok(None) => self.why_not_killed(&target).await,
            Err(_) => Some(EngineFailure::Deadline(CLOSE).into_error(
                Operation::Pty,
                "the program of the session was not ended in time; it is when the engine can",
                ErrorKind::Timeout,
            )),
        };
        let Some(error) = outcome else { return Ok(()) };
        running.guard().fire();
        Err(error.with_sandbox(&self.core.sandbox_id))
    }

    async fn detach(&self) -> Result<()> {
        Err(Error::unsupported(
            Operation::Pty,
            PROVIDER,
            "sessions that outlive their connection without the agent",
        )
        .with_sandbox(&self.core.sandbox_id)
        .with_hint("set `exec.exec_path` to `auto` or `agent`"))
    }
}

impl Drop for EnginePty {
    fn drop(&mut self) {
        self.core.end(Over::Closed);
        if let Some(running) = &self.running {
            // The task is dropped some time after this, and `aclose` may not wait for it.
            running.guard().fire();
            running.task.abort();
        }
    }
}

impl fmt::Debug for EnginePty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnginePty")
            .field("core", &self.core)
            .finish_non_exhaustive()
    }
}
