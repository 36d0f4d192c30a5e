//! Taking a project of sandboxes down (contract 4.9): programs and relays first, then the sandboxes in the reverse of the
//! order in which they were made, then the shared storage. Everything is tried; what is left is kept for another try.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Operation, Result};

use super::super::hook::{Hooks, time_before_stop};
use super::super::progress::ServiceProgress;
use super::super::teardown::{DownOptions, Failures, tell};
use super::GenericCrew;

/// What could not be removed in the background is tried again so often, with growing pauses: about a minute.
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_millis(250);

impl GenericCrew {
    /// Removes everything that was made. What could not be removed stays noted, so that it can be called again.
    pub(crate) async fn take_down(&self, options: &DownOptions) -> Result<()> {
        if options.grace.is_some() {
            let what = "a grace for programs that are run beside a sandbox's own";
            return Err(Error::unsupported(
                Operation::ComposeDown,
                self.provider.name(),
                what,
            ));
        }
        let hooks = self.run_hooks(options).await;
        self.remove(options, hooks).await
    }

    /// The same without the hooks, of which those that failed are given.
    async fn remove(&self, options: &DownOptions, hooks: Vec<Error>) -> Result<()> {
        let mut failures = Failures {
            hooks,
            ..Failures::default()
        };
        self.end_tasks().await;
        let services: Vec<_> = {
            let made = self.made();
            made.services
                .iter()
                .map(|(&service, sandbox)| (service, Arc::clone(sandbox)))
                .collect()
        };
        for (service, sandbox) in services.into_iter().rev() {
            match sandbox.stop().await {
                Ok(()) => {
                    self.made().services.remove(&service);
                    self.tell(options, service, ServiceProgress::Removed);
                }
                Err(error) => failures.left.push(error),
            }
        }
        let seeds = self.made().seeds.clone();
        for seed in seeds.into_iter().rev() {
            failures.left.extend(self.end_seed(&seed).await.err());
        }
        let helper = self.made().helper.clone();
        if let Some(helper) = helper {
            failures
                .left
                .extend(self.end_storage(helper, options.volumes).await.err());
        }
        failures.into_result()
    }

    /// Runs the hooks of programs that run, once. What never began, or has ended, is not stopped.
    async fn run_hooks(&self, options: &DownOptions) -> Vec<Error> {
        let mut failed = Vec::new();
        // One after the other: a stop that is dropped leaves those that it has not come to for the next.
        loop {
            let next = self.made().programs.pop_last();
            let Some((service, program)) = next else { break };
            let step = &self.plan.services[service];
            if step.pre_stop.is_empty() || program.is_finished() {
                continue;
            }
            if let Some(handle) = self.sandbox(service).ok().and_then(|sandbox| sandbox.handle()) {
                let hooks = Hooks {
                    provider: &*self.provider,
                    handle: &handle,
                    service: &step.name,
                };
                let tell = |hook| self.tell(options, service, ServiceProgress::Hook { hook });
                let limit = time_before_stop(None);
                failed.extend(hooks.before_stop(&step.pre_stop, limit, tell).await);
            }
        }
        failed
    }

    fn tell(&self, options: &DownOptions, service: usize, progress: ServiceProgress) {
        match &options.progress {
            Some(given) => tell(given, &self.plan.services[service].name, progress),
            None => self.say_service(service, progress),
        }
    }

    /// Ends programs and relays. A relay must be gone before its sandbox is removed.
    async fn end_tasks(&self) {
        let tasks = std::mem::take(&mut self.made().tasks);
        for task in &tasks {
            task.abort();
        }
        for task in tasks {
            // Aborted, or at its end already.
            let _ended = task.await;
        }
    }
}

/// Removes everything in the background: for a start that was dropped, or a project that was never stopped. As in the
/// native way no hooks are run.
pub(crate) async fn remove_generic_in_background(crew: Arc<GenericCrew>) {
    let mut pause = PAUSE;
    for _ in 0..TRIES {
        match crew.remove(&DownOptions::default(), Vec::new()).await {
            Ok(()) => return,
            Err(error) => tracing::debug!(%error, "removing is tried again"),
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    tracing::warn!("a part of a project could not be removed; it is left to a sweep");
}
