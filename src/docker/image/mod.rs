//! Images: references, and getting them into the engine's store.

mod problem;
mod pull;
mod reference;

pub(super) use problem::{image_error, problem_of};
pub use reference::ImageReference;
