//! Carries a plan out: starts a project through a provider's capabilities, and takes it down again. Knows no backend.
//!
//! | part | file |
//! |---|---|
//! | the calls and who makes them | `crew.rs` |
//! | what was made, and its removal; removal by name | `made.rs`, `teardown.rs`, `by_name.rs` |
//! | what happens to containers | `watch.rs` |
//! | which of two starts of one name goes on | `claim.rs` |
//! | images, networks, volumes | `images.rs`, `shared.rs`, `seed.rs` |
//! | one service from create to ready, commands after its start and before its stop | `service.rs`, `hook.rs` |
//! | waiting for others | `gate.rs`, `health.rs` |
//! | what went wrong | `failure.rs` |
//! | how far services are | `board.rs` |
//! | the same without containers | `generic/` |

mod board;
mod by_name;
mod claim;
mod crew;
mod failure;
mod gate;
mod generic;
mod health;
mod hook;
mod images;
mod made;
mod progress;
mod seed;
mod service;
mod shared;
mod start;
mod teardown;
mod watch;

pub use progress::{ComposeEvent, ProgressCallback, ServiceProgress};
pub use teardown::{DownOptions, VolumeFate};

pub(crate) use by_name::down;
pub(crate) use crew::Crew;
pub(crate) use generic::{GenericCrew, remove_generic_in_background};
pub(crate) use start::StartOptions;
pub(crate) use teardown::{first_with_rest, remove_in_background};
