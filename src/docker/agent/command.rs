//! Commands by the agent, from options to result (contract D1-D6, D31, D32).

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use gym_sandbox_agent::protocol::{ClientMessage, ExecRequest, MAX_MESSAGE_BYTES};
use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{ExecSession, Following};
use crate::spec::{Command, ExecOptions, ExecPath, ExecResult, SandboxId, StartProblem, Stdin, User};

use super::super::config::OnTimeout;
use super::super::connect::EngineTime;
use super::super::exec::output::Outputs;
use super::super::{DockerProvider, DockerRaw};
use super::drive::{self, Deadline, End, KILL_WAIT, Running};
use super::ending;
use super::link::{Link, Lost};
use super::mailbox::{Killed, WINDOW_BYTES};
use super::resident::{Resident, Route};
use super::session::AgentExec;

/// Capabilities that running commands as any user takes: KILL, SETGID and SETUID.
const SWITCH_USERS: u64 = 1 << 5 | 1 << 6 | 1 << 7;

/// What came of giving a command to the agent.
pub(in crate::docker) enum Started {
    /// It was sent.
    Sent(Box<Sent>),
    /// It was not sent, and the engine is to run it.
    Engine,
    /// It was not run, and this is its result.
    Ended(Box<ExecResult>),
}

/// A command that was sent, and its limits.
pub(in crate::docker) struct Sent {
    running: Running,
    agent: Arc<Resident>,
    began: Instant,
    started_at: EngineTime,
    timeout: Option<Duration>,
    deadline: Option<Deadline>,
}

/// What is asked of the agent: the options but for the input, which can't be shared between threads.
struct Asked<'a> {
    command: &'a Command,
    env: &'a BTreeMap<String, String>,
    cwd: Option<&'a str>,
    user: Option<&'a User>,
    has_input: bool,
    timeout: Option<Duration>,
}

impl DockerProvider {
    /// Runs a command by the agent; gives it back where the engine is to run it.
    pub(in crate::docker) async fn run_by_agent(
        &self,
        id: &SandboxId,
        raw: &DockerRaw,
        options: ExecOptions,
    ) -> Result<ControlFlow<ExecResult, ExecOptions>> {
        let sent = match Box::pin(self.start_by_agent(raw, &options)).await {
            Started::Sent(sent) => *sent,
            Started::Ended(result) => return Ok(ControlFlow::Break(*result)),
            Started::Engine => return Ok(ControlFlow::Continue(options)),
        };
        let outputs = Outputs::capturing(options.output_cap.bytes());
        let finishing = Box::pin(self.finish_by_agent(&raw.container_id, sent, options.stdin, &outputs));
        let result = finishing.await.map_err(|error| error.with_sandbox(id))?;
        Ok(ControlFlow::Break(result))
    }

    /// Gives a command to the agent where there is one that can run it.
    pub(in crate::docker) fn start_by_agent(
        &self,
        raw: &DockerRaw,
        options: &ExecOptions,
    ) -> impl Future<Output = Started> + Send {
        let asked = Asked {
            command: &options.command,
            env: &options.env,
            cwd: options.cwd.as_deref(),
            user: options.user.as_ref(),
            has_input: !matches!(options.stdin, Stdin::Empty),
            timeout: self.exec_timeout(options.timeout),
        };
        self.start_bounded_by_agent(raw, asked)
    }

    async fn start_bounded_by_agent(&self, raw: &DockerRaw, asked: Asked<'_>) -> Started {
        // The agent can't give a command more than the sandbox has.
        if self.exec_defaults().privileged {
            return Started::Engine;
        }
        let began = Instant::now();
        let timeout = asked.timeout;
        let sending = self.send_to_agent(raw, &asked, began);
        // A timeout beyond what a clock can say is none.
        match timeout.and_then(|timeout| began.checked_add(timeout)) {
            Some(deadline) => match tokio::time::timeout_at(deadline, sending).await {
                Ok(started) => started,
                // Dropped on its way it was either not sent or is killed by its guard.
                Err(_) => Started::Ended(Box::new(timed_out(began, timeout))),
            },
            None => sending.await,
        }
    }

