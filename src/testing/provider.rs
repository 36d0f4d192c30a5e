//! The provider traits over the state in memory.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result, SandboxReason};
use crate::provider::{
    ConnectableProvider, EndpointProvider, InspectProvider, NetworkProvider, Reaper, SandboxHandle,
    SandboxProvider, check_provider_options,
};
use crate::spec::{
    ExecOptions, ExecPath, ExecResult, SandboxDetail, SandboxEndpoint, SandboxId, SandboxSpec, SandboxStatus,
    check_environment,
};

use super::{Injected, Made, MemoryProvider, SeenCommand};

pub(super) const NAME: &str = "memory";

/// When every sandbox in memory was made: it asks no clock.
const MADE_AT: &str = "2000-01-01T00:00:00.000Z";

impl MemoryProvider {
    /// Does what was injected for this call, if anything was.
    pub(super) async fn injected(&self, operation: Operation) -> Result<()> {
        let injected = {
            let mut state = self.state();
            let queue = state.injected.iter_mut().find(|(of, _)| *of == operation);
            queue.and_then(|(_, queue)| queue.pop_front())
        };
        match injected {
            None => Ok(()),
            Some(Injected::Failure(error)) => Err(error),
            Some(Injected::Hanging) => std::future::pending().await,
        }
    }

    pub(super) fn with_made<T>(
        &self,
        handle: &SandboxHandle,
        operation: Operation,
        work: impl FnOnce(&mut Made) -> Result<T>,
    ) -> Result<T> {
        check_handle(handle, operation)?;
        match self.state().sandboxes.get_mut(handle.sandbox_id()) {
            Some(made) => work(made),
            None => Err(Error::new(
                ErrorKind::Sandbox(SandboxReason::Removed),
                operation,
                "the sandbox has been removed",
            )),
        }
        .map_err(|error| error.with_sandbox(handle.sandbox_id()))
    }
}

/// Marks the handles that were made here.
pub(super) struct InMemory;

pub(super) fn check_handle(handle: &SandboxHandle, operation: Operation) -> Result<()> {
    handle.raw_for::<InMemory>(NAME, operation).map(|_| ())
}

/// Where a remote path is: below the working directory, else below `/`.
fn place(made: &Made, remote: &str, operation: Operation) -> Result<String> {
    if remote.is_empty() || remote.contains('\0') {
        return Err(Error::invalid(
            operation,
            "the path in the sandbox is empty or holds NUL",
        ));
    }
    let workdir = made.spec.workdir().unwrap_or_default().trim_end_matches('/');
    Ok(if remote.starts_with('/') {
        remote.to_owned()
    } else {
        format!("{workdir}/{remote}")
    })
}

fn local(operation: Operation, path: &Path, error: std::io::Error) -> Error {
    let problem = match error.kind() {
        std::io::ErrorKind::NotFound => PathProblem::NotFound,
        std::io::ErrorKind::IsADirectory => PathProblem::IsADirectory,
        std::io::ErrorKind::PermissionDenied => PathProblem::Permission,
        _ => PathProblem::NotServable,
    };
    let text = format!("`{}` can't be used", path.display());
    Error::new(ErrorKind::Path(problem), operation, text).with_source(error)
}

#[async_trait]
impl SandboxProvider for MemoryProvider {
    fn name(&self) -> &str {
        NAME
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<SandboxHandle> {
        check_environment(Operation::Create, spec.env())?;
        let options = spec.provider_options();
        check_provider_options(Operation::Create, "provider options", options, &[])?;
        self.injected(Operation::Create).await?;
        let mut state = self.state();
        state.count += 1;
        let id = SandboxId::new(format!("memory-{}", state.count))?;
        let made = Made {
            spec: spec.clone(),
            files: std::collections::BTreeMap::new(),
            address: super::connected::address_of(state.count),
            hosts: std::collections::BTreeMap::new(),
        };
        state.sandboxes.insert(id.clone(), made);
        Ok(SandboxHandle::new(id, NAME)
            .with_ports(spec.ports().clone())
            .with_raw(InMemory))
    }

    async fn exec(&self, handle: &SandboxHandle, options: ExecOptions) -> Result<ExecResult> {
        check_handle(handle, Operation::Exec)?;
        options.check(Operation::Exec)?;
        let seen = SeenCommand::new(handle.sandbox_id().clone(), &options);
        self.injected(Operation::Exec).await?;
        {
            let mut state = self.state();
            if !state.sandboxes.contains_key(handle.sandbox_id()) {
                let text = "the sandbox has been removed";
                return Ok(ExecResult::sandbox_failure(
                    SandboxReason::Removed,
                    text,
                    ExecPath::Host,
                ));
            }
            state.commands.push(seen.clone());
        }
        if self.is_endless(&seen) {
            std::future::pending::<()>().await;
        }
        Ok(self.answer_to(&seen))
    }

    async fn upload_file(&self, handle: &SandboxHandle, local_path: &Path, remote: &str) -> Result<()> {
        let operation = Operation::Upload;
        let place = self.with_made(handle, operation, |made| place(made, remote, operation))?;
        self.injected(operation).await?;
        let content = tokio::fs::read(local_path).await;
        let content = content.map_err(|error| local(operation, local_path, error))?;
        self.with_made(handle, operation, |made| {
            made.files.insert(place, content.into());
            Ok(())
        })
    }

    async fn download_file(&self, handle: &SandboxHandle, remote: &str, local_path: &Path) -> Result<()> {
        let operation = Operation::Download;
        let content = self.with_made(handle, operation, |made| {
            let place = place(made, remote, operation)?;
            made.files.get(&place).cloned().ok_or_else(|| {
                let text = format!("`{}` does not exist", remote.escape_debug());
                Error::new(ErrorKind::Path(PathProblem::NotFound), operation, text)
            })
        })?;
        self.injected(operation).await?;
        let failed = |error| local(operation, local_path, error);
        if let Some(parent) = local_path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            tokio::fs::create_dir_all(parent).await.map_err(failed)?;
        }
        tokio::fs::write(local_path, content).await.map_err(failed)
    }

