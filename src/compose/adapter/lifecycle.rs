//! Start and stop of a project, and what a cancelled or dropped one leaves to the clean-up thread.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::compose::plan::ProjectLifetime;
use crate::compose::run::{DownOptions, StartOptions};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::sandbox::AsyncSandbox;

use super::work::Work;
use super::{AsyncSandboxCompose, ProjectName};

/// How long `stop` waits for clean-up that a cancelled call left.
const BACKGROUND_CLEANUP: Duration = Duration::from_secs(90);

pub(super) enum State {
    New,
    Starting,
    Started(Arc<Running>),
    /// `stop` was called and not everything could be removed; `stop` may be called again.
    Stopping(Arc<Running>),
    Stopped,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::New => "New",
            Self::Starting => "Starting",
            Self::Started(_) => "Started",
            Self::Stopping(_) => "Stopping",
            Self::Stopped => "Stopped",
        })
    }
}

/// A started project.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) work: Work,
    /// In the order in which they were made.
    pub(super) services: Vec<ServiceSandboxes>,
}

/// A service of a started project.
#[derive(Debug)]
pub(super) struct ServiceSandboxes {
    pub(super) name: String,
    /// Whether it is marked as the one to work in.
    pub(super) is_default: bool,
    /// Its containers, in their order.
    pub(super) replicas: Vec<Arc<AsyncSandbox>>,
}

impl Running {
    /// Those that have a sandbox.
    pub(super) fn existing(&self) -> impl Iterator<Item = &ServiceSandboxes> {
        self.services
            .iter()
            .filter(|service| !service.replicas.is_empty())
    }

    /// The sandboxes' own drop has nothing to remove any more.
    fn release(&self) {
        if self.work.owns_sandboxes() {
            for sandbox in self.services.iter().flat_map(|service| &service.replicas) {
                sandbox.release_service();
            }
        }
    }
}

pub(super) fn stopped(operation: Operation) -> Error {
    Error::new(ErrorKind::Stopped, operation, "the project has been stopped")
        .with_hint("a stopped project is not started again; make a new one")
}

impl AsyncSandboxCompose {
    /// Starts the project and waits until all of it is ready. Returns the project for chaining.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for what is wrong in the files, and [`ErrorKind::Unsupported`] for what cannot be
    /// done or is not allowed, before anything is made; it may then be called again.
    /// [`ErrorKind::AlreadyStarted`], [`ErrorKind::Stopped`]; [`ErrorKind::Conflict`] when a project of that name is
    /// there; [`ErrorKind::NotReady`] naming the service that failed, with its exit code and last lines;
    /// [`ErrorKind::Timeout`] naming who waits for whom. Everything that was made is removed then, and the project is
    /// stopped.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing: what was made is removed in the background, and the project is stopped.
    pub async fn start(&self) -> Result<&Self> {
        let _lifecycle = self.lifecycle.lock().await;
        {
            let mut state = self.state();
            match &*state {
                State::New => *state = State::Starting,
                State::Starting | State::Started(_) => {
                    return Err(Error::new(
                        ErrorKind::AlreadyStarted,
                        Operation::ComposeUp,
                        "the project is already started",
                    ));
                }
                State::Stopping(_) | State::Stopped => return Err(stopped(Operation::ComposeUp)),
            }
        }
        let mut guard = StartGuard {
            project: self,
            work: None,
        };
        let prepared = self.prepare().await?;
        let work = Work::new(Arc::clone(&self.provider), prepared, self.progress.clone());
        guard.work = Some(work.clone());
        let options = StartOptions {
            timeout: self.timeout,
            poll_interval: self.poll_interval,
            may_have_rivals: self.name != ProjectName::Unique,
        };
        match work.start(&options).await {
            Ok(()) => {
                let services = work.sandboxes().await;
                guard.work = None;
                *self.state() = State::Started(Arc::new(Running { work, services }));
                Ok(self)
            }
            Err(error) => Err(Box::pin(self.abandon(&work, error)).await),
        }
    }

