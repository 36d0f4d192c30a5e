//! One file a command: what it does with the library, once its arguments are resolved.

pub(super) mod bench;
pub(super) mod completions;
pub(super) mod compose_config;
pub(super) mod compose_logs;
pub(super) mod compose_look;
pub(super) mod compose_up;
pub(super) mod cp;
pub(super) mod create;
pub(super) mod doctor;
pub(super) mod exec;
pub(super) mod gc;
pub(super) mod inspect;
pub(super) mod logs;
pub(super) mod pause;
pub(super) mod prefetch;
pub(super) mod ps;
pub(super) mod pty;
pub(super) mod remove;
pub(super) mod run;
pub(super) mod stats;
