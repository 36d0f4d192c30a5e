//! Requests about a sandbox that is there, beyond commands and files.

use std::time::SystemTime;

use gym_sandbox::LogOptions;
use gym_sandbox::docker::DockerConfig;

use super::super::args::{IdArgs, LogLineArgs, LogsArgs, StatsArgs};
use super::super::output::Format;
use super::Action;

/// A sandbox to freeze or to let run again.
#[derive(Debug)]
pub(in crate::cli) struct PauseRequest {
    pub(in crate::cli) config: DockerConfig,
    pub(in crate::cli) id: String,
    pub(in crate::cli) change: PauseChange,
    pub(in crate::cli) format: Format,
}

/// Which of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum PauseChange {
    /// Freeze it.
    Pause,
    /// Let it run again.
    Resume,
}

pub(super) fn pause(args: IdArgs, config: DockerConfig, format: Format, change: PauseChange) -> Action {
    Action::Pause(PauseRequest {
        config,
        id: args.id,
        change,
        format,
    })
}

/// A log to print.
#[derive(Debug)]
pub(in crate::cli) struct LogsRequest {
    pub(in crate::cli) config: DockerConfig,
    pub(in crate::cli) id: String,
    pub(in crate::cli) options: LogOptions,
    pub(in crate::cli) format: Format,
}

pub(super) fn logs(args: LogsArgs, config: DockerConfig, format: Format) -> Action {
    Action::Logs(LogsRequest {
        config,
        id: args.id,
        options: log_options(&args.lines),
        format,
    })
}

pub(super) fn log_options(args: &LogLineArgs) -> LogOptions {
    let mut options = LogOptions::new();
    options.follow = args.follow;
    options.tail = args.tail;
    options.timestamps = args.timestamps;
    // Longer ago than a clock can say is from the beginning.
    options.since = args.since.and_then(|since| SystemTime::now().checked_sub(since));
    options
}

/// A sandbox to measure.
#[derive(Debug)]
pub(in crate::cli) struct StatsRequest {
    pub(in crate::cli) config: DockerConfig,
    pub(in crate::cli) id: String,
    pub(in crate::cli) follow: bool,
    pub(in crate::cli) format: Format,
}

pub(super) fn stats(args: StatsArgs, config: DockerConfig, format: Format) -> Action {
    Action::Stats(StatsRequest {
        config,
        id: args.id,
        follow: args.follow,
        format,
    })
}
