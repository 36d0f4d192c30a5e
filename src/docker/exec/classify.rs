//! What a failed command means: start failures, dead sandboxes, the OOM killer. Texts are looked at only after the
//! engine has said that the start failed, never in a command's own output (contract D5, D6).

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::ContainerState;
use bollard::query_parameters::EventsOptionsBuilder;
use futures::StreamExt;

use crate::error::SandboxReason;
use crate::spec::StartProblem;

use super::super::DockerProvider;
use super::super::connect::EngineTime;
use super::super::failure::EngineFailure;
use super::super::status::Looked;
use super::UNREACHABLE;

/// How long the engine may take to notice that a container died after one of its commands was killed with it.
const SETTLE: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(10),
    Duration::from_millis(30),
    Duration::from_millis(60),
];

/// The same for a container that somebody has killed.
const ENDING: [Duration; 20] = [Duration::from_millis(250); 20];

/// How long a look at past events may take.
const EVENTS: Duration = Duration::from_secs(5);

/// How far the engine's clock may be from what we take it to be.
const CLOCK_MARGIN: Duration = Duration::from_millis(50);

/// The codes that engines give to an exec that could not be started (engine-facts S6).
pub(super) fn is_start_failure(code: i64) -> bool {
    (126..=128).contains(&code)
}

/// Engine texts of failed starts, in the order they are looked for: a missing directory and a missing program end in
/// the same words.
const START_TEXTS: [(&str, StartProblem); 15] = [
    ("chdir to cwd", StartProblem::Cwd),
    ("cwd must be an absolute path", StartProblem::Cwd),
    ("mkdir", StartProblem::Cwd),
    ("unable to find user", StartProblem::User),
    ("unable to find group", StartProblem::User),
    ("no matching entries in passwd file", StartProblem::User),
    ("no matching entries in group file", StartProblem::User),
    ("uids and gids must be in range", StartProblem::User),
    ("argument list too long", StartProblem::TooLong),
    ("exec format error", StartProblem::BadFormat),
    ("executable file not found", StartProblem::NotFound),
    ("permission denied", StartProblem::NotExecutable),
    ("is a directory", StartProblem::NotExecutable),
    ("not a directory", StartProblem::NotExecutable),
    ("no such file or directory", StartProblem::NotFound),
];

pub(super) fn start_problem(text: &str) -> StartProblem {
    let text = text.to_lowercase();
    START_TEXTS
        .iter()
        .find(|(part, _)| text.contains(part))
        .map_or(StartProblem::Other, |&(_, problem)| problem)
}

/// How long an engine that has not answered one call is asked for more.
const SECOND_LOOK: Duration = Duration::from_secs(5);

/// Says what is wrong with the sandbox after the engine refused or was lost. The state of the container decides; the
/// text is only handed on.
pub(super) async fn sandbox_problem(
    provider: &DockerProvider,
    container_id: &str,
    failure: &EngineFailure,
) -> (SandboxReason, String) {
    let looking = provider.look(container_id);
    let looked = match failure {
        // An engine that hangs is not waited for twice.
        EngineFailure::Deadline(_) => tokio::time::timeout(SECOND_LOOK, looking)
            .await
            .unwrap_or_else(|_| Err(failure.clone())),
        _ => looking.await,
    };
    match looked {
        Ok(Looked::Gone) => (
            SandboxReason::Removed,
            "the sandbox does not exist any more".to_owned(),
        ),
        Ok(Looked::There(inspected)) => match not_running(inspected.state.as_ref()) {
            Some((reason, message)) => (reason, message),
            None => was_refused(failure)
                .unwrap_or_else(|| (UNREACHABLE, format!("the engine lost the command: {failure}"))),
        },
        Err(look) => (UNREACHABLE, format!("the engine can't be reached: {look}")),
    }
}

/// What a refusal says of a container that runs again by now. Both states are refused by the same status.
fn was_refused(failure: &EngineFailure) -> Option<(SandboxReason, String)> {
    if !failure.is_status(409) {
        return None;
    }
    let reason = if failure.text()?.contains("is paused") {
        SandboxReason::Paused
    } else {
        SandboxReason::NotRunning
    };
    let message = format!("the sandbox runs, and could not when the command was to start: {failure}");
    Some((reason, message))
}

