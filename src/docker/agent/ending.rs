//! What the end of a command, or of its agent, means for its result (contract D5, D6).

use std::io;

use gym_sandbox_agent::protocol::{Exit, ExitCause, StartStage};

use crate::error::SandboxReason;
use crate::spec::{ExecPath, ExecReason, ExecResult, StartProblem};

use super::super::DockerProvider;
use super::super::connect::EngineTime;
use super::super::exec::{self, Suspicion};
use super::mailbox::StartFailed;
use super::resident::{Resident, Route};

/// What the system says where a limit of processes is reached.
const EAGAIN: i32 = 11;

/// The same of open files.
const EMFILE: i32 = 24;

/// The result of all commands in a sandbox that is in no state to run any; None when it is.
pub(super) async fn not_usable(provider: &DockerProvider, container_id: &str) -> Option<ExecResult> {
    let (reason, message) = exec::not_usable(provider, container_id).await?;
    Some(ExecResult::sandbox_failure(reason, message, ExecPath::Agent))
}

/// The result of all commands in a sandbox whose agent can't be reached: also where it is about to end, which its engine
/// may not know yet. None when it runs.
pub(super) async fn out_of_reach(
    provider: &DockerProvider,
    container_id: &str,
    agent: &Resident,
) -> Option<ExecResult> {
    let suspicion = if agent.is_main_process() {
        Suspicion::MainProcess
    } else {
        Suspicion::Process
    };
    let (reason, message) = exec::ending(provider, container_id, suspicion).await?;
    Some(ExecResult::sandbox_failure(reason, message, ExecPath::Agent))
}

/// The result of a command whose agent was lost under it. Whether the sandbox ended with it decides: where that is not
/// seen, the agent is looked for again, which tells a sandbox that is about to end from a connection that broke.
pub(super) async fn lost(
    provider: &DockerProvider,
    container_id: &str,
    agent: &Resident,
    started_at: EngineTime,
    why: &str,
) -> ExecResult {
    if let Some((reason, message)) = exec::sandbox_died(provider, container_id, started_at).await {
        return ExecResult::sandbox_failure(reason, message, ExecPath::Agent);
    }
    match agent.route(provider, container_id).await {
        // A pause came later, and explains nothing.
        Route::Ended(result) if is_end(&result) => *result,
        _ => {
            let message = format!(
                "the agent was lost while it ran the command ({why}); what became of the command is not known"
            );
            ExecResult::sandbox_failure(SandboxReason::AgentLost, message, ExecPath::Agent)
        }
    }
}

/// The sandbox does not run, and nothing in it.
pub(super) fn is_end(result: &ExecResult) -> bool {
    use SandboxReason::{NotRunning, OomKilled, Removed};
    matches!(
        result.reason,
        Some(ExecReason::Sandbox(NotRunning | OomKilled | Removed))
    )
}

/// Nothing is known of the sandbox: its engine could not be asked.
pub(super) fn is_unknown(result: &ExecResult) -> bool {
    result.reason == Some(ExecReason::Sandbox(SandboxReason::DaemonUnreachable))
}

/// The sandbox stands still, and goes on when it is resumed.
pub(super) fn is_pause(result: &ExecResult) -> bool {
    result.reason == Some(ExecReason::Sandbox(SandboxReason::Paused))
}

/// The result of a command that ended.
pub(super) fn exited(exit: Exit) -> ExecResult {
    let code = match (exit.code, exit.signal) {
        (Some(code), _) => i32::from(code),
        (None, Some(signal)) => 128 + i32::from(signal),
        (None, None) => {
            return ExecResult::sandbox_failure(
                SandboxReason::AgentLost,
                "the process that watched over the command was killed; its exit code is not known",
                ExecPath::Agent,
            );
        }
    };
    let mut result = ExecResult::new(code, ExecPath::Agent);
    if exit.oom_kills > 0 && exit.cause == ExitCause::Itself {
        result.hint = Some("the OOM killer was at work in this sandbox while the command ran".to_owned());
    }
    result
}

