//! Who carries a plan out: the provider, what was made, who is told, and the containers' ids.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::compose::plan::Plan;
use crate::error::{Error, Operation, Result};
use crate::provider::{Capability, ContainersProvider, SandboxHandle, SandboxProvider};

use super::made::Made;
use super::progress::{ComposeEvent, ProgressCallback, ServiceProgress};

/// What all parts of a start or stop share.
#[derive(Debug)]
pub(crate) struct Crew {
    pub(crate) provider: Arc<dyn SandboxProvider>,
    pub(crate) plan: Plan,
    pub(crate) made: Arc<Made>,
    pub(crate) progress: Option<ProgressCallback>,
    /// What this start writes on its volumes, of which an engine has one of a name: another start of the same project at
    /// the same time has another.
    pub(super) start: String,
    /// Ids of containers and networks, by their names in the plan.
    ids: Mutex<HashMap<String, String>>,
    /// Handles of containers, by their ids.
    handles: Mutex<HashMap<String, SandboxHandle>>,
}

impl Crew {
    pub(crate) fn new(
        provider: Arc<dyn SandboxProvider>,
        plan: Plan,
        progress: Option<ProgressCallback>,
    ) -> Self {
        Self {
            provider,
            plan,
            made: Arc::default(),
            progress,
            start: uuid::Uuid::new_v4().simple().to_string(),
            ids: Mutex::default(),
            handles: Mutex::default(),
        }
    }

    pub(super) fn containers(&self, operation: Operation) -> Result<&dyn ContainersProvider> {
        containers(&*self.provider, operation)
    }

    pub(super) fn say(&self, event: &ComposeEvent) {
        if let ComposeEvent::Warning(text) = event {
            tracing::warn!(project = self.plan.project, "{text}");
        }
        if let Some(progress) = &self.progress {
            progress.call(event);
        }
    }

    pub(super) fn say_service(&self, service: usize, progress: ServiceProgress) {
        self.say(&ComposeEvent::Service {
            service: self.plan.services[service].name.clone(),
            progress,
        });
    }

    pub(super) fn remember_id(&self, name: &str, id: &str) {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        ids.insert(name.to_owned(), id.to_owned());
    }

    /// The id that belongs to a name of the plan; a name of something else stays as it is.
    pub(super) fn id_of(&self, name: &str) -> String {
        let ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        ids.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    /// A handle of a container, made once.
    pub(crate) async fn handle(&self, id: &str, service: usize) -> Result<SandboxHandle> {
        if let Some(handle) = self.known_handle(id) {
            return Ok(handle);
        }
        let ports = &self.plan.services[service].ports;
        let handle = self
            .containers(Operation::Attach)?
            .container_handle(id, ports)
            .await?;
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.insert(id.to_owned(), handle.clone());
        Ok(handle)
    }

    fn known_handle(&self, id: &str) -> Option<SandboxHandle> {
        let handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.get(id).cloned()
    }

    /// The ids of a service's containers, in their order.
    pub(crate) fn ids_of_service(&self, service: usize) -> Vec<String> {
        let containers = &self.plan.services[service].containers;
        containers
            .iter()
            .map(|container| self.id_of(&container.name))
            .collect()
    }
}

/// The capability that native projects need.
pub(super) fn containers(
    provider: &dyn SandboxProvider,
    operation: Operation,
) -> Result<&dyn ContainersProvider> {
    provider.as_containers().ok_or_else(|| {
        Error::unsupported(operation, provider.name(), Capability::Containers.as_str())
            .with_hint("start the project on a provider that has them, such as `docker`")
    })
}
