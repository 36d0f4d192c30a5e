//! A Compose project of three services up and down: by the library, by the bare calls with the shortest waits there are,
//! and by docker compose.
//!
//! `db` has a health check of 500 ms that succeeds at once, `setup` ends with 0 and waits for `db` to be healthy, `app`
//! waits for `setup` to have ended. Dependants are taken down first, as docker compose does.

use std::sync::Arc;

use futures::future::try_join_all;
use gym_sandbox::compose::AsyncSandboxCompose;
use gym_sandbox::{Error, ErrorKind, Operation, Result, SandboxProvider};
use tokio::sync::Mutex;

use super::context::{Context, baseline_failed};
use super::docker_compose::{DockerCompose, MISSING};
use super::raw::{LABEL, RawContainer, RawError};
use super::transfer::Side;

const FILE: &str = "compose.yaml";

const SLEEP: [&str; 2] = ["sleep", "600"];
const TRUE: [&str; 1] = ["true"];

/// The services in the order in which they start.
const SERVICES: [(&str, &[&str]); 3] = [("db", &SLEEP), ("setup", &TRUE), ("app", &SLEEP)];

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Project {
    /// From nothing to all of it ready.
    Up,
    /// From that to nothing.
    Down,
}

/// What the bare calls and docker compose have up, by its name.
#[derive(Debug, Default)]
pub(in crate::cli) struct Upped(Mutex<String>);

impl Project {
    /// Takes away what the run before left, and makes what is taken down.
    pub(super) async fn ready(self, context: &Context<'_>, side: Side) -> Result<()> {
        context.left.pass(context.raw).await?;
        match (self, side) {
            (Self::Up, _) => Ok(()),
            (Self::Down, Side::Ours) => up(context).await,
            (Self::Down, Side::Raw) => raw_up(context).await,
            (Self::Down, Side::Cli) => compose_up(context).await,
        }
    }

    /// By the library.
    pub(super) async fn ours(self, context: &Context<'_>) -> Result<()> {
        match self {
            Self::Up => up(context).await,
            Self::Down => context.left.stop_projects().await,
        }
    }

    /// By the bare calls.
    pub(super) async fn raw(self, context: &Context<'_>) -> Result<()> {
        match self {
            Self::Up => raw_up(context).await,
            Self::Down => raw_down(context).await,
        }
    }

    /// By docker compose.
    pub(super) async fn docker_compose(self, context: &Context<'_>) -> Result<()> {
        match self {
            Self::Up => compose_up(context).await,
            Self::Down => {
                let name = context.upped.0.lock().await.clone();
                let arguments = ["--project-name", &name, "down", "--timeout", "0", "--volumes"];
                found(context)?.run(&context.address, &arguments).await
            }
        }
    }
}

async fn up(context: &Context<'_>) -> Result<()> {
    let folder = context.scratch.file(FILE, text(context)).await?;
    let provider: Arc<dyn SandboxProvider> = context.left.provider(None)?;
    let project = AsyncSandboxCompose::new(provider).with_compose_file(folder.join(FILE));
    let project = context.left.project(project);
    project.start().await.map(drop)
}

async fn raw_up(context: &Context<'_>) -> Result<()> {
    let name = name();
    context.upped.0.lock().await.clone_from(&name);
    let raw = context.raw;
    let made = async {
        raw.make_network(&name, None).await?;
        let names = SERVICES.map(|(service, _)| format!("{name}-{service}"));
        let making = SERVICES.iter().zip(&names).map(|((service, argv), container)| {
            raw.make(RawContainer {
                name: container,
                image: context.fleet.image(),
                argv,
                network: Some(&name),
                init: true,
                health: (*service == "db").then_some(&TRUE[..]),
                auto_remove: false,
            })
        });
        try_join_all(making).await?;
        let [db, setup, app] = &names;
        raw.start(db).await?;
        // Healthy is what a first probe says: nobody has to wait for the engine's own.
        raw.exec(db, &TRUE, 0).await?;
        raw.start(setup).await?;
        raw.wait(setup).await?;
        raw.start(app).await
    };
    made.await
        .map_err(|error| baseline_failed(Operation::ComposeUp, error))
}

async fn raw_down(context: &Context<'_>) -> Result<()> {
    let name = context.upped.0.lock().await.clone();
    let removed = async {
        for (service, _) in SERVICES.iter().rev() {
            context.raw.remove(&format!("{name}-{service}")).await?;
        }
        context.raw.remove_network(&name).await
    };
    let removed: Result<(), RawError> = removed.await;
    removed.map_err(|error| baseline_failed(Operation::ComposeDown, error))
}

async fn compose_up(context: &Context<'_>) -> Result<()> {
    let compose = found(context)?;
    let file = context.scratch.file(FILE, text(context)).await?.join(FILE);
    let file = file.display().to_string();
    let name = name();
    context.upped.0.lock().await.clone_from(&name);
    let arguments = ["--project-name", &name, "--file", &file, "up", "--detach"];
    compose.run(&context.address, &arguments).await
}

fn found<'a>(context: &'a Context<'_>) -> Result<&'a DockerCompose> {
    let found = context.docker_compose.as_ref();
    found.ok_or_else(|| Error::new(ErrorKind::NotFound, Operation::Compose, MISSING))
}

fn name() -> String {
    format!("gym-sandbox-bench-{}", uuid::Uuid::new_v4().simple())
}

fn text(context: &Context<'_>) -> String {
    let (image, mark) = (context.fleet.image(), context.raw.mark());
    let common = format!("    image: \"{image}\"\n    init: true\n    labels:\n      {LABEL}: \"{mark}\"\n");
    format!(
        "services:\n  db:\n{common}    command: [sleep, \"600\"]\n    healthcheck:\n      \
         test: [CMD, \"true\"]\n      interval: 500ms\n  setup:\n{common}    command: [\"true\"]\n    \
         depends_on:\n      db:\n        condition: service_healthy\n  app:\n{common}    \
         command: [sleep, \"600\"]\n    depends_on:\n      setup:\n        \
         condition: service_completed_successfully\n\
         networks:\n  default:\n    labels:\n      {LABEL}: \"{mark}\"\n"
    )
}
