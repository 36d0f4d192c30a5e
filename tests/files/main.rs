//! Files in and out of real containers of every kind: by image, by user, by mount.

#![expect(
    clippy::unwrap_used,
    reason = "helpers beside the test functions fail by a panic, too"
)]

#[path = "../common/mod.rs"]
mod common;

mod bugs;
mod changes;
mod mounts;
mod sandboxes;
mod trees;
