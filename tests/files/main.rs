//! Files in and out of real containers of every kind: by image, by user, by mount.

#[path = "../common/mod.rs"]
mod common;

mod bugs;
mod changes;
mod mounts;
mod sandboxes;
mod trees;
