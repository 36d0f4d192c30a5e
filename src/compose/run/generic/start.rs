//! The start of a project of sandboxes (contract 4.5): storage, all sandboxes, names, then the programs, each when what it
//! needs is there. The first failure ends it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{join_all, try_join_all};

use crate::compose::model::DependencyCondition;
use crate::compose::plan::DependencyStep;
use crate::error::{Error, Result};

use super::super::board::{Board, Stage};
use super::super::failure::in_service;
use super::super::hook::Hooks;
use super::super::progress::ServiceProgress;
use super::super::start::StartOptions;
use super::GenericCrew;
use super::process::{Ended, Ends};

/// One start.
#[derive(Debug)]
pub(super) struct GenericStart<'a> {
    pub(super) crew: &'a GenericCrew,
    pub(super) poll_interval: Option<Duration>,
    pub(super) ends: Arc<Ends>,
    pub(super) board: Board,
}

impl GenericCrew {
    /// Starts the project: when this returns, every service is healthy, has stayed up, or has ended as it should.
    ///
    /// Nothing is removed when it fails or is dropped: that is the caller's, who holds what was made.
    pub(crate) async fn start(&self, options: &StartOptions) -> Result<()> {
        let services = &self.plan.services;
        let start = GenericStart {
            crew: self,
            poll_interval: options.poll_interval,
            ends: Arc::new(Ends::new(services.len())),
            board: Board::new(services.iter().map(|service| service.name.clone())),
        };
        match tokio::time::timeout(options.timeout, start.run()).await {
            Ok(result) => result,
            Err(_) => Err(start.board.too_late(&self.plan.project, options.timeout, "")),
        }
    }
}

