//! The facade over one Compose project: its files, its options, its services as sandboxes.
//! Knows the core trait and its capabilities, no backend.

mod attach;
mod binds;
mod build;
mod connect;
mod lifecycle;
mod options;
mod scope;
mod sources;
mod wanted;
mod work;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{Reaper, SandboxProvider, Traced, create_provider};
use crate::sandbox::AsyncSandbox;
use crate::spec::{SandboxSpec, Value};

use super::options::LoadOptions;
use super::plan::{Plan, PlanOptions, ProjectLifetime, VolumeSource};
use super::run::ProgressCallback;
use super::{ComposeLoader, Diagnostics, Source};

pub use attach::{ProjectService, compose_down, compose_service, compose_services};
pub use connect::ComposeDescriptor;
pub use options::ProjectName;

use lifecycle::State;
use work::Prepared;

/// How long a start may take by default, images included (contract 1.4).
pub const DEFAULT_START_TIMEOUT: Duration = Duration::from_secs(1200);

/// One Compose project, from start to stop (contract section 4, D18-D22).
///
/// Making one reads nothing and starts nothing. [`start`](Self::start) loads the files, refuses by name what cannot be
/// done or what the policy does not allow, and then makes everything at once that does not have to wait: when it
/// returns, every service is healthy, has stayed up, or has ended as it should. Whatever fails, or a future that is
/// dropped, leaves nothing behind.
///
/// A project gets a name of its own, so that copies of it run side by side: see [`ProjectName`]. For the same reason
/// host ports are ephemeral and `container_name` is an alias, unless asked otherwise with
/// [`with_plan_options`](Self::with_plan_options).
///
/// Dropping a started project hands it to the library's clean-up thread. [`stop`](Self::stop) is the way that reports
/// errors, and [`scope`](Self::scope) the one that cannot be forgotten.
///
/// ```no_run
/// use std::sync::Arc;
/// use gym_sandbox::{SandboxProvider, compose::AsyncSandboxCompose};
/// # async fn example(provider: Arc<dyn SandboxProvider>) -> gym_sandbox::Result<()> {
/// let project = AsyncSandboxCompose::new(provider).with_compose_file("task/compose.yaml");
/// project.start().await?;
/// let tester = project.service("tester")?;
/// let result = tester.exec("python3 -m unittest").await?;
/// assert!(result.is_success());
/// project.stop().await?;
/// # Ok(())
/// # }
/// ```
pub struct AsyncSandboxCompose {
    provider: Arc<dyn SandboxProvider>,
    is_owned: bool,
    load: LoadOptions,
    plan: PlanOptions,
    name: ProjectName,
    lifetime: ProjectLifetime,
    timeout: Duration,
    poll_interval: Option<Duration>,
    progress: Option<ProgressCallback>,
    /// A service that must be there.
    required_service: Option<String>,
    /// The name that was chosen, once it is.
    chosen: Mutex<Option<String>>,
    state: Mutex<State>,
    /// Held through `start` and `stop`, so that one never sees the other half-way.
    lifecycle: tokio::sync::Mutex<()>,
    reaper: Reaper,
}

impl AsyncSandboxCompose {
    /// Makes a project of a provider that others use, too: stopping the project does not close it.
    pub fn new(provider: Arc<dyn SandboxProvider>) -> Self {
        Self::build(provider, false)
    }

    /// Makes a project with a provider of its own, which is closed with it.
    pub fn owning(provider: Arc<dyn SandboxProvider>) -> Self {
        Self::build(provider, true)
    }

    /// Makes a project with a provider of its own, made at once from a configuration block.
    ///
    /// # Errors
    /// As [`create_provider`].
    pub fn from_config(config: &Value) -> Result<Self> {
        Ok(Self::owning(create_provider(config)?))
    }

