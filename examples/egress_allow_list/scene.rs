//! The networks and sandboxes of the example, all of them removed at its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gym_sandbox::container::{IpPool, NetworkSpec};
use gym_sandbox::docker::{DockerConfig, DockerProvider};
use gym_sandbox::provider::ContainersProvider;
use gym_sandbox::{AsyncSandbox, ExecOptions, SandboxProvider, SandboxSpec, ServiceSpec, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::common::Failure;

/// A server that has begun answers within this.
const PATIENCE: Duration = Duration::from_secs(60);

const PORT: u16 = 8080;

/// Gets a URL, through a proxy where one is named.
const FETCH: &str = "
import sys, urllib.request as r
proxies = {'http': sys.argv[2]} if sys.argv[2] else {}
opener = r.build_opener(r.ProxyHandler(proxies))
sys.stdout.write(opener.open(sys.argv[1], timeout=5).read(4096).decode())
";

/// A sandbox of the scene.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Actor(usize);

pub(crate) struct Scene {
    provider: Arc<DockerProvider>,
    image: String,
    network: String,
    /// The bridge's own address, which is the engine's machine.
    bridge: String,
    actors: Vec<AsyncSandbox>,
    listener: Option<JoinHandle<()>>,
}

impl Scene {
    pub(crate) async fn new(image: &str) -> Result<Self, Failure> {
        let provider = Arc::new(DockerProvider::connect(DockerConfig::default()).await?);
        let (network, bridge) = internal_network(&provider).await?;
        println!("an internal network at {bridge}, and one gateway in it; from a sandbox in it:");
        Ok(Self {
            provider,
            image: image.to_owned(),
            network,
            bridge,
            actors: Vec::new(),
            listener: None,
        })
    }

    async fn start(&mut self, networks: Value) -> Result<Actor, Failure> {
        let spec = SandboxSpec::new(self.image.as_str())
            .with_provider_option("pull_policy", "never")
            .with_provider_option("network", networks);
        let sandbox =
            AsyncSandbox::new(Arc::clone(&self.provider) as Arc<dyn SandboxProvider>).with_spec(spec);
        sandbox.start().await?;
        self.actors.push(sandbox);
        Ok(Actor(self.actors.len() - 1))
    }

    /// Serves a page that says `name`, and gives its URL.
    async fn serve(&mut self, networks: Value, name: &str) -> Result<String, Failure> {
        let actor = self.start(networks).await?;
        let sandbox = &self.actors[actor.0];
        sandbox.write_file("/www/index.html", name.to_owned()).await?;
        let port = PORT.to_string();
        let server = ["python3", "-m", "http.server", &port, "-d", "/www"];
        sandbox.start_service(ServiceSpec::new("server", server)).await?;
        self.until_reached(actor, &format!("http://127.0.0.1:{PORT}/"))
            .await?;
        let address = self.actors[actor.0].network_address().await?;
        Ok(format!("http://{address}:{PORT}/"))
    }

    /// A server that is outside of the internal network.
    pub(crate) async fn server(&mut self, name: &str) -> Result<String, Failure> {
        self.serve("bridge".into(), name).await
    }

    /// Another sandbox in it.
    pub(crate) async fn neighbour(&mut self) -> Result<String, Failure> {
        let network = format!("name={},alias=neighbour", self.network);
        self.serve(network.into(), "neighbour").await?;
        Ok(format!("http://neighbour:{PORT}/"))
    }

    /// The gateway is in both networks; in the internal one it has a name. Its list has one entry.
    pub(crate) async fn gateway(&mut self, allowed: &str) -> Result<String, Failure> {
        let networks = vec![
            "bridge".to_owned(),
            format!("name={},alias=gateway", self.network),
        ];
        let actor = self.start(networks.into()).await?;
        let sandbox = &self.actors[actor.0];
        sandbox
            .write_file("/gateway.py", include_str!("gateway.py"))
            .await?;
        let entry = allowed.trim_start_matches("http://").trim_end_matches('/');
        let port = PORT.to_string();
        let program = ["python3", "/gateway.py", &port, entry];
        sandbox
            .start_service(ServiceSpec::new("gateway", program))
            .await?;
        let gateway = format!("http://gateway:{PORT}/");
        let deadline = Instant::now() + PATIENCE;
        let own = format!("http://127.0.0.1:{PORT}/");
        while self.fetch(actor, allowed, Some(&own)).await?.is_none() {
            if Instant::now() > deadline {
                return Err("the gateway does not answer".into());
            }
        }
        Ok(gateway)
    }

    /// A sandbox that is in the internal network alone.
    pub(crate) async fn worker(&mut self, alias: &str) -> Result<Actor, Failure> {
        let network = format!("name={},alias={alias}", self.network);
        self.start(network.into()).await
    }

    /// A sandbox that is in no network.
    pub(crate) async fn alone(&mut self) -> Result<Actor, Failure> {
        self.start("none".into()).await
    }

    /// A server on all addresses of this machine; its URL by the bridge's own address.
    pub(crate) async fn service_of_the_host(&mut self) -> Result<String, Failure> {
        let listener = TcpListener::bind("0.0.0.0:0").await?;
        let port = listener.local_addr()?.port();
        self.listener = Some(tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 1024];
                let answer = "HTTP/1.0 200 OK\r\n\r\nof the host\n";
                // Whoever asks may go away at any moment.
                if stream.read(&mut request).await.is_ok() {
                    let _sent = stream.write_all(answer.as_bytes()).await;
                }
            }
        }));
        Ok(format!("http://{}:{port}/", self.bridge))
    }

    /// What a sandbox gets from a URL; none when it can't reach it, or is refused.
    pub(crate) async fn fetch(
        &self,
        actor: Actor,
        url: &str,
        through: Option<&str>,
    ) -> Result<Option<String>, Failure> {
        let argv = ["python3", "-c", FETCH, url, through.unwrap_or_default()];
        let options = ExecOptions::new(argv).with_timeout(Duration::from_secs(60));
        let result = self.actors[actor.0].exec_with(options).await?;
        if result.error_type.is_some() {
            return Err(format!("`{url}` could not be tried: {result:?}").into());
        }
        Ok(result.stdout().filter(|_| result.return_code == 0))
    }

    async fn until_reached(&self, actor: Actor, url: &str) -> Result<(), Failure> {
        let deadline = Instant::now() + PATIENCE;
        while self.fetch(actor, url, None).await?.is_none() {
            if Instant::now() > deadline {
                return Err(format!("`{url}` does not answer").into());
            }
        }
        Ok(())
    }

    /// Removes everything, and says the first thing that could not be.
    pub(crate) async fn remove(mut self) -> Result<(), Failure> {
        let mut outcome = Ok(());
        if let Some(listener) = self.listener.take() {
            listener.abort();
        }
        for sandbox in &self.actors {
            outcome = outcome.and(sandbox.stop().await);
        }
        outcome = outcome.and(self.provider.remove_network(&self.network).await);
        outcome.and(self.provider.aclose().await).map_err(Failure::from)
    }
}

/// Makes it in a subnet that is chosen here, so that the bridge's own address is known.
async fn internal_network(provider: &DockerProvider) -> Result<(String, String), Failure> {
    // Two who run it at once have a network each.
    let name = format!("egress-allow-list-{}", uuid::Uuid::new_v4().simple());
    let mut spec = NetworkSpec::new(name);
    spec.internal = true;
    let mut last = None;
    for _ in 0..20 {
        let bytes = *uuid::Uuid::new_v4().as_bytes();
        let prefix = format!("10.{}.{}", 200 + bytes[0] % 50, bytes[1]);
        let bridge = format!("{prefix}.1");
        spec.pools = vec![IpPool {
            subnet: Some(format!("{prefix}.0/28")),
            gateway: Some(bridge.clone()),
            ..IpPool::default()
        }];
        match provider.create_network(&spec).await {
            Ok(id) => return Ok((id, bridge)),
            // Somebody else may have the subnet.
            Err(error) => last = Some(error),
        }
    }
    Err(last.map_or_else(|| "no subnet is free".into(), Failure::from))
}
