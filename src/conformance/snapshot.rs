//! Snapshots (capability `Snapshot`): files are kept, everything else is not.

use crate::error::ErrorKind;
use crate::provider::{Capability, SandboxHandle, SnapshotProvider};
use crate::spec::{SNAPSHOT_OPTION, Snapshot, SnapshotOptions};

use super::case::cases;
use super::check::{equal, holds, refused_with};
use super::{Context, Failure, Need, Outcome};

const SNAPSHOT: Need = Need::Capability(Capability::Snapshot);

fn snapshots(context: &Context) -> crate::Result<&dyn SnapshotProvider> {
    context.provider().as_snapshot().ok_or_else(|| {
        crate::Error::unsupported(
            crate::Operation::Snapshot,
            context.provider().name(),
            "snapshots any more",
        )
    })
}

/// Takes a snapshot, does something with it, and removes it whatever came of that. The sandboxes that were made from it
/// must be closed by then.
async fn with_snapshot(
    context: &Context,
    handle: &SandboxHandle,
    work: impl AsyncFnOnce(&Snapshot) -> Outcome,
) -> Outcome {
    let provider = snapshots(context)?;
    let snapshot = provider.snapshot(handle, &SnapshotOptions::default()).await?;
    let outcome = work(&snapshot).await;
    let deleted = provider.delete_snapshot(&snapshot.id).await;
    outcome?;
    equal("a snapshot that is deleted", deleted?, true)
}

/// A sandbox that is made from a snapshot has the files of the first one, and its own from then on.
pub async fn a_snapshot_has_the_files(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    context.stdout(&handle, "echo kept > /tmp/snapshot-file").await?;
    with_snapshot(context, &handle, async |snapshot| {
        context.stdout(&handle, "echo later > /tmp/snapshot-file").await?;
        let spec = context
            .spec()
            .with_provider_option(SNAPSHOT_OPTION, snapshot.id.as_str());
        let second = context.create(&spec).await?;
        let seen = context.stdout(&second, "cat /tmp/snapshot-file").await;
        context.provider().close(&second).await?;
        equal("the file", seen?.as_str(), "kept\n")
    })
    .await
}

/// A snapshot is listed until it is deleted; deleting it again finds nothing.
pub async fn a_snapshot_is_listed_until_it_is_deleted(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let provider = snapshots(context)?;
    let mut id = String::new();
    with_snapshot(context, &handle, async |snapshot| {
        id.clone_from(&snapshot.id);
        let listed = provider.list_snapshots().await?;
        holds("it is listed", listed.iter().any(|one| one.id == snapshot.id))
    })
    .await?;
    let listed = provider.list_snapshots().await?;
    holds("it is not listed any more", listed.iter().all(|one| one.id != id))?;
    equal("deleting it again", provider.delete_snapshot(&id).await?, false)
}

/// A snapshot of a sandbox that is gone is refused, and so is a start from one that never was.
pub async fn what_is_not_there_is_refused(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    context.provider().close(&handle).await?;
    let taken = snapshots(context)?
        .snapshot(&handle, &SnapshotOptions::default())
        .await;
    refused_with("a snapshot of a sandbox that is gone", taken, ErrorKind::NotFound)?;
    let spec = context.spec().with_provider_option(SNAPSHOT_OPTION, "");
    match context.provider().create(&spec).await {
        Err(error) if error.kind() == ErrorKind::InvalidArgument => Ok(()),
        Err(error) => Err(error.into()),
        Ok(handle) => {
            context.provider().close(&handle).await?;
            Err(Failure::new("a sandbox was made from no snapshot"))
        }
    }
}

cases!("snapshot":
    a_snapshot_has_the_files needs SNAPSHOT,
    a_snapshot_is_listed_until_it_is_deleted needs SNAPSHOT,
    what_is_not_there_is_refused needs SNAPSHOT,
);
