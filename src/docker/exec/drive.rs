//! Reading a running exec to its end: output, input, the end of the process, the deadline, all at once.

use std::io;
use std::time::Duration;

use bollard::models::ExecInspectResponse;
use futures::StreamExt;
use tokio::time::Instant;

use crate::provider::{READERS, feed};
use crate::spec::Stdin;

use super::super::failure::{EngineFailure, QUICK, call};
use super::classify;
use super::output::{Outputs, Pending, deliver};
use super::start::{ExecCall, Running};

/// When the engine is first asked whether a command whose output is open has ended, and how rarely at last. Most
/// commands end their output before the first look.
const FIRST_LOOK: Duration = Duration::from_millis(100);
const LAST_LOOK: Duration = Duration::from_secs(2);

/// After the end of a command its output is read until it ends, is silent for this long, or a background child has
/// written for that long. The engine itself cuts a background child off after 2 s.
const SILENCE: Duration = Duration::from_millis(300);
const BACKGROUND: Duration = Duration::from_millis(2500);

/// An output that the engine ended this long after the command was held open by a child.
const HELD_OPEN: Duration = Duration::from_millis(1500);

/// How long the engine may take to know the exit code of a command whose output has ended.
const EXIT_CODE: Duration = Duration::from_secs(30);

/// How long the engine may take to know whether a command that seems to print has a process.
const SPEAKER: Duration = Duration::from_secs(1);
/// How long an engine is asked again that can't be reached.
const UNREACHABLE: Duration = Duration::from_secs(3);

/// How long a killed command's output may take to end.
const AFTER_KILL: Duration = Duration::from_secs(2);

/// How a command ended.
#[derive(Debug)]
pub(super) enum End {
    Exited {
        code: i64,
        pid: i64,
        background_output_open: bool,
    },
    TimedOut,
    /// The reader of the standard input failed.
    InputFailed(io::Error),
    /// The engine was lost, or does not say how the command ended.
    Lost(EngineFailure),
}

/// Reads until the command has ended or the deadline is over. Dropping the future loses nothing but what was read.
pub(super) async fn drive(
    running: &mut Running,
    stdin: Stdin,
    outputs: &Outputs,
    deadline: Option<Instant>,
) -> End {
    let input = running.input.take();
    let feeding = feed(stdin, input);
    tokio::pin!(feeding);
    let mut fed = false;
    let mut pending: Option<Pending> = None;
    let mut pause = FIRST_LOOK;
    let mut next_look = Instant::now() + pause;
    loop {
        tokio::select! {
            chunk = running.output.next(), if pending.is_none() => match chunk {
                Some(Ok(chunk)) => {
                    if outputs.speaker_is_unknown() {
                        find_speaker(&running.exec, outputs).await;
                    }
                    pending = outputs.push(chunk);
                }
                // The command may have printed what is lost with the connection: its exit code would pass for a result.
                Some(Err(error)) => return End::Lost(error.into()),
                None => break,
            },
            // While a reader has no room nothing more is read, but deadlines and the input go on.
            () = deliver(&mut pending, &outputs.hurry), if pending.is_some() => {}
            result = &mut feeding, if !fed => {
                fed = true;
                if let Err(error) = result {
                    return End::InputFailed(error);
                }
            }
            () = sleep_until(Some(next_look)), if pending.is_none() => {
                // An engine that hangs does not hold the timeout up.
                let looked = tokio::select! {
                    looked = look(&running.exec) => looked,
                    () = sleep_until(deadline) => return End::TimedOut,
                };
                if let Ok(inspected) = looked
                    && inspected.running == Some(false)
                {
                    return after_exit(running, outputs, &inspected).await;
                }
                pause = (pause * 2).min(LAST_LOOK);
                next_look = Instant::now() + pause;
            }
            () = sleep_until(deadline) => return End::TimedOut,
        }
    }
    // The input ends with the command; a command that closed its output may still wait for more of it.
    tokio::select! {
        end = exit_code(&running.exec, deadline) => end,
        end = async {
            if !fed && let Err(error) = feeding.await {
                return End::InputFailed(error);
            }
            std::future::pending().await
        } => end,
    }
}

