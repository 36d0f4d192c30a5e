//! What a project becomes on an engine: every image, network, volume and container, in order. Pure data made of the
//! typed project; asks no engine and reads no file. `run/` carries it out.
//!
//! | part | file |
//! |---|---|
//! | what the caller decides | `options.rs` |
//! | the steps | `steps.rs` |
//! | one service, one container | `service.rs`, `process.rs`, `resources.rs`, `network.rs`, `mounts.rs`, `files.rs` |
//! | images, networks and volumes | `image.rs`, `shared.rs` |
//! | one network for many projects | `bridge.rs` |
//! | labels and names | `labels.rs` |
//! | what is refused, what has no effect | `refuse.rs` |
//! | who comes before whom | `order.rs` |
//! | the same without containers | `generic/` |

mod bridge;
mod files;
mod generic;
mod image;
mod labels;
mod mounts;
mod network;
mod options;
mod order;
mod process;
mod refuse;
mod resources;
mod service;
mod shared;
mod steps;

pub use options::{
    ContainerNames, HostPorts, ImageNames, PlanOptions, ProjectLifetime, ProjectNetworks, VolumeSource,
};
pub use steps::{
    BuildStep, ContainerStep, DependencyStep, FileStep, HelperStep, HookStep, ImageSource, ImageStep,
    NetworkStep, Plan, PullWhen, ServiceStep, VolumeStep,
};

pub(crate) use generic::{Check, GenericPlan, HELPER_ROOT, SEED_TARGET, StorageStep, VolumeFolder};
pub(crate) use labels::{ONE_OFF, PRE_STOP, PROJECT, SERVICE};
pub(crate) use order::dependency_order;
pub(crate) use service::USUAL_GRACE;

use super::diagnostic::{Diagnostic, Diagnostics, Severity};
use super::model::Project;
use super::path::YamlPath;

impl Plan {
    /// Plans a loaded project.
    ///
    /// # Errors
    /// Everything that cannot be done or that the policy refuses, by service and key. Nothing has been made then.
    ///
    /// # Examples
    ///
    /// ```
    /// use gym_sandbox::compose::{ComposeLoader, LoadOptions, Plan, PlanOptions, Source};
    ///
    /// let text = "services: {web: {image: nginx, depends_on: [db]}, db: {image: postgres}}";
    /// let options = LoadOptions::new().with_file(Source::text("compose.yaml", text)).with_project_name("demo");
    /// let loaded = ComposeLoader::new(options).load()?;
    /// let plan = Plan::new(&loaded.project, &PlanOptions::default())?;
    /// let names: Vec<&str> = plan.services.iter().map(|service| service.name.as_str()).collect();
    /// assert_eq!(names, ["db", "web"]);
    /// assert_eq!(plan.services[0].containers[0].name, "demo-db-1");
    /// # Ok::<(), gym_sandbox::compose::Diagnostics>(())
    /// ```
    pub fn new(project: &Project, options: &PlanOptions) -> Result<Self, Diagnostics> {
        let mut notes = Notes::default();
        refuse::keys(project, options, &mut notes);
        let order = dependency_order(project);
        let planner = Planner { project, options };
        let mut plan = Self {
            project: project.name.clone(),
            images: image::steps(&planner, &order, &mut notes),
            networks: shared::networks(&planner, &mut notes),
            volumes: shared::volumes(&planner, &mut notes),
            helpers: Vec::new(),
            services: order
                .iter()
                .map(|name| service::step(&planner, name, &mut notes))
                .collect(),
            warnings: Diagnostics::default(),
        };
        shared::helpers(&planner, &mut plan, &mut notes);
        service::mark_one_shots(&mut plan.services);
        refuse::policy(&planner, &plan, &mut notes);
        if !notes.errors.is_empty() {
            return Err(Diagnostics(notes.errors));
        }
        plan.warnings = Diagnostics(notes.warnings);
        Ok(plan)
    }
}

/// What all parts of the planning read.
pub(crate) struct Planner<'a> {
    project: &'a Project,
    options: &'a PlanOptions,
}

/// What there is to say, in the order it was found.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

impl Notes {
    fn error(&mut self, path: YamlPath, message: impl Into<String>, hint: Option<&str>) {
        self.errors
            .push(diagnostic(path, message.into(), hint, Severity::Error));
    }

    fn warning(&mut self, path: YamlPath, message: impl Into<String>) {
        self.warnings
            .push(diagnostic(path, message.into(), None, Severity::Warning));
    }
}

/// A diagnostic without a position: the typed project has none.
pub(super) fn diagnostic(
    path: YamlPath,
    message: String,
    hint: Option<&str>,
    severity: Severity,
) -> Diagnostic {
    Diagnostic {
        file: None,
        line: 0,
        column: 0,
        path,
        message,
        hint: hint.map(str::to_owned),
        severity,
    }
}

fn service_path(service: &str, key: &str) -> YamlPath {
    YamlPath::of_keys(["services", service, key])
}

/// None for an empty text.
fn text(value: &str) -> Option<String> {
    (!value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
mod tests;
