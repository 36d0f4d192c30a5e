//! Projects under rough conditions: two starts of one name, many services, checks that never end
//! or never pass.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bollard::models::{ContainerCreateBody, NetworkCreateRequest, VolumeCreateRequest};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder, RemoveVolumeOptions,
};
use gym_sandbox::ErrorKind;
use gym_sandbox::compose::{
    ComposeEvent, DownOptions, PlanOptions, ProgressCallback, ProjectNetworks, ServiceProgress, compose_down,
};

use crate::common::{BUSYBOX, config, docker, docker_with};
use crate::proxy::{Cut, Proxy};
use crate::support::{assert_gone, beside, engine, left_of, printed, project, provider, story, unique};

/// Tells "bounded" from "for ever" on a loaded machine.
const BOUNDED: Duration = Duration::from_secs(240);

const WITH_VOLUME: &str = "
services:
  a: {image: 'gym-sandbox/busybox:test', command: [sh, -c, 'echo kept >/data/file; exec sleep 300'], volumes: ['data:/data']}
  b: {image: 'gym-sandbox/busybox:test', command: sleep 300, volumes: ['data:/data']}
volumes: {data: }
";

#[tokio::test]
async fn b33_two_starts_of_one_name_at_once_do_not_take_from_each_other() {
    let Some(test) = docker().await else { return };
    for _ in 0..4 {
        let name = unique();
        let [first, second] = [(), ()].map(|()| project(&test, WITH_VOLUME).with_project_name(name.as_str()));
        let (one, other) = tokio::join!(first.start(), second.start());
        let mut up = 0;
        for (started, project) in [(one.map(|_| ()), &first), (other.map(|_| ()), &second)] {
            match started {
                Ok(()) => {
                    up += 1;
                    let line = "until test -s /data/file; do sleep 0.1; done; cat /data/file";
                    assert_eq!(printed(project, "b", line).await, "kept");
                    // One network, one volume, two containers: nothing of the other start.
                    assert_eq!(left_of(&name).await.len(), 4);
                    project.stop().await.unwrap();
                }
                Err(error) => {
                    let said = story(&error);
                    assert_eq!(error.kind(), ErrorKind::Conflict, "{said}");
                    assert!(error.to_string().contains(&name), "{said}");
                    // Whether it met the other at its look around or at its creates, it says what to do.
                    let hint = error.hint().unwrap_or_default();
                    assert!(
                        hint.contains("wait") && hint.contains("another project name"),
                        "{said}"
                    );
                }
            }
        }
        assert!(up <= 1, "{name} was started twice");
        assert_gone(&name).await;
    }
}

fn make_beside(name: &str, labels: HashMap<String, String>) {
    let name = name.to_owned();
    beside(async move {
        let options = CreateContainerOptionsBuilder::new().name(&name).build();
        let body = ContainerCreateBody {
            image: Some(BUSYBOX.to_owned()),
            labels: Some(labels),
            ..ContainerCreateBody::default()
        };
        engine().create_container(Some(options), body).await.unwrap();
    });
}

#[tokio::test]
async fn b33_a_start_that_another_one_overtakes_says_who_is_at_work_and_what_to_do() {
    let Some(test) = docker().await else { return };
    let yaml = "
services:
  first: {image: 'gym-sandbox/busybox:test', command: sleep 300}
  second: {image: 'gym-sandbox/busybox:test', command: sleep 300, depends_on: [first]}
";
    for is_of_the_project in [true, false] {
        let name = unique();
        let taken = format!("{name}-second-1");
        let (project_of, container) = (name.clone(), taken.clone());
        // Between the creates of the two services somebody makes what the second would be called.
        let callback = ProgressCallback::new(move |event| {
            if let ComposeEvent::Service {
                service,
                progress: ServiceProgress::Created,
            } = event
                && service == "first"
            {
                let label = ("com.docker.compose.project".to_owned(), project_of.clone());
                make_beside(
                    &container,
                    is_of_the_project.then_some(label).into_iter().collect(),
                );
            }
        });
        let project = project(&test, yaml)
            .with_project_name(name.as_str())
            .with_progress(callback);
        let error = project.start().await.unwrap_err();
        let options = RemoveContainerOptionsBuilder::new().force(true).build();
        engine().remove_container(&taken, Some(options)).await.unwrap();
        let said = story(&error);
        assert_eq!(error.kind(), ErrorKind::Conflict, "{said}");
        assert!(
            said.contains(&taken) && said.contains("another project name"),
            "{said}"
        );
        let message = error.to_string();
        let is_told = message.contains(&format!("another start of project `{name}` is at work"));
        assert_eq!(is_told, is_of_the_project, "{said}");
        assert!(is_told || message.contains("service `second`"), "{said}");
        assert_gone(&name).await;
    }
}

