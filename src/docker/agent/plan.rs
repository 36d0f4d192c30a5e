//! Whether a new sandbox gets the agent, and how; and what becomes of it when the agent does not work there.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bollard::models::ContainerCreateBody;

use crate::error::{Error, ErrorKind, Operation, Result, SandboxReason};
use crate::spec::{ExecReason, SandboxId, SandboxSpec};

use super::super::failure::EngineFailure;
use super::super::owner::Keep;
use super::super::request::CreateRequest;
use super::super::{DockerProvider, PROVIDER};
use super::kind::SandboxKind;
use super::launch::{Launch, Main, may_not_share};
use super::link::Lost;
use super::offline;
use super::resident::Resident;
use super::socket::Doorway;
use super::{ExecPathPolicy, ending, program};

/// An agent that has not said hello by then is looked after: its sandbox may have ended.
const LOOK_AFTER: Duration = Duration::from_millis(300);

/// How one sandbox is made.
#[derive(Debug)]
pub(in crate::docker) struct Plan {
    policy: ExecPathPolicy,
    /// What keeps this sandbox from being made without the agent.
    needs_agent: Option<&'static str>,
    way: Way,
    /// What went wrong with the agent, when it is the fault of the image or the limits: kept for the next such sandboxes.
    unusable: Option<Arc<str>>,
    /// The agent was tried, and left out then.
    has_fallen_back: bool,
}

#[derive(Debug)]
enum Way {
    Agent {
        launch: Launch,
        entrypoint: Vec<String>,
        resident: Arc<Resident>,
    },
    Engine(Arc<str>),
}

/// A container could not be made, or is of no use.
#[derive(Debug)]
pub(in crate::docker) struct Failed {
    error: Error,
    /// The agent, or what is in the sandbox for it, can have to do with it.
    is_the_agents: bool,
}

impl Failed {
    pub(in crate::docker) fn new(error: Error, is_the_agents: bool) -> Self {
        Self { error, is_the_agents }
    }

    pub(in crate::docker) fn into_error(self) -> Error {
        self.error
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::new(error, false)
    }
}

impl Plan {
    /// Decides by the policy, the engine, the rights of the sandbox, and what was seen of its kind before.
    pub(in crate::docker) async fn new(
        provider: &DockerProvider,
        id: &SandboxId,
        spec: &SandboxSpec,
        request: &CreateRequest,
    ) -> Result<Self> {
        let policy = request.options.exec_path;
        let needs_agent = if spec.idle_timeout().is_some() {
            Some("an idle timeout")
        } else if spec.ttl().is_some() && !spec.entrypoint().is_empty() {
            Some("a ttl together with an entrypoint")
        } else {
            None
        };
        let engine = provider.engine().await?;
        let fleet = provider.fleet();
        let obstacle: Option<Arc<str>> = if policy == ExecPathPolicy::Engine {
            Some("`exec_path` is `engine`".into())
        } else if let Some(why) = program::unusable_on(&engine.os_type, &engine.architecture) {
            Some(why.into())
        } else if let Some(why) = may_not_share(request.body.host_config.as_ref()) {
            Some(why.into())
        } else {
            fleet.why_unusable(&SandboxKind::of(request))
        };
        let mut plan = Self {
            policy,
            needs_agent,
            way: Way::Engine("".into()),
            unusable: None,
            has_fallen_back: false,
        };
        if let Some(why) = obstacle {
            plan.leave_out(why)?;
            return Ok(plan);
        }
        let child_or_none = spec.entrypoint().is_empty() || needs_agent.is_some();
        let main = if child_or_none {
            Main::Agent
        } else {
            Main::Entrypoint
        };
        let doorway =
            (main == Main::Agent && engine.is_local && !fleet.socket_failed.load(Ordering::Relaxed))
                .then(|| fleet.sockets.prepare(id.as_str()))
                .transpose()
                .unwrap_or_else(|error| {
                    tracing::debug!(%error, "no socket is made for the agent");
                    None
                });
        let launch = Launch {
            name: id.as_str().to_owned(),
            main,
            keep_home: spec.env().keys().any(|name| name == "HOME"),
            ttl: spec.ttl(),
            idle: spec.idle_timeout(),
            lease: (request.options.keep == Keep::No).then(|| provider.config().lease.without_client()),
            folder: doorway.as_ref().map(Doorway::folder).map(ToOwned::to_owned),
            // An entrypoint would begin before its hosts file is there.
            is_offline: main == Main::Agent
                && spec.entrypoint().is_empty()
                && offline::is_possible(engine.flavor, &request.body),
        };
        plan.way = Way::Agent {
            resident: Resident::new(launch.clone(), policy, doorway),
            launch,
            entrypoint: spec.entrypoint().to_vec(),
        };
        Ok(plan)
    }