/// The result of a command that could not be started, with the system's error (contract D5).
pub(super) fn start_failed(failed: &StartFailed) -> ExecResult {
    let (problem, tried) = match failed.stage {
        StartStage::Request => (StartProblem::Other, "the command can't be run"),
        StartStage::Resources => (StartProblem::Other, "there is no room for another process"),
        StartStage::User => (StartProblem::User, "the user can't be had"),
        StartStage::Cwd => (StartProblem::Cwd, "the working directory can't be entered"),
        StartStage::NotFound => (StartProblem::NotFound, "the program was not found"),
        StartStage::NotExecutable => (StartProblem::NotExecutable, "the program can't be executed"),
        StartStage::TooLong => (StartProblem::TooLong, "arguments and environment are too long"),
        StartStage::BadFormat => (
            StartProblem::BadFormat,
            "the program has no format that can be executed",
        ),
        StartStage::Other => (StartProblem::Other, "the command could not be started"),
    };
    let mut message = tried.to_owned();
    if !failed.subject.is_empty() {
        // It comes out of the sandbox and is shown as it can be.
        let subject: String = failed.subject.chars().take(500).collect();
        message = format!("{message}: `{}`", subject.escape_debug());
    }
    if failed.errno != 0 {
        message = format!("{message}: {} (errno {})", cause(failed.errno), failed.errno);
    }
    let mut result = ExecResult::start_failure(problem, message, ExecPath::Agent);
    if failed.stage == StartStage::Resources {
        let hint = match failed.errno {
            EAGAIN => {
                "the sandbox may have reached its limit of processes (`pids_limit`), which counts threads and the \
                 agent's own two, too"
            }
            EMFILE => {
                "the agent has reached its limit of open files (`ulimits`, nofile), of which each command takes four"
            }
            _ => return result,
        };
        result.hint = Some(hint.to_owned());
    }
    result
}

/// What an error number of Linux means. Taken from this machine only where it is Linux, too.
fn cause(errno: i32) -> String {
    if !cfg!(target_os = "linux") {
        return "the system refused".to_owned();
    }
    let text = io::Error::from_raw_os_error(errno).to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::ExecErrorType;

    fn exit(code: Option<u8>, signal: Option<u8>) -> Exit {
        Exit {
            code,
            signal,
            cause: ExitCause::Itself,
            oom_kills: 0,
            user_us: 0,
            system_us: 0,
        }
    }

    #[test]
    fn codes_are_never_made_up() {
        assert_eq!(exited(exit(Some(7), None)).return_code, 7);
        assert_eq!(exited(exit(None, Some(15))).return_code, 143);
        let lost = exited(exit(None, None));
        assert_eq!(
            (lost.return_code, lost.error_type),
            (125, Some(ExecErrorType::Sandbox))
        );
        assert_eq!(lost.reason, Some(ExecReason::Sandbox(SandboxReason::AgentLost)));
    }

    #[test]
    fn a_kill_for_want_of_memory_is_hinted_at() {
        let killed = Exit {
            oom_kills: 2,
            ..exit(None, Some(9))
        };
        let result = exited(killed);
        assert_eq!((result.return_code, result.error_type), (137, None));
        assert!(result.hint.is_some());
        assert!(exited(exit(None, Some(9))).hint.is_none());
    }

    #[test]
    fn d5_start_failures_have_their_code_and_the_system_error() {
        for (stage, problem, code) in [
            (StartStage::NotFound, StartProblem::NotFound, 127),
            (StartStage::NotExecutable, StartProblem::NotExecutable, 126),
            (StartStage::Cwd, StartProblem::Cwd, 126),
            (StartStage::User, StartProblem::User, 126),
            (StartStage::BadFormat, StartProblem::BadFormat, 126),
        ] {
            let result = start_failed(&StartFailed {
                stage,
                errno: 2,
                subject: "/nope".into(),
            });
            assert_eq!(result.return_code, code);
            assert_eq!(result.reason, Some(ExecReason::Start(problem)));
            assert_eq!(result.stdout().as_deref(), Some(""));
            let stderr = result.stderr().unwrap();
            assert!(
                stderr.contains("`/nope`") && stderr.contains("errno 2"),
                "{stderr}"
            );
        }
    }
}
