//! Commands through terminal sessions: which session serves, and reading a command to its end (contract Y5-Y13).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::PtySession;
use crate::spec::{
    Capture, CapturedOutput, DEFAULT_OUTPUT_CAP_BYTES, ExecErrorType, ExecPath, ExecResult, PtyMode,
    check_terminal_size,
};

use super::line::{Errors, Line, Search, Status};
use super::{PtyExecOptions, SandboxPty, SandboxPtySession, State};

/// How long the error output of a command in a session is read after its end.
const STDERR_DRAIN: Duration = Duration::from_millis(50);

/// How long the end of a session may take that nobody needs any more.
const CLOSE: Duration = Duration::from_secs(20);

/// When a command has run out of time.
#[derive(Clone, Copy)]
struct Limit {
    began: Instant,
    timeout: Option<Duration>,
}

impl Limit {
    /// None when the time is over first.
    async fn within<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        match self.timeout.and_then(|timeout| self.began.checked_add(timeout)) {
            Some(deadline) => tokio::time::timeout_at(deadline, future).await.ok(),
            None => Some(future.await),
        }
    }

    fn timed_out(&self, what: &str, path: ExecPath) -> ExecResult {
        let timeout = self.timeout.unwrap_or_default();
        ExecResult::timed_out(format!("the command did not end in {timeout:?}{what}"), path)
    }
}

impl SandboxPty<'_> {
    /// Runs a command in a terminal.
    ///
    /// - With a session it is typed into that session's shell, whose directory and variables persist (contract Y12).
    ///   Directory, variables and user can't be given then; size and mode are those of the session (contract Y5).
    /// - Without one, and with nothing but the command asked for, it is typed into the oldest living session that was
    ///   [created](Self::create) without a command, if there is one (contract Y6).
    /// - Else it gets a session of its own, which is closed in every case (contract Y7).
    ///
    /// Commands that are typed into sessions take turns. A timeout in the caller's session leaves it open, but it should
    /// not be used any more; the implicitly used one is closed (contract Y10, Y11). A typed command has its input from
    /// /dev/null, and what the shell echoes is a part of its output (contract Y8).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for bad arguments; [`ErrorKind::Unsupported`], [`ErrorKind::NotStarted`],
    /// [`ErrorKind::Stopped`]; [`ErrorKind::Pty`] when a command has ended the shell of its session (contract Y9).
    /// Everything else is in the result (contract D2).
    ///
    /// # Cancel safety
    /// Dropping the future ends a session of its own in the background. One that the command was typed into should not
    /// be used any more, and serves no command by itself.
    pub async fn exec(&self, options: impl Into<PtyExecOptions> + Send) -> Result<ExecResult> {
        let options = options.into();
        options.command.check(Operation::Pty)?;
        let limit = Limit {
            began: Instant::now(),
            timeout: options.timeout(),
        };
        let result = if let Some(session) = &options.session {
            if options.cwd.is_some() || !options.env.is_empty() || options.user.is_some() {
                return Err(Error::invalid(
                    Operation::Pty,
                    "directory, variables and user can't be given with a session",
                )
                .with_hint("create another session with them, or set them in the command"));
            }
            self.exec_in(session, &options, limit, Owner::Caller).await
        } else {
            check_terminal_size(Operation::Pty, options.rows, options.cols)?;
            let shell = self.state().default_shell();
            match shell.filter(|_| options.is_unshaped() && !options.detach) {
                Some(shell) => {
                    let shell = SandboxPtySession::new(shell);
                    self.exec_in(&shell, &options, limit, Owner::Sandbox).await
                }
                None => self.exec_alone(&options, limit).await,
            }
        };
        result.map(|mut result| {
            result.duration = limit.began.elapsed();
            if options.detach {
                result.merged_output = true;
                if result.exec_path == ExecPath::Engine {
                    result.hint = Some(
                        "the command was not detached: without the agent its connection was held to its end"
                            .to_owned(),
                    );
                }
            }
            result
        })
    }

    /// Runs it in a session of its own.
    async fn exec_alone(&self, options: &PtyExecOptions, limit: Limit) -> Result<ExecResult> {
        let created = match limit.within(self.create_private(options.spec())).await {
            Some(Ok(session)) => session,
            Some(Err(error)) => {
                return match error.kind() {
                    ErrorKind::Sandbox(reason) => Ok(ExecResult::sandbox_failure(
                        reason,
                        error.to_string(),
                        ExecPath::Engine,
                    )),
                    _ => Err(error),
                };
            }
            None => return Ok(limit.timed_out("", ExecPath::Engine)),
        };
        let mut output = Output::new(&created);
        let drained = limit.within(output.drain(&created)).await;
        // What could not be closed in time goes on to be closed in the background.
        let _closed = tokio::time::timeout(CLOSE, created.close()).await;
        match drained {
            Some(code) => Ok(output.finish(ExecResult::new(code?, created.exec_path()))),
            None => Ok(output.finish(limit.timed_out("", created.exec_path()))),
        }
    }

    /// Types it into a session.
    async fn exec_in(
        &self,
        session: &SandboxPtySession,
        options: &PtyExecOptions,
        limit: Limit,
        owner: Owner,
    ) -> Result<ExecResult> {
        let path = session.exec_path();
        let Some(_turn) = limit.within(self.state().turn.lock()).await else {
            return Ok(limit.timed_out(
                ": other commands had the sessions of this sandbox all the time",
                path,
            ));
        };
        let line = Line::new();
        // What is told of as one stream is printed as one (contract Y13).
        let errors = if options.detach {
            Errors::WithOutput
        } else {
            Errors::Apart
        };
        let keys = line.keys(&options.command, errors);
        let mut search = line.search(DEFAULT_OUTPUT_CAP_BYTES);
        let mut stderr = Capture::new(DEFAULT_OUTPUT_CAP_BYTES);
        let abandoned = Abandoned {
            state: self.state(),
            session: Some(session.shared()),
        };
        let typed = limit
            .within(type_in(session, keys.as_bytes(), &mut search, &mut stderr))
            .await;
        abandoned.disarm();
        let stdout = |search: Search| search.finish();
        let Some(status) = typed else {
            let what = match owner {
                Owner::Caller => "; it may go on in its session, which should be discarded",
                Owner::Sandbox => "; its session was closed",
            };
            if owner == Owner::Sandbox {
                self.state().forget(session.shared());
                let _closed = tokio::time::timeout(CLOSE, session.close()).await;
            }
            let result = limit.timed_out(what, path);
            return Ok(result.with_output(stdout(search), stderr.finish()));
        };
        let mut result = match status? {
            Status::Code(code) => ExecResult::new(code, path),
            Status::Unreadable => {
                let mut result = ExecResult::new(125, path);
                result.error_type = Some(ExecErrorType::Pty);
                result.message = Some("the session's shell told no exit code that can be read".to_owned());
                result
            }
        };
        drain_stderr(session, &mut stderr).await;
        let stderr = stderr.finish();
        result.merged_output = stderr.total_bytes() == 0;
        Ok(result.with_output(stdout(search), stderr))
    }
}

