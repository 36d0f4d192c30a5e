//! Snapshots of a sandbox, and many sandboxes from one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{Capability, Reaper, SandboxProvider, SnapshotProvider};
use crate::spec::{SNAPSHOT_OPTION, Snapshot, SnapshotOptions};

use super::AsyncSandbox;

/// The most sandboxes of one fork.
const MOST: usize = 4096;

/// How often the snapshot of a dropped fork is tried to be removed while its sandboxes go, and the pause between.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_secs(1);

impl AsyncSandbox {
    /// Keeps the files of the sandbox, to start others from: with the provider option
    /// [`SNAPSHOT_OPTION`](crate::SNAPSHOT_OPTION), or with [`fork`](Self::fork). The sandbox stands still meanwhile and
    /// goes on afterwards.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`], [`ErrorKind::NotStarted`], [`ErrorKind::Stopped`], and those of
    /// [`SnapshotProvider::snapshot`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves no snapshot.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        self.snapshot_with(&SnapshotOptions::default()).await
    }

    /// As [`snapshot`](Self::snapshot), with options.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    ///
    /// # Cancel safety
    /// As [`snapshot`](Self::snapshot).
    pub async fn snapshot_with(&self, options: &SnapshotOptions) -> Result<Snapshot> {
        let snapshots = self.snapshots()?;
        let started = self.started(Operation::Snapshot)?;
        snapshots.snapshot(&started.handle, options).await
    }

    /// Starts so many sandboxes from this one as it is now: the same spec, the same files, no processes. They share
    /// nothing with it, or with each other, afterwards.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot); the first failure of a start, after which none of them is left;
    /// [`ErrorKind::InvalidArgument`] for over 4096, and for a sandbox that another process made.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing: what was started is removed in the background.
    pub async fn fork(&self, count: usize) -> Result<Fork> {
        if count > MOST {
            return Err(Error::invalid(
                Operation::Snapshot,
                format!("a fork has at most {MOST} sandboxes, not {count}"),
            ));
        }
        let spec = self.started(Operation::Snapshot)?.spec.clone().ok_or_else(|| {
            Error::invalid(
                Operation::Snapshot,
                "a sandbox of another process can't be forked: its spec is not known here",
            )
            .with_hint("take a snapshot of it, and start sandboxes from that")
        })?;
        let snapshot = self.snapshot().await?;
        let spec = spec
            .without_files()
            .with_provider_option(SNAPSHOT_OPTION, snapshot.id.as_str());
        let mut fork = Fork {
            sandboxes: Vec::with_capacity(count),
            snapshot,
            provider: Arc::clone(&self.provider),
            reaper: self.reaper.clone(),
            armed: true,
        };
        fork.sandboxes
            .extend((0..count).map(|_| self.sibling().with_spec(spec.clone())));
        let started = join_all(
            fork.sandboxes
                .iter()
                .map(|sandbox| async { sandbox.start().await.map(drop) }),
        )
        .await;
        match started.into_iter().find_map(Result::err) {
            None => Ok(fork),
            Some(error) => match fork.stop().await {
                Ok(()) => Err(error),
                Err(cleanup) => Err(error.with_cleanup_error(cleanup)),
            },
        }
    }

    fn snapshots(&self) -> Result<&dyn SnapshotProvider> {
        self.provider
            .as_snapshot()
            .ok_or_else(|| self.unsupported(Operation::Snapshot, Capability::Snapshot))
    }
}

/// Sandboxes that were started from one, and the snapshot between them.
///
/// [`stop`](Self::stop) removes them all. Dropping it removes them in the background, as dropping each of them does.
pub struct Fork {
    sandboxes: Vec<AsyncSandbox>,
    snapshot: Snapshot,
    provider: Arc<dyn SandboxProvider>,
    reaper: Reaper,
    armed: bool,
}

impl Fork {
    /// The sandboxes, all of them started.
    pub fn sandboxes(&self) -> &[AsyncSandbox] {
        &self.sandboxes
    }

    /// The snapshot that they were started from. It goes with them.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Removes all sandboxes and their snapshot. May be called again.
    ///
    /// # Errors
    /// The first failure, with the others attached.
    ///
    /// # Cancel safety
    /// Dropping the future may leave some; call it again, or drop the fork.
    pub async fn stop(&mut self) -> Result<()> {
        let stopped = join_all(self.sandboxes.iter().map(AsyncSandbox::stop)).await;
        let mut problem: Option<Error> = None;
        let mut note = |error: Error| {
            problem = Some(match problem.take() {
                Some(first) => first.with_cleanup_error(error),
                None => error,
            });
        };
        stopped.into_iter().filter_map(Result::err).for_each(&mut note);
        if self.armed {
            match delete(&*self.provider, &self.snapshot.id).await {
                Ok(()) => self.armed = false,
                Err(error) => note(error),
            }
        }
        problem.map_or(Ok(()), Err)
    }
}

async fn delete(provider: &dyn SandboxProvider, id: &str) -> Result<()> {
    let Some(snapshots) = provider.as_snapshot() else {
        return Err(Error::unsupported(
            Operation::Snapshot,
            provider.name(),
            Capability::Snapshot.as_str(),
        ));
    };
    snapshots.delete_snapshot(id).await.map(drop)
}

impl Drop for Fork {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let (provider, id) = (Arc::clone(&self.provider), std::mem::take(&mut self.snapshot.id));
        let pledge = provider.cleanup().map(Reaper::pledge);
        self.reaper
            .submit("remove the snapshot of a dropped fork", async move {
                let _pledge = pledge;
                for _ in 0..TRIES {
                    match delete(&*provider, &id).await {
                        // Its sandboxes are on their way out.
                        Err(error) if error.kind() == ErrorKind::Conflict => {}
                        Err(error) => tracing::warn!(id, %error, "the snapshot of a dropped fork is left"),
                        Ok(()) => return,
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            });
    }
}

impl fmt::Debug for Fork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fork")
            .field("sandboxes", &self.sandboxes.len())
            .field("snapshot", &self.snapshot.id)
            .finish_non_exhaustive()
    }
}
