//! Compose projects on a real engine: they start, behave, and leave nothing.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
#![expect(clippy::print_stderr, reason = "a skipped fixture says why")]

#[path = "../common/child.rs"]
mod child;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/proxy.rs"]
mod proxy;
mod support;

mod cancel;
mod compare;
mod dependencies;
mod fixtures;
mod hooks;
mod killed;
mod kinds;
mod lifecycle;
mod many;
mod outage;
mod refused;
mod rough;
mod rows;
mod suite;
mod volumes;
