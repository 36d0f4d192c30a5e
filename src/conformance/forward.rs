//! Carrying TCP connections into sandboxes and between them (capability `PortForwarding`).

use std::net::IpAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::error::ErrorKind;
use crate::provider::{Capability, PortForwardingProvider, SandboxHandle};
use crate::sandbox::AsyncSandbox;
use crate::spec::ExecOptions;

use super::case::cases;
use super::check::{equal, holds, refused_with};
use super::{Context, Failure, Need, Outcome};

const FORWARDING: Need = Need::Capability(Capability::PortForwarding);

const PATIENCE: Duration = Duration::from_secs(120);

/// None where the provider, as it is configured, makes sandboxes that can't have it.
fn forwarding(context: &Context) -> Result<Option<&dyn PortForwardingProvider>, Failure> {
    let provider = context
        .provider()
        .as_port_forwarding()
        .ok_or_else(|| Failure::new("the provider has lost the capability"))?;
    match provider.validate_port_forwarding() {
        Ok(()) => Ok(Some(provider)),
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Serves a text on a port of a sandbox.
async fn serve(context: &Context, handle: &SandboxHandle, port: u16, text: &str) -> Outcome {
    let line = format!(
        "mkdir -p /tmp/www && cd /tmp/www && echo {text} > index.html && {{ {} ; }} >/dev/null 2>&1 &",
        context.server(port)
    );
    context.stdout(handle, ExecOptions::new(line)).await.map(drop)
}

async fn ask(
    provider: &dyn PortForwardingProvider,
    handle: &SandboxHandle,
    port: u16,
) -> Result<String, Failure> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let error = match provider.connect_port(handle, port).await {
            Ok(mut connection) => {
                connection.write_all(b"GET /index.html HTTP/1.0\r\n\r\n").await?;
                let mut answer = Vec::new();
                let reading = connection.read_to_end(&mut answer);
                match tokio::time::timeout_at(deadline, reading).await {
                    Ok(outcome) => outcome.map(drop)?,
                    Err(_) => return Err(Failure::new("the answer does not end")),
                }
                return Ok(String::from_utf8_lossy(&answer).into_owned());
            }
            Err(error) => error,
        };
        // The server may not listen yet.
        if error.kind() != ErrorKind::NotFound || tokio::time::Instant::now() > deadline {
            return Err(error.into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Says the same of a sandbox that can't have it as of the provider.
pub async fn where_it_can_not_be_had_it_is_refused(context: &Context) -> Outcome {
    let provider = context
        .provider()
        .as_port_forwarding()
        .ok_or_else(|| Failure::new("the provider has lost the capability"))?;
    if forwarding(context)?.is_some() {
        return Ok(());
    }
    let handle = context.sandbox().await?;
    let target = IpAddr::from([10, 0, 0, 1]);
    refused_with(
        "a connection",
        provider.connect_port(&handle, 80).await,
        ErrorKind::Unsupported,
    )?;
    refused_with(
        "a relay",
        provider.forward_ports(&handle, target, &[80], "/tmp/ready").await,
        ErrorKind::Unsupported,
    )
}

/// A port that is not published is reached, by a connection and by a port of this machine.
pub async fn a_port_is_reached_without_being_published(context: &Context) -> Outcome {
    let (Some(provider), true) = (forwarding(context)?, context.has_server()) else {
        return Ok(());
    };
    let handle = context.sandbox().await?;
    refused_with(
        "a connection to a port where nothing listens",
        provider.connect_port(&handle, 8099).await,
        ErrorKind::NotFound,
    )?;
    serve(context, &handle, 8080, "inside").await?;
    let answer = ask(provider, &handle, 8080).await?;
    holds(format!("`{answer}` is the answer"), answer.contains("inside"))?;
    let Some(connectable) = context.provider().as_connectable() else {
        return Ok(());
    };
    let descriptor = connectable.serialize_handle(&handle, None).await?;
    let sandbox = AsyncSandbox::connect(context.provider().clone(), &descriptor).await?;
    let forward = sandbox.forward_local(8080).await?;
    holds(
        "the address is the loopback",
        forward.local_address().ip().is_loopback(),
    )?;
    let asks = (0..8).map(|_| async {
        let mut stream = tokio::net::TcpStream::connect(forward.local_address()).await?;
        stream.write_all(b"GET /index.html HTTP/1.0\r\n\r\n").await?;
        let mut answer = Vec::new();
        tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer))
            .await
            .map_err(|_| std::io::Error::other("the answer does not end"))??;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer).into_owned())
    });
    for answer in futures::future::try_join_all(asks).await? {
        holds(format!("`{answer}` is the answer"), answer.contains("inside"))?;
    }
    Ok(())
}

