//! Lists and sweeps (D16, D35, capabilities `List` and `Sweep`). Whose dead owners' objects go is the provider's own
//! matter to test: here an owner is alive.

use crate::provider::{Capability, ListProvider, SweepProvider};
use crate::spec::{SandboxFilter, SandboxStatus, SecondLook, SweepMode, SweepOptions};

use super::case::cases;
use super::check::{equal, holds};
use super::{Context, Failure, Need, Outcome};

const LIST: Need = Need::Capability(Capability::List);
const SWEEP: Need = Need::Capability(Capability::Sweep);

/// A label of one case, by which its sandboxes are told from all others.
const LABEL: &str = "conformance-upkeep";

fn lister(context: &Context) -> Result<&dyn ListProvider, Failure> {
    context
        .provider()
        .as_list()
        .ok_or_else(|| Failure::new("the provider has lost the capability"))
}

fn sweeper(context: &Context) -> Result<&dyn SweepProvider, Failure> {
    context
        .provider()
        .as_sweep()
        .ok_or_else(|| Failure::new("the provider has lost the capability"))
}

fn filter() -> (SandboxFilter, String) {
    let mark = uuid::Uuid::new_v4().simple().to_string();
    (SandboxFilter::default().with_label(LABEL, mark.as_str()), mark)
}

/// A sandbox is in the list from its start to its end, with what it was made with.
pub async fn a_sandbox_is_listed_while_it_is_there(context: &Context) -> Outcome {
    let (filter, mark) = filter();
    let listed = lister(context)?.list_sandboxes(&filter).await?;
    equal("the sandboxes before", listed.len(), 0)?;
    let spec = context.spec().with_metadata(LABEL, mark);
    let handle = context.create(&spec).await?;
    let listed = lister(context)?.list_sandboxes(&filter).await?;
    equal("the sandboxes", listed.len(), 1)?;
    equal("the id", &listed[0].sandbox_id, handle.sandbox_id())?;
    equal("the status", listed[0].status, SandboxStatus::Running)?;
    holds("it says when it was created", listed[0].created.is_some())?;
    context.provider().close(&handle).await?;
    let listed = lister(context)?.list_sandboxes(&filter).await?;
    equal("the sandboxes afterwards", listed.len(), 0)
}

/// A sweep takes nothing from a live owner, and a dry run from nobody.
pub async fn a_sweep_leaves_the_living_alone(context: &Context) -> Outcome {
    let (filter, mark) = filter();
    let handle = context.create(&context.spec().with_metadata(LABEL, mark)).await?;
    let options = SweepOptions::default()
        .with_second_look(SecondLook::Never)
        .with_filter(filter);
    for mode in [SweepMode::DryRun, SweepMode::Remove] {
        let report = sweeper(context)?.sweep(&options.clone().with_mode(mode)).await?;
        equal("what was removed", report.removed, vec![])?;
        equal("what failed", report.failed, vec![])?;
        holds("the sandbox is counted", report.left >= 1)?;
    }
    equal(
        "the status",
        context.provider().status(&handle).await?,
        SandboxStatus::Running,
    )
}

cases!("upkeep":
    a_sandbox_is_listed_while_it_is_there needs LIST,
    a_sweep_leaves_the_living_alone needs SWEEP,
);
