//! The agent of one sandbox as this process knows it: connected, to be connected, or given up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bollard::models::ContainerInspectResponse;
use tokio::time::Instant;

use crate::error::SandboxReason;
use crate::spec::{ExecPath, ExecResult};

use super::super::DockerProvider;
use super::launch::{Launch, Main};
use super::link::{Link, Lost};
use super::program::{self, PROGRAM};
use super::socket::Doorway;
use super::{ExecPathPolicy, PATIENCE, apart, dial, ending};

/// An agent that was heard so short a time ago is not asked whether it lives.
const RECENT: Duration = Duration::from_millis(20);

/// How long a living agent may take to answer until the engine is asked what is with its sandbox.
const ANSWER: Duration = Duration::from_millis(50);

/// A connection that fails in this time has not waited for an agent.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Which way a command goes.
pub(super) enum Route {
    /// By the agent.
    Agent(Arc<Link>),
    /// By an exec of the engine.
    Engine,
    /// Not at all, and this is its result.
    Ended(Box<ExecResult>),
}

/// The agent of one sandbox. All handles of the sandbox in this process that stem from one share it.
#[derive(Debug)]
pub(in crate::docker) struct Resident {
    /// None where the agent can't be in the sandbox.
    pub(super) launch: Option<Launch>,
    policy: ExecPathPolicy,
    state: Mutex<State>,
    /// Held while connecting, so that it is done once.
    pub(super) connecting: tokio::sync::Mutex<()>,
    doorway: tokio::sync::Mutex<Option<Doorway>>,
    /// The agent never dialled the socket of this process.
    socket_missed: AtomicBool,
}

#[derive(Debug)]
enum State {
    /// Nobody has connected yet, or the connection was lost.
    Apart,
    Connected(Arc<Link>),
    /// Commands go by the engine, and why.
    GivenUp(Arc<str>),
}

impl Resident {
    /// The agent is not in the sandbox.
    pub(in crate::docker) fn none(why: impl Into<Arc<str>>) -> Arc<Self> {
        Arc::new(Self {
            launch: None,
            policy: ExecPathPolicy::Engine,
            state: Mutex::new(State::GivenUp(why.into())),
            connecting: tokio::sync::Mutex::default(),
            doorway: tokio::sync::Mutex::default(),
            socket_missed: AtomicBool::new(false),
        })
    }

    pub(super) fn new(launch: Launch, policy: ExecPathPolicy, doorway: Option<Doorway>) -> Arc<Self> {
        Arc::new(Self {
            launch: Some(launch),
            policy,
            state: Mutex::new(State::Apart),
            connecting: tokio::sync::Mutex::default(),
            doorway: tokio::sync::Mutex::new(doorway),
            socket_missed: AtomicBool::new(false),
        })
    }

    /// The agent of a sandbox that another process has made, found in what the engine says of it.
    pub(in crate::docker) fn found(
        policy: ExecPathPolicy,
        inspected: &ContainerInspectResponse,
    ) -> Arc<Self> {
        if policy == ExecPathPolicy::Engine {
            return Self::none("`exec_path` is `engine`");
        }
        let mounts = inspected.mounts.iter().flatten();
        let has_program = mounts
            .filter(|mount| mount.destination.as_deref() == Some(program::FOLDER))
            .any(|mount| mount.name.as_deref() == Some(program::volume().as_str()));
        if !has_program {
            return Self::none("the sandbox was made without this library's agent");
        }
        let config = inspected.config.clone().unwrap_or_default();
        let argv = config.entrypoint.unwrap_or_default();
        let is_main = argv.first().is_some_and(|program| program == PROGRAM);
        let keep_home = if is_main {
            argv.iter()
                .take_while(|argument| *argument != "--")
                .any(|argument| argument == "--keep-home")
        } else {
            config
                .env
                .iter()
                .flatten()
                .any(|entry| entry.starts_with("HOME="))
        };
        let name = inspected
            .name
            .as_deref()
            .unwrap_or_default()
            .trim_start_matches('/')
            .to_owned();
        let main = if is_main { Main::Agent } else { Main::Entrypoint };
        Self::new(
            Launch {
                name,
                main,
                keep_home,
                ttl: None,
                idle: None,
                lease: None,
                folder: None,
                is_offline: false,
            },
            policy,
            None,
        )
    }

