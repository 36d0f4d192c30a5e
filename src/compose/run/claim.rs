//! Who of several that start a project of one name at once goes on: the first, whatever each of them would make first.

use futures::future::join_all;

use crate::compose::plan::PROJECT;
use crate::error::{Operation, Result};
use crate::spec::container::{SharedObject, VolumeSpec};

use super::board::Stage;
use super::by_name::OWN;
use super::crew::Crew;
use super::shared::START;
use super::start::Start;

/// No project's name has a dot, and no volume of a file is called so.
const CLAIM: &str = "gym-sandbox-start.";

/// Whether a volume stands for the name of a project: it goes last, so that who comes next finds nothing else of it.
pub(super) fn is_claim(volume: &str) -> bool {
    volume.starts_with(CLAIM)
}

impl Crew {
    /// Takes the name for this start, and refuses it to every other one until its containers do so.
    ///
    /// A volume stands for it: of all that an engine makes, every version has one volume of a name, makes it in one step, and
    /// says by its labels whose it is. Without it two starts that each made one of the other's things would both give up.
    pub(super) async fn claim(&self) -> Result<()> {
        let name = self.claim_name();
        let mut spec = VolumeSpec::new(&name);
        spec.labels.insert(PROJECT.to_owned(), self.plan.project.clone());
        spec.labels.insert(START.to_owned(), self.start.clone());
        let made = self
            .containers(Operation::ComposeUp)?
            .create_volume(&spec)
            .await?;
        if made.labels.get(START) != Some(&self.start) {
            return Err(self.rival("volume", &name));
        }
        self.made.add_volume(&name);
        // Another start may have come and gone on since it was looked.
        self.check_is_free().await
    }

    /// Takes over volumes that were somebody's when they were looked at, were removed, and were made again by the engine for a
    /// container of this project.
    async fn adopt_volumes(&self) {
        for before in self.made.found_volumes() {
            let looked = match self.containers(Operation::ComposeUp) {
                Ok(containers) => containers.find_volume(&before.id).await,
                Err(error) => Err(error),
            };
            let is_ours = |volume: &SharedObject| {
                volume.labels != before.labels
                    && volume.labels.contains_key(OWN)
                    && volume.labels.get(PROJECT) == Some(&self.plan.project)
            };
            match looked {
                Ok(volume) if volume.as_ref().is_some_and(is_ours) => self.made.add_volume(&before.id),
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "a volume that was there could not be looked at"),
            }
        }
    }

    /// Gives the name free. Where that fails the volume is removed with the project.
    async fn release_claim(&self) {
        let name = self.claim_name();
        let removed = match self.containers(Operation::ComposeUp) {
            Ok(containers) => containers.remove_volume(&name).await,
            Err(error) => Err(error),
        };
        match removed {
            Ok(()) => self.made.forget_volume(&name),
            Err(error) => tracing::debug!(%error, "the claim of a project's name stays until its end"),
        }
    }

    fn claim_name(&self) -> String {
        format!("{CLAIM}{}", self.plan.project)
    }
}

impl Start<'_> {
    /// Gives the name free once all containers are there, each of which keeps another start from going on.
    pub(super) async fn release_when_made(&self) {
        let services = 0..self.crew.plan.services.len();
        join_all(services.map(|service| self.stage_at_least(service, Stage::Created))).await;
        self.crew.adopt_volumes().await;
        self.crew.release_claim().await;
    }
}
