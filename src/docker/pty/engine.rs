//! A session over the hijacked stream of an engine's exec.
//!
//! The exec is created with a terminal and started without: the first decides what the program gets, the second how its
//! bytes come. So they always come in frames, and the client's decoder, which else guesses by the first byte of a chunk
//! whether there are frames, has nothing to guess (engine-facts, notes on B36).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bollard::container::LogOutput;
use bollard::exec::ResizeExecOptions;
use bytes::Bytes;
use futures::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::PtySession;
use crate::spec::{ExecPath, PtyMode, SandboxId, SandboxPtySpec, check_terminal_size};

use super::super::exec::{
    ExecCall, ExitLook, Input, KillGuard, Output, Refusal, exit_of, kill_tree, look_for_exit, signal_group,
    signal_name, start,
};
use super::super::failure::{QUICK, call};
use super::super::lanes::Lane;
use super::super::{DockerProvider, DockerRaw, PROVIDER};
use super::core::{Core, Over, Taps};
use super::request;

/// How often the engine is asked whether a program has exited while nobody reads its output.
const LOOKS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

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

/// Reads a session's stream to its end, and then asks how the program ended.
struct Pump {
    core: Arc<Core>,
    provider: DockerProvider,
    guard: Arc<Mutex<KillGuard>>,
    exec: ExecCall,
}

impl Pump {
    async fn run(self, mut output: Output, mut taps: Taps) {
        let mut broken = None;
        while let Some(chunk) = output.next().await {
            let (tap, bytes) = match chunk {
                Ok(LogOutput::StdOut { message } | LogOutput::Console { message }) => {
                    (&mut taps.stdout, message)
                }
                Ok(LogOutput::StdErr { message }) => (&mut taps.stderr, message),
                Ok(LogOutput::StdIn { .. }) => continue,
                Err(error) => {
                    broken = Some(error.to_string());
                    break;
                }
            };
            if let Some(sender) = tap {
                self.put(sender, bytes).await;
            }
        }
        // The engine may still know the code of a program whose stream broke, but not what it had printed.
        if let Some(why) = broken {
            self.core.end(Over::Lost(
                format!("the connection to the engine broke: {why}").into(),
            ));
            return;
        }
        match exit_of(&self.exec).await {
            Ok(code) => self.note_exit(code),
            Err(failure) => {
                let why = Refusal::Engine(failure)
                    .into_error(&self.provider, &self.exec.container_id)
                    .await;
                self.core.end(Over::Lost(why.to_string().into()));
            }
        }
        drop(taps);
    }

    /// Hands a chunk to whoever reads. While nobody does, the program's exit is looked for; after the end of the session
    /// chunks are dropped, so that the engine is not held up.
    async fn put(&self, sender: &mpsc::Sender<Bytes>, bytes: Bytes) {
        let sending = sender.send(bytes);
        tokio::pin!(sending);
        let mut pause = LOOKS.0;
        loop {
            tokio::select! {
                biased;
                _sent = &mut sending => return,
                _over = self.core.until_over() => return,
                () = tokio::time::sleep(pause), if self.core.exit().is_none() => {
                    if let ExitLook::Exited(code) = look_for_exit(&self.exec).await {
                        self.note_exit(code);
                    }
                    pause = (pause * 2).min(LOOKS.1);
                }
            }
        }
    }

    fn note_exit(&self, code: i64) {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner).disarm();
        self.core.note_exit(i32::try_from(code).unwrap_or(i32::MAX));
    }
}

impl EnginePty {
    fn running(&self) -> Result<&Running> {
        self.core.check_live()?;
        self.running
            .as_ref()
            .ok_or_else(|| self.core.error(&Over::Closed))
    }

    fn target(running: &Running) -> super::super::exec::KillTarget {
        running
            .guard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .target()
            .clone()
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
            return Err(super::no_input_end(&self.core.sandbox_id));
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
            return Err(super::no_size(&self.core.sandbox_id));
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
            return Ok(());
        }
        let Some(running) = &self.running else {
            return Ok(());
        };
        let target = Self::target(running);
        let report = kill_tree(&self.provider, &target).await;
        if report.is_some_and(|left| left == 0) {
            running
                .guard
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .disarm();
            return Ok(());
        }
        match look_for_exit(&ExecCall::of(&self.provider, &target).await?).await {
            ExitLook::Running if report.is_none() => Err(self.no_shell("closing a session")),
            // What lives on although it was killed is pursued by the guard.
            _ => Ok(()),
        }
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
            running
                .guard
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .fire();
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