    /// How commands are run now; before the first command, how they will be tried.
    pub(in crate::docker) fn exec_path(&self) -> ExecPath {
        match *self.state() {
            State::GivenUp(_) => ExecPath::Engine,
            State::Apart | State::Connected(_) => ExecPath::Agent,
        }
    }

    /// The agent's program is in the sandbox, whether or not it runs commands.
    pub(in crate::docker) fn has_program(&self) -> bool {
        self.launch.is_some()
    }

    /// Why commands go by the engine, if they do.
    pub(in crate::docker) fn engine_reason(&self) -> Option<Arc<str>> {
        match &*self.state() {
            State::GivenUp(why) => Some(Arc::clone(why)),
            State::Apart | State::Connected(_) => None,
        }
    }

    /// The agent answers, but not by the socket that was made for it.
    pub(super) fn socket_missed(&self) -> bool {
        self.socket_missed.load(Ordering::Relaxed)
    }

    /// The main process is the agent, so that it must answer.
    pub(in crate::docker) fn is_main_process(&self) -> bool {
        self.launch
            .as_ref()
            .is_some_and(|launch| launch.main == Main::Agent)
    }

    /// Finds out which way a command goes. An agent that is known to live is used at once; one that has been silent is
    /// asked first, so that nothing is sent into a sandbox that is paused, stopped or gone. What was not sent can still
    /// go by the engine.
    pub(super) async fn route(&self, provider: &DockerProvider, container_id: &str) -> Route {
        // Two rounds: a connection that turns out to be lost is made again once.
        for _ in 0..2 {
            let link = match self.link(provider, container_id).await {
                Ok(link) => link,
                Err(route) => return route,
            };
            if link.silence() < RECENT {
                return Route::Agent(link);
            }
            match self.ask(provider, container_id, &link).await {
                Asked::Answers => return Route::Agent(link),
                Asked::Ended(result) => return Route::Ended(result),
                Asked::Lost(why) => {
                    if let Err(route) = self.after_loss(provider, container_id, &link, why).await {
                        return route;
                    }
                }
            }
        }
        let why = "the agent's connection was lost twice".into();
        self.out_of_reach(provider, container_id, why).await
    }

    /// The connection, if there is one and the agent answers on it at once. Asks no engine and connects nothing.
    pub(super) async fn link_at_hand(&self) -> Option<Arc<Link>> {
        let link = self.known()?.ok()?;
        // A file that is sent to an agent that has just been paused with its sandbox can't be taken back.
        if link.silence() < RECENT / 4 {
            return Some(link);
        }
        let answered = tokio::time::timeout(ANSWER, link.ping()).await;
        matches!(answered, Ok(Ok(()))).then_some(link)
    }

    async fn ask(&self, provider: &DockerProvider, container_id: &str, link: &Arc<Link>) -> Asked {
        let mut pong = link.ping();
        match tokio::time::timeout(ANSWER, &mut pong).await {
            Ok(Ok(())) => return Asked::Answers,
            Ok(Err(_)) => return Asked::Lost(lost(link)),
            Err(_) => {}
        }
        // Silent: the sandbox may be paused, or the machine busy. An engine that can't be asked says nothing of either.
        if let Some(result) = ending::not_usable(provider, container_id).await
            && !ending::is_unknown(&result)
        {
            return Asked::Ended(Box::new(result));
        }
        match tokio::time::timeout(PATIENCE, pong).await {
            Ok(Ok(())) => Asked::Answers,
            Ok(Err(_)) => Asked::Lost(lost(link)),
            Err(_) => match ending::not_usable(provider, container_id).await {
                Some(result) => Asked::Ended(Box::new(result)),
                None => Asked::Lost(format!("the agent does not answer for {PATIENCE:?}").into()),
            },
        }
    }

