//! What a project is to be: files, names, policy, limits of time.

use std::path::PathBuf;
use std::time::Duration;

use crate::compose::Source;
use crate::compose::options::LoadOptions;
use crate::compose::plan::{PlanOptions, ProjectLifetime, VolumeSource};
use crate::compose::run::ProgressCallback;
use crate::error::{Error, Operation, Result};
use crate::provider::Policy;
use crate::spec::SandboxSpec;

use super::{AsyncSandboxCompose, ProjectName};

impl AsyncSandboxCompose {
    /// Adds a Compose file, over those before it.
    pub fn with_compose_file(self, path: impl Into<PathBuf>) -> Self {
        self.with_source(Source::path(path))
    }

    /// Adds a Compose file or text, over those before it.
    pub fn with_source(mut self, source: Source) -> Self {
        self.load.files.push(source);
        self
    }

    /// Sets how the files are loaded: files, variables, profiles, the project's folder. Its project name counts as
    /// [`ProjectName::Given`]. The process's environment is visible to the files only as far as it is given here
    /// (contract D19).
    pub fn with_load_options(mut self, options: LoadOptions) -> Self {
        if let Some(name) = &options.project_name {
            self.name = ProjectName::Given(name.clone());
        }
        self.load = options;
        self
    }

    /// Sets what the files do not decide: policy, host ports, container names, prebuilt images, volumes' content.
    pub fn with_plan_options(mut self, options: PlanOptions) -> Self {
        self.plan = options;
        self
    }

    /// Sets what relative paths are relative to.
    pub fn with_project_directory(mut self, folder: impl Into<PathBuf>) -> Self {
        self.load.project_directory = Some(folder.into());
        self
    }

    /// Adds a variable of the files.
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.load.environment.insert(name.into(), value.into());
        self
    }

    /// Activates a profile; `*` stands for all.
    pub fn with_profile(mut self, name: impl Into<String>) -> Self {
        self.load.profiles.push(name.into());
        self
    }

    /// Sets what the project is called.
    pub fn with_project_name(mut self, name: impl Into<ProjectName>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets what the project may ask for beyond its own containers. Closed by default.
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.plan.policy = policy;
        self
    }

    /// Takes an image in place of what a service names or builds. A service that the files do not define is refused.
    pub fn with_image(mut self, service: impl Into<String>, image: impl Into<String>) -> Self {
        self.plan.images.insert(service.into(), image.into());
        self
    }

    /// Sets what a service gets beside what its file says: environment, files, labels, limits, workdir. The file wins.
    pub fn with_service_spec(mut self, service: impl Into<String>, spec: SandboxSpec) -> Self {
        self.plan.service_specs.insert(service.into(), spec);
        self
    }

    /// Fills a volume before its services see it (contract D20): named by its key, or by the source of a bind mount,
    /// which then is a volume.
    pub fn with_volume_source(mut self, volume: impl Into<String>, source: VolumeSource) -> Self {
        self.plan.volume_sources.insert(volume.into(), source);
        self
    }

    /// Mounts a folder of the provider's shared storage as it is: in place of a volume, by its key, or of a bind mount, by
    /// its source. The folder is relative to the storage, must be there, and is never made, filled or removed. For
    /// providers without containers; one with containers refuses it.
    pub fn with_shared_folder(mut self, volume: impl Into<String>, folder: impl Into<String>) -> Self {
        self.plan.shared_folders.insert(volume.into(), folder.into());
        self
    }

    /// Sets the image of the containers that fill volumes. Default: that of the service that uses the volume. It needs
    /// no program.
    pub fn with_volume_init_image(mut self, image: impl Into<String>) -> Self {
        self.plan.volume_init_image = Some(image.into());
        self
    }

    /// Sets how long a start may take, images included. Default: 1200 s.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for no time at all (contract M3).
    pub fn with_timeout(mut self, timeout: Duration) -> Result<Self> {
        if timeout.is_zero() {
            return Err(Error::invalid(
                Operation::Configure,
                "the time-out of a project must be over 0",
            ));
        }
        self.timeout = timeout;
        Ok(self)
    }

    /// Sets the longest pause between two health probes of our own. Default: the interval of the health check. Nothing
    /// else is polled: the engine tells what happens.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for no time at all (contract M3).
    pub fn with_poll_interval(mut self, interval: Duration) -> Result<Self> {
        if interval.is_zero() {
            return Err(Error::invalid(
                Operation::Configure,
                "the poll interval of a project must be over 0",
            ));
        }
        self.poll_interval = Some(interval);
        Ok(self)
    }

    /// Sets how long the project lives.
    pub fn with_lifetime(mut self, lifetime: ProjectLifetime) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Names a service that must be there: a plan or start without it is refused, with the services there are, before
    /// anything is made.
    pub fn with_required_service(mut self, service: impl Into<String>) -> Self {
        self.required_service = Some(service.into());
        self
    }

    /// Sets who is told how far a start or stop is.
    pub fn with_progress(mut self, progress: ProgressCallback) -> Self {
        self.progress = Some(progress);
        self
    }
}
