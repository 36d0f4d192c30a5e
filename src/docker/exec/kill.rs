//! Killing all processes of a command from outside of it: the engine has no call for that, so a second exec finds them
//! by parent, session, environment and pipes, and kills them (contract D3).

use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::provider::Reaper;

use super::super::DockerProvider;
use super::super::failure::{QUICK, call};
use super::guard::KillTarget;
use super::kill_batch;
use super::kill_script::{self, Ask, Place, Run};
use super::state;

/// How long a command whose future was dropped is looked for.
const ABANDONED: Duration = Duration::from_secs(60);

/// How often the engine is asked whether a paused sandbox goes on.
const RESUMED: Duration = Duration::from_millis(500);

/// How many dropped commands are looked after at once when they have been killed; each look takes a connection.
const LOOKS: usize = 8;

/// How much later than asked for a kill may be started by a busy engine.
const START: Duration = Duration::from_secs(10);

/// How long the engine may take to notice the end of a killed command. A busy one takes seconds for a single look.
const NOTICE: Duration = Duration::from_secs(10);

/// The same where nobody waits for it, and many may have been killed at once.
const LATE_NOTICE: Duration = Duration::from_secs(10);

/// What a kill has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KillReport {
    pub(super) killed: u32,
    pub(super) survivors: u32,
}

/// Kills all processes of a command. None when it is not known what was killed: the image has no shell, or the sandbox
/// is in no state to run one.
pub(super) async fn kill_tree(provider: &DockerProvider, target: &KillTarget) -> Option<KillReport> {
    signal_tree(provider, target, "KILL").await
}

/// Sends a signal to all processes of a command.
pub(super) async fn signal_tree(
    provider: &DockerProvider,
    target: &KillTarget,
    signal: &str,
) -> Option<KillReport> {
    let shell = target.shell.as_deref()?;
    let runs = matches!(exec_state(provider, target).await, ExecState::Running);
    let oldest = target
        .armed_at
        .filter(|_| runs)
        .map(|armed_at| armed_at.elapsed() + START);
    let mut place = Place {
        container_id: target.container_id.clone(),
        shell: shell.to_owned(),
        user: target.user.clone(),
    };
    let ask = Ask {
        markers: std::slice::from_ref(&target.marker),
        signal,
        oldest,
        known: &[],
    };
    let first = run(provider, &place, &ask).await?;
    let report = first.report;
    let is_all_seen = first.hidden == 0 || signal.starts_with('-');
    if report.survivors == 0 && is_all_seen && (report.killed > 0 || target.user.as_deref() == Some("0")) {
        return Some(report);
    }
    // Processes that changed their user are out of reach of the command's own user, and a program that may not be
    // looked into hides its environment: root sees and reaches more where it has the capabilities.
    place.user = Some("0".to_owned());
    let ask = Ask {
        oldest: ask.oldest.filter(|_| report.killed + report.survivors == 0),
        known: &first.left,
        ..ask
    };
    Some(match run(provider, &place, &ask).await {
        Some(second) => KillReport {
            killed: report.killed + second.report.killed,
            survivors: second.report.survivors,
        },
        None => report,
    })
}

/// Runs the script for one command; a kill together with those that others want at the same place now.
async fn run(provider: &DockerProvider, place: &Place, ask: &Ask<'_>) -> Option<Run> {
    match ask {
        Ask {
            markers: [marker],
            signal: "KILL",
            known: [],
            oldest,
        } => Box::pin(kill_batch::kill(provider, place, marker, *oldest)).await,
        _ => Box::pin(kill_script::run(provider, place, ask)).await?.pop(),
    }
}

/// Sends a signal to the process group that a command leads, and says whether there is one. None as for a kill.
pub(in crate::docker) async fn signal_group(
    provider: &DockerProvider,
    target: &KillTarget,
    signal: &str,
) -> Option<bool> {
    // The script takes a signal with a dash for one of the group.
    signal_tree(provider, target, &format!("-{signal}"))
        .await
        .map(|report| report.killed > 0)
}

/// Says whether the engine still takes a command for running a while after it was killed.
pub(super) async fn still_runs(provider: &DockerProvider, target: &KillTarget) -> bool {
    runs_after(provider, target, NOTICE, &Semaphore::new(1)).await
}