#[tokio::test]
async fn b33_a_project_of_the_name_that_docker_compose_has_made_is_told_from_one_of_ours() {
    let Some(test) = docker().await else { return };
    let name = unique();
    let container = format!("{name}-a-1");
    let label = ("com.docker.compose.project".to_owned(), name.clone());
    make_beside(&container, HashMap::from([label]));
    let project = project(&test, WITH_VOLUME).with_project_name(name.as_str());
    let error = project.start().await.unwrap_err();
    let options = RemoveContainerOptionsBuilder::new().force(true).build();
    engine()
        .remove_container(&container, Some(options))
        .await
        .unwrap();
    let said = story(&error);
    assert_eq!(error.kind(), ErrorKind::Conflict, "{said}");
    assert!(
        said.contains(&container) && said.contains("`docker compose down`"),
        "{said}"
    );
    assert_gone(&name).await;
}

#[tokio::test]
async fn a_volume_that_is_removed_under_a_start_and_made_again_by_the_engine_goes_with_the_project() {
    let Some(test) = docker().await else { return };
    let yaml = "
services:
  first: {image: 'gym-sandbox/busybox:test', command: sleep 300}
  second: {image: 'gym-sandbox/busybox:test', command: sleep 300, depends_on: [first], volumes: ['data:/data']}
volumes: {data: }
";
    for by_name in [false, true] {
        let name = unique();
        let volume = format!("{name}_data");
        let body = VolumeCreateRequest {
            name: Some(volume.clone()),
            ..VolumeCreateRequest::default()
        };
        engine().create_volume(body).await.unwrap();
        let gone = volume.clone();
        // It was there when it was looked for, and is not when the container that mounts it is made.
        let callback = ProgressCallback::new(move |event| {
            if let ComposeEvent::Service {
                service,
                progress: ServiceProgress::Created,
            } = event
                && service == "first"
            {
                let gone = gone.clone();
                let remove = None::<RemoveVolumeOptions>;
                beside(async move { engine().remove_volume(&gone, remove).await.unwrap() });
            }
        });
        let project = project(&test, yaml)
            .with_project_name(name.as_str())
            .with_progress(callback);
        project.start().await.unwrap();
        if by_name {
            compose_down(&*provider(&test), &name, &DownOptions::default())
                .await
                .unwrap();
        }
        project.stop().await.unwrap();
        assert!(
            engine().inspect_volume(&volume).await.is_err(),
            "by name: {by_name}"
        );
        assert_eq!(left_of(&name).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn b33_a_second_network_of_the_name_holds_up_a_start_until_it_goes() {
    let Some(proxy) = Proxy::start().await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    let mut behind = config();
    behind.host = Some(proxy.address());
    let Some(test) = docker_with(behind).await else {
        return;
    };
    let name = unique();
    // As another process does that begins the same project: between this one's creates and its starts.
    let (sender, made) = std::sync::mpsc::channel();
    let network = format!("{name}_default");
    let callback = ProgressCallback::new(move |event| {
        if let ComposeEvent::Service { progress, .. } = event
            && *progress == ServiceProgress::Created
        {
            let name = network.clone();
            let second = beside(async move {
                let options = NetworkCreateRequest {
                    name,
                    ..NetworkCreateRequest::default()
                };
                // Newer engines have one of a name.
                engine().create_network(options).await.ok().map(|made| made.id)
            });
            sender.send(second).unwrap();
        }
    });
    let yaml = "services: {a: {image: 'gym-sandbox/busybox:test', command: sleep 300}}";
    let project = project(&test, yaml)
        .with_project_name(name.as_str())
        .with_progress(callback);
    // The first start is passed on as it is, and fails. The next one comes to the engine when the other network is gone,
    // however long its removal takes.
    proxy.cut("/start", Cut::AtOutput("what no engine says"));
    proxy.cut("/start", Cut::UntilReleased);
    let giving_way = async {
        let deadline = Instant::now() + BOUNDED;
        let second = loop {
            match made.try_recv() {
                Ok(second) => break second,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
            assert!(Instant::now() < deadline);
        };
        let Some(second) = second else {
            proxy.release();
            return;
        };
        while proxy.requests("/start") < 2 {
            assert!(Instant::now() < deadline, "a start that failed is not repeated");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        engine().remove_network(&second).await.unwrap();
        proxy.release();
    };
    let (started, ()) = tokio::join!(project.start(), giving_way);
    started.unwrap();
    project.stop().await.unwrap();
    assert_eq!(left_of(&name).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_network_to_share_that_is_not_there_or_is_none_is_refused_before_anything_is_made() {
    let Some(test) = docker().await else { return };
    let missing = unique();
    for (network, kind, hint) in [
        (missing.as_str(), ErrorKind::NotFound, "docker network create"),
        ("host", ErrorKind::InvalidArgument, "leave the option"),
        ("container:x", ErrorKind::InvalidArgument, "leave the option"),
    ] {
        let mut options = PlanOptions::default();
        options.networks = ProjectNetworks::Shared(network.to_owned());
        let project = project(&test, WITH_VOLUME).with_plan_options(options);
        let error = project.start().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{}", story(&error));
        assert!(error.to_string().contains(&format!("`{network}`")), "{error}");
        assert!(
            error.hint().unwrap_or_default().contains(hint),
            "{}",
            story(&error)
        );
        if let Some(name) = project.project() {
            assert_eq!(left_of(&name).await, Vec::<String>::new());
        }
    }
}

#[tokio::test]
async fn thirty_services_come_up_and_go() {
    let Some(test) = docker().await else { return };
    let services: Vec<String> = (0..30)
        .map(|number| {
            format!(
                "  s{number}: {{image: 'gym-sandbox/busybox:test', command: sleep 300, network_mode: none}}"
            )
        })
        .collect();
    let project = project(&test, &format!("services:\n{}\n", services.join("\n")));
    project.start().await.unwrap();
    assert_eq!(project.services().len(), 30);
    let name = project.project().unwrap();
    project.stop().await.unwrap();
    assert_eq!(left_of(&name).await, Vec::<String>::new());
}

#[tokio::test]
async fn b40_a_health_check_that_never_ends_or_never_passes_fails_the_start() {
    let Some(test) = docker().await else { return };
    // What never ends has a time that is over; what ends has a time in which any machine has run it. What the engine may be
    // late by grows with both.
    for (check, bounds, said) in [
        (
            "sleep 1000",
            "timeout: 20s, retries: 1",
            "its health check did not end by itself and said:",
        ),
        (
            "echo no luck >&2; exit 7",
            "timeout: 60s, retries: 2",
            "its health check ended with 7 and said:\nno luck",
        ),
    ] {
        let yaml = format!(
            "services: {{a: {{image: 'gym-sandbox/busybox:test', command: sleep 300, \
             healthcheck: {{test: '{check}', interval: 1s, {bounds}}}}}}}"
        );
        let project = project(&test, &yaml);
        let began = Instant::now();
        let error = project.start().await.unwrap_err();
        assert!(began.elapsed() < BOUNDED, "{:?}", began.elapsed());
        assert!(story(&error).contains("`a` is unhealthy"), "{}", story(&error));
        assert!(story(&error).contains(said), "{}", story(&error));
        assert_eq!(left_of(&project.project().unwrap()).await, Vec::<String>::new());
    }
}
