//! From nothing to a sandbox that is ready, and back: by the library with its agent, by the bare calls, and by the docker
//! CLI.

use gym_sandbox::{Operation, Result};

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

impl Creation {
    /// By the library.
    pub(super) async fn ours(self, context: &Context<'_>) -> Result<()> {
        let sandbox = context.left.passing(context.fleet.sandbox(self.network));
        sandbox.start().await?;
        match self.until {
            Until::Ready => Ok(()),
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
        created.map_err(|error| baseline_failed(Operation::Create, error))?;
        let first = context.raw.exec(&name, &["true"], 0).await;
        first.map_err(|error| baseline_failed(Operation::Exec, error))?;
        if self.until == Until::Removed {
            remove_raw(context, &name).await?;
        }
        Ok(())
    }

    /// By the docker CLI.
    pub(super) async fn docker_cli(self, context: &Context<'_>) -> Result<()> {
        let name = name(Side::Cli);
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
