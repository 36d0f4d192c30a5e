//! Making and removing sandboxes on the real engine: what a spec asks for is what the sandbox has, and nothing is left
//! of one that could not be made, was cancelled, or was cut off from its engine.
//! What holds for every provider is in the conformance suite and not here.

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
mod ports;
mod probe;
mod support;
mod ttl;
