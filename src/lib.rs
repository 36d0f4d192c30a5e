//! Isolated sandboxes for agent rollouts and benchmark harnesses.

pub mod compose;