    /// The connection, made where there is none.
    async fn link(&self, provider: &DockerProvider, container_id: &str) -> Result<Arc<Link>, Route> {
        if let Some(known) = self.known() {
            return known;
        }
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(known) = self.known() {
            return known;
        }
        let began = Instant::now();
        let why = match self.connect(provider, container_id).await {
            Ok(link) => return Ok(link),
            Err(Lost(why)) => why,
        };
        if began.elapsed() > AT_ONCE {
            return Err(self.out_of_reach(provider, container_id, why).await);
        }
        if let Some(result) = ending::out_of_reach(provider, container_id, self).await {
            return Err(Route::Ended(Box::new(result)));
        }
        // What could not be started for a moment, for want of memory or processes, may be by now.
        match self.connect(provider, container_id).await {
            Ok(link) => Ok(link),
            Err(Lost(why)) => Err(self.out_of_reach(provider, container_id, why).await),
        }
    }

    pub(super) fn known(&self) -> Option<Result<Arc<Link>, Route>> {
        match &*self.state() {
            State::Connected(link) if link.lost().is_none() => Some(Ok(Arc::clone(link))),
            State::GivenUp(_) => Some(Err(Route::Engine)),
            State::Apart | State::Connected(_) => None,
        }
    }

    /// Connects: by the socket at first, where there is one, else by an exec.
    pub(super) async fn connect(
        &self,
        provider: &DockerProvider,
        container_id: &str,
    ) -> Result<Arc<Link>, Lost> {
        let Some(launch) = &self.launch else {
            return Err(Lost("there is no agent in the sandbox".into()));
        };
        let listening = self.doorway.lock().await.as_mut().and_then(Doorway::listen);
        let had_socket = listening.is_some();
        let dialled = match listening {
            Some(listening) => {
                let dialled = async move {
                    match listening.accept(PATIENCE).await {
                        Ok(wire) => Link::open(wire, tokio::time::sleep(PATIENCE)).await.map(Ok),
                        Err(missed) => Ok(Err(missed)),
                    }
                };
                apart::run(dialled).await?
            }
            None => Err(Lost("there is no socket any more".into())),
        };
        let link = match dialled {
            Ok(link) => link,
            Err(Lost(why)) => {
                if had_socket {
                    tracing::debug!(%why, "the agent's socket is not used");
                    self.socket_missed.store(true, Ordering::Relaxed);
                }
                let (provider, id, launch) = (provider.clone(), container_id.to_owned(), launch.clone());
                apart::run(async move { dial::connect(&provider, &id, &launch).await }).await?
            }
        };
        let link = Arc::new(link);
        *self.state() = State::Connected(Arc::clone(&link));
        Ok(link)
    }

    /// A connection is lost: another try is worth it while the sandbox runs.
    async fn after_loss(
        &self,
        provider: &DockerProvider,
        container_id: &str,
        link: &Arc<Link>,
        why: Arc<str>,
    ) -> Result<(), Route> {
        tracing::debug!(container_id, %why, "the agent's connection is lost");
        {
            let mut state = self.state();
            if matches!(&*state, State::Connected(current) if Arc::ptr_eq(current, link)) {
                *state = State::Apart;
            }
        }
        match ending::not_usable(provider, container_id).await {
            Some(result) => Err(Route::Ended(Box::new(result))),
            None => Ok(()),
        }
    }

    /// There is no way to the agent. What is with the sandbox comes first: in one that dies the engine can't run anything
    /// either.
    async fn out_of_reach(&self, provider: &DockerProvider, container_id: &str, why: Arc<str>) -> Route {
        match ending::out_of_reach(provider, container_id, self).await {
            Some(result) => Route::Ended(Box::new(result)),
            None => self.fail(why),
        }
    }

    /// There is no way to the agent. Nothing was sent, so the engine can run the command where that is allowed.
    fn fail(&self, why: Arc<str>) -> Route {
        if self.policy == ExecPathPolicy::Agent {
            let message = format!("the command was not run: {why}");
            let result = ExecResult::sandbox_failure(SandboxReason::AgentLost, message, ExecPath::Agent);
            return Route::Ended(Box::new(result));
        }
        tracing::warn!(%why, "commands go by the engine's exec from now on");
        *self.state() = State::GivenUp(why);
        Route::Engine
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change of the state is one assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Asked {
    Answers,
    Lost(Arc<str>),
    Ended(Box<ExecResult>),
}

fn lost(link: &Link) -> Arc<str> {
    link.lost()
        .map_or_else(|| "the connection is lost".into(), |Lost(why)| why)
}
