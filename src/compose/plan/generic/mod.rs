//! What a project becomes on a provider without containers (contract section 4): a sandbox a service, with the service's
//! program run beside what keeps it alive. Pure data made of the typed project; of the provider only what does no I/O is
//! asked. `run/generic/` carries it out.
//!
//! | part | file |
//! |---|---|
//! | what is refused | `allow.rs`, `refusals.rs` |
//! | names, ports and relays | `network.rs` |
//! | variables that hold addresses of services | `urls.rs` |
//! | programs and their health | `process.rs` |
//! | volumes | `storage.rs` |

mod allow;
mod network;
mod process;
mod refusals;
mod storage;
#[cfg(test)]
mod tests;
mod urls;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::{
    DependencyStep, HookStep, Notes, PlanOptions, Planner, ProjectLifetime, ServiceStep, dependency_order,
    service,
};
use crate::compose::model::{Project, Service};
use crate::compose::path::YamlPath;
use crate::provider::SandboxProvider;
use crate::spec::{FileOwner, RuntimeRequirements, SandboxResources, SandboxSpec};

pub(crate) use process::Check;
pub(crate) use refusals::Refused;
pub(crate) use storage::{HELPER_ROOT, SEED_TARGET};
pub(crate) use urls::ServiceUrl;

use refusals::Refusals;

/// How much longer than a start may take a sandbox lives, unless the caller gives a spec of its own (contract 4.4).
const BEYOND_START: Duration = Duration::from_secs(3600);

/// A project of sandboxes.
#[derive(Clone, Debug)]
pub(crate) struct GenericPlan {
    pub(crate) project: String,
    /// Each after those that it depends on.
    pub(crate) services: Vec<GenericService>,
    pub(crate) storage: Option<StorageStep>,
}

/// A service: its sandbox, and what runs in it.
#[derive(Clone, Debug)]
pub(crate) struct GenericService {
    pub(crate) name: String,
    pub(crate) spec: SandboxSpec,
    /// The program and its arguments, none of them left out for being empty.
    pub(crate) argv: Vec<String>,
    pub(crate) user: Option<String>,
    /// Variables in which the name of a service becomes its address, for the program and its health checks only.
    pub(crate) resolved: BTreeMap<String, ServiceUrl>,
    pub(crate) depends_on: Vec<DependencyStep>,
    pub(crate) check: Option<Check>,
    /// Its name and its aliases.
    pub(crate) names: Vec<String>,
    /// Whether it is told the names of all.
    pub(crate) knows_names: bool,
    pub(crate) relay: Option<RelayStep>,
    pub(crate) requirements: Option<RuntimeRequirements>,
    pub(crate) post_start: Vec<HookStep>,
    pub(crate) pre_stop: Vec<HookStep>,
    /// Whether another service waits for its end: then its end is no failure.
    pub(crate) is_one_shot: bool,
    pub(crate) is_default: bool,
}

/// The loopback ports of a service that lead to another one: what is left of `network_mode: service:NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelayStep {
    /// The other one, by its place in the plan.
    pub(crate) target: usize,
    pub(crate) ports: Vec<u16>,
}

/// The project's folder of the shared storage.
#[derive(Clone, Debug)]
pub(crate) struct StorageStep {
    /// The sandbox that has all of the storage.
    pub(crate) helper: SandboxSpec,
    pub(crate) volumes: Vec<VolumeFolder>,
    /// Folders of images that are copied into volumes that are empty, in this order.
    pub(crate) seeds: Vec<SeedStep>,
}

/// A volume: a folder of the project's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeFolder {
    pub(crate) name: String,
    /// The volume's key in the project, or the source of the bind mount that it stands for.
    pub(crate) key: String,
    /// The first service that mounts it.
    pub(crate) service: String,
    /// Files of this machine that it is filled with.
    pub(crate) source: Option<PathBuf>,
    pub(crate) owner: Option<FileOwner>,
}

/// A copy of a folder of an image into a volume.
#[derive(Clone, Debug)]
pub(crate) struct SeedStep {
    pub(crate) service: String,
    pub(crate) volume: String,
    /// A sandbox of the service's image, with the volume at [`SEED_TARGET`].
    pub(crate) spec: SandboxSpec,
    pub(crate) folder: String,
}

impl GenericPlan {
    /// Plans a project. `timeout` is how long its start may take.
    ///
    /// # Errors
    /// Everything that this way cannot do, or that is wrong, by service and key. Nothing has been made then.
    pub(crate) fn new(
        project: &Project,
        options: &PlanOptions,
        provider: &dyn SandboxProvider,
        timeout: Duration,
    ) -> Result<Self, Refused> {
        let planner = Planner { project, options };
        let order = dependency_order(project);
        let mut refusals = Refusals::default();
        allow::project(&planner, &mut refusals);
        if options.lifetime == ProjectLifetime::UntilDown {
            let message = "a project of this provider ends with the process that has started it";
            refusals.unsupported(YamlPath::of_keys(["services"]), message, None);
        }
        network::provider(provider, &mut refusals);
        let mut plan = Self {
            project: project.name.clone(),
            services: Vec::new(),
            storage: None,
        };
        for step in native(&planner, &order) {
            let service = &project.services[&step.name];
            allow::service(&planner, &step.name, service, &mut refusals);
            let subject = Subject {
                planner: &planner,
                provider,
                order: &order,
                name: &step.name,
                service,
                step: &step,
            };
            plan.services.push(subject.plan(timeout, &mut refusals));
        }
        network::ambiguous(&plan.services, &mut refusals);
        plan.storage = storage::plan(&planner, provider, &mut plan.services, timeout, &mut refusals);
        refusals.finish(plan)
    }
}

