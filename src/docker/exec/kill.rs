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
use super::guard::KillTarget;

const SCRIPT: &str = include_str!("kill.sh");

/// How long one run of the script may take; hundreds of processes that fight for two processors take seconds.
const RUN: Duration = Duration::from_secs(30);

/// How long a command whose future was dropped is looked for.
const ABANDONED: Duration = Duration::from_secs(60);

/// The script prints one short line; more is not from it.
const OUTPUT_BYTES: usize = 4096;

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
    let first = run(provider, target, shell, target.user.as_deref(), signal).await?;
    if first.survivors == 0 && (first.killed > 0 || target.user.as_deref() == Some("0")) {
        return Some(first);
    }
    // Processes that changed their user are out of reach of the command's own user, and a program that may not be
    // looked into hides its environment: root sees and reaches more where it has the capabilities.
    let second = run(provider, target, shell, Some("0"), signal).await;
    Some(match second {
        Some(second) => KillReport {
            killed: first.killed + second.killed,
            survivors: second.survivors,
        },
        None => first,
    })
}

/// Kills a command whose future was dropped, perhaps before the engine had started it.
pub(super) async fn kill_abandoned(provider: &DockerProvider, target: &KillTarget) {
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

async fn run(
    provider: &DockerProvider,
    target: &KillTarget,
    shell: &str,
    user: Option<&str>,
    signal: &str,
) -> Option<KillReport> {
    let output = tokio::time::timeout(RUN, output_of(provider, target, shell, user, signal)).await;
    match output {
        Ok(Ok(output)) => parse(&output),
        Ok(Err(failure)) => {
            tracing::debug!(container = target.container_id, %failure, "a kill could not be run");
            None
        }
        Err(_) => None,
    }
}

async fn output_of(
    provider: &DockerProvider,
    target: &KillTarget,
    shell: &str,
    user: Option<&str>,
    signal: &str,
) -> Result<Vec<u8>, EngineFailure> {
    let engine = provider
        .engine()
        .await
        .map_err(|error| EngineFailure::Transport {
            text: error.to_string(),
        })?;
    let argv = [shell, "-c", SCRIPT, "gym-sandbox-kill", &target.marker, signal];
    let config = ExecConfig {
        attach_stdout: Some(true),
        cmd: Some(argv.map(str::to_owned).to_vec()),
        user: user.map(str::to_owned),
        working_dir: Some("/".to_owned()),
        ..ExecConfig::default()
    };
    let exec = call(QUICK, engine.client.create_exec(&target.container_id, config)).await?;
    let start = StartExecOptions {
        detach: false,
        tty: false,
        output_capacity: None,
    };
    let started = call(2 * QUICK, engine.client.start_exec(&exec.id, Some(start))).await?;
    let mut collected = Vec::new();
    if let StartExecResults::Attached { mut output, input: _ } = started {
        while let Some(Ok(chunk)) = output.next().await {
            if let LogOutput::StdOut { message } = chunk {
                let room = OUTPUT_BYTES.saturating_sub(collected.len());
                collected.extend_from_slice(&message[..message.len().min(room)]);
            }
        }
    }
    Ok(collected)
}

/// Reads the script's line. It comes out of the sandbox: anything else is no report.
fn parse(output: &[u8]) -> Option<KillReport> {
    let text = std::str::from_utf8(output).ok()?;
    let mut words = text.trim_end().split(' ');
    match (
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
    ) {
        (Some("killed"), Some(killed), Some("survivors"), Some(survivors), None) => Some(KillReport {
            killed: killed.parse().ok()?,
            survivors: survivors.parse().ok()?,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_scripts_own_line_is_a_report() {
        assert_eq!(
            parse(b"killed 3 survivors 0\n"),
            Some(KillReport {
                killed: 3,
                survivors: 0
            })
        );
        for output in [
            &b""[..],
            b"killed x survivors 0\n",
            b"killed 3 survivors 0 more\n",
            b"killed 3\n",
            b"OCI runtime exec failed: exec failed",
            b"killed -1 survivors 0",
            b"\xff",
        ] {
            assert_eq!(parse(output), None, "{output:?}");
        }
    }
}
