//! Handing a sandbox over (K1-K9, L17, L19, D23, capability `Connect`).

use crate::error::ErrorKind;
use crate::provider::{Capability, ConnectableProvider, ForeignSandboxes, SandboxHandle};
use crate::spec::{ExecOptions, SandboxDescriptor, SandboxId, SandboxStatus};

use super::case::cases;
use super::check::{equal, holds, refused, refused_with};
use super::{Context, Failure, Need, Outcome};

const CONNECT: Need = Need::Capability(Capability::Connect);

const SECRET: &str = "a-value-that-nobody-else-may-see";

fn connectable(context: &Context) -> Result<&dyn ConnectableProvider, Failure> {
    context
        .provider()
        .as_connectable()
        .ok_or_else(|| Failure::new("the provider has lost the capability"))
}

async fn connect(context: &Context, descriptor: &SandboxDescriptor) -> crate::Result<SandboxHandle> {
    match context.provider().as_connectable() {
        Some(provider) => {
            provider
                .connect_handle(descriptor, ForeignSandboxes::Refuse)
                .await
        }
        None => Err(crate::Error::unsupported(
            crate::Operation::Attach,
            context.provider().name(),
            Capability::Connect.as_str(),
        )),
    }
}

/// A descriptor goes through JSON, and the handle of who connects by it does what the creator's does (K4, K5).
pub async fn who_connects_uses_the_same_sandbox(context: &Context) -> Outcome {
    let spec = context.spec().with_ports([8081, 8080])?.with_env("KEPT", "yes");
    let handle = context.create(&spec).await?;
    context.stdout(&handle, "echo mine > /tmp/mine").await?;
    let described = connectable(context)?.serialize_handle(&handle, None).await?;
    let text = described.to_value().to_string();
    let read = serde_json::from_str(&text).map_err(|error| Failure::new(error.to_string()))?;
    let connected = connect(context, &SandboxDescriptor::from_value(read)?).await?;
    equal("the id", connected.sandbox_id(), handle.sandbox_id())?;
    equal(
        "the ports, in their order",
        connected.ports().as_slice(),
        [8081, 8080].as_slice(),
    )?;
    equal(
        "what the other one sees",
        context.stdout(&connected, "cat /tmp/mine; echo $KEPT").await?,
        "mine\nyes\n",
    )?;
    // K6.
    equal(
        "what the other one describes",
        connectable(context)?.serialize_handle(&connected, None).await?,
        described,
    )
}

/// The id alone is enough (K8).
pub async fn the_id_is_enough(context: &Context) -> Outcome {
    let handle = context.create(&context.spec().with_ports([8080])?).await?;
    let bare = SandboxDescriptor::new(handle.sandbox_id().clone());
    let connected = connect(context, &bare).await?;
    equal("the ports", connected.ports().as_slice(), [8080].as_slice())?;
    equal(
        "a shell line",
        context.stdout(&connected, ExecOptions::new("echo there")).await?,
        "there\n",
    )
}

/// A descriptor holds no value of the environment (D23).
pub async fn a_descriptor_holds_no_secret(context: &Context) -> Outcome {
    let handle = context.create(&context.spec().with_env("TOKEN", SECRET)).await?;
    let described = connectable(context)?.serialize_handle(&handle, None).await?;
    let text = described.to_value().to_string();
    holds("the value is not in the descriptor", !text.contains(SECRET))?;
    let connected = connect(context, &described).await?;
    equal(
        "the variable after connecting",
        context.stdout(&connected, "echo $TOKEN").await?,
        format!("{SECRET}\n"),
    )
}

/// A paused sandbox is taken as it is, and can be used once it is resumed (L19). Skipped by providers that can't pause.
pub async fn a_paused_sandbox_is_taken(context: &Context) -> Outcome {
    let Some(pause) = context.provider().as_pause() else {
        return Ok(());
    };
    let handle = context.sandbox().await?;
    pause.pause(&handle).await?;
    let connected = connect(context, &SandboxDescriptor::new(handle.sandbox_id().clone())).await?;
    equal(
        "the status after connecting",
        context.provider().status(&connected).await?,
        SandboxStatus::Paused,
    )?;
    let resumed = pause.resume(&connected, None).await?;
    equal(
        "a command afterwards",
        context.stdout(&resumed, "echo thawed").await?,
        "thawed\n",
    )
}

/// Closing a connected handle removes the sandbox (K7).
pub async fn closing_a_connected_handle_removes_the_sandbox(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let connected = connect(context, &SandboxDescriptor::new(handle.sandbox_id().clone())).await?;
    context.provider().close(&connected).await?;
    equal(
        "the creator's status",
        context.provider().status(&handle).await?,
        SandboxStatus::Stopped,
    )
}

/// What does not exist, what is another provider's and what is foreign can't be connected to or described (K9).
pub async fn what_can_not_be_connected_to_is_an_error(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let mut described = connectable(context)?.serialize_handle(&handle, None).await?;
    described.provider = Some("some-other-provider".to_owned());
    refused_with(
        "connecting by another provider's descriptor",
        connect(context, &described).await,
        ErrorKind::InvalidArgument,
    )?;
    let foreign = SandboxHandle::new(handle.sandbox_id().clone(), "some-other-provider");
    refused_with(
        "describing a foreign handle",
        connectable(context)?.serialize_handle(&foreign, None).await,
        ErrorKind::ForeignHandle,
    )?;
    context.provider().close(&handle).await?;
    for id in [
        handle.sandbox_id().clone(),
        SandboxId::new("gym-sandbox-that-never-was")?,
    ] {
        let error = refused("connecting to nothing", connect(context, &id.into()).await)?;
        holds(
            format!("{:?} says that there is none", error.kind()),
            matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Sandbox(_)),
        )?;
    }
    Ok(())
}

cases!("connect":
    who_connects_uses_the_same_sandbox needs CONNECT,
    the_id_is_enough needs CONNECT,
    a_descriptor_holds_no_secret needs CONNECT,
    a_paused_sandbox_is_taken needs CONNECT,
    closing_a_connected_handle_removes_the_sandbox needs CONNECT,
    what_can_not_be_connected_to_is_an_error needs CONNECT,
);