/// Asks who writes the output that has come. The engine knows the process of a running command a moment after its
/// first output, and that there is none before it says why.
async fn find_speaker(exec: &ExecCall, outputs: &Outputs) {
    let deadline = Instant::now() + SPEAKER;
    while Instant::now() < deadline {
        match look(exec).await {
            Ok(inspected) if inspected.running == Some(false) || inspected.pid.unwrap_or_default() != 0 => {
                return decide_speaker(&inspected, outputs);
            }
            Ok(_) => sleep_until(Some(Instant::now() + Duration::from_millis(2))).await,
            Err(_) => break,
        }
    }
    outputs.the_command_speaks();
}

fn decide_speaker(inspected: &ExecInspectResponse, outputs: &Outputs) {
    let started = inspected.pid.unwrap_or_default() != 0;
    if started || !inspected.exit_code.is_some_and(classify::is_start_failure) {
        outputs.the_command_speaks();
    } else {
        outputs.the_engine_speaks();
    }
}

/// The output has ended: waits for the command itself. It may have closed its output long before its end. Where the
/// engine can't be reached at that moment it was not the command that ended it: what one that still runs prints is lost.
async fn exit_code(exec: &ExecCall, deadline: Option<Instant>) -> End {
    let mut unknown_since = None;
    let mut unreachable_since = None;
    let mut cut_off = None;
    let mut is_first = true;
    let mut pause = Duration::from_millis(2);
    loop {
        let looked = tokio::select! {
            looked = look(exec) => looked,
            () = sleep_until(deadline) => return End::TimedOut,
        };
        match looked {
            Ok(ExecInspectResponse {
                running: Some(false),
                exit_code: Some(code),
                pid,
                ..
            }) => {
                return End::Exited {
                    code,
                    pid: pid.unwrap_or_default(),
                    background_output_open: false,
                };
            }
            Ok(ExecInspectResponse {
                running: Some(true), ..
            }) => match cut_off {
                Some(failure) => return End::Lost(failure),
                None => unknown_since = None,
            },
            // Ended, but the code is not there yet: it is waited for and never made up.
            Ok(_) => {
                let since = *unknown_since.get_or_insert_with(Instant::now);
                if since.elapsed() > EXIT_CODE {
                    return End::Lost(EngineFailure::Unreadable {
                        text: format!(
                            "the engine does not know the exit code of a command that ended {EXIT_CODE:?} ago"
                        ),
                    });
                }
            }
            // The code is there to be asked for again: a single lost connection does not lose it.
            Err(
                failure @ (EngineFailure::Unreached { .. }
                | EngineFailure::Transport { .. }
                | EngineFailure::Deadline(_)),
            ) => {
                let since = *unreachable_since.get_or_insert_with(Instant::now);
                if since.elapsed() > UNREACHABLE {
                    return End::Lost(failure);
                }
                if is_first && !matches!(failure, EngineFailure::Deadline(_)) {
                    cut_off = Some(failure);
                }
            }
            Err(failure) => return End::Lost(failure),
        }
        is_first = false;
        let wake = Instant::now() + pause;
        if deadline.is_some_and(|deadline| deadline <= wake) {
            sleep_until(deadline).await;
            return End::TimedOut;
        }
        sleep_until(Some(wake)).await;
        pause = (pause * 2).min(LAST_LOOK);
    }
}