    async fn status(&self, handle: &SandboxHandle) -> Result<SandboxStatus> {
        check_handle(handle, Operation::Status)?;
        self.injected(Operation::Status).await?;
        Ok(if self.state().sandboxes.contains_key(handle.sandbox_id()) {
            SandboxStatus::Running
        } else {
            SandboxStatus::Stopped
        })
    }

    async fn close(&self, handle: &SandboxHandle) -> Result<()> {
        check_handle(handle, Operation::Close)?;
        self.injected(Operation::Close).await?;
        self.state().sandboxes.remove(handle.sandbox_id());
        Ok(())
    }

    async fn aclose(&self) -> Result<()> {
        self.injected(Operation::Stop).await?;
        self.reaper.wait_idle(Duration::from_secs(60)).await
    }

    fn cleanup(&self) -> Option<&Reaper> {
        Some(&self.reaper)
    }

    fn as_endpoint(&self) -> Option<&dyn EndpointProvider> {
        Some(self)
    }

    fn as_inspect(&self) -> Option<&dyn InspectProvider> {
        Some(self)
    }

    fn as_network(&self) -> Option<&dyn NetworkProvider> {
        Some(self)
    }

    fn as_connectable(&self) -> Option<&dyn ConnectableProvider> {
        Some(self)
    }
}

/// An address that is each sandbox's own; nothing listens there.
fn address(id: &SandboxId, port: u16) -> Result<SandboxEndpoint> {
    SandboxEndpoint::new(format!("http://{id}.invalid:{port}"))
}

#[async_trait]
impl EndpointProvider for MemoryProvider {
    async fn endpoint(&self, handle: &SandboxHandle, port: u16) -> Result<SandboxEndpoint> {
        let operation = Operation::Endpoint;
        let found = self.with_made(handle, operation, |made| {
            if made.spec.ports().contains(port) {
                return Ok(());
            }
            Err(Error::invalid(operation, format!("port {port} is not declared")))
        });
        found.map_err(|error| match error.kind() {
            ErrorKind::Sandbox(_) => Error::new(
                ErrorKind::NotFound,
                operation,
                "the sandbox does not exist any more",
            ),
            _ => error,
        })?;
        address(handle.sandbox_id(), port)
    }
}

#[async_trait]
impl InspectProvider for MemoryProvider {
    async fn inspect(&self, handle: &SandboxHandle) -> Result<SandboxDetail> {
        let operation = Operation::Inspect;
        check_handle(handle, operation)?;
        let id = handle.sandbox_id();
        let state = self.state();
        let made = state.sandboxes.get(id).ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                operation,
                "the sandbox does not exist any more",
            )
            .with_sandbox(id)
        })?;
        let mut detail = SandboxDetail::new(id.clone(), NAME, SandboxStatus::Running, ExecPath::Host);
        detail.image = made.spec.image().map(str::to_owned);
        detail.labels.clone_from(made.spec.metadata());
        detail.limits = made.spec.resources().clone();
        detail.created = Some(MADE_AT.to_owned());
        detail.started = Some(MADE_AT.to_owned());
        for &port in made.spec.ports().as_slice() {
            detail.endpoints.insert(port, address(id, port)?);
        }
        Ok(detail)
    }
}
