//! Sessions of the agent: they live in the sandbox, and are joined from anywhere (contract D25, Z8).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gym_sandbox_agent::protocol::{
    AttachRequest, ClientMessage, ExecRequest, INPUT_WINDOW_BYTES, SessionRequest,
};
use tokio::sync::watch;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::PtySession;
use crate::spec::{ExecReason, ExecResult, PtyAttachOptions, PtyMode, SandboxId, SandboxPtySpec};

use super::super::pty::core::{Core, Taps};
use super::super::{DockerProvider, DockerRaw, PROVIDER};
use super::command::user_for;
use super::ending;
use super::link::Lost;
use super::mailbox::{Mailbox, WINDOW_BYTES};
use super::resident::Route;
use super::terminal_close::{Closing, Home};
use super::terminal_pump::{ANSWER, Line, NotJoined, Pump};
use super::terminal_session::AgentPty;

const ENOENT: i32 = 2;
const EBUSY: i32 = 16;

const NOT_STARTED: &str = "the session could not be started";
const NOT_JOINED: &str = "the session could not be joined";

impl DockerProvider {
    /// Starts a session by the agent; None where the engine is to do it.
    pub(in crate::docker) async fn create_pty_by_agent(
        &self,
        id: &SandboxId,
        raw: &DockerRaw,
        spec: &SandboxPtySpec,
        argv: &[String],
    ) -> Result<Option<Arc<dyn PtySession>>> {
        // The agent can't give a program more than the sandbox has.
        if self.exec_defaults().privileged {
            return Ok(None);
        }
        let connection = match raw.agent.route(self, &raw.container_id).await {
            Route::Agent(connection) => connection,
            Route::Engine => return Ok(None),
            Route::Ended(result) => return Err(unusable(id, &result)),
        };
        let Some(user) = user_for(&connection, spec.user.as_ref()) else {
            return Ok(None);
        };
        let name = uuid::Uuid::new_v4().simple().to_string();
        let env = spec.env.iter();
        let exec = ExecRequest {
            id: name.clone().into_bytes(),
            argv: argv
                .iter()
                .map(|argument| argument.clone().into_bytes())
                .collect(),
            env: env
                .map(|(name, value)| format!("{name}={value}").into_bytes())
                .collect(),
            cwd: spec.cwd.clone().unwrap_or_default().into_bytes(),
            user,
            has_input: true,
            keep_on_disconnect: true,
            timeout_ms: 0,
            kill_wait_ms: 0,
            stdout_credit: WINDOW_BYTES,
            stderr_credit: WINDOW_BYTES,
        };
        let request = SessionRequest {
            name: name.clone().into_bytes(),
            is_terminal: spec.mode == PtyMode::Pty,
            rows: spec.rows,
            cols: spec.cols,
            exec,
        };
        let opened = connection
            .open_with(&ClientMessage::OpenSession(Box::new(request)), INPUT_WINDOW_BYTES)
            .await;
        let opened = match opened {
            Ok(opened) => opened,
            Err(Lost(why)) => return Err(self.not_had(id, raw, NOT_STARTED, &why).await),
        };
        let line = Line {
            link: connection,
            channel: opened.channel,
            mailbox: opened.mailbox,
        };
        // What is given up from here on is closed (contract Z11).
        let closing = Closing::new(self.home(raw), name.clone(), line.clone());
        let started = tokio::time::timeout(ANSWER, until_started(&line.mailbox)).await;
        match started {
            Ok(Ok(())) => {}
            Ok(Err(NotStarted::Failed(result))) => {
                closing.disarm();
                line.link.forget(line.channel);
                let message = result.message.unwrap_or_default();
                let core = Core::ended(id, &name, spec.mode, &message, result.return_code);
                return Ok(Some(Arc::new(AgentPty {
                    core,
                    line: watch::Sender::new(line).subscribe(),
                    home: self.home(raw),
                    is_creator: false,
                    replay_offset: 0,
                    writing: tokio::sync::Mutex::default(),
                    is_let_go: AtomicBool::new(true),
                })));
            }
            Ok(Err(NotStarted::Lost(why))) => return Err(self.not_had(id, raw, NOT_STARTED, &why).await),
            Err(_) => {
                let why = "the agent does not answer";
                return Err(self.not_had(id, raw, NOT_STARTED, why).await);
            }
        }
        closing.disarm();
        let (core, taps) = Core::new(id, &name, spec.mode);
        Ok(Some(self.joined(raw, core, taps, line, true, [0, 0])))
    }

