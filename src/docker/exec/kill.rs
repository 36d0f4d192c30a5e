//! Killing all processes of a command from outside of it: the engine has no call for that, so a second exec finds them
//! by parent, session, environment and pipes, and kills them (contract D3).

use std::time::Duration;

use bollard::container::LogOutput;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::ExecConfig;
use futures::StreamExt;
use tokio::time::Instant;

use super::super::DockerProvider;
use super::super::failure::{EngineFailure, QUICK, call};
use super::MARKER;
use super::guard::KillTarget;

const SCRIPT: &str = include_str!("kill.sh");

/// How long one run of the script may take; hundreds of processes that fight for two processors take seconds.
const RUN: Duration = Duration::from_secs(30);

/// How long a command whose future was dropped is looked for.
const ABANDONED: Duration = Duration::from_secs(60);

/// The script prints one line, and a shell perhaps a banner before it.
const OUTPUT_BYTES: usize = 16 * 1024;
const NOT_THE_SCRIPT_BYTES: usize = 1024 * 1024;

/// The pauses after runs that gave no report.
const RETRIES: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(600),
    Duration::ZERO,
];

/// How much later than asked for a kill may be started by a busy engine.
const START: Duration = Duration::from_secs(10);

/// How long the engine may take to notice the end of a killed command.
const NOTICE: Duration = Duration::from_secs(2);

/// What /proc counts in, on every Linux.
const MILLISECONDS_PER_TICK: u32 = 10;

/// What a kill has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KillReport {
    pub(super) killed: u32,
    pub(super) survivors: u32,
}

/// What one run of the script has done, and what is left for another one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    report: KillReport,
    /// Processes that did not let the user of the run look at them.
    hidden: u32,
    /// The survivors.
    left: Vec<u32>,
}

