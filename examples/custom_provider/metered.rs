//! A provider written outside of the crate: another one, with the time of its commands added up.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use gym_sandbox::provider::{
    ConfigBlock, InspectProvider, OnExisting, ProviderFactory, Reaper, create_provider, register_provider,
};
use gym_sandbox::{
    ExecOptions, ExecResult, Operation, Result, SandboxDetail, SandboxHandle, SandboxProvider, SandboxSpec,
    SandboxStatus, Value,
};

/// The name under which it is registered.
pub(crate) const NAME: &str = "metered";

/// Another provider whose commands are metered.
pub(crate) struct Metered {
    inner: Arc<dyn SandboxProvider>,
    milliseconds: AtomicU64,
}

impl Metered {
    /// Wraps a provider.
    pub(crate) fn new(inner: Arc<dyn SandboxProvider>) -> Self {
        Self {
            inner,
            milliseconds: AtomicU64::new(0),
        }
    }

    /// How long all commands took together.
    pub(crate) fn used(&self) -> Duration {
        Duration::from_millis(self.milliseconds.load(Ordering::Relaxed))
    }

    /// Makes it known by its name, so that a configuration such as `{metered: {local: {}}}` finds it.
    ///
    /// # Errors
    /// The name is taken.
    pub(crate) fn register() -> Result<()> {
        let factory: ProviderFactory = Arc::new(|settings| {
            let inner = ConfigBlock::from_value(&Value::Object(settings.clone()))?;
            let inner = create_provider(&serde_json::json!({ inner.provider(): inner.settings() }))?;
            Ok(Arc::new(Self::new(inner)))
        });
        register_provider(NAME, factory, OnExisting::Refuse)
    }
}

/// The handle of the wrapped provider, which is what ours keeps.
fn inner(handle: &SandboxHandle, operation: Operation) -> Result<&SandboxHandle> {
    handle.raw_for::<SandboxHandle>(NAME, operation)
}

#[async_trait]
impl SandboxProvider for Metered {
    fn name(&self) -> &str {
        NAME
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<SandboxHandle> {
        let inner = self.inner.create(spec).await?;
        Ok(SandboxHandle::new(inner.sandbox_id().clone(), NAME)
            .with_ports(inner.ports().clone())
            .with_raw(inner))
    }

    async fn exec(&self, handle: &SandboxHandle, options: ExecOptions) -> Result<ExecResult> {
        let handle = inner(handle, Operation::Exec)?;
        let result = self.inner.exec(handle, options).await?;
        let took = u64::try_from(result.duration.as_millis()).unwrap_or(u64::MAX);
        self.milliseconds.fetch_add(took, Ordering::Relaxed);
        Ok(result)
    }

    async fn upload_file(&self, handle: &SandboxHandle, local: &Path, remote: &str) -> Result<()> {
        let handle = inner(handle, Operation::Upload)?;
        self.inner.upload_file(handle, local, remote).await
    }

    async fn download_file(&self, handle: &SandboxHandle, remote: &str, local: &Path) -> Result<()> {
        let handle = inner(handle, Operation::Download)?;
        self.inner.download_file(handle, remote, local).await
    }

    async fn status(&self, handle: &SandboxHandle) -> Result<SandboxStatus> {
        self.inner.status(inner(handle, Operation::Status)?).await
    }

    async fn close(&self, handle: &SandboxHandle) -> Result<()> {
        self.inner.close(inner(handle, Operation::Close)?).await
    }

    async fn aclose(&self) -> Result<()> {
        self.inner.aclose().await
    }

    /// Whoever closes this provider waits for what was dropped, as with the inner one.
    fn cleanup(&self) -> Option<&Reaper> {
        self.inner.cleanup()
    }

    /// One capability is passed on; a provider offers what it wants to, and nothing else is seen of it.
    fn as_inspect(&self) -> Option<&dyn InspectProvider> {
        self.inner.as_inspect().map(|_| self as &dyn InspectProvider)
    }
}

#[async_trait]
impl InspectProvider for Metered {
    async fn inspect(&self, handle: &SandboxHandle) -> Result<SandboxDetail> {
        let handle = inner(handle, Operation::Inspect)?;
        let Some(inspect) = self.inner.as_inspect() else {
            return Err(gym_sandbox::Error::unsupported(
                Operation::Inspect,
                NAME,
                "details",
            ));
        };
        let mut detail = inspect.inspect(handle).await?;
        NAME.clone_into(&mut detail.provider);
        Ok(detail)
    }
}

impl fmt::Debug for Metered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metered")
            .field("used", &self.used())
            .finish_non_exhaustive()
    }
}
