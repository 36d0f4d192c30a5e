//! Containers, networks and volumes of the scripted provider.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;

use crate::error::{Operation, Result};
use crate::provider::{ContainerEvents, ContainersProvider, SandboxHandle};
use crate::spec::container::{ContainerDetail, ContainerSpec, NetworkSpec, SharedObject, VolumeSpec};
use crate::spec::{Ports, SandboxId};

use super::{Call, Scripted};

impl Scripted {
    async fn container_call(&self, operation: Operation, what: &'static str, object: &str) -> Result<()> {
        self.note(Call::Containers(what, object.to_owned()));
        self.step(operation).await
    }
}

#[async_trait]
impl ContainersProvider for Scripted {
    async fn create_container(&self, spec: &ContainerSpec) -> Result<String> {
        let name = spec.name.clone().unwrap_or_default();
        self.container_call(Operation::Create, "create container", &name)
            .await?;
        Ok(name)
    }

    async fn start_container(&self, container: &str) -> Result<()> {
        self.container_call(Operation::Start, "start container", container)
            .await
    }

    async fn stop_container(&self, container: &str, _grace: Option<Duration>) -> Result<()> {
        self.container_call(Operation::Stop, "stop container", container)
            .await
    }

    async fn kill_container(&self, container: &str, _signal: Option<&str>) -> Result<()> {
        self.container_call(Operation::Stop, "kill container", container)
            .await
    }

    async fn remove_container(&self, container: &str) -> Result<()> {
        self.container_call(Operation::Close, "remove container", container)
            .await
    }

    async fn inspect_container(&self, container: &str) -> Result<Option<ContainerDetail>> {
        self.container_call(Operation::Inspect, "inspect container", container)
            .await?;
        Ok(None)
    }

    async fn last_log_lines(&self, container: &str) -> Vec<String> {
        self.note(Call::Containers("log lines", container.to_owned()));
        Vec::new()
    }

    async fn list_containers(&self, _labels: &BTreeMap<String, String>) -> Result<Vec<ContainerDetail>> {
        self.container_call(Operation::List, "list containers", "")
            .await?;
        Ok(Vec::new())
    }

    async fn container_events(&self, _labels: &BTreeMap<String, String>) -> Result<ContainerEvents> {
        self.container_call(Operation::List, "events", "").await?;
        Ok(futures::stream::empty().boxed())
    }

    async fn container_handle(&self, container: &str, ports: &Ports) -> Result<SandboxHandle> {
        self.container_call(Operation::Attach, "handle", container)
            .await?;
        Ok(SandboxHandle::new(SandboxId::new(container)?, "scripted").with_ports(ports.clone()))
    }

    async fn check_container(&self, spec: &ContainerSpec) -> Result<()> {
        let name = spec.name.as_deref().unwrap_or_default();
        self.container_call(Operation::Create, "check container", name)
            .await
    }

    async fn create_network(&self, spec: &NetworkSpec) -> Result<String> {
        self.container_call(Operation::Create, "create network", &spec.name)
            .await?;
        Ok(spec.name.clone())
    }

    async fn check_network(&self, spec: &NetworkSpec) -> Result<()> {
        self.container_call(Operation::Create, "check network", &spec.name)
            .await
    }

    async fn find_networks(&self, name: &str) -> Result<Vec<SharedObject>> {
        self.container_call(Operation::List, "find networks", name)
            .await?;
        Ok(Vec::new())
    }

    async fn list_networks(&self, _labels: &BTreeMap<String, String>) -> Result<Vec<SharedObject>> {
        self.container_call(Operation::List, "list networks", "").await?;
        Ok(Vec::new())
    }

    async fn remove_network(&self, id: &str) -> Result<()> {
        self.container_call(Operation::Close, "remove network", id).await
    }

    async fn create_volume(&self, spec: &VolumeSpec) -> Result<SharedObject> {
        self.container_call(Operation::Create, "create volume", &spec.name)
            .await?;
        let mut made = SharedObject::new(spec.name.clone(), spec.name.clone());
        made.labels.clone_from(&spec.labels);
        Ok(made)
    }

    async fn find_volume(&self, name: &str) -> Result<Option<SharedObject>> {
        self.container_call(Operation::List, "find volume", name).await?;
        Ok(None)
    }

    async fn list_volumes(&self, _labels: &BTreeMap<String, String>) -> Result<Vec<SharedObject>> {
        self.container_call(Operation::List, "list volumes", "").await?;
        Ok(Vec::new())
    }

    async fn remove_volume(&self, name: &str) -> Result<()> {
        self.container_call(Operation::Close, "remove volume", name).await
    }
}
