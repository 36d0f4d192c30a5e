//! Compose projects on providers without containers (contract section 4): over a wrapper that hides the engine's
//! containers, over the provider in memory, and over wrappers with a fault, on which the cases must fail. And running
//! projects in other hands, on both ways.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

#[path = "../common/child.rs"]
mod child;
#[path = "../common/mod.rs"]
mod common;
mod plain;
#[path = "../common/wrapped.rs"]
mod wrapped;

mod cases;
mod connect;
mod elsewhere;
mod engine;
mod memory;