    /// Joins a session of the agent.
    pub(in crate::docker) async fn attach_pty_by_agent(
        &self,
        id: &SandboxId,
        raw: &DockerRaw,
        name: &str,
        options: PtyAttachOptions,
    ) -> Result<Arc<dyn PtySession>> {
        let mut lost: Arc<str> = "the connection was lost".into();
        // What was lost on the way has taken nothing that a second try does not take again.
        for _ in 0..2 {
            let connection = match raw.agent.route(self, &raw.container_id).await {
                Route::Agent(link) => link,
                Route::Engine => {
                    return Err(Error::unsupported(
                        Operation::Pty,
                        PROVIDER,
                        "attaching to PTY sessions in a sandbox without the agent",
                    )
                    .with_sandbox(id)
                    .with_hint("set `exec.exec_path` to `auto` or `agent` where the sandbox is made"));
                }
                Route::Ended(result) => return Err(unusable(id, &result)),
            };
            let request = AttachRequest {
                name: name.as_bytes().to_vec(),
                takeover: options.takeover,
                stdout_since: options.since.unwrap_or(u64::MAX),
                // A number of standard output says nothing about errors: all that is kept, or what comes.
                stderr_since: if options.since.is_some() { 0 } else { u64::MAX },
                stdout_credit: WINDOW_BYTES,
                stderr_credit: WINDOW_BYTES,
            };
            match Line::attach(connection, request).await {
                Ok(line) => {
                    let attached = line.mailbox.news().attached.unwrap_or_default();
                    let mode = if attached.is_terminal {
                        PtyMode::Pty
                    } else {
                        PtyMode::Pipe
                    };
                    let (core, taps) = Core::new(id, name, mode);
                    let offsets = [attached.stdout_offset, attached.stderr_offset];
                    return Ok(self.joined(raw, core, taps, line, false, offsets));
                }
                Err(NotJoined::Refused(ENOENT)) => {
                    return Err(
                        pty_error(id, format!("there is no session `{}`", name.escape_debug())).with_hint(
                            "it may have been closed, or ended and then gone to make room for others",
                        ),
                    );
                }
                Err(NotJoined::Refused(EBUSY)) => {
                    return Err(pty_error(id, "the session is held by another client".to_owned())
                        .with_hint("attach with `takeover` to have it all the same"));
                }
                Err(NotJoined::Refused(errno)) => {
                    return Err(pty_error(id, format!("the agent refuses (errno {errno})")));
                }
                Err(NotJoined::Lost(why)) => lost = why,
            }
        }
        Err(self.not_had(id, raw, NOT_JOINED, &lost).await)
    }

    /// The error of a session that was lost before it was had: what is with its sandbox comes first.
    async fn not_had(&self, id: &SandboxId, raw: &DockerRaw, what: &str, why: &str) -> Error {
        match ending::out_of_reach(self, &raw.container_id, &raw.agent).await {
            Some(result) => unusable(id, &result),
            None => pty_error(id, format!("{what}: {why}")),
        }
    }

    fn home(&self, raw: &DockerRaw) -> Home {
        Home {
            provider: self.clone(),
            container_id: raw.container_id.clone(),
            resident: Arc::clone(&raw.agent),
        }
    }

    fn joined(
        &self,
        raw: &DockerRaw,
        core: Arc<Core>,
        taps: Taps,
        line: Line,
        is_creator: bool,
        offsets: [u64; 2],
    ) -> Arc<dyn PtySession> {
        let line = watch::Sender::new(line);
        let session = AgentPty {
            core: Arc::clone(&core),
            line: line.subscribe(),
            home: self.home(raw),
            is_creator,
            replay_offset: offsets[0],
            writing: tokio::sync::Mutex::default(),
            is_let_go: AtomicBool::new(false),
        };
        let pump = Pump {
            core,
            home: self.home(raw),
            line,
            offsets,
            barren: 0,
        };
        tokio::spawn(pump.run(taps));
        Arc::new(session)
    }
}

enum NotStarted {
    Failed(Box<ExecResult>),
    Lost(Arc<str>),
}

async fn until_started(mailbox: &Mailbox) -> std::result::Result<(), NotStarted> {
    loop {
        let news = mailbox.news();
        if let Some(failed) = &news.start_failed {
            return Err(NotStarted::Failed(Box::new(ending::start_failed(failed))));
        }
        if news.started {
            return Ok(());
        }
        if let Some(why) = news.lost {
            return Err(NotStarted::Lost(why));
        }
        mailbox.changed().await;
    }
}

fn pty_error(id: &SandboxId, message: String) -> Error {
    Error::new(ErrorKind::Pty, Operation::Pty, message).with_sandbox(id)
}

/// The error for a sandbox that can run nothing.
fn unusable(id: &SandboxId, result: &ExecResult) -> Error {
    let kind = match result.reason {
        Some(ExecReason::Sandbox(reason)) => ErrorKind::Sandbox(reason),
        _ => ErrorKind::Pty,
    };
    let message = result.message.clone();
    Error::new(
        kind,
        Operation::Pty,
        message.unwrap_or_else(|| "the sandbox can run nothing".to_owned()),
    )
    .with_sandbox(id)
}