async fn runs_after(
    provider: &DockerProvider,
    target: &KillTarget,
    patience: Duration,
    looks: &Semaphore,
) -> bool {
    let deadline = Instant::now() + patience;
    let mut pause = Duration::from_millis(5);
    loop {
        let look = async {
            let _turn = looks.acquire().await;
            exec_state(provider, target).await
        };
        match tokio::time::timeout_at(deadline, look).await {
            Ok(ExecState::Running) => {}
            Ok(_) => return false,
            Err(_) => return true,
        }
        Reaper::aside(tokio::time::sleep(pause)).await;
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}

/// Kills commands of one sandbox whose futures were dropped, with few runs of the script however many they are.
pub(super) async fn kill_abandoned(provider: &DockerProvider, targets: Vec<KillTarget>) {
    let killing = targets.iter().map(|target| async move {
        let place = Place {
            container_id: target.container_id.clone(),
            shell: target.shell.clone()?,
            user: target.user.clone(),
        };
        kill_batch::kill(provider, &place, &target.marker, None).await
    });
    let runs = futures::future::join_all(killing).await;
    // Those of a paused sandbox all wait for its resume at once.
    let looks = &Semaphore::new(LOOKS);
    let seeing_to_it = targets.iter().zip(runs).map(|(target, run)| async move {
        let is_killed =
            run.is_some_and(|run| run.hidden == 0 && run.report.survivors == 0 && run.report.killed > 0);
        if !is_killed || runs_after(provider, target, LATE_NOTICE, looks).await {
            pursue(provider, target, looks).await;
        }
    });
    futures::future::join_all(seeing_to_it).await;
}

/// Kills a command whose future was dropped, perhaps before the engine had started it.
async fn pursue(provider: &DockerProvider, target: &KillTarget, looks: &Semaphore) {
    if target.shell.is_none() {
        // Nothing inside can kill it, and nobody waits for its end.
        return;
    }
    let deadline = Instant::now() + ABANDONED;
    let mut pause = Duration::from_millis(50);
    let mut never_started = 0;
    loop {
        // Nothing can be run in a paused sandbox, and nobody waits until it is resumed.
        if is_paused(provider, target, looks).await {
            Reaper::unawaited(resume(provider, target, deadline, looks)).await;
        }
        let turn = looks.acquire().await;
        let report = kill_tree(provider, target).await;
        let state = exec_state(provider, target).await;
        drop(turn);
        match (state, report) {
            (ExecState::Ended, Some(report)) if report.survivors == 0 => return,
            // Without a way to kill, an ended command is all that can be waited for.
            (ExecState::Gone, _) | (ExecState::Ended, None) => return,
            (ExecState::NotStarted, _) => {
                never_started += 1;
                if never_started > 20 {
                    return;
                }
            }
            _ => {}
        }
        if Instant::now() >= deadline {
            tracing::warn!(
                container = target.container_id,
                "processes of a cancelled command may live on"
            );
            return;
        }
        Reaper::aside(tokio::time::sleep(pause)).await;
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}

/// Each look takes a connection, and there may be hundreds of commands in one paused sandbox.
async fn is_paused(provider: &DockerProvider, target: &KillTarget, looks: &Semaphore) -> bool {
    let _turn = looks.acquire().await;
    state::is_paused(provider, &target.container_id).await
}

async fn resume(provider: &DockerProvider, target: &KillTarget, deadline: Instant, looks: &Semaphore) {
    while Instant::now() < deadline && is_paused(provider, target, looks).await {
        tokio::time::sleep(RESUMED).await;
    }
}

enum ExecState {
    Running,
    Ended,
    NotStarted,
    Gone,
    Unknown,
}

async fn exec_state(provider: &DockerProvider, target: &KillTarget) -> ExecState {
    let (Ok(engine), Some(exec_id)) = (provider.engine().await, target.exec_id.as_deref()) else {
        return ExecState::Unknown;
    };
    match call(QUICK, engine.client.inspect_exec(exec_id)).await {
        Ok(inspected) if inspected.running == Some(true) => ExecState::Running,
        Ok(inspected) if inspected.exit_code.is_some() => ExecState::Ended,
        Ok(_) => ExecState::NotStarted,
        Err(failure) if failure.is_status(404) => ExecState::Gone,
        Err(_) => ExecState::Unknown,
    }
}
