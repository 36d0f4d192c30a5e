//! Handing a running project over to another process, and using one that another process has started (contract 4.8, D23).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, ErrorKind, Operation, Result, SandboxReason};
use crate::provider::{Capability, SandboxProvider};
use crate::sandbox::{AsyncSandbox, ConnectOptions};
use crate::spec::{SandboxDescriptor, Value};

use super::AsyncSandboxCompose;
use super::lifecycle::{Running, ServiceSandboxes, State};
use super::work::Work;

/// The one key of a descriptor.
const SERVICES: &str = "services";

/// What stands between a service and the number of its container, from the second one on. No service has it in its name.
const NUMBER: char = '#';

/// The label of what this library has made.
const OWN: &str = "gym-sandbox";

/// What another process needs to use the services of a running project: a [`SandboxDescriptor`] of each, and no secret.
///
/// As JSON it is `{"services": {"web": {"sandbox_id": ..}, ..}}`, the services in the order in which they were made. A
/// service with several containers has the second as `web#2`.
#[derive(Clone, Debug, PartialEq)]
pub struct ComposeDescriptor {
    services: Vec<(String, SandboxDescriptor)>,
}

impl ComposeDescriptor {
    /// Reads one from JSON.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for anything else than an object with the key `services` alone, which holds at least
    /// one service, each with the descriptor of a sandbox.
    pub fn from_value(value: Value) -> Result<Self> {
        let invalid = |problem: &str| {
            Error::invalid(Operation::Attach, format!("this describes no project: {problem}"))
        };
        let Value::Object(mut top) = value else {
            return Err(invalid("it is no object"));
        };
        let services = top
            .remove(SERVICES)
            .ok_or_else(|| invalid("it has no `services`"))?;
        if let Some(key) = top.keys().next() {
            let key = key.escape_debug();
            return Err(invalid(&format!("`{key}` is not known, only `services` is")));
        }
        let Value::Object(services) = services else {
            return Err(invalid("`services` is no object"));
        };
        if services.is_empty() {
            return Err(invalid("it has no service"));
        }
        let services = services.into_iter().map(|(name, sandbox)| {
            if place_of(&name).is_none() {
                return Err(invalid(&format!(
                    "`{}` is no name of a service",
                    name.escape_debug()
                )));
            }
            if !sandbox.is_object() {
                return Err(invalid(&format!("service `{name}` is no object")));
            }
            let sandbox = SandboxDescriptor::from_value(sandbox)
                .map_err(|error| invalid(&format!("service `{name}`")).with_source(error))?;
            Ok((name, sandbox))
        });
        Ok(Self {
            services: services.collect::<Result<_>>()?,
        })
    }

    /// Gives it as JSON.
    pub fn to_value(&self) -> Value {
        let services = self.services.iter();
        let services = services.map(|(name, sandbox)| (name.clone(), sandbox.to_value()));
        serde_json::json!({ SERVICES: Value::Object(services.collect()) })
    }

    /// The descriptors of the services, in the order in which these were made.
    pub fn services(&self) -> impl ExactSizeIterator<Item = (&str, &SandboxDescriptor)> {
        self.services
            .iter()
            .map(|(name, sandbox)| (name.as_str(), sandbox))
    }
}

impl TryFrom<Value> for ComposeDescriptor {
    type Error = Error;

    fn try_from(value: Value) -> Result<Self> {
        Self::from_value(value)
    }
}

impl Serialize for ComposeDescriptor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ComposeDescriptor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// The service, and which of its containers, from 1. None for what is neither.
fn place_of(key: &str) -> Option<(&str, usize)> {
    let (name, number) = match key.split_once(NUMBER) {
        None => (key, 1),
        Some((name, number)) => (name, number.parse().ok().filter(|&number| number > 1)?),
    };
    (!name.is_empty()).then_some((name, number))
}

impl AsyncSandboxCompose {
    /// Describes the services of the started project so that another process can [`connect`](Self::connect) to them. The
    /// description is JSON without secrets; `scope` is handed to the provider as it is.
    ///
    /// The project stays this object's: its volumes and networks go with its [`stop`](Self::stop) only. On a provider
    /// without containers the programs of the services end when this object is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where the provider can't serialize and connect, [`ErrorKind::NotStarted`],
    /// [`ErrorKind::Stopped`]; otherwise as [`AsyncSandbox::serialize`].
    pub async fn serialize(&self, scope: Option<&Value>) -> Result<ComposeDescriptor> {
        if self.provider.as_connectable().is_none() {
            let what = Capability::Connect.as_str();
            return Err(Error::unsupported(
                Operation::Serialize,
                self.provider.name(),
                what,
            ));
        }
        let running = self.running(Operation::Serialize)?;
        let mut services = Vec::new();
        for service in running.existing() {
            for (index, sandbox) in service.replicas.iter().enumerate() {
                let key = match index {
                    0 => service.name.clone(),
                    _ => format!("{}{NUMBER}{}", service.name, index + 1),
                };
                services.push((key, sandbox.serialize(scope).await?));
            }
        }
        Ok(ComposeDescriptor { services })
    }

