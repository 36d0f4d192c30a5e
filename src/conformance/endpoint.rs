//! Where ports of a sandbox answer (E1-E6, N1-N5, capability `Endpoint`).

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::ErrorKind;
use crate::provider::{Capability, EndpointProvider};
use crate::spec::ExecOptions;

use super::case::cases;
use super::check::{equal, holds, refused, refused_with};
use super::{Context, Failure, Need, Outcome};

const ENDPOINT: Need = Need::Capability(Capability::Endpoint);

fn endpoints(context: &Context) -> Result<&dyn EndpointProvider, Failure> {
    context
        .provider()
        .as_endpoint()
        .ok_or_else(|| Failure::new("the provider has lost the capability"))
}

/// Every declared port has an absolute URL of its own, the same each time (N5).
pub async fn declared_ports_have_urls_of_their_own(context: &Context) -> Outcome {
    let handle = context.create(&context.spec().with_ports([8080, 8081])?).await?;
    let first = endpoints(context)?.endpoint(&handle, 8080).await?;
    let second = endpoints(context)?.endpoint(&handle, 8081).await?;
    holds(
        format!("`{}` is an HTTP URL", first.endpoint()),
        first.endpoint().starts_with("http"),
    )?;
    holds("two ports have two URLs", first.endpoint() != second.endpoint())?;
    let again = endpoints(context)?.endpoint(&handle, 8080).await?;
    equal("the URL the second time", again.endpoint(), first.endpoint())
}

/// Two sandboxes may declare the same port.
pub async fn two_sandboxes_may_declare_one_port(context: &Context) -> Outcome {
    let spec = context.spec().with_ports([8080])?;
    let (first, second) = futures::future::try_join(context.create(&spec), context.create(&spec)).await?;
    let first = endpoints(context)?.endpoint(&first, 8080).await?;
    let second = endpoints(context)?.endpoint(&second, 8080).await?;
    holds(
        "two sandboxes have two URLs",
        first.endpoint() != second.endpoint(),
    )
}

/// A port that was not declared is a wrong argument (N1).
pub async fn an_undeclared_port_is_refused(context: &Context) -> Outcome {
    let handle = context.create(&context.spec().with_ports([8080])?).await?;
    for port in [8081, 0] {
        let what = format!("the endpoint of port {port}");
        refused_with(
            &what,
            endpoints(context)?.endpoint(&handle, port).await,
            ErrorKind::InvalidArgument,
        )?;
    }
    let without = context.sandbox().await?;
    let result = endpoints(context)?.endpoint(&without, 8080).await;
    refused_with(
        "an endpoint of a sandbox without ports",
        result,
        ErrorKind::InvalidArgument,
    )
}

/// A removed sandbox has no endpoint (N2).
pub async fn a_removed_sandbox_has_no_endpoint(context: &Context) -> Outcome {
    let handle = context.create(&context.spec().with_ports([8080])?).await?;
    context.provider().close(&handle).await?;
    let error = refused(
        "the endpoint of a removed sandbox",
        endpoints(context)?.endpoint(&handle, 8080).await,
    )?;
    holds(
        format!("{:?} says that it is gone", error.kind()),
        matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Sandbox(_)),
    )
}

/// A handle of another provider is refused.
pub async fn a_foreign_handle_has_no_endpoint(context: &Context) -> Outcome {
    let handle = context.create(&context.spec().with_ports([8080])?).await?;
    let foreign = crate::provider::SandboxHandle::new(handle.sandbox_id().clone(), "some-other-provider")
        .with_ports(handle.ports().clone());
    let result = endpoints(context)?.endpoint(&foreign, 8080).await;
    refused_with(
        "an endpoint of a foreign handle",
        result,
        ErrorKind::ForeignHandle,
    )
}

/// A server in the sandbox answers at the endpoint, each at its own.
pub async fn a_server_answers_at_its_endpoint(context: &Context) -> Outcome {
    let handle = context.create(&context.spec().with_ports([8080, 8081])?).await?;
    for port in [8080, 8081] {
        let line = format!(
            "mkdir -p /tmp/{port} && cd /tmp/{port} && echo port {port} > index.html && {{ {} ; }} >/dev/null 2>&1 &",
            context.server(port)
        );
        context.stdout(&handle, ExecOptions::new(line)).await?;
    }
    for port in [8080, 8081] {
        let endpoint = endpoints(context)?.endpoint(&handle, port).await?;
        let answer = fetch_when_up(endpoint.endpoint()).await?;
        holds(
            format!("`{answer}` is the answer of port {port}"),
            answer.contains(&format!("port {port}")),
        )?;
    }
    Ok(())
}

/// Asks until something answers, for at most two minutes: a published port accepts before the server listens.
async fn fetch_when_up(url: &str) -> Result<String, Failure> {
    let address = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
    let deadline = tokio::time::Instant::now() + Duration::from_secs(120);
    loop {
        match tokio::time::timeout(Duration::from_secs(20), fetch(address)).await {
            Ok(Ok(answer)) if !answer.is_empty() => return Ok(answer),
            last if tokio::time::Instant::now() >= deadline => {
                return Err(Failure::new(format!("`{url}` does not answer: {last:?}")));
            }
            _ => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn fetch(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream
        .write_all(format!("GET /index.html HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes())
        .await?;
    let mut answer = Vec::new();
    stream.take(64 * 1024).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

cases!("endpoint":
    declared_ports_have_urls_of_their_own needs ENDPOINT,
    two_sandboxes_may_declare_one_port needs ENDPOINT,
    an_undeclared_port_is_refused needs ENDPOINT,
    a_removed_sandbox_has_no_endpoint needs ENDPOINT,
    a_foreign_handle_has_no_endpoint needs ENDPOINT,
    a_server_answers_at_its_endpoint needs Need::Server,
);
