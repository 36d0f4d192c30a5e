//! Programs that run beside the commands of a facade's sandbox (contract L16).

use std::time::Duration;

use crate::error::{Error, Operation, Result};
use crate::provider::{Capability, ServicesProvider};
use crate::spec::{CapturedOutput, ExecOptions, ExecResult, ServiceSpec, ServiceStatus};

use super::AsyncSandbox;

impl AsyncSandbox {
    /// Runs a command after which the services that it started live on: by the provider's own way where it has one,
    /// else as [`exec_with`](Self::exec_with) does (contract L16). Services must send their output elsewhere.
    ///
    /// # Errors
    /// As [`exec_with`](Self::exec_with); [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for
    /// variables or a user of the call, where the provider has a way of its own.
    ///
    /// # Cancel safety
    /// As [`exec_with`](Self::exec_with).
    pub async fn exec_preserving_services(&self, options: ExecOptions) -> Result<ExecResult> {
        let Some(provider) = self.provider.as_services() else {
            return self.exec_with(options).await;
        };
        if !options.env.is_empty() || options.user.is_some() {
            return Err(Error::invalid(
                Operation::Exec,
                "a command that preserves services takes neither variables nor a user of its own",
            )
            .with_hint("set them in the line of the command, or in the sandbox's spec"));
        }
        let started = self.started(Operation::Exec)?;
        options.check(Operation::Exec)?;
        let options = started.with_workdir(options);
        provider.exec_with_services(&started.handle, options).await
    }

    /// Starts a background service, known by its name from then on, also to other processes that connect to the
    /// sandbox. It runs in the spec's working directory unless it names one.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use gym_sandbox::{AsyncSandbox, ServiceSpec, ServiceStatus};
    /// # async fn example(sandbox: &AsyncSandbox) -> gym_sandbox::Result<()> {
    /// sandbox.start_service(ServiceSpec::new("web", ["python3", "-m", "http.server", "8000"])).await?;
    /// assert_eq!(sandbox.service_status("web").await?, Some(ServiceStatus::Running));
    /// println!("{}", sandbox.service_logs("web").await?.text());
    /// sandbox.stop_service("web", Duration::from_secs(5)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the provider, or an image without a shell, can't;
    /// [`ErrorKind::NotStarted`](crate::ErrorKind::NotStarted), [`ErrorKind::Stopped`](crate::ErrorKind::Stopped);
    /// otherwise as [`ServicesProvider::start_service`].
    ///
    /// # Cancel safety
    /// Dropping the future may leave the service started or not.
    pub async fn start_service(&self, mut spec: ServiceSpec) -> Result<()> {
        let provider = self.services()?;
        spec.check(Operation::Service)?;
        let started = self.started(Operation::Service)?;
        if spec.cwd.is_none() {
            spec.cwd.clone_from(&started.workdir);
        }
        provider.start_service(&started.handle, &spec).await
    }

    /// Says what a service is doing; None for one that was never started.
    ///
    /// # Errors
    /// As [`start_service`](Self::start_service).
    pub async fn service_status(&self, name: &str) -> Result<Option<ServiceStatus>> {
        let provider = self.services()?;
        let started = self.started(Operation::Service)?;
        provider.service_status(&started.handle, name).await
    }

    /// Gives what a service printed on both streams: the first and the last 8 MiB of it.
    ///
    /// # Errors
    /// As [`start_service`](Self::start_service); [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) for one that was
    /// never started.
    pub async fn service_logs(&self, name: &str) -> Result<CapturedOutput> {
        let provider = self.services()?;
        let started = self.started(Operation::Service)?;
        provider.service_logs(&started.handle, name).await
    }

    /// Asks a service to end, kills it when it has not after `grace`, and says what became of it; None for one that was
    /// never started.
    ///
    /// # Errors
    /// As [`start_service`](Self::start_service); [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) when it can't be
    /// killed.
    ///
    /// # Cancel safety
    /// Dropping the future may leave the service; call it again.
    pub async fn stop_service(&self, name: &str, grace: Duration) -> Result<Option<ServiceStatus>> {
        let provider = self.services()?;
        let started = self.started(Operation::Service)?;
        provider.stop_service(&started.handle, name, grace).await
    }

    fn services(&self) -> Result<&dyn ServicesProvider> {
        self.provider
            .as_services()
            .ok_or_else(|| self.unsupported(Operation::Service, Capability::Services))
    }
}
