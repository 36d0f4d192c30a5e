//! Files in and out of real containers of every kind: by image, by user, by mount.

#![allow(
    clippy::unwrap_used,
    clippy::similar_names,
    clippy::too_many_lines,
    reason = "what can't be done fails the test"
)]

#[path = "../common/mod.rs"]
mod common;

mod bugs;
mod changes;
mod mounts;
mod sandboxes;
mod trees;
