//! Requests about a sandbox that is there, beyond commands and files.

use gym_sandbox::docker::DockerConfig;

use super::super::args::IdArgs;
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
