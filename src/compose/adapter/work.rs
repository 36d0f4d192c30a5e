//! The ways in which a project is carried out, and which of them it is.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;

use crate::compose::diagnostic::Diagnostic;
use crate::compose::model::Project;
use crate::compose::plan::{GenericPlan, Plan, PlanOptions};
use crate::compose::run::{
    Crew, DownOptions, GenericCrew, ProgressCallback, StartOptions, remove_generic_in_background,
    remove_in_background,
};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{Reaper, SandboxProvider};
use crate::sandbox::AsyncSandbox;

use super::lifecycle::ServiceSandboxes;
use super::refused;

/// A project that is loaded, and how it will be carried out.
pub(super) struct Prepared {
    pub(super) plan: Plan,
    /// None for a provider with containers.
    pub(super) generic: Option<GenericPlan>,
}

impl Prepared {
    /// Plans a project for a provider: with containers where it has them, else as sandboxes (contract D18).
    pub(super) fn new(
        project: &Project,
        options: &PlanOptions,
        provider: &dyn SandboxProvider,
        timeout: Duration,
    ) -> Result<Self> {
        let plan = Plan::new(project, options);
        if provider.as_containers().is_some() {
            if let Some(key) = options.shared_folders.keys().next() {
                return Err(Error::invalid(
                    Operation::Compose,
                    format!("`{key}` is given a folder of shared storage, which a provider with containers does not use"),
                )
                .with_hint("fill it with `with_volume_source`, or declare an external volume"));
            }
            let plan = plan.map_err(|diagnostics| refused(ErrorKind::Unsupported, diagnostics))?;
            return Ok(Self { plan, generic: None });
        }
        let generic = GenericPlan::new(project, options, provider, timeout);
        match (plan, generic) {
            (Ok(plan), Ok(generic)) => Ok(Self {
                plan,
                generic: Some(generic),
            }),
            (Err(diagnostics), Ok(_)) => Err(refused(ErrorKind::Unsupported, diagnostics)),
            (plan, Err(generic)) => {
                let mut all = generic.diagnostics;
                let kind = match plan {
                    Ok(_) => generic.kind,
                    Err(diagnostics) => {
                        let said = |other: &Diagnostic| {
                            let is_same =
                                |one: &Diagnostic| one.path == other.path && one.message == other.message;
                            all.0.iter().any(is_same)
                        };
                        let more: Vec<_> = diagnostics.0.into_iter().filter(|more| !said(more)).collect();
                        // What is wrong on any provider has been said with its kind.
                        let kind = if more.is_empty() {
                            generic.kind
                        } else {
                            ErrorKind::Unsupported
                        };
                        all.0.extend(more);
                        kind
                    }
                };
                Err(refused(kind, all))
            }
        }
    }
}

/// Who carries a project out, and holds what was made.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// Through containers.
    Native(Arc<Crew>),
    /// Through sandboxes.
    Generic(Arc<GenericCrew>),
    /// Another process has started it; these are its services, in the order in which it made them.
    Connected(Arc<[Arc<AsyncSandbox>]>),
}

impl Work {
    pub(super) fn new(
        provider: Arc<dyn SandboxProvider>,
        prepared: Prepared,
        progress: Option<ProgressCallback>,
    ) -> Self {
        match prepared.generic {
            None => Self::Native(Arc::new(Crew::new(provider, prepared.plan, progress))),
            Some(plan) => Self::Generic(Arc::new(GenericCrew::new(provider, plan, progress))),
        }
    }

    pub(super) async fn start(&self, options: &StartOptions) -> Result<()> {
        match self {
            Self::Native(crew) => Box::pin(crew.start(options)).await,
            Self::Generic(crew) => Box::pin(crew.start(options)).await,
            Self::Connected(_) => Ok(()),
        }
    }

    /// Removes what was made. It can be repeated.
    pub(super) async fn take_down(&self, options: &DownOptions) -> Result<()> {
        match self {
            Self::Native(crew) => Box::pin(crew.take_down(options)).await,
            Self::Generic(crew) => Box::pin(crew.take_down(options)).await,
            Self::Connected(sandboxes) => {
                if options.grace.is_some() {
                    let message = "a project that another process has started is stopped without a grace";
                    return Err(
                        Error::new(ErrorKind::Unsupported, Operation::ComposeDown, message)
                            .with_hint("leave the grace out, or have its creator stop the project"),
                    );
                }
                let mut errors = Vec::new();
                for sandbox in sandboxes.iter().rev() {
                    errors.extend(sandbox.stop().await.err());
                }
                crate::compose::run::first_with_rest(errors)
            }
        }
    }

    /// The sandboxes of the services, in the order of the plan.
    pub(super) async fn sandboxes(&self) -> Vec<ServiceSandboxes> {
        match self {
            Self::Native(crew) => native_sandboxes(crew).await,
            Self::Generic(crew) => {
                let services = crew.sandboxes().into_iter();
                services
                    .map(|(name, sandbox)| ServiceSandboxes {
                        is_default: crew
                            .plan
                            .services
                            .iter()
                            .any(|step| step.name == name && step.is_default),
                        name,
                        replicas: vec![sandbox],
                    })
                    .collect()
            }
            Self::Connected(_) => Vec::new(),
        }
    }

    /// Whether the sandboxes of the services are removed by somebody else than themselves.
    pub(super) fn owns_sandboxes(&self) -> bool {
        // The generic way removes them by themselves.
        !matches!(self, Self::Generic(_))
    }

    /// What is left after it was taken down is nobody's any more.
    pub(super) fn forget(&self) {
        if let Self::Native(crew) = self {
            crew.made.take();
        }
    }

    /// Hands everything that was made to the clean-up thread.
    pub(super) fn remove_later(&self, provider: &Arc<dyn SandboxProvider>, reaper: &Reaper) {
        const WHAT: &str = "remove a dropped project";
        // Closing the provider waits for it, too.
        let pledge = provider.cleanup().map(Reaper::pledge);
        match self {
            Self::Native(crew) => {
                let objects = crew.made.take();
                if !objects.is_empty() {
                    let removal = remove_in_background(Arc::clone(provider), objects);
                    reaper.submit(WHAT, removal.map(|()| drop(pledge)));
                }
            }
            Self::Generic(crew) if crew.has_made_something() => {
                let removal = remove_generic_in_background(Arc::clone(crew));
                reaper.submit(WHAT, removal.map(|()| drop(pledge)));
            }
            Self::Generic(_) | Self::Connected(_) => {}
        }
    }
}

async fn native_sandboxes(crew: &Crew) -> Vec<ServiceSandboxes> {
    let mut services = Vec::new();
    for (index, service) in crew.plan.services.iter().enumerate() {
        let mut replicas = Vec::new();
        for id in crew.ids_of_service(index) {
            // A service that failed, and may, has none perhaps.
            let Ok(handle) = crew.handle(&id, index).await else {
                continue;
            };
            let workdir = service
                .containers
                .first()
                .and_then(|container| container.spec.working_dir.clone());
            replicas.push(Arc::new(AsyncSandbox::of_service(
                Arc::clone(&crew.provider),
                handle,
                workdir,
            )));
        }
        services.push(ServiceSandboxes {
            name: service.name.clone(),
            is_default: service.is_default,
            replicas,
        });
    }
    services
}