    async fn send_to_agent(&self, raw: &DockerRaw, asked: &Asked<'_>, began: Instant) -> Started {
        let timeout = asked.timeout;
        loop {
            let link = match raw.agent.route(self, &raw.container_id).await {
                Route::Agent(link) => link,
                Route::Engine => return Started::Engine,
                Route::Ended(result) => return Started::Ended(result),
            };
            let Some(user) = user_for(&link, asked.user) else {
                return Started::Engine;
            };
            let Some(argv) = argv(asked.command, raw.shell.as_deref()) else {
                return Started::Ended(Box::new(ExecResult::start_failure(
                    StartProblem::NotFound,
                    "the image has no shell to run a shell line with; give the command as a list",
                    ExecPath::Agent,
                )));
            };
            let deadline = timeout
                .and_then(|timeout| began.checked_add(timeout))
                .map(|at| Deadline {
                    at,
                    by_agent: self.config().exec.on_timeout == OnTimeout::KillTree,
                });
            let request = ExecRequest {
                id: uuid::Uuid::new_v4().simple().to_string().into_bytes(),
                argv,
                env: asked
                    .env
                    .iter()
                    .map(|(name, value)| format!("{name}={value}").into_bytes())
                    .collect(),
                cwd: asked.cwd.unwrap_or_default().as_bytes().to_vec(),
                user,
                has_input: asked.has_input,
                keep_on_disconnect: false,
                timeout_ms: deadline
                    .filter(|deadline| deadline.by_agent)
                    .map_or(0, remaining_ms),
                kill_wait_ms: u32::try_from(KILL_WAIT.as_millis()).unwrap_or(u32::MAX),
                stdout_credit: WINDOW_BYTES,
                stderr_credit: WINDOW_BYTES,
            };
            if !fits(&request) {
                return Started::Ended(Box::new(ExecResult::start_failure(
                    StartProblem::TooLong,
                    "arguments and environment are longer than Linux passes to a program",
                    ExecPath::Agent,
                )));
            }
            let Ok(engine) = self.engine().await else {
                return Started::Engine;
            };
            let started_at = engine.engine_now();
            match link.exec(request).await {
                Ok(opened) => {
                    let running = Running::new(self, &raw.container_id, link, opened);
                    return Started::Sent(Box::new(Sent {
                        running,
                        agent: Arc::clone(&raw.agent),
                        began,
                        started_at,
                        timeout,
                        deadline,
                    }));
                }
                // Nothing was sent: the next round finds another way.
                Err(Lost(why)) => tracing::debug!(%why, "a command was not sent"),
            }
        }
    }

    /// Reads a command to its end and makes its result.
    pub(in crate::docker) async fn finish_by_agent(
        &self,
        container_id: &str,
        sent: Sent,
        stdin: Stdin,
        outputs: &Outputs,
    ) -> Result<ExecResult> {
        let Sent {
            running,
            agent,
            began,
            started_at,
            timeout,
            deadline,
        } = sent;
        let end = drive::drive(self, container_id, &running, stdin, outputs, deadline).await;
        let result = match end {
            End::InputFailed(error) => {
                return Err(Error::new(
                    ErrorKind::Io,
                    Operation::Exec,
                    "the reader of the standard input failed",
                )
                .with_source(error));
            }
            End::StartFailed(failed) => {
                running.guard.disarm();
                let _nothing = outputs.finish();
                ending::start_failed(&failed)
            }
            End::Exited {
                exit,
                background_output_open,
                killed,
            } => {
                running.guard.disarm();
                if background_output_open {
                    // What the child still prints is read and dropped over there.
                    running.link.push(&ClientMessage::Detach, running.channel);
                }
                let (stdout, stderr) = outputs.finish();
                let mut result = ending::exited(exit).with_output(stdout, stderr);
                result.background_output_open = background_output_open;
                report(&mut result, killed);
                result
            }
            End::TimedOut(killed) => {
                if self.config().exec.on_timeout == OnTimeout::KillSandbox {
                    // The end of the sandbox is the end of the command; what failed here fails for close, too.
                    let _killed = self.kill_container(container_id).await.is_ok();
                }
                let (stdout, stderr) = outputs.finish();
                let mut result = timed_out(began, timeout).with_output(stdout, stderr);
                if killed
                    .as_ref()
                    .is_some_and(|killed| killed.survivors == 0 && !killed.is_unsure)
                {
                    running.guard.disarm();
                    running.link.push(&ClientMessage::Detach, running.channel);
                } else if killed.is_none()
                    && let Some(message) = &mut result.message
                {
                    message.push_str(
                        "; the agent did not say what became of its processes, they are killed when it can",
                    );
                }
                report(&mut result, killed);
                result
            }
            End::Lost(why) => {
                let (stdout, stderr) = outputs.finish();
                Box::pin(ending::lost(self, container_id, &agent, started_at, &why))
                    .await
                    .with_output(stdout, stderr)
            }
            End::NotUsable(result) => {
                let (stdout, stderr) = outputs.finish();
                result.with_output(stdout, stderr)
            }
        };
        let mut result = result;
        result.duration = began.elapsed();
        Ok(result)
    }

