//! One run of the script that finds and kills the processes of commands inside their sandbox: what it is told and what it
//! answers.

use std::time::Duration;

use bollard::container::LogOutput;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::ExecConfig;
use futures::StreamExt;

use super::super::DockerProvider;
use super::super::failure::{EngineFailure, QUICK, call};
use super::super::starting::starting;
use super::MARKER;
use super::kill::KillReport;

const SCRIPT: &str = include_str!("kill.sh");

/// How long one run of the script may take; hundreds of processes that fight for two processors take seconds.
const RUN: Duration = Duration::from_secs(30);

/// How much longer for each command more.
const RUN_MORE: Duration = Duration::from_millis(100);

/// How long its end is waited for once it has told what it did. It may come much later: the runtime waits for the end of no
/// process while the last output of another one is not read.
const END: Duration = Duration::from_secs(2);

/// The script prints a line for each command, and a shell perhaps a banner before them.
const OUTPUT_BYTES: usize = 16 * 1024;
const NOT_THE_SCRIPT_BYTES: usize = 1024 * 1024;

/// The pauses after runs that gave no report.
const RETRIES: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(600),
    Duration::ZERO,
];

/// What /proc counts in, on every Linux.
const MILLISECONDS_PER_TICK: u32 = 10;

/// What one run of the script has done to one command, and what is left for another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) report: KillReport,
    /// Processes that did not let the user of the run look at them.
    pub(super) hidden: u32,
    /// The survivors.
    pub(super) left: Vec<u32>,
}

/// Where and as whom the script runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) container_id: String,
    pub(super) shell: String,
    pub(super) user: Option<String>,
}

/// What a run of the script is told.
pub(super) struct Ask<'a> {
    /// What marks the commands. More than one are only killed, and found without the age and the processes below.
    pub(super) markers: &'a [String],
    pub(super) signal: &'a str,
    /// How old the command may be at most; none where its first process has ended.
    pub(super) oldest: Option<Duration>,
    /// Processes that are known to be the command's.
    pub(super) known: &'a [u32],
}

/// Runs the script, and gives what it has done to each command. None when there is no report.
pub(super) async fn run(provider: &DockerProvider, place: &Place, ask: &Ask<'_>) -> Option<Vec<Run>> {
    let runs = async {
        for pause in RETRIES {
            match output_of(provider, place, ask).await {
                Ok(output) => {
                    if let Some(runs) = parse(&output, ask.markers.len()) {
                        return Some(runs);
                    }
                    // Where the limit of processes is reached, the engine can't always start one more.
                    tracing::debug!(container = place.container_id, "a kill gave no report");
                }
                Err(failure) => {
                    tracing::debug!(container = place.container_id, %failure, "a kill could not be run");
                    return None;
                }
            }
            tokio::time::sleep(pause).await;
        }
        None
    };
    let more = u32::try_from(ask.markers.len()).unwrap_or(u32::MAX);
    tokio::time::timeout(RUN + RUN_MORE.saturating_mul(more), runs)
        .await
        .ok()
        .flatten()
}

async fn output_of(
    provider: &DockerProvider,
    place: &Place,
    ask: &Ask<'_>,
) -> Result<Vec<u8>, EngineFailure> {
    let engine = provider
        .engine()
        .await
        .map_err(|error| EngineFailure::Transport {
            text: error.to_string(),
        })?;
    let starting = starting(&place.container_id).await;
    let exec = call(
        QUICK,
        engine
            .client
            .create_exec(&place.container_id, request(place, ask)),
    )
    .await?;
    let start = StartExecOptions {
        detach: false,
        tty: false,
        output_capacity: None,
    };
    let started = call(2 * QUICK, engine.client.start_exec(&exec.id, Some(start))).await?;
    drop(starting);
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
                if last.ends_with(b"\n") && parse(&last, ask.markers.len()).is_some() {
                    let ended = async { while let Some(Ok(_)) = output.next().await {} };
                    let _later = tokio::time::timeout(END, ended).await.is_err();
                    break;
                }
            }
        }
    }
    Ok(last)
}

fn request(place: &Place, ask: &Ask<'_>) -> ExecConfig {
    let markers = ask.markers.join(" ");
    let ticks = ask
        .oldest
        .map(|oldest| (oldest.as_millis() / u128::from(MILLISECONDS_PER_TICK)).to_string());
    let argv = [
        &place.shell,
        "-c",
        SCRIPT,
        "gym-sandbox-kill",
        &markers,
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
        user: place.user.clone(),
        working_dir: Some("/".to_owned()),
        ..ExecConfig::default()
    }
}

/// Reads the script's lines, the last ones of its output. They come out of the sandbox: anything else is no report.
fn parse(output: &[u8], count: usize) -> Option<Vec<Run>> {
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let first = lines.len().checked_sub(count)?;
    lines[first..].iter().map(|line| parse_line(line)).collect()
}

fn parse_line(line: &str) -> Option<Run> {
    let mut words = line.split(' ');
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
            let [run] = &parse(output, 1).unwrap()[..] else {
                panic!("one command has one line");
            };
            assert_eq!(
                (run.report, run.hidden, &run.left[..]),
                (report, 1, &[17, 18][..])
            );
            assert_eq!(parse(output, 3), None);
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
            assert_eq!(parse(output, 1), None, "{output:?}");
        }
    }
    #[test]
    fn each_of_many_commands_has_its_line() {
        let output = b"hello\nkilled 1 survivors 0 hidden 0\nkilled 0 survivors 1 hidden 2 9\n";
        let runs = parse(output, 2).unwrap();
        assert_eq!((runs[0].report.killed, &runs[0].left[..]), (1, &[][..]));
        assert_eq!((runs[1].report.survivors, &runs[1].left[..]), (1, &[9][..]));
        assert_eq!(parse(output, 3), None);
    }
}
