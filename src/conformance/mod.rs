//! The public conformance suite: what every provider must do, as cases that run over any of them.
//! Knows the provider traits, the specs and the facade; knows no backend.
//!
//! A case makes its own sandboxes and removes them again, also when it fails, panics or runs out of time. It is
//! selected by what it [needs](Case::needs): a capability that the provider may lack, or something that the
//! [`Context`] must bring, such as a server that the image holds. What is not run says why ([`Case::skip`]).
//!
//! Feature `conformance`. The set of cases grows with the crate: a new minor version may find faults that the last one
//! did not.
//!
//! # Testing a provider of your own
//!
//! ```no_run
//! # use std::sync::Arc;
//! use gym_sandbox::conformance::{self, Context};
//! use gym_sandbox::{SandboxProvider, SandboxSpec};
//!
//! async fn my_provider_conforms(provider: Arc<dyn SandboxProvider>) {
//!     let context = Context::new(provider, SandboxSpec::new("busybox:latest"))
//!         .with_user("nobody", 65534)
//!         .with_server("httpd -f -p {port}");
//!     let mut failed = Vec::new();
//!     for case in conformance::cases() {
//!         match case.skip(&context) {
//!             Some(skip) => println!("{case}: skipped, {skip}"),
//!             None => {
//!                 if let Err(failure) = case.run(&context).await {
//!                     failed.push(format!("{case}: {failure}"));
//!                 }
//!             }
//!         }
//!     }
//!     assert!(failed.is_empty(), "{}", failed.join("\n"));
//! }
//! ```
//!
//! Cases may run side by side. With `libtest-mimic` each becomes a test with its own name; this crate's
//! `tests/conformance.rs` does that.
//!
//! # Adding a theme
//!
//! One file with its cases and the `cases!` line at its end, and one line in [`cases`].

#![expect(
    clippy::missing_errors_doc,
    reason = "every case fails with what the provider did instead"
)]

mod case;
mod check;
mod context;

pub mod connect;
pub mod create;
pub mod directories;
pub mod endpoint;
pub mod environment;
pub mod exec;
pub mod facade;
pub mod files;
pub mod forward;
pub mod inspect;
pub mod lifecycle;
pub mod logs;
pub mod network;
pub mod output;
pub mod pause;
pub mod resources;
pub mod services;
pub mod shared_storage;
pub mod snapshot;
pub mod spawn;
pub mod start_failures;
pub mod stdin;
pub mod terminals;
pub mod timeout;
pub mod transfers;
pub mod upkeep;

pub use case::{Case, Need, Skip};
pub use check::{Failure, Outcome};
pub use context::{Context, Survey};

/// All cases, theme by theme.
pub fn cases() -> Vec<Case> {
    [
        create::cases(),
        exec::cases(),
        environment::cases(),
        output::cases(),
        stdin::cases(),
        start_failures::cases(),
        timeout::cases(),
        spawn::cases(),
        terminals::cases(),
        files::cases(),
        directories::cases(),
        transfers::cases(),
        lifecycle::cases(),
        endpoint::cases(),
        pause::cases(),
        resources::cases(),
        connect::cases(),
        logs::cases(),
        services::cases(),
        network::cases(),
        shared_storage::cases(),
        forward::cases(),
        inspect::cases(),
        facade::cases(),
        snapshot::cases(),
        upkeep::cases(),
    ]
    .concat()
}

#[cfg(test)]
mod tests;