/// Whose session a command is typed into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Caller,
    /// The one that was found without being named.
    Sandbox,
}

/// Sees to it that a session serves no other command by itself when the future of one in it is dropped: what comes next
/// would be typed into that command.
struct Abandoned<'a> {
    state: &'a State,
    session: Option<&'a Arc<dyn PtySession>>,
}

impl Abandoned<'_> {
    fn disarm(mut self) {
        self.session = None;
    }
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.session {
            self.state.forget(session);
        }
    }
}

/// Types and reads until the marker has come, at the same time: the echo of long lines has to be read, too.
async fn type_in(
    session: &SandboxPtySession,
    keys: &[u8],
    search: &mut Search,
    stderr: &mut Capture,
) -> Result<Status> {
    let typing = session.write(keys);
    let reading = async {
        loop {
            let piece = session.read().await?;
            if piece.is_empty() {
                return Err(Error::new(
                    ErrorKind::Pty,
                    Operation::Pty,
                    "the session ended before its command did; the command may have ended the shell",
                ));
            }
            if let Some(status) = search.push(&piece) {
                return Ok(status);
            }
        }
    };
    let errors = async {
        while session.mode() == PtyMode::Pipe
            && let Ok(piece) = session.read_stderr().await
            && !piece.is_empty()
        {
            stderr.push(&piece);
        }
        std::future::pending::<()>().await;
    };
    tokio::pin!(typing, reading, errors);
    let mut typed = false;
    loop {
        tokio::select! {
            status = &mut reading => return status,
            written = &mut typing, if !typed => {
                written?;
                typed = true;
            }
            () = &mut errors => {}
        }
    }
}

async fn drain_stderr(session: &SandboxPtySession, stderr: &mut Capture) {
    if session.mode() != PtyMode::Pipe {
        return;
    }
    let until = Instant::now() + STDERR_DRAIN;
    while let Ok(Ok(piece)) = tokio::time::timeout_at(until, session.read_stderr()).await
        && !piece.is_empty()
    {
        stderr.push(&piece);
    }
}

/// What a session of its own has printed.
struct Output {
    streams: [Capture; 2],
    mode: PtyMode,
}

impl Output {
    fn new(session: &SandboxPtySession) -> Self {
        Self {
            streams: [0, 1].map(|_| Capture::new(DEFAULT_OUTPUT_CAP_BYTES)),
            mode: session.mode(),
        }
    }

    /// Reads both streams and waits for the exit, all at once (contract Y7).
    async fn drain(&mut self, session: &SandboxPtySession) -> Result<i32> {
        let [stdout, stderr] = &mut self.streams;
        let output = async {
            loop {
                match session.read().await {
                    Ok(piece) if piece.is_empty() => return Ok(()),
                    Ok(piece) => stdout.push(&piece),
                    Err(error) => return Err(error),
                }
            }
        };
        let errors = async {
            loop {
                match session.read_stderr().await {
                    Ok(piece) if piece.is_empty() => return Ok(()),
                    Ok(piece) => stderr.push(&piece),
                    Err(error) => return Err(error),
                }
            }
        };
        let (code, (), ()) = tokio::try_join!(session.wait_exit(), output, errors)?;
        Ok(code)
    }

    fn finish(self, mut result: ExecResult) -> ExecResult {
        let [stdout, stderr]: [CapturedOutput; 2] = self.streams.map(Capture::finish);
        result.merged_output = self.mode == PtyMode::Pty;
        result.with_output(stdout, stderr)
    }
}

/// Reads a session to its end.
pub(super) async fn drain(session: &SandboxPtySession) -> Result<ExecResult> {
    let mut output = Output::new(session);
    let code = output.drain(session).await?;
    Ok(output.finish(ExecResult::new(code, session.exec_path())))
}