/// What is wrong with a sandbox that can run no command; None when nothing is.
pub(super) async fn not_usable(
    provider: &DockerProvider,
    container_id: &str,
) -> Option<(SandboxReason, String)> {
    match provider.look(container_id).await {
        Ok(Looked::Gone) => Some((
            SandboxReason::Removed,
            "the sandbox does not exist any more".to_owned(),
        )),
        Ok(Looked::There(inspected)) => not_running(inspected.state.as_ref()),
        Err(failure) => Some((UNREACHABLE, format!("the engine can't be reached: {failure}"))),
    }
}

fn not_running(state: Option<&ContainerState>) -> Option<(SandboxReason, String)> {
    let state = state?;
    if state.paused == Some(true) {
        return Some((SandboxReason::Paused, "the sandbox is paused".to_owned()));
    }
    if state.running == Some(true) && state.restarting != Some(true) {
        return None;
    }
    Some((
        SandboxReason::NotRunning,
        format!(
            "the sandbox is not running; its main process exited with {}",
            state.exit_code.unwrap_or_default()
        ),
    ))
}

/// After a command was killed with signal 9: says whether it died with its sandbox.
pub(super) async fn sandbox_died(
    provider: &DockerProvider,
    container_id: &str,
    started_at: EngineTime,
) -> Option<(SandboxReason, String)> {
    if let Some(died) = look_for_death(provider, container_id, started_at, &SETTLE).await {
        return Some(died);
    }
    // A busy engine takes seconds from the kill of a container to its end; the commands in it end at once.
    if events(provider, container_id, started_at).await.is_being_ended() {
        return look_for_death(provider, container_id, started_at, &ENDING).await;
    }
    None
}

async fn look_for_death(
    provider: &DockerProvider,
    container_id: &str,
    started_at: EngineTime,
    pauses: &[Duration],
) -> Option<(SandboxReason, String)> {
    for &pause in pauses {
        tokio::time::sleep(pause).await;
        match provider.look(container_id).await {
            Ok(Looked::Gone) => {
                return Some((
                    SandboxReason::Removed,
                    "the sandbox was removed under the command".to_owned(),
                ));
            }
            Ok(Looked::There(inspected)) => {
                if inspected
                    .state
                    .as_ref()
                    .is_some_and(|state| state.paused == Some(true))
                {
                    // A frozen sandbox is alive: the command was killed before.
                    return None;
                }
                if let Some((reason, message)) = not_running(inspected.state.as_ref()) {
                    let ran_out = events(provider, container_id, started_at)
                        .await
                        .main_process_ran_out_of_memory();
                    return Some(if ran_out {
                        (
                            SandboxReason::OomKilled,
                            "the sandbox's main process was killed: out of memory".to_owned(),
                        )
                    } else {
                        (reason, message)
                    });
                }
            }
            Err(failure) => return Some((UNREACHABLE, format!("the engine can't be reached: {failure}"))),
        }
    }
    None
}

/// Explains an ordinary 137 of a living sandbox when the OOM killer was at work in it since the command began.
pub(super) async fn oom_hint(
    provider: &DockerProvider,
    container_id: &str,
    started_at: EngineTime,
) -> Option<String> {
    events(provider, container_id, started_at)
        .await
        .has_oom()
        .then(|| "the OOM killer was at work in this sandbox while the command ran".to_owned())
}

/// What happened to a container, as the engine recorded it, oldest first.
#[derive(Debug, Default)]
struct Events(Vec<String>);

impl Events {
    fn has_oom(&self) -> bool {
        self.0.iter().any(|action| action == "oom")
    }

    /// Somebody has killed or stopped the container, or it has ended.
    fn is_being_ended(&self) -> bool {
        self.0
            .iter()
            .any(|action| matches!(action.as_str(), "kill" | "stop" | "die"))
    }