/// What a run of the script is told.
struct Ask<'a> {
    user: Option<&'a str>,
    signal: &'a str,
    /// How old the command may be at most; none where its first process has ended.
    oldest: Option<Duration>,
    /// Processes that are known to be the command's.
    known: &'a [u32],
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
    let user = target.user.as_deref();
    let ask = Ask {
        user,
        signal,
        oldest: target
            .armed_at
            .filter(|_| runs)
            .map(|armed_at| armed_at.elapsed() + START),
        known: &[],
    };
    let first = run(provider, target, shell, &ask).await?;
    let report = first.report;
    let is_all_seen = first.hidden == 0 || signal.starts_with('-');
    if report.survivors == 0 && is_all_seen && (report.killed > 0 || user == Some("0")) {
        return Some(report);
    }
    // Processes that changed their user are out of reach of the command's own user, and a program that may not be
    // looked into hides its environment: root sees and reaches more where it has the capabilities.
    let ask = Ask {
        user: Some("0"),
        oldest: ask.oldest.filter(|_| report.killed + report.survivors == 0),
        known: &first.left,
        ..ask
    };
    Some(match run(provider, target, shell, &ask).await {
        Some(second) => KillReport {
            killed: report.killed + second.report.killed,
            survivors: second.report.survivors,
        },
        None => report,
    })
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
    let deadline = Instant::now() + NOTICE;
    let mut pause = Duration::from_millis(5);
    loop {
        match tokio::time::timeout_at(deadline, exec_state(provider, target)).await {
            Ok(ExecState::Running) => {}
            Ok(_) => return false,
            Err(_) => return true,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}

/// Kills a command whose future was dropped, perhaps before the engine had started it.
pub(super) async fn kill_abandoned(provider: &DockerProvider, target: &KillTarget) {
    if target.shell.is_none() {
        // Nothing inside can kill it, and nobody waits for its end.
        return;
    }
    let deadline = Instant::now() + ABANDONED;
    let mut pause = Duration::from_millis(50);
    let mut never_started = 0;
    loop {
        let report = kill_tree(provider, target).await;
        let state = exec_state(provider, target).await;
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
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(2));
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

async fn run(provider: &DockerProvider, target: &KillTarget, shell: &str, ask: &Ask<'_>) -> Option<Run> {
    let runs = async {
        for pause in RETRIES {
            match output_of(provider, target, shell, ask).await {
                Ok(output) => {
                    if let Some(run) = parse(&output) {
                        return Some(run);
                    }
                    // Where the limit of processes is reached, the engine can't always start one more.
                    tracing::debug!(container = target.container_id, "a kill gave no report");
                }
                Err(failure) => {
                    tracing::debug!(container = target.container_id, %failure, "a kill could not be run");
                    return None;
                }
            }
            tokio::time::sleep(pause).await;
        }
        None
    };
    tokio::time::timeout(RUN, runs).await.ok().flatten()
}

async fn output_of(
    provider: &DockerProvider,
    target: &KillTarget,
    shell: &str,
    ask: &Ask<'_>,
) -> Result<Vec<u8>, EngineFailure> {
    let engine = provider
        .engine()
        .await
        .map_err(|error| EngineFailure::Transport {
            text: error.to_string(),
        })?;
    let exec = call(
        QUICK,
        engine
            .client
            .create_exec(&target.container_id, request(target, shell, ask)),
    )
    .await?;
    let start = StartExecOptions {
        detach: false,
        tty: false,
        output_capacity: None,
    };
    let started = call(2 * QUICK, engine.client.start_exec(&exec.id, Some(start))).await?;
    let mut last = Vec::new();
    let mut total_bytes = 0;
    if let StartExecResults::Attached { mut output, input: _ } = started {
        while let Some(Ok(chunk)) = output.next().await {
            if let LogOutput::StdOut { message } = chunk {
                total_bytes += message.len();
                if total_bytes > NOT_THE_SCRIPT_BYTES {
                    return Err(EngineFailure::Unreadable {
                        text: "something else than the script answers".to_owned(),
                    });
                }
                last.extend_from_slice(&message);
                last.drain(..last.len().saturating_sub(OUTPUT_BYTES));
            }
        }
    }
    Ok(last)
}

fn request(target: &KillTarget, shell: &str, ask: &Ask<'_>) -> ExecConfig {
    let ticks = ask
        .oldest
        .map(|oldest| (oldest.as_millis() / u128::from(MILLISECONDS_PER_TICK)).to_string());
    let argv = [
        shell,
        "-c",
        SCRIPT,
        "gym-sandbox-kill",
        &target.marker,
        ask.signal,
        ticks.as_deref().unwrap_or_default(),
    ];
    let known = ask.known.iter().map(u32::to_string);
    ExecConfig {
        attach_stdout: Some(true),
        cmd: Some(argv.map(str::to_owned).into_iter().chain(known).collect()),
        // A shell reads the files that these name before its script. The marker tells other runs that this is no
        // command.
        env: Some(vec![
            "BASH_ENV=".to_owned(),
            "ENV=".to_owned(),
            format!("{MARKER}=kill"),
        ]),
        user: ask.user.map(str::to_owned),
        working_dir: Some("/".to_owned()),
        ..ExecConfig::default()
    }
}

/// Reads the script's line, the last of its output. It comes out of the sandbox: anything else is no report.
fn parse(output: &[u8]) -> Option<Run> {
    let text = String::from_utf8_lossy(output);
    let mut words = text.trim_end().lines().last()?.split(' ');
    let mut number_after = |name: &str| {
        words
            .next()
            .filter(|&word| word == name)
            .and_then(|_| words.next()?.parse().ok())
    };
    let report = KillReport {
        killed: number_after("killed")?,
        survivors: number_after("survivors")?,
    };
    let hidden = number_after("hidden")?;
    let left: Option<Vec<u32>> = words.map(|word| word.parse().ok()).collect();
    Some(Run {
        report,
        hidden,
        left: left?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_scripts_own_line_is_a_report() {
        let report = KillReport {
            killed: 3,
            survivors: 2,
        };
        for output in [
            &b"killed 3 survivors 2 hidden 1 17 18\n"[..],
            b"a banner of the shell\nkilled 3 survivors 2 hidden 1 17 18\n",
            b"\xff\nkilled 3 survivors 2 hidden 1 17 18",
        ] {
            let run = parse(output).unwrap();
            assert_eq!((run.report, run.hidden, run.left), (report, 1, vec![17, 18]));
        }
        for output in [
            &b""[..],
            b"killed x survivors 0 hidden 0\n",
            b"killed 3 survivors 0 hidden 0 more\n",
            b"killed 3\n",
            b"killed 3 survivors 0\n",
            b"OCI runtime exec failed: exec failed",
            b"killed -1 survivors 0 hidden 0",
            b"killed 3 survivors 0 hidden 0\nmore",
            b"\xff",
        ] {
            assert_eq!(parse(output), None, "{output:?}");
        }
    }
}
