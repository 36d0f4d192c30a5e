//! A provider in memory that does what a test tells it and remembers every call.

mod connected;
mod containers;
mod files;
mod images;
mod services;
mod upkeep;

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Semaphore, watch};

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{
    ConnectableProvider, ContainersProvider, EndpointProvider, ExecSession, FilesProvider, ImageProvider,
    InspectProvider, ListProvider, LogsProvider, NetworkProvider, PauseProvider, PortForwardingProvider,
    RuntimeRequirementsProvider, SandboxHandle, SandboxProvider, ServicesProvider, SharedStorageProvider,
    SnapshotProvider, SpawnProvider, StatsProvider, SweepProvider,
};
use crate::spec::{
    ExecOptions, ExecPath, ExecResult, SandboxDetail, SandboxEndpoint, SandboxId, SandboxSpec, SandboxStatus,
};

pub(crate) const NAME: &str = "scripted";

/// No test waits longer than this for a call that should come.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// What the provider saw, in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Call {
    Create(Option<String>),
    /// One of the calls about files that copies nothing, and its path.
    Files(&'static str, String),
    /// One of the calls about images, and what it names.
    Containers(&'static str, String),
    Images(&'static str, String),
    /// One of the calls about snapshots, and what it names.
    Snapshot(&'static str, String),
    /// One of the calls about all sandboxes of an engine.
    Upkeep(&'static str),
    /// A create was dropped in the middle, and the provider removed what it had begun.
    CreateUndone,
    Upload(String, String),
    Download(String),
    Exec(Seen),
    Spawn(Seen),
    Status,
    Endpoint(u16),
    Inspect,
    Pause,
    Resume(Option<Duration>),
    Serialize(Option<crate::spec::Value>),
    Connect(String),
    Logs,
    Stats,
    /// One of the calls about networks, services and forwarding, and what it names.
    Connected(&'static str, String),
    Close(String),
    Aclose,
}

/// The part of `ExecOptions` that the facade may change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) cwd: Option<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) user: Option<String>,
    pub(crate) timeout: crate::spec::ExecTimeout,
}

impl From<&ExecOptions> for Seen {
    fn from(options: &ExecOptions) -> Self {
        Self {
            cwd: options.cwd.clone(),
            env: options.env.clone().into_iter().collect(),
            user: options.user.as_ref().map(|user| user.as_str().to_owned()),
            timeout: options.timeout,
        }
    }
}

/// What one call of an operation does; without a step it succeeds.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Succeed,
    Fail(ErrorKind),
    /// Waits for a permit of the gate, then succeeds.
    Wait(Arc<Semaphore>),
}

impl Step {
    /// A step that waits, and the gate that lets it go on.
    pub(crate) fn blocked() -> (Self, Arc<Semaphore>) {
        let gate = Arc::new(Semaphore::new(0));
        (Self::Wait(Arc::clone(&gate)), gate)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Capabilities {
    None,
    All,
}

#[derive(Debug)]
pub(crate) struct Scripted {
    calls: watch::Sender<Vec<Call>>,
    script: Mutex<HashMap<Operation, VecDeque<Step>>>,
    capabilities: Capabilities,
}

impl Scripted {
    pub(crate) fn new() -> Arc<Self> {
        Self::with(Capabilities::All)
    }

    pub(crate) fn with(capabilities: Capabilities) -> Arc<Self> {
        Arc::new(Self {
            calls: watch::Sender::new(Vec::new()),
            script: Mutex::default(),
            capabilities,
        })
    }

    /// Sets what the next calls of an operation do.
    pub(crate) fn script(&self, operation: Operation, steps: impl IntoIterator<Item = Step>) {
        self.script
            .lock()
            .unwrap()
            .entry(operation)
            .or_default()
            .extend(steps);
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.borrow().clone()
    }

    pub(crate) fn count(&self, matches: impl Fn(&Call) -> bool + Send + Sync) -> usize {
        self.calls.borrow().iter().filter(|call| matches(call)).count()
    }

    pub(crate) fn closes(&self) -> usize {
        self.count(|call| matches!(call, Call::Close(_)))
    }

    pub(crate) fn acloses(&self) -> usize {
        self.count(|call| *call == Call::Aclose)
    }

    /// Waits until a call has come, with a deadline.
    pub(crate) async fn reached(&self, matches: impl Fn(&Call) -> bool + Send + Sync) {
        self.reached_times(matches, 1).await;
    }

    /// Waits until a call has come so many times, with a deadline.
    pub(crate) async fn reached_times(&self, matches: impl Fn(&Call) -> bool + Send + Sync, times: usize) {
        let mut calls = self.calls.subscribe();
        let enough = calls.wait_for(|calls| calls.iter().filter(|call| matches(call)).count() >= times);
        let waited = tokio::time::timeout(DEADLINE, enough).await.is_ok();
        assert!(waited, "the awaited call did not come: {:?}", self.calls());
    }

    /// This provider, where it offers its capabilities.
    fn offered(&self) -> Option<&Self> {
        (self.capabilities == Capabilities::All).then_some(self)
    }

    fn note(&self, call: Call) {
        self.calls.send_modify(|calls| calls.push(call));
    }

    async fn step(&self, operation: Operation) -> Result<()> {
        let step = self
            .script
            .lock()
            .unwrap()
            .get_mut(&operation)
            .and_then(VecDeque::pop_front);
        match step.unwrap_or(Step::Succeed) {
            Step::Succeed => Ok(()),
            Step::Fail(kind) => Err(Error::new(kind, operation, "the script says so")),
            Step::Wait(gate) => {
                gate.acquire().await.expect("gates are not closed").forget();
                Ok(())
            }
        }
    }
}

/// Stands for the clean-up that the trait asks of `create`: dropped half-way, it undoes what it did.
struct Undo<'a>(&'a Scripted);

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        self.0.note(Call::CreateUndone);
    }
}

#[async_trait]
impl SandboxProvider for Scripted {
    fn name(&self) -> &str {
        NAME
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<SandboxHandle> {
        self.note(Call::Create(spec.image().map(str::to_owned)));
        let undo = Undo(self);
        let outcome = self.step(Operation::Create).await;
        std::mem::forget(undo);
        outcome?;
        let number = self.count(|call| matches!(call, Call::Create(_)));
        Ok(SandboxHandle::new(SandboxId::new(format!("box-{number}"))?, NAME)
            .with_ports(spec.ports().clone()))
    }

    async fn exec(&self, _handle: &SandboxHandle, options: ExecOptions) -> Result<ExecResult> {
        self.note(Call::Exec(Seen::from(&options)));
        self.step(Operation::Exec).await?;
        Ok(ExecResult::new(0, ExecPath::Engine))
    }

    async fn upload_file(&self, _handle: &SandboxHandle, local: &Path, remote: &str) -> Result<()> {
        let text = std::fs::read_to_string(local).expect("the facade gives a readable file");
        self.note(Call::Upload(remote.to_owned(), text));
        self.step(Operation::Upload).await
    }

    async fn download_file(&self, _handle: &SandboxHandle, remote: &str, _local: &Path) -> Result<()> {
        self.note(Call::Download(remote.to_owned()));
        self.step(Operation::Download).await
    }

    async fn status(&self, _handle: &SandboxHandle) -> Result<SandboxStatus> {
        self.note(Call::Status);
        self.step(Operation::Status).await?;
        Ok(SandboxStatus::Paused)
    }

    async fn close(&self, handle: &SandboxHandle) -> Result<()> {
        self.note(Call::Close(handle.sandbox_id().to_string()));
        self.step(Operation::Close).await
    }

    async fn aclose(&self) -> Result<()> {
        self.note(Call::Aclose);
        self.step(Operation::Stop).await
    }

    fn as_spawn(&self) -> Option<&dyn SpawnProvider> {
        Some(self.offered()?)
    }

    fn as_endpoint(&self) -> Option<&dyn EndpointProvider> {
        Some(self.offered()?)
    }

    fn as_inspect(&self) -> Option<&dyn InspectProvider> {
        Some(self.offered()?)
    }

    fn as_files(&self) -> Option<&dyn FilesProvider> {
        Some(self.offered()?)
    }

    fn as_containers(&self) -> Option<&dyn ContainersProvider> {
        Some(self.offered()?)
    }

    fn as_images(&self) -> Option<&dyn ImageProvider> {
        Some(self.offered()?)
    }

    fn as_snapshot(&self) -> Option<&dyn SnapshotProvider> {
        Some(self.offered()?)
    }

    fn as_pause(&self) -> Option<&dyn PauseProvider> {
        Some(self.offered()?)
    }

    fn as_connectable(&self) -> Option<&dyn ConnectableProvider> {
        Some(self.offered()?)
    }

    fn as_list(&self) -> Option<&dyn ListProvider> {
        Some(self.offered()?)
    }

    fn as_sweep(&self) -> Option<&dyn SweepProvider> {
        Some(self.offered()?)
    }

    fn as_logs(&self) -> Option<&dyn LogsProvider> {
        Some(self.offered()?)
    }

    fn as_stats(&self) -> Option<&dyn StatsProvider> {
        Some(self.offered()?)
    }

    fn as_network(&self) -> Option<&dyn NetworkProvider> {
        Some(self.offered()?)
    }

    fn as_services(&self) -> Option<&dyn ServicesProvider> {
        Some(self.offered()?)
    }

    fn as_port_forwarding(&self) -> Option<&dyn PortForwardingProvider> {
        Some(self.offered()?)
    }

    fn as_runtime_requirements(&self) -> Option<&dyn RuntimeRequirementsProvider> {
        Some(self.offered()?)
    }

    fn as_shared_storage(&self) -> Option<&dyn SharedStorageProvider> {
        Some(self.offered()?)
    }
}

#[async_trait]
impl SpawnProvider for Scripted {
    async fn spawn(&self, _handle: &SandboxHandle, options: ExecOptions) -> Result<Box<dyn ExecSession>> {
        self.note(Call::Spawn(Seen::from(&options)));
        Err(Error::new(
            ErrorKind::Internal,
            Operation::Spawn,
            "scripted sessions do not exist",
        ))
    }
}

#[async_trait]
impl EndpointProvider for Scripted {
    async fn endpoint(&self, _handle: &SandboxHandle, port: u16) -> Result<SandboxEndpoint> {
        self.note(Call::Endpoint(port));
        self.step(Operation::Endpoint).await?;
        SandboxEndpoint::new(format!("http://127.0.0.1:{port}"))
    }
}

#[async_trait]
impl InspectProvider for Scripted {
    async fn inspect(&self, handle: &SandboxHandle) -> Result<SandboxDetail> {
        self.note(Call::Inspect);
        self.step(Operation::Inspect).await?;
        Ok(SandboxDetail::new(
            handle.sandbox_id().clone(),
            NAME,
            SandboxStatus::Running,
            ExecPath::Engine,
        ))
    }
}
