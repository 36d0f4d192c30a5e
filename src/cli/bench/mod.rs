//! Measures the library against the same raw engine calls. Each row alternates its methods in one process, so that
//! only their ratio is judged and never the machine.

mod compose_config;
pub(super) mod context;
pub(super) mod copies;
mod corpus;
pub(super) mod creation;
pub(super) mod docker_compose;
pub(super) mod fleet;
pub(super) mod latency;
pub(super) mod left;
mod machine;
pub(super) mod measure;
pub(super) mod memory;
pub(super) mod processor;
pub(super) mod project;
mod queue;
pub(super) mod raw;
pub(super) mod report;
pub(super) mod rows;
pub(super) mod sample;
pub(super) mod scratch;
pub(super) mod stats;
mod transfer;
mod work;

pub(super) use machine::Machine;
