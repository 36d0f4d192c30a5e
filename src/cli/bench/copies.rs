//! Many copies of one Compose project of two services, all of them up and down: by the library, and by the same bare calls
//! with the same number of creates and starts in flight.

use std::sync::Arc;

use futures::future::{try_join, try_join_all};
use gym_sandbox::compose::AsyncSandboxCompose;
use gym_sandbox::{Operation, Result, SandboxProvider};
use tokio::sync::Semaphore;

use super::context::{Context, baseline_failed, succeeded};
use super::raw::{LABEL, RawContainer, RawError};

const FILE: &str = "copy.yaml";

/// How many copies.
const COPIES: u32 = 64;
const COPIES_QUICK: u32 = 2;

const SLEEP: [&str; 2] = ["sleep", "600"];

/// The bare calls give each network a subnet, as the library does: the engine's pools may hold fewer. They are of the same
/// range, which is set apart for benchmarks (RFC 2544): 4,096 of them, of which each process takes a part that begins
/// anywhere.
const SUBNETS: u32 = 4_096;

/// What copies need from the engine beside the projects.
#[derive(Debug)]
pub(in crate::cli) struct Room {
    /// How many creates and starts are in flight.
    pub(in crate::cli) creates: usize,
    /// The number of the first subnet of the bare calls.
    first: u32,
}

impl Room {
    /// Of an engine with that many processors. The library would choose the same number of creates; here both sides are
    /// given it.
    pub(in crate::cli) fn new(processors: Option<u32>) -> Self {
        let processors = processors.and_then(|count| usize::try_from(count).ok());
        Self {
            creates: (2 * processors.unwrap_or(2)).clamp(4, 64),
            first: uuid::Uuid::new_v4().as_fields().0 % SUBNETS,
        }
    }

    /// The subnet of a copy of the bare calls.
    fn subnet(&self, copy: u32) -> String {
        subnet((self.first + copy) % SUBNETS)
    }

    /// What a row says about it.
    pub(super) fn note(&self, context: &Context<'_>) -> String {
        let (copies, creates) = (copies(context), self.creates);
        format!("{copies} copies, {creates} creates and starts in flight, a subnet for each copy")
    }
}

fn subnet(number: u32) -> String {
    let offset = number * 32;
    format!(
        "198.{}.{}.{}/27",
        18 + (offset >> 16),
        (offset >> 8) & 0xff,
        offset & 0xff
    )
}

fn copies(context: &Context<'_>) -> u32 {
    if context.is_quick { COPIES_QUICK } else { COPIES }
}

/// By the library: all up, then all down.
pub(super) async fn ours(context: &Context<'_>) -> Result<()> {
    let copies = copies(context);
    let folder = context.scratch.file(FILE, text(context)).await?;
    let provider = context.left.provider(Some(context.room.creates))?;
    let projects: Vec<Arc<AsyncSandboxCompose>> = (0..copies)
        .map(|_| {
            let provider: Arc<dyn SandboxProvider> = Arc::clone(&provider) as _;
            let project = AsyncSandboxCompose::new(provider).with_compose_file(folder.join(FILE));
            context.left.project(project)
        })
        .collect();
    try_join_all(projects.iter().map(|project| project.start())).await?;
    context.left.stop_projects().await?;
    nothing_left(context).await
}

/// By the bare calls.
pub(super) async fn raw(context: &Context<'_>) -> Result<()> {
    let copies = copies(context);
    let lane = Semaphore::new(context.room.creates);
    let run = uuid::Uuid::new_v4().simple().to_string();
    let names: Vec<String> = (0..copies)
        .map(|copy| format!("gym-sandbox-bench-{run}-{copy}"))
        .collect();
    let numbered = (0..copies).zip(&names);
    let up = numbered.map(|(copy, name)| raw_up(context, &lane, name, context.room.subnet(copy)));
    try_join_all(up)
        .await
        .map_err(|error| baseline_failed(Operation::ComposeUp, error))?;
    try_join_all(names.iter().map(|name| raw_down(context, name)))
        .await
        .map_err(|error| baseline_failed(Operation::ComposeDown, error))?;
    nothing_left(context).await
}

async fn raw_up(context: &Context<'_>, lane: &Semaphore, name: &str, subnet: String) -> Result<(), RawError> {
    let raw = context.raw;
    raw.make_network(name, Some(&subnet)).await?;
    let (web, worker) = (format!("{name}-web"), format!("{name}-worker"));
    let make = async |container: &str| {
        // Nobody closes the lane.
        let _slot = lane.acquire().await;
        let made = raw.make(RawContainer {
            name: container,
            image: context.fleet.image(),
            argv: &SLEEP,
            network: Some(name),
            init: true,
            health: None,
            auto_remove: false,
        });
        made.await
    };
    try_join(make(&web), make(&worker)).await?;
    for container in [&web, &worker] {
        let _slot = lane.acquire().await;
        raw.start(container).await?;
    }
    Ok(())
}

async fn raw_down(context: &Context<'_>, name: &str) -> Result<(), RawError> {
    for service in ["worker", "web"] {
        context.raw.remove(&format!("{name}-{service}")).await?;
    }
    context.raw.remove_network(name).await
}

async fn nothing_left(context: &Context<'_>) -> Result<()> {
    let left = context.raw.marked().await;
    let (containers, networks) = left.map_err(|error| baseline_failed(Operation::ComposeDown, error))?;
    succeeded(
        containers.is_empty() && networks.is_empty(),
        "copies of a project have left something",
    )
}

fn text(context: &Context<'_>) -> String {
    let (image, mark) = (context.fleet.image(), context.raw.mark());
    let common = format!(
        "    image: \"{image}\"\n    init: true\n    command: [sleep, \"600\"]\n    \
         labels:\n      {LABEL}: \"{mark}\"\n"
    );
    format!(
        "services:\n  web:\n{common}  worker:\n{common}    depends_on: [web]\n\
         networks:\n  default:\n    labels:\n      {LABEL}: \"{mark}\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subnets_are_of_the_benchmark_range_and_do_not_overlap() {
        for (number, text) in [
            (0, "198.18.0.0/27"),
            (7, "198.18.0.224/27"),
            (8, "198.18.1.0/27"),
            (SUBNETS - 1, "198.19.255.224/27"),
        ] {
            assert_eq!(subnet(number), text);
        }
    }

    #[test]
    fn as_many_creates_are_in_flight_as_the_library_would_choose() {
        assert_eq!(Room::new(None).creates, 4);
        assert_eq!(Room::new(Some(2)).creates, 4);
        assert_eq!(Room::new(Some(100)).creates, 64);
    }
}