    /// Uses the services of a project that another process has started. The provider is shared, and only sandboxes of this
    /// library are taken.
    ///
    /// No file is read and nothing is made. [`stop`](Self::stop) removes the sandboxes of the services, the last one
    /// first, and leaves networks and volumes to who has started the project; dropping the object leaves everything.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use gym_sandbox::SandboxProvider;
    /// use gym_sandbox::compose::{AsyncSandboxCompose, ComposeDescriptor};
    /// # async fn example(provider: Arc<dyn SandboxProvider>, text: &str) -> gym_sandbox::Result<()> {
    /// let descriptor = ComposeDescriptor::from_value(serde_json::from_str(text).unwrap())?;
    /// let project = AsyncSandboxCompose::connect(provider, &descriptor).await?;
    /// project.default_service()?.exec("make test").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where the provider can't serialize and connect; otherwise as
    /// [`AsyncSandbox::connect`], naming the service.
    ///
    /// # Cancel safety
    /// Nothing is changed.
    pub async fn connect(provider: Arc<dyn SandboxProvider>, descriptor: &ComposeDescriptor) -> Result<Self> {
        Self::connect_with(provider, descriptor, &ConnectOptions::new()).await
    }

    /// As [`connect`](Self::connect), with options. An owned provider is closed by [`stop`](Self::stop), and when the
    /// connection fails.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    ///
    /// # Cancel safety
    /// Nothing is changed. An owned provider is dropped without being closed.
    pub async fn connect_with(
        provider: Arc<dyn SandboxProvider>,
        descriptor: &ComposeDescriptor,
        options: &ConnectOptions,
    ) -> Result<Self> {
        let project = Self::build(provider, options.owns_provider());
        match project.attach(descriptor, &options.with_shared_provider()).await {
            Ok(running) => {
                *project.state() = State::Started(Arc::new(running));
                Ok(project)
            }
            // Those that were connected to until then are let go of, and live on.
            Err(error) => Err(match project.close_provider().await {
                Ok(()) => error,
                Err(cleanup) => error.with_cleanup_error(cleanup),
            }),
        }
    }

    async fn attach(&self, descriptor: &ComposeDescriptor, options: &ConnectOptions) -> Result<Running> {
        let mut services: Vec<ServiceSandboxes> = Vec::new();
        let mut all = Vec::new();
        let mut seen = BTreeSet::new();
        for (key, described) in descriptor.services() {
            let name = place_of(key).map_or(key, |(name, _)| name);
            let connected = self.attach_one(described, options).await;
            let sandbox = Arc::new(connected.map_err(|error| in_service(name, error))?);
            all.push(Arc::clone(&sandbox));
            if seen.insert(name.to_owned()) {
                services.push(ServiceSandboxes {
                    name: name.to_owned(),
                    is_default: false,
                    replicas: Vec::new(),
                });
            }
            if let Some(service) = services.iter_mut().find(|service| service.name == name) {
                service.replicas.push(sandbox);
            }
        }
        Ok(Running {
            work: Work::Connected(all.into()),
            services,
        })
    }

    async fn attach_one(
        &self,
        described: &SandboxDescriptor,
        options: &ConnectOptions,
    ) -> Result<AsyncSandbox> {
        let connected = AsyncSandbox::connect_with(Arc::clone(&self.provider), described, options).await;
        match connected {
            // A service that only does something and ends is a part of the project: its files and its log are there.
            Err(error) if error.kind() == ErrorKind::Sandbox(SandboxReason::NotRunning) => {
                self.attach_ended(described).await?.ok_or(error)
            }
            connected => connected,
        }
    }

    async fn attach_ended(&self, described: &SandboxDescriptor) -> Result<Option<AsyncSandbox>> {
        let Some(containers) = self.provider.as_containers() else {
            return Ok(None);
        };
        let id = described.sandbox_id.as_str();
        let detail = containers.inspect_container(id).await?;
        let is_ours = detail.is_some_and(|detail| detail.labels.get(OWN).is_some_and(|mark| mark == "1"));
        if !is_ours {
            return Ok(None);
        }
        let ports = described.ports.clone().unwrap_or_default();
        let handle = containers.container_handle(id, &ports).await?;
        Ok(Some(AsyncSandbox::of_other_process(
            Arc::clone(&self.provider),
            handle,
            described.workdir.clone(),
        )))
    }
}

fn in_service(service: &str, error: Error) -> Error {
    Error::new(
        error.kind(),
        Operation::Attach,
        format!("service `{service}` could not be connected to"),
    )
    .with_retryable(error.is_retryable())
    .with_source(error)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn m9_a_descriptor_is_its_services_in_their_order_and_nothing_else() {
        let value = json!({"services": {
            "web": {"sandbox_id": "b"},
            "db": {"sandbox_id": "a", "ports": [5432]},
            "db#2": {"sandbox_id": "c"},
        }});
        let descriptor = ComposeDescriptor::from_value(value.clone()).unwrap();
        let names: Vec<&str> = descriptor.services().map(|(name, _)| name).collect();
        assert_eq!(names, ["web", "db", "db#2"]);
        assert_eq!(descriptor.to_value(), value);
        let text = serde_json::to_string(&descriptor).unwrap();
        assert_eq!(
            serde_json::from_str::<ComposeDescriptor>(&text).unwrap(),
            descriptor
        );
    }

    #[test]
    fn m9_what_is_no_descriptor_is_refused_before_anything_is_attached_to() {
        for value in [
            json!("web"),
            json!({}),
            json!({"services": {"web": {"sandbox_id": "a"}}, "project": "p"}),
            json!({"services": ["web"]}),
            json!({"services": {}}),
            json!({"services": {"web": "a"}}),
            json!({"services": {"web": {}}}),
            json!({"services": {"": {"sandbox_id": "a"}}}),
            json!({"services": {"web#1": {"sandbox_id": "a"}}}),
        ] {
            let error = ComposeDescriptor::from_value(value.clone()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{value}");
        }
    }
}