    /// The sandbox is to have the agent.
    pub(in crate::docker) fn has_agent(&self) -> bool {
        matches!(self.way, Way::Agent { .. })
    }

    /// The body of the create call.
    pub(in crate::docker) fn body(&self, request: &CreateRequest) -> ContainerCreateBody {
        let mut body = request.body.clone();
        if let Way::Agent {
            launch, entrypoint, ..
        } = &self.way
        {
            launch.apply(&mut body, entrypoint);
        }
        body
    }

    /// What is known of the sandbox's agent.
    pub(in crate::docker) fn resident(&self) -> Arc<Resident> {
        match &self.way {
            Way::Agent { resident, .. } => Arc::clone(resident),
            Way::Engine(why) => Resident::none(Arc::clone(why)),
        }
    }

    /// Says whether a refusal of the engine can have to do with the agent: it names something that is in the sandbox for
    /// it.
    pub(in crate::docker) fn is_named_in(&self, failure: &EngineFailure) -> bool {
        let (Way::Agent { launch, .. }, Some(text)) = (&self.way, failure.text()) else {
            return false;
        };
        let folder = launch.folder.as_ref().map(|folder| folder.display().to_string());
        // The socket's folder in the sandbox begins with the same words.
        let names = [program::FOLDER.to_owned(), program::volume()]
            .into_iter()
            .chain(folder);
        names.into_iter().any(|name| text.contains(&name))
    }

    /// Sees to it that the program is there before the container is started.
    pub(in crate::docker) async fn provide(
        &self,
        provider: &DockerProvider,
        container_id: &str,
        request: &CreateRequest,
    ) -> Result<()> {
        if !self.has_agent() {
            return Ok(());
        }
        let platform = request.options.platform.as_deref().unwrap_or_default();
        let image = request.image.to_string();
        let (filled, has_its_place) = tokio::join!(
            provider.provide_agent(container_id, &image, platform),
            provider.agent_has_its_place(container_id),
        );
        let failed = |failure: EngineFailure| {
            failure.into_error(
                Operation::Create,
                "the resident agent could not be put into the sandbox",
                ErrorKind::CreateFailed,
            )
        };
        if !has_its_place.map_err(failed)? {
            return Err(Error::new(
                ErrorKind::CreateFailed,
                Operation::Create,
                format!("the image has a link at `{}`, the agent's place", program::FOLDER),
            ));
        }
        filled.map_err(failed)
    }

