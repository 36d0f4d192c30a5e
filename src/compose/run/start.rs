//! The start of a whole project: everything that can be done at once is, and the first failure ends it.

use std::time::Duration;

use futures::future::{try_join, try_join_all};

use crate::error::{Error, Result};
use crate::spec::container::RestartPolicy;

use super::board::{Board, Stage};
use super::crew::Crew;
use super::failure::last_part;
use super::gate::may_restart;
use super::health::{MOST_FAILURES, Unhealthy};
use super::progress::ServiceProgress;
use super::watch::Watch;

/// Of so many services that hold others up the last output is told.
const MOST_TOLD: usize = 3;

/// How a start is made.
#[derive(Clone, Debug)]
pub(crate) struct StartOptions {
    /// How long it may take, images included.
    pub(crate) timeout: Duration,
    /// The longest pause between two health probes of our own.
    pub(crate) poll_interval: Option<Duration>,
    /// Whether somebody else may start a project of the same name at the same time.
    pub(crate) may_have_rivals: bool,
}

/// One start.
#[derive(Debug)]
pub(super) struct Start<'a> {
    pub(super) crew: &'a Crew,
    pub(super) watch: Watch,
    pub(super) poll_interval: Option<Duration>,
    may_have_rivals: bool,
    pub(super) board: Board,
}

impl Crew {
    /// Starts the project: when this returns, every service is healthy, has stayed up, or has ended as it should.
    ///
    /// Nothing is removed when it fails or is dropped: that is the caller's, who holds what was made.
    pub(crate) async fn start(&self, options: &StartOptions) -> Result<()> {
        let start = Start::new(self, options);
        if let Ok(result) = tokio::time::timeout(options.timeout, start.run()).await {
            return result;
        }
        let mut told = String::new();
        for service in start.board.holding_up().into_iter().take(MOST_TOLD) {
            told.push_str(&self.last_words(service).await);
        }
        Err(start.board.too_late(&self.plan.project, options.timeout, &told))
    }

    /// The end of what a service's first container printed, for an error; empty where that is nothing.
    async fn last_words(&self, service: usize) -> String {
        let Some(container) = self.ids_of_service(service).into_iter().next() else {
            return String::new();
        };
        let printed = self.last_lines(&container).await;
        let name = &self.plan.services[service].name;
        match last_part(printed.trim_end()) {
            "" => String::new(),
            printed => format!("\nthe last output of `{name}` was:\n{printed}"),
        }
    }
}

impl<'a> Start<'a> {
    fn new(crew: &'a Crew, options: &StartOptions) -> Self {
        let services = crew.plan.services.iter();
        Self {
            crew,
            watch: Watch::new(),
            poll_interval: options.poll_interval,
            may_have_rivals: options.may_have_rivals,
            board: Board::new(services.map(|service| service.name.clone())),
        }
    }

    async fn run(&self) -> Result<()> {
        let crew = self.crew;
        crew.check_before().await?;
        crew.have_images().await?;
        // Not sooner: images take long, and a client that is killed meanwhile leaves nothing.
        if self.may_have_rivals {
            crew.claim().await?;
        }
        crew.make_shared().await?;
        Box::pin(crew.seed_volumes()).await?;
        let labels = crew.project_labels();
        tokio::select! {
            // The service at fault says more of it than who only sees it end.
            biased;
            result = Box::pin(self.services()) => result,
            error = self.first_failure() => Err(error),
            () = self.watch.follow(crew, &labels) => Ok(()),
        }
    }

    async fn services(&self) -> Result<()> {
        let services = 0..self.crew.plan.services.len();
        let services = try_join_all(services.map(|service| self.bring_up(service)));
        let released = async {
            if self.may_have_rivals {
                self.release_when_made().await;
            }
            Ok(())
        };
        try_join(services, released).await.map(|_| ())
    }

    /// Waits until a service that must not ends with an error, whoever waits for it or not.
    async fn first_failure(&self) -> Error {
        let mut changes = self.watch.changes();
        loop {
            for (service, step) in self.crew.plan.services.iter().enumerate() {
                // Who waits for its end, or can go without it, judges it.
                if step.is_one_shot || step.is_optional {
                    continue;
                }
                let restart = self.restart_of(service);
                for id in self.crew.ids_of_service(service) {
                    let seen = self.watch.seen(&id);
                    if let Some(code) = seen.ended
                        && code != 0
                        && !may_restart(restart, seen.failures)
                    {
                        if seen.failures >= MOST_FAILURES && restart != RestartPolicy::No {
                            let why = Unhealthy::Restarts(seen.failures);
                            return self.crew.unhealthy_error(service, &id, why).await;
                        }
                        let what = format!("exited with {code} while the project started");
                        return self.crew.service_error(service, &id, &what).await;
                    }
                }
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    pub(super) fn index_of(&self, service: &str) -> Option<usize> {
        self.board.index_of(service)
    }

    pub(super) fn reach(&self, service: usize, stage: Stage) {
        self.board.reach(service, stage);
    }

    pub(super) async fn stage_at_least(&self, service: usize, wanted: Stage) -> Stage {
        self.board.stage_at_least(service, wanted).await
    }

    /// Notes that a service waits for another one, or for none any more.
    pub(super) fn waits(&self, service: usize, on: Option<usize>) {
        self.board.waits(service, on);
        if let Some(other) = on {
            let on = self.board.name(other).to_owned();
            self.crew.say_service(service, ServiceProgress::Waiting { on });
        }
    }
}
