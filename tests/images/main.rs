//! Images on the real engine: pulled from a registry on this machine, built, kept as snapshots.

#![allow(clippy::unwrap_used, reason = "what can't be done fails the test")]
#![allow(clippy::print_stderr, reason = "a skipped test says why")]
#![allow(
    clippy::similar_names,
    reason = "`test` and `text` stand beside each other everywhere"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../src/docker/executable.rs"]
mod executable;
#[path = "../common/proxy.rs"]
mod proxy;
#[path = "../common/registry.rs"]
mod registry;

mod build;
mod credentials;
mod platform;
mod prefetch;
mod problems;
mod pull;
mod snapshot;
mod support;
