//! Limits of resources as commands meet them (C12, D27): what was asked for holds inside, and what a command does with it
//! stays in its sandbox.

use crate::provider::{Capability, ContainersProvider};
use crate::spec::container::ContainerSpec;
use crate::spec::{ExecOptions, Ports, SandboxResources};

use super::case::cases;
use super::check::{equal, holds};
use super::{Context, Failure, Need, Outcome};

const IMAGE: Need = Need::Image;
const CONTAINERS: Need = Need::Capability(Capability::Containers);

const MEMORY_MIB: u64 = 64;
const PIDS: i64 = 24;

/// Prints what a control group says, of either version; nothing where a sandbox does not see its own.
fn control_group(first: &str, second: &str) -> String {
    format!("cat /sys/fs/cgroup/{second} 2>/dev/null || cat /sys/fs/cgroup/{first} 2>/dev/null; true")
}

/// The memory that was asked for is the limit that a command sees (C12).
pub async fn the_memory_limit_is_seen_from_inside(context: &Context) -> Outcome {
    let limits = SandboxResources::default().with_memory_mib(MEMORY_MIB);
    let handle = context.create(&context.spec().with_resources(limits)).await?;
    let seen = context
        .stdout(
            &handle,
            control_group("memory/memory.limit_in_bytes", "memory.max"),
        )
        .await?;
    if seen.is_empty() {
        return Ok(());
    }
    equal("the limit", seen.trim(), (MEMORY_MIB << 20).to_string().as_str())
}

/// A command that wants more memory than there is fails; its sandbox lives, and the next command works (D27).
pub async fn too_much_memory_ends_the_command_only(context: &Context) -> Outcome {
    let limits = SandboxResources::default().with_memory_mib(MEMORY_MIB);
    let handle = context.create(&context.spec().with_resources(limits)).await?;
    // One line of so many bytes, all of which `tail` has to keep.
    let result = context
        .exec(&handle, "head -c 300000000 /dev/zero | tail -n 1 >/dev/null")
        .await?;
    holds(format!("{result:?} is a failure"), !result.is_success())?;
    equal(
        "what the next command prints",
        context.stdout(&handle, "echo works").await?,
        "works\n",
    )
}

/// The number of processes that was asked for is the limit that a command sees, and no more can be started (C13).
pub async fn the_limit_of_processes_holds(context: &Context) -> Outcome {
    let containers: &dyn ContainersProvider = context
        .provider()
        .as_containers()
        .ok_or_else(|| Failure::new("the provider has lost the capability"))?;
    let base = context.spec();
    let image = base
        .image()
        .ok_or_else(|| Failure::new("the spec names no image"))?;
    let mut spec = ContainerSpec::new(image);
    spec.name = Some(format!("conformance-{}", uuid::Uuid::new_v4().simple()));
    spec.entrypoint = Some(["sleep", "1000"].map(str::to_owned).to_vec());
    spec.limits.pids = Some(PIDS);
    spec.labels.extend(base.metadata().clone());
    let id = containers.create_container(&spec).await?;
    let checked = async {
        containers.start_container(&id).await?;
        let handle = containers.container_handle(&id, &Ports::default()).await?;
        context.adopt(&handle);
        let seen = context
            .stdout(&handle, control_group("pids/pids.max", "pids.max"))
            .await?;
        if !seen.is_empty() {
            equal("the limit", seen.trim(), PIDS.to_string().as_str())?;
        }
        let line = "i=0; while [ $i -lt 60 ]; do sleep 60 >/dev/null 2>&1 & i=$((i + 1)); done";
        let many = context
            .exec(&handle, ExecOptions::new(["sh", "-c", line]))
            .await?;
        holds(format!("{many:?} is a failure"), !many.is_success())
    };
    let checked = checked.await;
    containers.remove_container(&id).await?;
    checked
}

cases!("resources":
    the_memory_limit_is_seen_from_inside needs IMAGE,
    too_much_memory_ends_the_command_only needs IMAGE,
    the_limit_of_processes_holds needs CONTAINERS,
);