/// The command has ended while its output is open: reads what is still on its way (contract D4).
async fn after_exit(running: &mut Running, outputs: &Outputs, inspected: &ExecInspectResponse) -> End {
    let ended = Instant::now();
    let mut output_ended = false;
    if outputs.speaker_is_unknown() {
        decide_speaker(inspected, outputs);
    }
    while ended.elapsed() < BACKGROUND {
        match tokio::time::timeout(SILENCE, running.output.next()).await {
            Ok(Some(Ok(chunk))) => {
                let mut pending = outputs.push(chunk);
                if pending.is_some() {
                    // A reader without room gets as long as a background child.
                    let _left = tokio::time::timeout(BACKGROUND, deliver(&mut pending, &outputs.hurry))
                        .await
                        .is_err();
                }
            }
            Ok(Some(Err(_)) | None) => {
                output_ended = true;
                break;
            }
            Err(_) => break,
        }
    }
    let background_output_open = !output_ended || ended.elapsed() > HELD_OPEN;
    match inspected.exit_code {
        Some(code) => End::Exited {
            code,
            pid: inspected.pid.unwrap_or_default(),
            background_output_open,
        },
        None => match exit_code(&running.exec, None).await {
            End::Exited { code, pid, .. } => End::Exited {
                code,
                pid,
                background_output_open,
            },
            other => other,
        },
    }
}

/// Kills a command, and reads what it prints until then and had still printed. A process whose output nobody takes is not
/// waited for by the container's runtime, nor is any other that ends after it: the kill would not end. A reader without room
/// gets a moment, then the rest is dropped.
pub(super) async fn drain_while_killed<T>(
    running: &mut Running,
    outputs: &Outputs,
    killing: impl Future<Output = T>,
) -> T {
    tokio::pin!(killing);
    let mut killed = None;
    let mut until = Instant::now() + READERS;
    let mut pending: Option<Pending> = None;
    let mut is_open = true;
    loop {
        tokio::select! {
            outcome = &mut killing, if killed.is_none() => {
                killed = Some(outcome);
                until = Instant::now() + AFTER_KILL;
            }
            chunk = running.output.next(), if is_open && pending.is_none() => match chunk {
                Some(Ok(chunk)) => pending = outputs.push(chunk),
                Some(Err(_)) | None => is_open = false,
            },
            () = deliver(&mut pending, &outputs.hurry), if pending.is_some() => {}
            () = sleep_until(Some(until)), if killed.is_some() || !outputs.hurry.is_cancelled() => {
                if killed.is_some() {
                    is_open = false;
                    pending = None;
                } else if pending.is_some() {
                    outputs.hurry.cancel();
                } else {
                    until = Instant::now() + READERS;
                }
            }
        }
        if !is_open && pending.is_none() {
            return match killed {
                Some(outcome) => outcome,
                None => killing.await,
            };
        }
    }
}

/// Waits for the exit code of an exec whose output has ended.
pub(in crate::docker) async fn exit_of(exec: &ExecCall) -> Result<i64, EngineFailure> {
    match exit_code(exec, None).await {
        End::Exited { code, .. } => Ok(code),
        End::Lost(failure) => Err(failure),
        End::TimedOut | End::InputFailed(_) => Err(EngineFailure::Deadline(QUICK)),
    }
}

/// What one look at an exec has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::docker) enum ExitLook {
    Exited(i64),
    Running,
    /// Neither is known.
    Unknown,
}

/// Looks once whether an exec has exited.
pub(in crate::docker) async fn look_for_exit(exec: &ExecCall) -> ExitLook {
    match look(exec).await {
        Ok(ExecInspectResponse {
            running: Some(false),
            exit_code: Some(code),
            ..
        }) => ExitLook::Exited(code),
        Ok(ExecInspectResponse {
            running: Some(true), ..
        }) => ExitLook::Running,
        _ => ExitLook::Unknown,
    }
}

/// Says whether an exec that has exited was never a process: then its code is the engine's word for that.
pub(in crate::docker) async fn never_ran(exec: &ExecCall, code: i64) -> bool {
    classify::is_start_failure(code)
        && look(exec)
            .await
            .is_ok_and(|inspected| inspected.pid.unwrap_or_default() == 0)
}

async fn look(exec: &ExecCall) -> Result<ExecInspectResponse, EngineFailure> {
    call(QUICK, exec.client.inspect_exec(&exec.exec_id)).await
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
