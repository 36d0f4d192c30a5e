//! Nothing is leaked by clients that die, and nothing is taken from those that live (D16, D17, D35; docs/leaks.md): this
//! program runs itself as clients, and stops, kills and cuts them off. What a sweep decides is tested as a table beside
//! its code; here is what comes of it on the real engine.

#![allow(clippy::unwrap_used, reason = "what can't be done fails the test")]
#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a skipped test says why, a client what it did"
)]
#![allow(
    clippy::similar_names,
    reason = "`test` and `text` stand beside each other everywhere"
)]

#[path = "../common/child.rs"]
mod child;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/proxy.rs"]
mod proxy;

mod agents;
mod client;
mod clock;
mod ends;
mod kept;
mod killed;
mod lease;
mod list;
mod support;
mod sweep;
mod taken;
