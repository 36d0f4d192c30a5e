//! Volumes of a project.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bollard::models::{Volume, VolumeCreateRequest};
use bollard::query_parameters::{ListVolumesOptionsBuilder, RemoveVolumeOptionsBuilder};
use tokio::task::JoinHandle;

use crate::error::{ErrorKind, Operation, Result};
use crate::spec::container::{SharedObject, VolumeSpec};

use super::super::DockerProvider;
use super::super::create::token_label;
use super::super::failure::{EngineFailure, QUICK, REMOVE, call};
use super::super::lease::{let_go, volume_hold};
use super::super::owner::{Keep, LABEL, owner};
use super::labels::{Kind, keep_of, stamped};
use super::lost::{Lost, is_lost};
use super::{in_use, label_filter};

impl DockerProvider {
    /// Makes a volume. The call is seen through to its end in a task of its own, and what it made is removed when nobody
    /// waits for it any more; closing the provider waits for that.
    pub(super) async fn make_volume(&self, spec: &VolumeSpec) -> Result<SharedObject> {
        let engine = self.engine().await?;
        let options = &spec.driver_options;
        let mut labels = stamped(
            &spec.labels,
            &self.config().default_metadata,
            Kind::Volume,
            engine,
            &self.config().lease,
        );
        // An engine that has a volume of that name gives it as it is: this tells what the call has made.
        let token = uuid::Uuid::new_v4().simple().to_string();
        labels.insert(token_label(), token.clone());
        let body = VolumeCreateRequest {
            name: Some(spec.name.clone()),
            driver: spec.driver.clone(),
            driver_opts: (!options.is_empty())
                .then(|| options.clone().into_iter().collect::<HashMap<_, _>>()),
            labels: Some(labels),
            ..VolumeCreateRequest::default()
        };
        let held = volume_hold(&spec.name);
        let keeper = Arc::clone(self.keeper().await?);
        // Before it is made: whoever sees it sees a living owner, too.
        if keep_of(&spec.labels) == Keep::No {
            keeper.hold(&held);
        }
        let client = engine.client.clone();
        let (provider, of_this_call) = (self.clone(), token.clone());
        let task = tokio::spawn(async move {
            let made = call(REMOVE, client.create_volume(body)).await;
            if made.as_ref().is_err_and(is_lost) {
                provider.remove_lost(Lost::Volume, of_this_call);
            }
            keeper.made(&held);
            let is_ours = |volume: &Volume| volume.labels.get(&format!("{LABEL}.owner")) == Some(&owner().id);
            // One that was there already is somebody else's.
            if !made.as_ref().is_ok_and(is_ours) {
                let_go(&held);
            }
            made
        });
        let mut making = Making {
            provider: self,
            task: Some(task),
            token,
        };
        let made = match making.task.as_mut() {
            Some(task) => task.await.unwrap_or_else(|_| Err(EngineFailure::cut_off())),
            None => Err(EngineFailure::cut_off()),
        };
        making.task = None;
        made.map(object_of).map_err(|failure| {
            failure.into_error(
                Operation::Create,
                format!("volume `{}` could not be made", spec.name),
                ErrorKind::CreateFailed,
            )
        })
    }

    pub(super) async fn volume_named(&self, name: &str) -> Result<Option<SharedObject>> {
        let client = &self.engine().await?.client;
        match call(QUICK, client.inspect_volume(name)).await {
            Ok(volume) => Ok(Some(object_of(volume))),
            Err(failure) if failure.is_status(404) => Ok(None),
            Err(failure) => Err(failure.into_error(
                Operation::List,
                format!("the engine did not describe volume `{name}`"),
                ErrorKind::Internal,
            )),
        }
    }

    pub(super) async fn volumes_with(&self, labels: &BTreeMap<String, String>) -> Result<Vec<SharedObject>> {
        let options = ListVolumesOptionsBuilder::new()
            .filters(&label_filter(labels))
            .build();
        let client = &self.engine().await?.client;
        let listed = call(QUICK, client.list_volumes(Some(options))).await;
        let listed = listed.map_err(|failure| {
            failure.into_error(
                Operation::List,
                "the engine did not list its volumes",
                ErrorKind::Internal,
            )
        })?;
        Ok(listed
            .volumes
            .unwrap_or_default()
            .into_iter()
            .map(object_of)
            .collect())
    }

    pub(super) async fn remove_volume_if_present(&self, name: &str) -> Result<()> {
        let client = &self.engine().await?.client;
        let options = RemoveVolumeOptionsBuilder::new().force(true).build();
        match call(REMOVE, client.remove_volume(name, Some(options))).await {
            Err(failure) if !failure.is_status(404) => {
                let text = format!("volume `{name}` could not be removed");
                Err(in_use(failure.into_error(
                    Operation::Close,
                    text,
                    ErrorKind::Conflict,
                )))
            }
            _ => {
                let_go(&volume_hold(name));
                Ok(())
            }
        }
    }
}

/// What a volume's create comes to. Dropped before its end it has what it made removed.
struct Making<'a> {
    provider: &'a DockerProvider,
    task: Option<JoinHandle<Result<Volume, EngineFailure>>>,
    token: String,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let Some(task) = self.task.take() else { return };
        let provider = self.provider.clone();
        let token = std::mem::take(&mut self.token);
        let reaper = self.provider.reaper().clone();
        reaper.submit("remove a cancelled volume", async move {
            let Ok(Ok(volume)) = task.await else { return };
            if volume.labels.get(&token_label()) != Some(&token) {
                return;
            }
            if let Err(error) = provider.remove_volume_if_present(&volume.name).await {
                tracing::warn!(%error, "a cancelled volume is left to a sweep");
            }
        });
    }
}

fn object_of(volume: Volume) -> SharedObject {
    let mut object = SharedObject::new(volume.name.clone(), volume.name);
    object.labels = volume.labels.into_iter().collect::<BTreeMap<_, _>>();
    object
}
