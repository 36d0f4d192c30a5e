//! What the tests of this program share: providers that sweep one run only, and what the engine has of it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bollard::query_parameters::{ListNetworksOptionsBuilder, ListVolumesOptionsBuilder, RemoveVolumeOptions};
use gym_sandbox::docker::{DockerConfig, DockerProvider};
use gym_sandbox::provider::SweepProvider;
use gym_sandbox::{SandboxFilter, SecondLook, SweepOptions, SweepReport};

use crate::common::{client, containers_with, engine_is_required};

/// How long anything may take that a test waits for, several calls of a busy engine among it.
pub(crate) const LIMIT: Duration = Duration::from_secs(180);

/// A lease that lets a client go quickly: length and renewal. Only of clients that are to be seen dead, or that are seen to
/// live by their file: a busy engine takes longer for a renewal.
pub(crate) const SHORT: (f64, f64) = (2.0, 0.5);

/// A lease that a busy engine renews in time, though it is renewed as often.
pub(crate) const STEADY: (f64, f64) = (20.0, 0.5);

/// Longer than that lasts without a renewal, and a grace of a second.
pub(crate) const BEYOND_STEADY: Duration = Duration::from_secs(22);

/// A lease that is not renewed in any test.
pub(crate) const LASTING: (f64, f64) = (300.0, 60.0);

/// The clients of one test, and what is left of them. Nothing may be, when it is dropped.
pub(crate) struct Run {
    pub(crate) name: String,
    pub(crate) provider: DockerProvider,
}

/// Connects a sweeper with this grace, or says why the test is skipped.
pub(crate) async fn run_with_grace(grace: f64) -> Option<Run> {
    run_with(grace, |_| {}).await
}

pub(crate) async fn run_with(grace: f64, change: impl FnOnce(&mut DockerConfig)) -> Option<Run> {
    let mut config = DockerConfig::default();
    config.lease.grace = Duration::from_secs_f64(grace);
    change(&mut config);
    match DockerProvider::connect(config).await {
        Ok(provider) => Some(Run {
            name: format!("leases-{}", uuid::Uuid::new_v4().simple()),
            provider,
        }),
        Err(error) => {
            assert!(!engine_is_required(), "SANDBOX_REQUIRE_DOCKER=1 and {error:?}");
            eprintln!("skipped: no engine answers: {}", error.report());
            None
        }
    }
}

impl Run {
    pub(crate) fn filter(&self) -> SandboxFilter {
        SandboxFilter::default().with_run(self.name.as_str())
    }

    /// Sweeps what belongs to this test, and nothing else: others use the engine, too.
    pub(crate) async fn sweep(&self, second_look: SecondLook) -> SweepReport {
        let options = SweepOptions::default()
            .with_second_look(second_look)
            .with_filter(self.filter());
        let report = self.provider.sweep(&options).await.unwrap();
        assert_eq!(report.failed, [], "{report:?}");
        report
    }

    /// Everything that the engine has of this test, asked for beside the library.
    pub(crate) async fn objects(&self) -> Vec<String> {
        objects_of("run", &self.name).await
    }

    /// Its leases.
    pub(crate) async fn leases(&self) -> Vec<String> {
        let mut leases = volumes_of("run", &self.name).await;
        leases.retain(|name| name.starts_with("gym-sandbox-lease-"));
        leases
    }

    /// What somebody does who prunes volumes.
    pub(crate) async fn prune_leases(&self) {
        let client = client().await.unwrap();
        for lease in self.leases().await {
            // It may have been renewed in this moment.
            let _gone = client.remove_volume(&lease, None::<RemoveVolumeOptions>).await;
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let name = self.name.clone();
        let left = std::thread::spawn(move || {
            tokio::runtime::Runtime::new().unwrap().block_on(async {
                let left = objects_of("run", &name).await;
                let client = client().await.unwrap();
                for object in &left {
                    let options = bollard::query_parameters::RemoveContainerOptionsBuilder::new()
                        .force(true)
                        .v(true)
                        .build();
                    let _removed = client.remove_container(object, Some(options)).await;
                    let _removed = client.remove_network(object).await;
                    let _removed = client.remove_volume(object, None::<RemoveVolumeOptions>).await;
                }
                left
            })
        })
        .join()
        .unwrap();
        if !left.is_empty() {
            assert!(std::thread::panicking(), "left on the engine: {left:?}");
            eprintln!("left on the engine: {left:?}");
        }
    }
}

/// The names of all containers, networks and volumes with one of our labels.
pub(crate) async fn objects_of(suffix: &str, value: &str) -> Vec<String> {
    let key = format!("gym-sandbox.{suffix}");
    let mut objects = containers_with(&key, value).await.unwrap();
    let filters = HashMap::from([("label", vec![format!("{key}={value}")])]);
    let networks = ListNetworksOptionsBuilder::new().filters(&filters).build();
    let networks = client().await.unwrap().list_networks(Some(networks)).await;
    objects.extend(networks.unwrap().into_iter().filter_map(|network| network.name));
    objects.extend(volumes_of(suffix, value).await);
    objects
}

async fn volumes_of(suffix: &str, value: &str) -> Vec<String> {
    let filters = HashMap::from([("label", vec![format!("gym-sandbox.{suffix}={value}")])]);
    let options = ListVolumesOptionsBuilder::new().filters(&filters).build();
    let volumes = client().await.unwrap().list_volumes(Some(options)).await.unwrap();
    let names = volumes.volumes.unwrap_or_default().into_iter();
    names.map(|volume| volume.name).collect()
}

/// Polls until something holds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let deadline = Instant::now() + LIMIT;
    while !holds().await {
        assert!(Instant::now() < deadline, "not in {LIMIT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Sweeps until nothing of a run but this is left, and fails when it takes too long. A sweep that comes too early
/// removes nothing.
pub(crate) async fn swept_down_to(run: &Run, rest: usize) {
    until("a sweep removes what is left", || async {
        run.sweep(SecondLook::Never).await;
        run.objects().await.len() <= rest
    })
    .await;
}
