//! Making and removing sandboxes on the real engine: what a spec asks for is what the sandbox has, and nothing is left
//! of one that could not be made, was cancelled, or was cut off from its engine.
//! What holds for every provider is in the conformance suite and not here.

#![allow(clippy::unwrap_used, reason = "what can't be done fails the test")]
#![allow(clippy::print_stderr, reason = "a skipped test says why")]
#![allow(
    clippy::similar_names,
    reason = "`test` and `text` stand beside each other everywhere"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/proxy.rs"]
mod proxy;

mod attach;
mod cancel;
mod close;
mod cut;
mod early_exit;
mod images;
mod options;
mod pools;
mod ports;
mod probe;
mod subnets;
mod support;
mod ttl;
mod volumes;
