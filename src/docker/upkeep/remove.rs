//! Removing many objects at once, in the order in which they let go of each other.

use std::collections::HashSet;
use std::time::Duration;

use bollard::query_parameters::RemoveVolumeOptions;
use futures::{StreamExt, stream};
use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::{ObjectKind, SandboxFilter, SweptObject};

use super::super::DockerProvider;
use super::super::failure::{EngineFailure, QUICK, REMOVE, call};
use super::super::lanes::Lane;
use super::super::owner::{Keep, kind, matches, owner};
use super::decide::is_lease;
use super::look::Object;

/// How many are removed at once: the engine's own work is the limit.
const AT_ONCE: usize = 16;

/// How long the removal of everything waits for creates that are under way.
const MAKING: Duration = Duration::from_secs(5);

/// An object that is to go, and why.
pub(super) type Doomed = (Object, String);

/// What came of a removal.
#[derive(Debug, Default)]
pub(super) struct Removal {
    pub(super) removed: Vec<SweptObject>,
    pub(super) failed: Vec<(SweptObject, Error)>,
}

impl DockerProvider {
    /// Containers first, which hold networks and volumes; leases last, and only those of owners of whom nothing is
    /// left: what is left has to be found by the next sweep.
    pub(super) async fn remove_objects(&self, doomed: Vec<Doomed>) -> Removal {
        let mut removal = Removal::default();
        let (leases, others): (Vec<Doomed>, Vec<Doomed>) =
            doomed.into_iter().partition(|(object, _)| is_lease(object));
        for kind in [ObjectKind::Container, ObjectKind::Network, ObjectKind::Volume] {
            let of_kind = others
                .iter()
                .filter(|(object, _)| object.kind == kind)
                .cloned()
                .collect();
            self.remove_at_once(of_kind, &mut removal).await;
        }
        let with_rest: HashSet<Option<String>> = removal
            .failed
            .iter()
            .map(|(object, _)| object.owner.clone())
            .collect();
        let leases = leases
            .into_iter()
            .filter(|(lease, _)| !with_rest.contains(&lease.marks.owner))
            .collect();
        self.remove_at_once(leases, &mut removal).await;
        removal
    }

    async fn remove_at_once(&self, doomed: Vec<Doomed>, removal: &mut Removal) {
        let outcomes: Vec<(Doomed, Result<bool>)> = stream::iter(doomed)
            .map(|doomed| async move {
                let outcome = self.remove_object(&doomed.0).await;
                (doomed, outcome)
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        for ((object, why), outcome) in outcomes {
            let named = |why: String| {
                SweptObject::new(object.kind, object.name.clone(), object.marks.owner.clone(), why)
            };
            match outcome {
                Ok(true) => removal.removed.push(named(why)),
                // Somebody else was quicker.
                Ok(false) => {}
                Err(error) => {
                    let why = error.report().to_string();
                    removal.failed.push((named(why), error));
                }
            }
        }
    }

    /// Says whether it was there.
    async fn remove_object(&self, object: &Object) -> Result<bool> {
        let client = &self.engine().await?.client;
        let removed = match object.kind {
            ObjectKind::Container => {
                // The lease is not let go of here: a create that is under way may make the container again.
                return self.remove_if_present(&object.id).await;
            }
            ObjectKind::Network => {
                let _slot = self.lanes().slot(Lane::Network).await?;
                call(REMOVE, client.remove_network(&object.id)).await
            }
            ObjectKind::Volume => {
                call(
                    QUICK,
                    client.remove_volume(&object.id, None::<RemoveVolumeOptions>),
                )
                .await
            }
        };
        match removed {
            Ok(()) => Ok(true),
            Err(failure) if failure.is_status(404) => Ok(false),
            Err(failure) => Err(not_removed(object, failure)),
        }
    }

    /// Removes everything of this process, again and again until nothing more appears.
    pub(super) async fn remove_all_own(&self) -> Result<()> {
        let filter = SandboxFilter::default().with_owner(owner().id.as_str());
        let patience = Instant::now() + MAKING;
        loop {
            let look = self.look_at_all(Operation::Close).await?;
            let is_own = |object: &Object| {
                matches(&filter, &object.labels)
                    && object.marks.keep == Keep::No
                    && object.marks.kind.as_deref() != Some(kind::SHARED)
            };
            // The leases go by themselves when nothing is left.
            let own: Vec<Doomed> = look
                .objects
                .into_iter()
                .filter(|object| is_own(object) && !is_lease(object))
                .map(|object| (object, "it is this process's own".to_owned()))
                .collect();
            let is_empty = own.is_empty();
            let removal = self.remove_objects(own).await;
            if let Some(error) = all_as_one(removal.failed) {
                return Err(error);
            }
            let keeper = self.any_keeper().await?;
            let waits = keeper.in_the_making() > 0 && Instant::now() < patience;
            if is_empty && !waits {
                keeper.forget_the_gone().await;
                return keeper.released().await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn all_as_one(failed: Vec<(SweptObject, Error)>) -> Option<Error> {
    failed
        .into_iter()
        .map(|(_, error)| error)
        .reduce(Error::with_cleanup_error)
}

fn not_removed(object: &Object, failure: EngineFailure) -> Error {
    failure.into_error(
        Operation::Sweep,
        format!("the engine did not remove {} `{}`", object.kind, object.name),
        ErrorKind::Conflict,
    )
}
