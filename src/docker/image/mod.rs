//! Images: references, credentials, pulls that are shared by who waits for them, and what is known of an image.

mod auth;
mod build;
mod config;
mod describe;
mod disk;
mod docker_config;
mod file;
mod helper;
mod prefetch;
mod problem;
mod progress;
mod provider;
mod pull;
mod shared;

pub(super) use config::PULL_KEYS;
pub use config::PullConfig;
pub(super) use problem::{image_error, problem_of};
pub(super) use pull::Wanted;
pub(super) use shared::Pulls;

pub use crate::spec::ImageReference;
