//! The command as a black box: the built binary, its exit codes, its two streams byte for byte, and what it leaves.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test ends where it can't go on, and says why it was skipped"
)]

#[path = "../common/example.rs"]
mod example;
#[path = "../../src/docker/executable.rs"]
mod executable;
#[path = "../common/proxy.rs"]
mod proxy;

mod bench;
mod compose_config;
mod compose_project;
mod compose_refused;
mod compose_signals;
mod connected;
mod cp;
mod doctor;
mod files;
mod kept;
mod local;
mod run;
mod signals;
mod support;
mod terminal;
mod upkeep;
mod usage;
