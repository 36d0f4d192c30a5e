//! What is with the sandbox of a command that failed: paused, gone, dead, and of what. The state of the container decides,
//! and what the engine has recorded of it (contract D6).

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
use super::{UNREACHABLE, classify};

/// How long the engine may take to notice that a container died after one of its commands was killed with it.
const SETTLE: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(10),
    Duration::from_millis(30),
    Duration::from_millis(60),
];

/// The same for a container that does not answer any more.
const ENDING: [Duration; 20] = [Duration::from_millis(250); 20];

/// The same for one that the engine was told to end: a busy engine is slow to say so.
const RECORDED: [Duration; 60] = [Duration::from_millis(250); 60];

/// How long before a sandbox is found out of reach its end may have begun.
const LOOK_BACK: Duration = Duration::from_secs(20);

/// How long a look at past events may take.
const EVENTS: Duration = Duration::from_secs(5);

/// How far the engine's clock may be from what we take it to be.
const CLOCK_MARGIN: Duration = Duration::from_millis(50);

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
            None => refused_while_running(provider, container_id, failure).await,
        },
        Err(look) => (UNREACHABLE, format!("the engine can't be reached: {look}")),
    }
}

/// The same of a container that runs, as far as the engine knows: one that dies can take no command before the engine
/// has noticed.
async fn refused_while_running(
    provider: &DockerProvider,
    container_id: &str,
    failure: &EngineFailure,
) -> (SandboxReason, String) {
    if let Some(refused) = classify::was_refused(failure) {
        return refused;
    }
    if matches!(failure, EngineFailure::Refused { .. })
        && let Some(ending) = ending(provider, container_id, Suspicion::Event).await
    {
        return ending;
    }
    (UNREACHABLE, format!("the engine lost the command: {failure}"))
}

/// What is wrong with a sandbox that can run no command; None when nothing is.
pub(in crate::docker) async fn not_usable(
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

/// The sandbox stands still, so that nothing can be run in it and nothing in it answers.
pub(in crate::docker) async fn is_paused(provider: &DockerProvider, container_id: &str) -> bool {
    let found = not_usable(provider, container_id).await;
    found.is_some_and(|(reason, _)| reason == SandboxReason::Paused)
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
pub(in crate::docker) async fn sandbox_died(
    provider: &DockerProvider,
    container_id: &str,
    started_at: EngineTime,
) -> Option<(SandboxReason, String)> {
    if let Some(died) = look_for_death(provider, container_id, started_at, &SETTLE).await {
        return Some(died);
    }
    // A busy engine takes seconds from the kill of a container to its end; the commands in it end at once.
    if events(provider, container_id, started_at).await.is_being_ended() {
        return look_for_death(provider, container_id, started_at, &RECORDED).await;
    }
    None
}

/// What speaks for the end of a sandbox that the engine takes for a running one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::docker) enum Suspicion {
    /// Its main process does not answer any more.
    MainProcess,
    /// A process in it does not answer any more, or can't be reached.
    Process,
    /// Nothing but what the engine has recorded, if it has.
    Event,
}

/// After nothing could be run in a sandbox: says what is with it. One that is about to end is waited for, because the
/// engine knows of the end seconds after it. None when it runs and goes on.
pub(in crate::docker) async fn ending(
    provider: &DockerProvider,
    container_id: &str,
    suspicion: Suspicion,
) -> Option<(SandboxReason, String)> {
    if let Some(found) = not_usable(provider, container_id).await {
        return Some(found);
    }
    let since = provider.engine().await.ok()?.engine_now().minus(LOOK_BACK);
    let mut died = look_for_death(provider, container_id, since, &SETTLE).await;
    if died.is_none() {
        let recorded = events(provider, container_id, since).await;
        let pauses = match suspicion {
            _ if recorded.is_being_ended() => &RECORDED[..],
            Suspicion::MainProcess => &ENDING,
            _ if recorded.is_any() => &ENDING,
            // What is recorded comes as late as the end itself.
            Suspicion::Process => &ENDING[..ENDING.len() / 2],
            Suspicion::Event => &[],
        };
        died = look_for_death(provider, container_id, since, pauses).await;
    }
    match died {
        Some(died) => Some(died),
        // It may have been paused since.
        None => not_usable(provider, container_id).await,
    }
}

/// After the engine could not start a process: says whether the sandbox has ended, or, where the problem is none of the
/// process's own, is about to. A pause is refused in another way, and an engine that is away says nothing of the sandbox.
pub(in crate::docker) async fn end_before_start(
    provider: &DockerProvider,
    container_id: &str,
    problem: StartProblem,
) -> Option<(SandboxReason, String)> {
    let found = match problem {
        StartProblem::Other => ending(provider, container_id, Suspicion::Process).await,
        _ => not_usable(provider, container_id).await,
    };
    found.filter(|(reason, _)| !matches!(*reason, SandboxReason::Paused | UNREACHABLE))
}

/// After a runtime has said what state the sandbox is in: what the engine says of it, or that where it runs again by now.
pub(super) async fn at_start(
    provider: &DockerProvider,
    container_id: &str,
    reason: SandboxReason,
    text: &str,
) -> (SandboxReason, String) {
    let died = match provider.engine().await {
        Ok(engine) => {
            let since = engine.engine_now().minus(LOOK_BACK);
            look_for_death(provider, container_id, since, &SETTLE).await
        }
        Err(_) => None,
    };
    died.unwrap_or_else(|| {
        let message = format!("the sandbox could not run anything when the command was to start: {text}");
        (reason, message)
    })
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
                    // The OOM killer may have been at work in another process, before the main one ended by itself.
                    let was_killed = inspected.state.as_ref().and_then(|state| state.exit_code) == Some(137);
                    let ran_out = was_killed
                        && events(provider, container_id, started_at)
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

    fn is_any(&self) -> bool {
        !self.0.is_empty()
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
