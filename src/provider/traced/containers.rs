//! Spans of the calls about containers, networks and volumes.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use tracing::{Instrument, debug, field::Empty, info_span};

use crate::error::{Operation, Result};
use crate::provider::{Capability, ContainerEvents, ContainersProvider, SandboxHandle};
use crate::spec::Ports;
use crate::spec::container::{ContainerDetail, ContainerSpec, NetworkSpec, SharedObject, VolumeSpec};

use super::{Traced, lost, noted};

impl Traced {
    fn containers(&self, operation: Operation) -> Result<&dyn ContainersProvider> {
        self.inner
            .as_containers()
            .ok_or_else(|| lost(self, operation, Capability::Containers))
    }
}

/// Makes a call within a span that names what it is about.
macro_rules! traced {
    ($self:ident, $name:literal, $what:expr, $operation:ident, $method:ident($($argument:expr),*)) => {{
        let span = info_span!($name, provider = $self.inner.name(), object = $what, error = Empty);
        async { noted($self.containers(Operation::$operation)?.$method($($argument),*).await) }
            .instrument(span)
            .await
    }};
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ContainersProvider for Traced {
    fn check_container(&self, spec: &ContainerSpec) -> Result<()> {
        self.containers(Operation::Create)?.check_container(spec)
    }

    async fn create_container(&self, spec: &ContainerSpec) -> Result<String> {
        traced!(
            self,
            "container.create",
            spec.name,
            Create,
            create_container(spec)
        )
    }

    async fn start_container(&self, container: &str) -> Result<()> {
        traced!(
            self,
            "container.start",
            container,
            Start,
            start_container(container)
        )
    }

    async fn stop_container(&self, container: &str, grace: Option<Duration>) -> Result<()> {
        traced!(
            self,
            "container.stop",
            container,
            Stop,
            stop_container(container, grace)
        )
    }

    async fn kill_container(&self, container: &str, signal: Option<&str>) -> Result<()> {
        traced!(
            self,
            "container.kill",
            container,
            Stop,
            kill_container(container, signal)
        )
    }

    async fn remove_container(&self, container: &str) -> Result<()> {
        traced!(
            self,
            "container.remove",
            container,
            Close,
            remove_container(container)
        )
    }

    async fn inspect_container(&self, container: &str) -> Result<Option<ContainerDetail>> {
        traced!(
            self,
            "container.inspect",
            container,
            Inspect,
            inspect_container(container)
        )
    }

    async fn last_log_lines(&self, container: &str) -> Vec<String> {
        match self.containers(Operation::Inspect) {
            Ok(inner) => inner.last_log_lines(container).await,
            Err(error) => {
                debug!(%error, "no log lines");
                Vec::new()
            }
        }
    }

    async fn list_containers(&self, labels: &BTreeMap<String, String>) -> Result<Vec<ContainerDetail>> {
        traced!(self, "container.list", Empty, List, list_containers(labels))
    }

    async fn container_events(&self, labels: &BTreeMap<String, String>) -> Result<ContainerEvents> {
        traced!(self, "container.events", Empty, List, container_events(labels))
    }

    async fn container_handle(&self, container: &str, ports: &Ports) -> Result<SandboxHandle> {
        traced!(
            self,
            "container.handle",
            container,
            Attach,
            container_handle(container, ports)
        )
    }

    async fn create_network(&self, spec: &NetworkSpec) -> Result<String> {
        traced!(self, "network.create", spec.name, Create, create_network(spec))
    }

    async fn check_network(&self, spec: &NetworkSpec) -> Result<()> {
        traced!(self, "network.check", spec.name, Create, check_network(spec))
    }

    async fn find_networks(&self, name: &str) -> Result<Vec<SharedObject>> {
        traced!(self, "network.find", name, List, find_networks(name))
    }

    async fn list_networks(&self, labels: &BTreeMap<String, String>) -> Result<Vec<SharedObject>> {
        traced!(self, "network.list", Empty, List, list_networks(labels))
    }

    async fn remove_network(&self, id: &str) -> Result<()> {
        traced!(self, "network.remove", id, Close, remove_network(id))
    }

    async fn create_volume(&self, spec: &VolumeSpec) -> Result<SharedObject> {
        traced!(self, "volume.create", spec.name, Create, create_volume(spec))
    }

    async fn find_volume(&self, name: &str) -> Result<Option<SharedObject>> {
        traced!(self, "volume.find", name, List, find_volume(name))
    }

    async fn list_volumes(&self, labels: &BTreeMap<String, String>) -> Result<Vec<SharedObject>> {
        traced!(self, "volume.list", Empty, List, list_volumes(labels))
    }

    async fn remove_volume(&self, name: &str) -> Result<()> {
        traced!(self, "volume.remove", name, Close, remove_volume(name))
    }
}