/// Bytes go both ways exactly, and the end of the input is seen.
pub async fn bytes_go_through_exactly(context: &Context) -> Outcome {
    let Some(provider) = forwarding(context)? else {
        return Ok(());
    };
    let handle = context.sandbox().await?;
    // A server that gives back what it gets; skipped where the image has none.
    let has_nc = context
        .exec(&handle, "busybox nc -h 2>&1 | grep -q -- -e")
        .await?;
    if !has_nc.is_success() {
        return Ok(());
    }
    let line = "{ busybox nc -ll -p 8081 -e cat; } >/dev/null 2>&1 &";
    context.stdout(&handle, line).await?;
    let bytes: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let connection = loop {
        match provider.connect_port(&handle, 8081).await {
            Ok(connection) => break connection,
            Err(error) if error.kind() == ErrorKind::NotFound && tokio::time::Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => return Err(error.into()),
        }
    };
    let (mut reader, mut writer) = tokio::io::split(connection);
    let write = async {
        writer.write_all(&bytes).await?;
        writer.shutdown().await
    };
    let mut back = Vec::new();
    let both = async { tokio::try_join!(write, reader.read_to_end(&mut back)) };
    match tokio::time::timeout(PATIENCE, both).await {
        Ok(outcome) => outcome.map(drop)?,
        Err(_) => return Err(Failure::new("the connection does not end")),
    }
    super::check::equal_bytes("what comes back", &back, &bytes)
}

/// A relay on the loopback address of one sandbox reaches a port of another, and ends when it is dropped.
pub async fn a_relay_reaches_another_sandbox_until_it_is_dropped(context: &Context) -> Outcome {
    let (Some(provider), true) = (forwarding(context)?, context.has_server()) else {
        return Ok(());
    };
    let Some(network) = context.provider().as_network() else {
        return Ok(());
    };
    let (server, client) = futures::future::try_join(context.sandbox(), context.sandbox()).await?;
    serve(context, &server, 8080, "other").await?;
    ask(provider, &server, 8080).await?;
    let address = network.network_address(&server).await?;
    {
        let relay = provider.forward_ports(&client, address, &[8080], "/tmp/ready");
        let using = async {
            let wait =
                "n=0; until test -e /tmp/ready; do n=$((n+1)); test $n -lt 120 || exit 1; sleep 1; done";
            context.stdout(&client, wait).await?;
            let answer = ask(provider, &client, 8080).await?;
            holds(
                format!("`{answer}` is the other's answer"),
                answer.contains("other"),
            )?;
            refused_with(
                "a relay on a port that is taken",
                provider
                    .forward_ports(&client, address, &[8080], "/tmp/again")
                    .await,
                ErrorKind::Conflict,
            )
        };
        tokio::select! {
            ended = relay => return Err(Failure::new(format!("the relay ended by itself: {ended:?}"))),
            outcome = using => outcome?,
        }
    }
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        match provider.connect_port(&client, 8080).await {
            Err(error) => return equal("the kind of the error", error.kind(), ErrorKind::NotFound),
            Ok(_) if tokio::time::Instant::now() > deadline => {
                return Err(Failure::new("the relay listens after it was dropped"));
            }
            Ok(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// What can't be forwarded is refused before anything is started.
pub async fn what_can_not_be_forwarded_is_refused(context: &Context) -> Outcome {
    let Some(provider) = forwarding(context)? else {
        return Ok(());
    };
    let handle = context.sandbox().await?;
    let target = IpAddr::from([10, 0, 0, 1]);
    for (what, ports) in [("no port", vec![]), ("port 0", vec![0])] {
        refused_with(
            what,
            provider
                .forward_ports(&handle, target, &ports, "/tmp/ready")
                .await,
            ErrorKind::InvalidArgument,
        )?;
    }
    refused_with(
        "a connection to port 0",
        provider.connect_port(&handle, 0).await,
        ErrorKind::InvalidArgument,
    )?;
    context.provider().close(&handle).await?;
    let error = super::check::refused(
        "a connection to a removed sandbox",
        provider.connect_port(&handle, 80).await,
    )?;
    holds(
        format!("{:?} says that it is gone", error.kind()),
        matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Sandbox(_)),
    )
}

cases!("forward":
    where_it_can_not_be_had_it_is_refused needs FORWARDING,
    a_port_is_reached_without_being_published needs FORWARDING,
    bytes_go_through_exactly needs FORWARDING,
    a_relay_reaches_another_sandbox_until_it_is_dropped needs FORWARDING,
    what_can_not_be_forwarded_is_refused needs FORWARDING,
);
