//! Volumes of a project.

use std::collections::{BTreeMap, HashMap};

use bollard::models::{Volume, VolumeCreateRequest};
use bollard::query_parameters::{ListVolumesOptionsBuilder, RemoveVolumeOptionsBuilder};

use crate::error::{ErrorKind, Operation, Result};
use crate::spec::container::{SharedObject, VolumeSpec};

use super::super::DockerProvider;
use super::super::failure::{QUICK, REMOVE, call};
use super::super::lease::{Keeper, let_go, volume_hold};
use super::super::owner::{Keep, LABEL, owner};
use super::label_filter;
use super::labels::{Kind, keep_of, stamped};

impl DockerProvider {
    pub(super) async fn make_volume(&self, spec: &VolumeSpec) -> Result<()> {
        let engine = self.engine().await?;
        let options = &spec.driver_options;
        let body = VolumeCreateRequest {
            name: Some(spec.name.clone()),
            driver: spec.driver.clone(),
            driver_opts: (!options.is_empty())
                .then(|| options.clone().into_iter().collect::<HashMap<_, _>>()),
            labels: Some(stamped(
                &spec.labels,
                &self.config().default_metadata,
                Kind::Volume,
                engine,
                &self.config().lease,
            )),
            ..VolumeCreateRequest::default()
        };
        let held = volume_hold(&spec.name);
        let keeper = self.keeper().await?;
        // Before it is made: whoever sees it sees a living owner, too.
        if keep_of(&spec.labels) == Keep::No {
            keeper.hold(&held);
        }
        let making = Making { keeper, held: &held };
        let made = call(REMOVE, engine.client.create_volume(body)).await;
        drop(making);
        match made {
            // It was there already, and is somebody else's.
            Ok(volume) if volume.labels.get(&format!("{LABEL}.owner")) != Some(&owner().id) => {
                let_go(&held);
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(failure) => {
                let_go(&held);
                Err(failure.into_error(
                    Operation::Create,
                    format!("volume `{}` could not be made", spec.name),
                    ErrorKind::CreateFailed,
                ))
            }
        }
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
            Err(failure) if !failure.is_status(404) => Err(failure.into_error(
                Operation::Close,
                format!("volume `{name}` could not be removed"),
                ErrorKind::Conflict,
            )),
            _ => {
                let_go(&volume_hold(name));
                Ok(())
            }
        }
    }
}

/// A volume that is being made, and may be there once nobody waits for it any more.
struct Making<'a> {
    keeper: &'a Keeper,
    held: &'a str,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.keeper.made(self.held);
    }
}

fn object_of(volume: Volume) -> SharedObject {
    let mut object = SharedObject::new(volume.name.clone(), volume.name);
    object.labels = volume.labels.into_iter().collect::<BTreeMap<_, _>>();
    object
}