    /// Leaves a command to a task of its own.
    pub(in crate::docker) fn session_by_agent(
        &self,
        id: &SandboxId,
        container_id: &str,
        sent: Sent,
        options: ExecOptions,
    ) -> Box<dyn ExecSession> {
        let outputs = Outputs::capturing(options.output_cap.bytes());
        let guard = sent.running.guard.twin();
        let (provider, of_task, container_id) = (self.clone(), outputs.clone(), container_id.to_owned());
        let following = Following::start(id, async move {
            let finishing = provider.finish_by_agent(&container_id, sent, options.stdin, &of_task);
            finishing.await
        });
        Box::new(AgentExec::running(outputs, following, guard))
    }
}

fn report(result: &mut ExecResult, killed: Option<Killed>) {
    let Some(killed) = killed else { return };
    result.killed = Some(killed.count);
    // Nobody knows of survivors that nobody saw.
    result.survivors = (!killed.is_unsure || killed.survivors > 0).then_some(killed.survivors);
}

fn timed_out(began: Instant, timeout: Option<Duration>) -> ExecResult {
    let message = format!("the command did not end in {:?}", timeout.unwrap_or_default());
    let mut result = ExecResult::timed_out(message, ExecPath::Agent);
    result.duration = began.elapsed();
    result
}

/// At least one: 0 would be no limit.
fn remaining_ms(deadline: Deadline) -> u64 {
    let remaining = deadline.at.saturating_duration_since(Instant::now());
    u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// What the agent is told of the user. None when it can't run commands as this one: the engine can.
pub(super) fn user_for(link: &Link, user: Option<&User>) -> Option<Vec<u8>> {
    let Some(user) = user else { return Some(Vec::new()) };
    let hello = link.hello();
    if hello.uid == 0 && hello.effective_capabilities & SWITCH_USERS == SWITCH_USERS {
        return Some(user.as_str().as_bytes().to_vec());
    }
    // Its own user needs no switch.
    (user.as_str().parse() == Ok(hello.uid)).then(Vec::new)
}

fn argv(command: &Command, shell: Option<&str>) -> Option<Vec<Vec<u8>>> {
    match command {
        Command::Argv(argv) => Some(
            argv.iter()
                .map(|argument| argument.clone().into_bytes())
                .collect(),
        ),
        Command::Shell(line) => shell.map(|shell| {
            let argv = [shell, "-c", line.as_str()];
            argv.map(|argument| argument.as_bytes().to_vec()).to_vec()
        }),
    }
}

/// Says whether a command is short enough to be sent.
fn fits(request: &ExecRequest) -> bool {
    let entries = request
        .argv
        .iter()
        .chain(&request.env)
        .map(|entry| entry.len() + 4)
        .sum::<usize>();
    entries + request.cwd.len() + request.user.len() + 1024 < MAX_MESSAGE_BYTES
}