    /// Connects to an agent that is the main process, as the proof that it runs.
    pub(in crate::docker) async fn prove(
        &self,
        provider: &DockerProvider,
        container_id: &str,
    ) -> Result<(), Failed> {
        let Way::Agent {
            resident,
            entrypoint,
            launch,
        } = &self.way
        else {
            return Ok(());
        };
        if !resident.is_main_process() {
            return Ok(());
        }
        let ended = async {
            tokio::time::sleep(LOOK_AFTER).await;
            provider.main_process_ended(container_id).await;
        };
        let connected = tokio::select! {
            connected = resident.connect(provider, container_id) => connected.map(drop),
            () = ended => Err(Lost("the agent ended before it said hello".into())),
        };
        if resident.socket_missed() {
            provider.fleet().socket_failed.store(true, Ordering::Relaxed);
        }
        let Err(Lost(why)) = connected else {
            if launch.is_offline {
                let written = provider.write_loopback_hosts(resident, container_id).await;
                return written.map_err(|error| Failed::new(error, true));
            }
            return Ok(());
        };
        if let Some(result) = ending::not_usable(provider, container_id).await {
            if result.reason == Some(ExecReason::Sandbox(SandboxReason::DaemonUnreachable)) {
                let lost = EngineFailure::Transport {
                    text: why.to_string(),
                };
                let message = "the engine was lost before the sandbox was ready";
                let error = lost.into_error(Operation::Create, message, ErrorKind::CreateFailed);
                return Err(error.into());
            }
            if result.reason == Some(ExecReason::Sandbox(SandboxReason::Removed)) {
                let message = "somebody has removed the sandbox before it was ready";
                return Err(Error::new(ErrorKind::NotReady, Operation::Create, message).into());
            }
            if !entrypoint.is_empty() {
                // It ended with its child, which is told of as the end of any main process.
                return Ok(());
            }
        }
        let error = Error::new(
            ErrorKind::CreateFailed,
            Operation::Create,
            format!("the resident agent does not work in the sandbox: {why}"),
        );
        Err(Failed::new(error, true))
    }

    /// After a create with the agent has failed: the sandbox is to be made without it, once, where that may help and is
    /// allowed. Else gives the error back.
    pub(in crate::docker) fn fall_back(&mut self, provider: &DockerProvider, failed: Failed) -> Result<()> {
        let Failed { error, is_the_agents } = failed;
        let may_help = is_the_agents
            && matches!(
                error.kind(),
                ErrorKind::CreateFailed | ErrorKind::Internal | ErrorKind::InvalidArgument
            );
        if !may_help || self.policy == ExecPathPolicy::Agent || self.needs_agent.is_some() {
            return Err(error);
        }
        let why: Arc<str> = error.report().to_string().into();
        if why.contains(super::socket::FOLDER) || why.contains("bind source path") {
            provider.fleet().socket_failed.store(true, Ordering::Relaxed);
        } else if error.kind() == ErrorKind::CreateFailed {
            self.unusable = Some(Arc::clone(&why));
        }
        tracing::debug!(%why, "a sandbox is tried without the resident agent");
        self.way = Way::Engine(why);
        self.has_fallen_back = true;
        Ok(())
    }

    /// The sandbox was made. Where that could be done without the agent only, it is not tried again for its kind.
    pub(in crate::docker) fn remember(&self, provider: &DockerProvider, request: &CreateRequest) {
        if let (true, Way::Engine(why)) = (self.has_fallen_back, &self.way) {
            tracing::warn!(%why, "a sandbox is made without the resident agent");
        }
        let kind = SandboxKind::of(request);
        match (&self.way, &self.unusable) {
            // It was proven to run.
            (Way::Agent { resident, .. }, _) if resident.is_main_process() => {
                provider.fleet().remember_usable(&kind);
            }
            (_, Some(why)) => provider.fleet().remember_unusable(&kind, why),
            _ => {}
        }
    }

    fn leave_out(&mut self, why: Arc<str>) -> Result<()> {
        if let Some(what) = self.needs_agent {
            return Err(Error::unsupported(Operation::Create, PROVIDER, what)
                .with_hint(format!("it needs the resident agent, but {why}")));
        }
        if self.policy == ExecPathPolicy::Agent {
            return Err(Error::new(
                ErrorKind::Unsupported,
                Operation::Create,
                format!("the sandbox can't have the resident agent: {why}"),
            )
            .with_hint("with `exec_path` `auto` its commands go by the engine"));
        }
        self.way = Way::Engine(why);
        Ok(())
    }
}