/// The parts that both ways have alike. What is wrong in them is told by the native plan.
fn native(planner: &Planner<'_>, order: &[String]) -> Vec<ServiceStep> {
    let mut unheard = Notes::default();
    let mut steps: Vec<ServiceStep> = order
        .iter()
        .map(|name| service::step(planner, name, &mut unheard))
        .collect();
    service::mark_one_shots(&mut steps);
    steps
}

/// Hooks as the service's program: in a container they would have its user and its directory by themselves.
fn hooks(steps: &[HookStep], user: Option<&str>, directory: Option<&str>) -> Vec<HookStep> {
    let own = |given: &Option<String>, of_service: Option<&str>| {
        given.clone().or_else(|| of_service.map(str::to_owned))
    };
    let steps = steps.iter().map(|step| HookStep {
        user: own(&step.user, user),
        working_dir: own(&step.working_dir, directory),
        ..step.clone()
    });
    steps.collect()
}

/// What is planned of one service.
struct Subject<'a> {
    planner: &'a Planner<'a>,
    provider: &'a dyn SandboxProvider,
    order: &'a [String],
    name: &'a str,
    service: &'a Service,
    step: &'a ServiceStep,
}

impl Subject<'_> {
    fn plan(&self, timeout: Duration, refusals: &mut Refusals) -> GenericService {
        let (argv, user) = (self.argv(refusals), self.user(refusals));
        let relay = network::relay(self, refusals);
        let requirements = self.requirements(refusals);
        let spec = self.spec(timeout, requirements.as_ref(), refusals);
        let sandbox_options = self.sandbox_options(refusals);
        let hooks = |steps: &[HookStep]| hooks(steps, user.as_deref(), spec.workdir());
        GenericService {
            post_start: hooks(&self.step.post_start),
            pre_stop: hooks(&self.step.pre_stop),
            name: self.name.to_owned(),
            resolved: urls::resolved(self, &sandbox_options.resolve, refusals),
            spec,
            argv,
            user,
            depends_on: self.dependencies(refusals),
            check: self.check(refusals),
            names: network::names(self, refusals),
            knows_names: sandbox_options.knows_names,
            relay,
            requirements,
            is_one_shot: self.step.is_one_shot,
            is_default: self.step.is_default,
        }
    }

    /// The sandbox (contract 4.4): what the caller gives, with what the file says over it.
    fn spec(
        &self,
        timeout: Duration,
        requirements: Option<&RuntimeRequirements>,
        refusals: &mut Refusals,
    ) -> SandboxSpec {
        let image = self.planner.image_of(self.name, self.service);
        let given = self.planner.options.service_specs.get(self.name);
        // What keeps the sandbox alive is the provider's own; the service's program is run beside it.
        let mut spec = given
            .cloned()
            .unwrap_or_else(|| SandboxSpec::default().with_ttl(timeout + BEYOND_START))
            .with_image(image)
            .with_entrypoint(Vec::<String>::new());
        for (name, value) in &self.service.environment {
            if let Some(value) = value {
                spec = spec.with_env(name, value);
            }
        }
        if !self.service.working_dir.is_empty() {
            spec = spec.with_workdir(&self.service.working_dir);
        }
        let resources = self.resources(spec.resources());
        spec = spec.with_resources(resources);
        spec = match spec.clone().with_ports(network::ports(self, refusals)) {
            Ok(spec) => spec,
            Err(error) => {
                refusals.error(self.path("ports"), &error);
                spec
            }
        };
        for (key, value) in &self.service.labels {
            spec = spec.with_metadata(key, value);
        }
        if let Some(requirements) = requirements
            && let Some(provider) = self.provider.as_runtime_requirements()
            && let Ok(options) = provider.validate_runtime_requirements(requirements)
        {
            spec = spec.with_added_provider_options(options);
        }
        spec
    }

    fn resources(&self, given: &SandboxResources) -> SandboxResources {
        let mut resources = given.clone();
        if let Some(container) = self.step.containers.first() {
            let limits = &container.spec.limits;
            resources.cpu = limits.cpus.or(resources.cpu);
            resources.memory_mib = limits
                .memory_bytes
                .map(|bytes| bytes.div_ceil(1 << 20))
                .or(resources.memory_mib);
        }
        resources
    }

    fn path(&self, key: &str) -> YamlPath {
        super::service_path(self.name, key)
    }
}