    /// An `oom`, then the end of the main process, with no kill or stop by anybody in between (contract D6).
    fn main_process_ran_out_of_memory(&self) -> bool {
        let Some(oom) = self.0.iter().rposition(|action| action == "oom") else {
            return false;
        };
        let after = &self.0[oom..];
        let Some(died) = after.iter().position(|action| action == "die") else {
            return false;
        };
        !after[..died]
            .iter()
            .any(|action| action == "kill" || action == "stop")
    }
}

async fn events(provider: &DockerProvider, container_id: &str, started_at: EngineTime) -> Events {
    let Ok(engine) = provider.engine().await else {
        return Events::default();
    };
    let filters = HashMap::from([
        ("container".to_owned(), vec![container_id.to_owned()]),
        (
            "event".to_owned(),
            ["oom", "die", "kill", "stop"].map(str::to_owned).to_vec(),
        ),
    ]);
    // The two clocks are a little apart. The engine waits until the end of the span, so that is kept close.
    let options = EventsOptionsBuilder::new()
        .since(&started_at.minus(CLOCK_MARGIN).to_event_time())
        .until(&engine.engine_now().plus(CLOCK_MARGIN).to_event_time())
        .filters(&filters)
        .build();
    let mut stream = engine.client.events(Some(options));
    let mut actions = Vec::new();
    let read = async {
        while let Some(Ok(event)) = stream.next().await {
            actions.extend(event.action);
        }
    };
    let _timed_out = tokio::time::timeout(EVENTS, read).await.is_err();
    Events(actions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d06_a_refusal_of_a_container_that_runs_again_says_what_it_was() {
        let refused = |status, text: &str| EngineFailure::Refused {
            status,
            text: text.to_owned(),
        };
        for (failure, reason) in [
            (
                refused(409, "Container c is paused, unpause the container before exec"),
                Some(SandboxReason::Paused),
            ),
            (
                refused(409, "Container c is not running"),
                Some(SandboxReason::NotRunning),
            ),
            (refused(500, "c is paused"), None),
        ] {
            assert_eq!(
                was_refused(&failure).map(|(reason, _)| reason),
                reason,
                "{failure:?}"
            );
        }
    }

    #[test]
    fn d5_engine_texts_of_failed_starts() {
        for (text, problem) in [
            (
                "OCI runtime exec failed: exec failed: unable to start container process: exec: \"no-such-prog\": executable file not found in $PATH: unknown\r\n",
                StartProblem::NotFound,
            ),
            (
                "OCI runtime exec failed: exec failed: unable to start container process: exec: \"/nope\": stat /nope: no such file or directory: unknown",
                StartProblem::NotFound,
            ),
            (
                "OCI runtime exec failed: exec failed: unable to start container process: exec: \"/etc\": permission denied: unknown",
                StartProblem::NotExecutable,
            ),
            (
                "OCI runtime exec failed: exec failed: unable to start container process: exec: \"/etc\": is a directory: unknown",
                StartProblem::NotExecutable,
            ),
            (
                "OCI runtime exec failed: exec failed: unable to start container process: chdir to cwd (\"/does/not/exist\") set in config.json failed: no such file or directory: unknown",
                StartProblem::Cwd,
            ),
            (
                "unable to find user nobody2: no matching entries in passwd file",
                StartProblem::User,
            ),
            (
                "unable to find group extra: no matching entries in group file",
                StartProblem::User,
            ),
            ("something else", StartProblem::Other),
        ] {
            assert_eq!(start_problem(text), problem, "{text}");
        }
    }

    #[test]
    fn d6_only_an_oom_before_the_death_counts() {
        for (actions, expected) in [
            (vec!["oom", "die"], true),
            (vec!["oom", "oom", "die"], true),
            (vec!["die"], false),
            (vec!["oom", "kill", "die"], false),
            (vec!["oom", "kill", "die", "stop"], false),
            (vec!["kill", "die"], false),
            (vec!["oom"], false),
            (vec![], false),
        ] {
            let events = Events(actions.iter().map(|&action| action.to_owned()).collect());
            assert_eq!(events.main_process_ran_out_of_memory(), expected, "{actions:?}");
        }
    }
}
