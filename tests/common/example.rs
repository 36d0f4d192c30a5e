//! Running an example of this project as a user does, and a look at what it leaves.
#![allow(dead_code, reason = "every test program uses another part of it")]
#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use bollard::Docker;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListNetworksOptionsBuilder, ListVolumesOptionsBuilder,
};
use tokio::process::Command;

/// Building the example is part of it where only this test was asked for.
const DEADLINE: Duration = Duration::from_secs(1200);

/// What came of an example.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) table: String,
    pub(crate) errors: String,
}

/// An example, with the same features as this test has, so that nothing is compiled again.
pub(crate) fn command(name: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--offline", "--example", name]);
    if cfg!(feature = "conformance") {
        cargo.arg("--all-features");
    }
    cargo
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    cargo
}

/// Waits for its end.
pub(crate) async fn ended(mut cargo: Command) -> Ended {
    let output = tokio::time::timeout(DEADLINE, cargo.output())
        .await
        .expect("the example ends")
        .unwrap();
    Ended {
        code: output.status.code(),
        table: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs an example and looks that nothing of it is left.
pub(crate) async fn example(docker: &Docker, name: &str, arguments: &[&str]) -> Ended {
    let run = format!("example-test-{}", uuid::Uuid::new_v4().simple());
    let mut cargo = command(name);
    cargo.arg("--").args(arguments).env("GYM_SANDBOX_RUN", &run);
    let ended = ended(cargo).await;
    let left = left_of_run(docker, &run).await;
    assert!(left.is_empty(), "left on the engine: {left:?}");
    ended
}

/// Containers, networks and volumes of a run that are there.
pub(crate) async fn left_of_run(docker: &Docker, run: &str) -> Vec<String> {
    let filters = HashMap::from([("label", vec![format!("gym-sandbox.run={run}")])]);
    let containers = ListContainersOptionsBuilder::new()
        .all(true)
        .filters(&filters)
        .build();
    let containers = docker.list_containers(Some(containers)).await.unwrap();
    let networks = ListNetworksOptionsBuilder::new().filters(&filters).build();
    let networks = docker.list_networks(Some(networks)).await.unwrap();
    let volumes = ListVolumesOptionsBuilder::new().filters(&filters).build();
    let volumes = docker.list_volumes(Some(volumes)).await.unwrap();
    let containers = containers
        .into_iter()
        .flat_map(|container| container.names.unwrap_or_default());
    let networks = networks.into_iter().filter_map(|network| network.name);
    let volumes = volumes
        .volumes
        .unwrap_or_default()
        .into_iter()
        .map(|volume| volume.name);
    containers.chain(networks).chain(volumes).collect()
}

/// Copies a folder.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The engine. None, with a word about it, where there is none and that is allowed.
pub(crate) async fn engine() -> Option<Docker> {
    let reached = async { Docker::connect_with_defaults()?.negotiate_version().await };
    match reached.await {
        Ok(docker) => Some(docker),
        Err(error) if std::env::var_os("SANDBOX_REQUIRE_DOCKER").is_some() => {
            panic!("no engine answers: {error}")
        }
        Err(error) => {
            eprintln!("skipped, no engine answers: {error}");
            None
        }
    }
}