    fn build(provider: Arc<dyn SandboxProvider>, is_owned: bool) -> Self {
        Self {
            provider: Arc::new(Traced::new(provider)),
            is_owned,
            load: LoadOptions::new(),
            plan: PlanOptions::default(),
            name: ProjectName::default(),
            lifetime: ProjectLifetime::default(),
            timeout: DEFAULT_START_TIMEOUT,
            poll_interval: None,
            progress: None,
            required_service: None,
            chosen: Mutex::default(),
            state: Mutex::new(State::New),
            lifecycle: tokio::sync::Mutex::new(()),
            reaper: Reaper::new(),
        }
    }

    /// The provider.
    pub fn provider(&self) -> &Arc<dyn SandboxProvider> {
        &self.provider
    }

    /// The Compose files, as they were given.
    pub fn compose_files(&self) -> &[Source] {
        &self.load.files
    }

    /// What services get beside what their files say.
    pub fn service_specs(&self) -> &BTreeMap<String, SandboxSpec> {
        &self.plan.service_specs
    }

    /// What volumes are filled with.
    pub fn volume_sources(&self) -> &BTreeMap<String, VolumeSource> {
        &self.plan.volume_sources
    }

    /// The image of the containers that fill volumes; none for that of the service that uses the volume.
    pub fn volume_init_image(&self) -> Option<&str> {
        self.plan.volume_init_image.as_deref()
    }

    /// How long a start may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The longest pause between two health probes of our own; none for the interval of each health check.
    pub fn poll_interval(&self) -> Option<Duration> {
        self.poll_interval
    }

