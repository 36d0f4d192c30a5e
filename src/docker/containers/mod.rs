//! Containers, networks and volumes of a Compose project: the calls behind
//! [`ContainersProvider`](crate::provider::ContainersProvider). What they send is made in `docker/container/`.

mod create;
mod events;
mod handle;
mod labels;
mod lifecycle;
mod look;
mod lost;
mod network_check;
mod networks;
mod shells;
mod volumes;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use async_trait::async_trait;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{ContainerEvents, ContainersProvider, SandboxHandle};
use crate::spec::Ports;
use crate::spec::container::{ContainerDetail, ContainerSpec, NetworkSpec, SharedObject, VolumeSpec};

use super::DockerProvider;
use super::lanes::Lane;

pub(super) use shells::KnownShells;

#[async_trait]
impl ContainersProvider for DockerProvider {
    async fn create_container(&self, spec: &ContainerSpec) -> Result<String> {
        self.create_service_container(spec).await
    }

    async fn check_container(&self, spec: &ContainerSpec) -> Result<()> {
        create::id_of(spec)?;
        self.creation_of(spec, self.engine().await?).map(drop)
    }

    async fn start_container(&self, container: &str) -> Result<()> {
        self.start_created(container).await
    }

    async fn stop_container(&self, container: &str, grace: Option<Duration>) -> Result<()> {
        self.stop_gently(container, grace).await
    }

    async fn kill_container(&self, container: &str, signal: Option<&str>) -> Result<()> {
        self.send_signal(container, signal).await
    }

    async fn remove_container(&self, container: &str) -> Result<()> {
        let slot = self.lanes().slot(Lane::Removal).await?;
        DockerProvider::remove_container(self, container).await?;
        drop(slot);
        labels::forget(container);
        Ok(())
    }

    async fn inspect_container(&self, container: &str) -> Result<Option<ContainerDetail>> {
        self.describe_container(container, Operation::Inspect).await
    }

    async fn last_log_lines(&self, container: &str) -> Vec<String> {
        self.last_lines(container).await
    }

    async fn list_containers(&self, labels: &BTreeMap<String, String>) -> Result<Vec<ContainerDetail>> {
        self.containers_with(labels).await
    }

    async fn container_events(&self, labels: &BTreeMap<String, String>) -> Result<ContainerEvents> {
        self.events_of(labels).await
    }

    async fn container_handle(&self, container: &str, ports: &Ports) -> Result<SandboxHandle> {
        self.handle_of(container, ports).await
    }

    async fn create_network(&self, spec: &NetworkSpec) -> Result<String> {
        self.make_network(spec).await
    }

    async fn check_network(&self, spec: &NetworkSpec) -> Result<()> {
        network_check::check(spec, self.engine().await?)
    }

    async fn find_networks(&self, name: &str) -> Result<Vec<SharedObject>> {
        self.networks_named(name).await
    }

    async fn list_networks(&self, labels: &BTreeMap<String, String>) -> Result<Vec<SharedObject>> {
        self.networks_with(labels).await
    }

    async fn remove_network(&self, id: &str) -> Result<()> {
        self.remove_network_if_present(id).await
    }

    async fn create_volume(&self, spec: &VolumeSpec) -> Result<SharedObject> {
        self.make_volume(spec).await
    }

    async fn find_volume(&self, name: &str) -> Result<Option<SharedObject>> {
        self.volume_named(name).await
    }

    async fn list_volumes(&self, labels: &BTreeMap<String, String>) -> Result<Vec<SharedObject>> {
        self.volumes_with(labels).await
    }

    async fn remove_volume(&self, name: &str) -> Result<()> {
        self.remove_volume_if_present(name).await
    }
}

/// Says what to do about something that others use.
fn in_use(error: Error) -> Error {
    if error.kind() == ErrorKind::Conflict {
        error.with_hint(
            "containers that use it are in the way: remove them (`docker ps -a` shows them), then try again",
        )
    } else {
        error
    }
}

/// The engine's filter for labels and their values.
fn label_filter(labels: &BTreeMap<String, String>) -> HashMap<String, Vec<String>> {
    let labels = labels.iter().map(|(key, value)| format!("{key}={value}"));
    HashMap::from([("label".to_owned(), labels.collect())])
}