    /// Removes what a failed start has made. What stays is the guard's.
    async fn abandon(&self, work: &Work, mut error: Error) -> Error {
        if let Err(cleanup) = work.take_down(&DownOptions::default()).await {
            error = error.with_cleanup_error(cleanup);
        }
        *self.state() = State::Stopped;
        if let Err(cleanup) = self.close_provider().await {
            error = error.with_cleanup_error(cleanup);
        }
        error
    }

    /// Removes the project: dependants first, at once unless its file asks for a grace (contract D22), with its
    /// volumes and networks. Closes the provider where the project owns it.
    ///
    /// Called again after success it does nothing; called on a project that never started it only closes an owned
    /// provider.
    ///
    /// A service that still runs has its `pre_stop` hooks run before, each at most once and for as long as the service gets
    /// to end by itself: the grace, or 10 s where there is none. A project that was connected to has its sandboxes stopped,
    /// without hooks.
    ///
    /// # Errors
    /// The first thing that could not be removed, with the others attached. Everything was tried, and the call can be
    /// repeated. [`ErrorKind::Hook`] when only a hook failed or did not end in its time: everything is gone then.
    ///
    /// # Cancel safety
    /// Dropping the future may leave a part of the project; call it again. What is never stopped is removed after the
    /// drop.
    pub async fn stop(&self) -> Result<()> {
        self.stop_with(&DownOptions::default()).await
    }

    /// As [`stop`](Self::stop), with a grace or with volumes kept.
    ///
    /// # Errors
    /// As [`stop`](Self::stop). [`ErrorKind::Unsupported`] for a grace where services are no containers, and of a project that
    /// was connected to.
    ///
    /// # Cancel safety
    /// As [`stop`](Self::stop).
    pub async fn stop_with(&self, options: &DownOptions) -> Result<()> {
        let _lifecycle = self.lifecycle.lock().await;
        let running = {
            let mut state = self.state();
            match std::mem::replace(&mut *state, State::Stopped) {
                State::Stopped | State::New | State::Starting => None,
                State::Started(running) | State::Stopping(running) => {
                    *state = State::Stopping(Arc::clone(&running));
                    Some(running)
                }
            }
        };
        let removed = match &running {
            Some(running) => running.work.take_down(options).await,
            None => Ok(()),
        };
        // Where the first error is of a hook, everything is gone all the same.
        if removed.is_ok() || matches!(&removed, Err(error) if error.kind() == ErrorKind::Hook) {
            if let Some(running) = &running {
                running.release();
                // Volumes that were to be kept are nobody's any more.
                running.work.forget();
            }
            *self.state() = State::Stopped;
        }
        match (removed, self.close_provider().await) {
            (Err(error), Err(second)) => Err(error.with_cleanup_error(second)),
            (Err(error), Ok(())) | (Ok(()), Err(error)) => Err(error),
            (Ok(()), Ok(())) => Ok(()),
        }
    }

    pub(super) async fn close_provider(&self) -> Result<()> {
        self.reaper.wait_idle(BACKGROUND_CLEANUP).await?;
        if self.is_owned {
            self.provider.aclose().await?;
        }
        Ok(())
    }
}

impl Drop for AsyncSandboxCompose {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut *self.state(), State::Stopped);
        if let State::Started(running) | State::Stopping(running) = state {
            running.release();
            if self.lifetime == ProjectLifetime::Process {
                running.work.remove_later(&self.provider, &self.reaper);
            }
        }
    }
}

/// Puts the state right when `start` ends in any way but success, also by being dropped.
struct StartGuard<'a> {
    project: &'a AsyncSandboxCompose,
    work: Option<Work>,
}

impl Drop for StartGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.project.state();
        match self.work.take() {
            Some(work) => {
                *state = State::Stopped;
                drop(state);
                work.remove_later(&self.project.provider, &self.project.reaper);
            }
            // Nothing was made: it may be tried again with other options.
            None if matches!(*state, State::Starting) => *state = State::New,
            None => {}
        }
    }
}