    /// The name of the project, once it is chosen: after a plan, or while it is started.
    pub fn project(&self) -> Option<String> {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a start would make, in order. Asks no engine; reads the project's files. On a provider without containers it
    /// is checked, too, that the project can be had of sandboxes; the plan is that of a provider with containers.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] with all mistakes of the files as its cause; [`ErrorKind::Unsupported`] with
    /// everything that cannot be done or is not allowed.
    pub async fn plan(&self) -> Result<Plan> {
        Ok(self.prepare().await?.plan)
    }

    /// The services, by their names, while the project is started: of each its first container. A service that is
    /// scaled to 0 is not there.
    pub fn services(&self) -> BTreeMap<String, Arc<AsyncSandbox>> {
        match &*self.state() {
            State::Started(running) => running
                .existing()
                .filter_map(|service| Some((service.name.clone(), Arc::clone(service.replicas.first()?))))
                .collect(),
            _ => BTreeMap::new(),
        }
    }

    /// A service as a sandbox: for commands, files and endpoints. Stopping it removes its container.
    ///
    /// # Errors
    /// [`ErrorKind::NotStarted`], [`ErrorKind::Stopped`]; [`ErrorKind::NotFound`] naming the services there are.
    pub fn service(&self, name: &str) -> Result<Arc<AsyncSandbox>> {
        self.replica(name, 1)
    }

    /// One of the containers of a service, from 1.
    ///
    /// # Errors
    /// As [`service`](Self::service).
    pub fn replica(&self, name: &str, number: usize) -> Result<Arc<AsyncSandbox>> {
        let running = self.running(Operation::Exec)?;
        let service = running.existing().find(|service| service.name == name);
        let found = service.and_then(|service| service.replicas.get(number.checked_sub(1)?));
        found.cloned().ok_or_else(|| {
            let names: Vec<&str> = running.existing().map(|service| service.name.as_str()).collect();
            let message = match service {
                Some(service) => format!("service `{name}` has {} containers", service.replicas.len()),
                None => format!("there is no service `{name}`; there are {}", names.join(", ")),
            };
            Error::new(ErrorKind::NotFound, Operation::Exec, message)
        })
    }

    /// The service to work in: the one marked `x-default: true`, else `default`, else `main`, else the only one.
    ///
    /// # Errors
    /// As [`service`](Self::service); [`ErrorKind::NotFound`] when none of several is marked.
    pub fn default_service(&self) -> Result<Arc<AsyncSandbox>> {
        let running = self.running(Operation::Exec)?;
        let services = &running.services;
        let rank = |name: &str, is_marked: bool| match name {
            _ if is_marked => 0,
            "default" => 1,
            "main" => 2,
            _ => 3,
        };
        let best = services
            .iter()
            .min_by_key(|service| rank(&service.name, service.is_default));
        match best {
            Some(best) if services.len() == 1 || rank(&best.name, best.is_default) < 3 => {
                self.service(&best.name)
            }
            _ => Err(Error::new(
                ErrorKind::NotFound,
                Operation::Exec,
                "no service is the default one",
            )
            .with_hint("mark one with `x-default: true`, or call it `default` or `main`")),
        }
    }

    async fn prepare(&self) -> Result<Prepared> {
        let (load, options) = self.prepared();
        wanted::check_networks(&options.networks)?;
        let (provider, timeout) = (Arc::clone(&self.provider), self.timeout);
        let required_service = self.required_service.clone();
        // Reading files blocks.
        let planned = tokio::task::spawn_blocking(move || {
            let loaded = ComposeLoader::new(load).load().map_err(unreadable)?;
            let prepared = Prepared::new(&loaded.project, &options, &*provider, timeout)?;
            let plan = &prepared.plan;
            wanted::check_images(&options.images, &loaded.project)?;
            if let Some(service) = &required_service {
                wanted::check_service(service, &loaded.project, plan)?;
            }
            wanted::check_any(&loaded.project, plan)?;
            if prepared.generic.is_none() {
                sources::check(&loaded.project, plan)?;
                binds::check(plan, &loaded.project.directory, &options.policy)?;
            }
            for warning in loaded.warnings.iter().chain(plan.warnings.iter()) {
                tracing::warn!(project = plan.project, "{warning}");
            }
            Ok(prepared)
        });
        let prepared = planned.await.map_err(|error| {
            Error::new(ErrorKind::Internal, Operation::Compose, "reading did not end").with_source(error)
        })??;
        let mut chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        *chosen = Some(prepared.plan.project.clone());
        Ok(prepared)
    }

    /// The options of the loader and the plan, with a name.
    fn prepared(&self) -> (LoadOptions, PlanOptions) {
        let (mut load, mut options) = (self.load.clone(), self.plan.clone());
        let chosen = self.project();
        load.project_name = match (&self.name, chosen) {
            (_, Some(chosen)) => Some(chosen),
            (ProjectName::Given(name), None) => Some(name.clone()),
            (ProjectName::OfFiles, None) => None,
            (ProjectName::Unique, None) => Some(options::unique_name()),
        };
        options.image_names = self.name.image_names(options.image_names);
        options.lifetime = self.lifetime;
        options.config_files = load
            .files
            .iter()
            .filter_map(|file| match file {
                Source::Path(path) => std::path::absolute(path).ok(),
                Source::Text { .. } => None,
            })
            .collect();
        (load, options)
    }

    fn running(&self, operation: Operation) -> Result<Arc<lifecycle::Running>> {
        match &*self.state() {
            State::Started(running) => Ok(Arc::clone(running)),
            State::New | State::Starting => Err(Error::new(
                ErrorKind::NotStarted,
                operation,
                "the project has not been started",
            )
            .with_hint("call `start` first")),
            State::Stopping(_) | State::Stopped => Err(lifecycle::stopped(operation)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is replaced as a whole, so a panic elsewhere can't have left half of one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unreadable(diagnostics: Diagnostics) -> Error {
    Error::invalid(Operation::Compose, "the Compose files cannot be used").with_source(diagnostics)
}

fn refused(kind: ErrorKind, diagnostics: Diagnostics) -> Error {
    let message = match kind {
        ErrorKind::InvalidArgument => "the Compose files cannot be used",
        _ => "the project asks for what cannot be done here, or is not allowed",
    };
    Error::new(kind, Operation::Compose, message).with_source(diagnostics)
}

impl fmt::Debug for AsyncSandboxCompose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncSandboxCompose")
            .field("provider", &self.provider.name())
            .field("project", &self.project())
            .field("state", &*self.state())
            .finish_non_exhaustive()
    }
}
