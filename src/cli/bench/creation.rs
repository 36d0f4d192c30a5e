//! From nothing to a sandbox that is ready, and back: by the library with its agent, by the bare calls, and by the docker
//! CLI.

use futures::future::join_all;
use gym_sandbox::{AsyncSandbox, Operation, Result};
use tokio::sync::Mutex;

use super::context::{Context, baseline_failed};
use super::raw::LABEL;
use super::transfer::Side;

/// How far a run goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Until {
    /// A first command can be run. By the bare calls that is one that was run.
    Ready,
    /// It is gone again.
    Removed,
}

/// A creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct Creation {
    pub(super) until: Until,
    /// None for the engine's default, a bridge.
    pub(super) network: Option<&'static str>,
}

/// What runs have left that end when the sandbox is ready.
#[derive(Debug, Default)]
pub(in crate::cli) struct Made {
    sandboxes: Mutex<Vec<AsyncSandbox>>,
    containers: Mutex<Vec<String>>,
}

impl Made {
    /// Notes sandboxes that are started.
    pub(super) async fn keep(&self, sandboxes: impl IntoIterator<Item = AsyncSandbox>) {
        self.sandboxes.lock().await.extend(sandboxes);
    }

    /// Removes it.
    ///
    /// # Errors
    /// A removal failed.
    pub(in crate::cli) async fn remove(&self, context: &Context<'_>) -> Result<()> {
        let sandboxes = std::mem::take(&mut *self.sandboxes.lock().await);
        let stopped = join_all(sandboxes.iter().map(AsyncSandbox::stop)).await;
        stopped.into_iter().collect::<Result<()>>()?;
        for container in std::mem::take(&mut *self.containers.lock().await) {
            remove_raw(context, &container).await?;
        }
        Ok(())
    }
}

impl Creation {
    /// By the library.
    pub(super) async fn ours(self, context: &Context<'_>) -> Result<()> {
        let sandbox = context.fleet.sandbox(self.network);
        sandbox.start().await?;
        match self.until {
            Until::Ready => {
                context.made.keep([sandbox]).await;
                Ok(())
            }
            Until::Removed => {
                sandbox.exec(["true"]).await?;
                sandbox.stop().await
            }
        }
    }

    /// By the bare calls: create, start, a first command, and removal.
    pub(super) async fn raw(self, context: &Context<'_>) -> Result<()> {
        let name = name(Side::Raw);
        let created = context
            .raw
            .create(&name, context.fleet.image(), self.network)
            .await;
        context.made.containers.lock().await.push(name.clone());
        created.map_err(|error| baseline_failed(Operation::Create, error))?;
        let first = context.raw.exec(&name, &["true"], 0).await;
        first.map_err(|error| baseline_failed(Operation::Exec, error))?;
        if self.until == Until::Removed {
            remove_raw(context, &name).await?;
            context.made.containers.lock().await.clear();
        }
        Ok(())
    }

    /// By the docker CLI.
    pub(super) async fn docker_cli(self, context: &Context<'_>) -> Result<()> {
        let name = name(Side::Cli);
        context.made.containers.lock().await.push(name.clone());
        let network = self.network.unwrap_or("default");
        let label = format!("{LABEL}={}", context.raw.mark());
        let run = [
            "run",
            "--detach",
            "--name",
            &name,
            "--network",
            network,
            "--init",
            "--label",
            &label,
        ];
        let image = [context.fleet.image(), "sleep", "600"];
        context.docker(&[&run[..], &image].concat()).await?;
        context.docker(&["exec", &name, "true"]).await?;
        if self.until == Until::Removed {
            context.docker(&["rm", "--force", "--volumes", &name]).await?;
            context.made.containers.lock().await.clear();
        }
        Ok(())
    }
}

fn name(side: Side) -> String {
    let side = match side {
        Side::Cli => "cli",
        Side::Ours | Side::Raw => "raw",
    };
    format!("gym-sandbox-bench-{side}-{}", uuid::Uuid::new_v4().simple())
}

async fn remove_raw(context: &Context<'_>, container: &str) -> Result<()> {
    let removed = context.raw.remove(container).await;
    removed.map_err(|error| baseline_failed(Operation::Close, error))
}