impl GenericStart<'_> {
    async fn run(&self) -> Result<()> {
        Box::pin(self.crew.make_storage()).await?;
        Box::pin(self.make_sandboxes()).await?;
        let addresses = self.addresses().await?;
        self.tell_names(&addresses).await?;
        tokio::select! {
            // The service at fault says more of it than who only sees it end.
            biased;
            result = Box::pin(self.services(&addresses)) => result?,
            error = self.first_failure() => return Err(error),
        }
        self.ends
            .check_relays()
            .map_err(|(service, error)| in_service(self.board.name(service), error))
    }

    /// Makes all sandboxes before any program is started, so that all names are known.
    async fn make_sandboxes(&self) -> Result<()> {
        let services = 0..self.crew.plan.services.len();
        // Each to its end, also when one fails: what was made is known then, and removed before the failure is told.
        let made = join_all(services.map(|service| self.make_sandbox(service))).await;
        made.into_iter().collect()
    }

    async fn make_sandbox(&self, service: usize) -> Result<()> {
        let crew = self.crew;
        let step = &crew.plan.services[service];
        let sandbox = crew.new_sandbox(step.spec.clone());
        crew.made().services.insert(service, Arc::clone(&sandbox));
        let made = async {
            sandbox.start().await?;
            if let Some(requirements) = &step.requirements
                && let Some(provider) = crew.provider.as_runtime_requirements()
                && let Some(handle) = sandbox.handle()
            {
                provider.configure_runtime(&handle, requirements).await?;
            }
            Ok::<_, Error>(())
        };
        made.await.map_err(|error| in_service(&step.name, error))?;
        self.board.reach(service, Stage::Created);
        crew.say_service(service, ServiceProgress::Created);
        Ok(())
    }

    async fn addresses(&self) -> Result<Vec<IpAddr>> {
        let services = 0..self.crew.plan.services.len();
        try_join_all(services.map(|service| async move {
            let address = self.crew.sandbox(service)?.network_address().await;
            address.map_err(|error| in_service(self.board.name(service), error))
        }))
        .await
    }

    /// Makes the names and aliases of all services known in each, but for those that want none.
    async fn tell_names(&self, addresses: &[IpAddr]) -> Result<()> {
        let services = &self.crew.plan.services;
        let hosts: BTreeMap<String, IpAddr> = services
            .iter()
            .zip(addresses)
            .flat_map(|(service, &address)| service.names.iter().map(move |name| (name.clone(), address)))
            .collect();
        let hosts = &hosts;
        let told = services
            .iter()
            .enumerate()
            .filter(|(_, service)| service.knows_names);
        try_join_all(told.map(|(place, service)| async move {
            let told = self.crew.sandbox(place)?.set_hosts(hosts).await;
            told.map_err(|error| in_service(&service.name, error))
        }))
        .await
        .map(drop)
    }

    async fn services(&self, addresses: &[IpAddr]) -> Result<()> {
        let services = 0..self.crew.plan.services.len();
        try_join_all(services.map(|service| self.bring_up(service, addresses)))
            .await
            .map(drop)
    }

    async fn bring_up(&self, service: usize, addresses: &[IpAddr]) -> Result<()> {
        let crew = self.crew;
        let step = &crew.plan.services[service];
        let conditions = step.depends_on.iter();
        try_join_all(conditions.map(|dependency| self.wait_for(service, dependency))).await?;
        self.launch(service, addresses).await?;
        self.board.reach(service, Stage::Started);
        crew.say_service(service, ServiceProgress::Started);
        if let Some(handle) = crew.sandbox(service)?.handle() {
            let hooks = Hooks {
                provider: &*crew.provider,
                handle: &handle,
                service: &step.name,
            };
            let tell = |hook: String| {
                self.board.runs(service, Some(hook.clone()));
                crew.say_service(service, ServiceProgress::Hook { hook });
            };
            hooks.after_start(&step.post_start, tell).await?;
            self.board.runs(service, None);
        }
        let is_healthy = if let Some(check) = &step.check {
            self.wait_healthy(service, check, addresses).await?
        } else {
            self.settle(service).await?;
            false
        };
        let stage = if is_healthy {
            Stage::Healthy
        } else {
            Stage::NoCheck
        };
        self.board.reach(service, stage);
        Ok(())
    }

    /// Waits until a dependency has reached what it must.
    async fn wait_for(&self, service: usize, dependency: &DependencyStep) -> Result<()> {
        let Some(other) = self.board.index_of(&dependency.service) else {
            return Ok(());
        };
        self.board.waits(service, Some(other));
        let on = dependency.service.clone();
        self.crew.say_service(service, ServiceProgress::Waiting { on });
        match dependency.condition {
            DependencyCondition::Started => {
                self.board.stage_at_least(other, Stage::Started).await;
            }
            // The plan has seen that it has a check. That it fails ends the start where that is seen.
            DependencyCondition::Healthy => {
                if self.board.stage_at_least(other, Stage::NoCheck).await == Stage::NoCheck {
                    return Err(self.crew.failed(other, "ended before it was healthy").await);
                }
            }
            DependencyCondition::CompletedSuccessfully => self.completed(other).await?,
        }
        self.board.waits(service, None);
        Ok(())
    }

    /// Waits until the program of a service has ended with 0.
    async fn completed(&self, other: usize) -> Result<()> {
        self.board.stage_at_least(other, Stage::Started).await;
        let ended = self.crew.exit_code(other, self.ends.of(other).await).await;
        if ended.is_success() {
            self.crew.say_service(other, ServiceProgress::Completed);
            return Ok(());
        }
        let what = format!("did not complete successfully: it {}", ended.told());
        Err(self.crew.failed(other, &what).await)
    }

    /// Sees a program that ends at once: with 0 it has done what it should.
    async fn settle(&self, service: usize) -> Result<()> {
        if self.crew.plan.services[service].is_one_shot {
            // Who waits for its end tells of it.
            return Ok(());
        }
        let Some(ended) = self.ended_at_once(service).await? else {
            return Ok(());
        };
        let ended = self.crew.exit_code(service, ended).await;
        if ended.is_success() {
            self.crew.say_service(service, ServiceProgress::Completed);
            return Ok(());
        }
        let what = format!("{} while the project started", ended.told());
        Err(self.crew.failed(service, &what).await)
    }

    /// Waits until a program that must not ends with an error, whoever waits for it or not.
    async fn first_failure(&self) -> Error {
        let services = &self.crew.plan.services;
        let (service, ended) = self
            .ends
            .first(|service, ended| {
                // Who waits for its end judges it.
                let is_wrong = !ended.is_success() && !services[service].is_one_shot;
                is_wrong.then(|| ended.clone())
            })
            .await;
        let ended = self.crew.exit_code(service, ended).await;
        if matches!(ended, Ended::Exited(0)) {
            std::future::pending::<()>().await;
        }
        let what = format!("{} while the project started", ended.told());
        self.crew.failed(service, &what).await
    }
}
