//! Background services where images and users differ, and from another process (L16).

use std::time::Duration;

use gym_sandbox::docker::{DockerConfig, DockerProvider};
use gym_sandbox::{AsyncSandbox, ErrorKind, SandboxSpec, ServiceSpec, ServiceStatus};

use crate::common::{BUSYBOX, DEBIAN, STATIC, busybox, docker, docker_with};
use crate::{both_paths, until};

#[tokio::test(flavor = "multi_thread")]
async fn l16_a_service_is_found_and_stopped_by_another_process() {
    for config in both_paths() {
        let Some(test) = docker_with(config.clone()).await else {
            return;
        };
        for image in [DEBIAN, "gym-sandbox/user:test"] {
            let owner = AsyncSandbox::new(test.provider.clone()).with_spec(SandboxSpec::new(image));
            owner.start().await.unwrap();
            let line = "id -u; sleep 31881 & wait";
            owner.start_service(ServiceSpec::new("svc", line)).await.unwrap();
            let descriptor = owner.serialize(None).await.unwrap();
            let other = std::sync::Arc::new(DockerProvider::connect(config.clone()).await.unwrap());
            let borrower = AsyncSandbox::connect(other, &descriptor).await.unwrap();
            assert_eq!(
                borrower.service_status("svc").await.unwrap(),
                Some(ServiceStatus::Running),
                "{image}"
            );
            let id = owner.exec("id -u").await.unwrap().stdout().unwrap();
            until("it has printed", async || {
                borrower.service_logs("svc").await.unwrap().text() == id
            })
            .await;
            let stopped = borrower
                .stop_service("svc", Duration::from_secs(20))
                .await
                .unwrap();
            assert!(
                matches!(stopped, Some(ServiceStatus::Exited { .. })),
                "{stopped:?}"
            );
            assert_eq!(owner.service_status("svc").await.unwrap(), stopped);
            let left = owner
                .exec("cat /proc/[0-9]*/cmdline | tr '\\000' ' '")
                .await
                .unwrap();
            assert!(!left.stdout().unwrap().contains("31881 "), "{left:?}");
            owner.stop().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l16_a_service_of_another_user_is_stopped_in_a_hardened_sandbox() {
    for config in both_paths() {
        let Some(test) = docker_with(config).await else {
            return;
        };
        let spec = busybox().with_provider_option("preset", "hardened");
        let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(spec);
        sandbox.start().await.unwrap();
        let service = ServiceSpec::new("svc", ["sleep", "31882"]).with_user("nobody");
        sandbox.start_service(service).await.unwrap();
        let stopped = sandbox
            .stop_service("svc", Duration::from_secs(20))
            .await
            .unwrap();
        assert!(
            matches!(stopped, Some(ServiceStatus::Exited { .. })),
            "{stopped:?}"
        );
        sandbox.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l16_an_image_without_a_shell_has_no_services() {
    let Some(test) = docker_with(DockerConfig::default()).await else {
        return;
    };
    let spec = SandboxSpec::new(STATIC).with_entrypoint(["/static", "sleep"]);
    let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(spec);
    sandbox.start().await.unwrap();
    let error = sandbox
        .start_service(ServiceSpec::new("svc", ["/static", "sleep"]))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
    assert!(error.hint().is_some());
    sandbox.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn l16_a_service_and_its_children_outlive_the_process_tree_of_a_killed_command() {
    let Some(test) = docker().await else { return };
    let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(busybox());
    sandbox.start().await.unwrap();
    sandbox
        .start_service(ServiceSpec::new("svc", "sleep 31883 & wait"))
        .await
        .unwrap();
    let late = gym_sandbox::ExecOptions::new("sleep 31884").with_timeout(Duration::from_secs(1));
    assert_eq!(sandbox.exec_with(late).await.unwrap().return_code, 125);
    assert_eq!(
        sandbox.service_status("svc").await.unwrap(),
        Some(ServiceStatus::Running)
    );
    // Its shell may not have come to it yet.
    until("its child runs", async || {
        let processes = sandbox.exec("ps -o args | grep -cx 'sleep 31883'").await.unwrap();
        processes.stdout().as_deref() == Some("1\n")
    })
    .await;
    sandbox.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn l16_what_a_service_prints_is_kept_only_in_part() {
    let grace = Duration::from_secs(20);
    for (config, image) in both_paths().into_iter().zip([crate::common::BUSYBOX, DEBIAN]) {
        let Some(test) = docker_with(config).await else {
            return;
        };
        let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(SandboxSpec::new(image));
        sandbox.start().await.unwrap();
        let line = "echo first; head -c 48000000 /dev/zero | tr '\\000' x; echo; echo last; touch /tmp/all; sleep 1000";
        sandbox
            .start_service(ServiceSpec::new("loud", line))
            .await
            .unwrap();
        until("it has printed", async || {
            sandbox.exec("test -e /tmp/all").await.unwrap().is_success()
                && sandbox
                    .service_logs("loud")
                    .await
                    .unwrap()
                    .tail()
                    .ends_with(b"x\nlast\n")
        })
        .await;
        let log = sandbox.service_logs("loud").await.unwrap();
        assert_eq!(log.total_bytes(), 48_000_012, "{image}");
        assert!(log.head().starts_with(b"first\nxxx"), "{image}");
        assert_eq!(
            (log.head().len(), log.tail().len()),
            (8 << 20, 8 << 20),
            "{image}"
        );
        let kept = sandbox
            .exec("du -sk /tmp/.gym-sandbox-services/loud | cut -f1")
            .await
            .unwrap();
        let kept: u64 = kept.stdout().unwrap().trim().parse().unwrap();
        assert!(kept <= 31 << 10, "{image}: {kept} KiB are kept");
        sandbox.stop_service("loud", grace).await.unwrap();
        sandbox.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l16_what_an_ended_service_has_left_running_prints_nothing_into_the_next_ones_log() {
    let Some(test) = docker().await else { return };
    let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(busybox());
    sandbox.start().await.unwrap();
    let leaves = "echo began; { while :; do echo old; sleep 0.1; done; } & exit 3";
    sandbox
        .start_service(ServiceSpec::new("svc", leaves))
        .await
        .unwrap();
    let ended = Some(ServiceStatus::Exited { code: Some(3) });
    until("it has ended", async || {
        sandbox.service_status("svc").await.unwrap() == ended
    })
    .await;
    until("its child prints", async || {
        sandbox
            .service_logs("svc")
            .await
            .unwrap()
            .text()
            .starts_with("began\nold\nold\n")
    })
    .await;
    // One that has ended is no obstacle, whatever it has left.
    let next = "trap 'exit 5' TERM; for n in 1 2 3 4 5 6 7 8 9 10; do echo new; sleep 0.1; done; echo end; while :; do sleep 0.1; done";
    sandbox
        .start_service(ServiceSpec::new("svc", next))
        .await
        .unwrap();
    until("the next has printed", async || {
        sandbox
            .service_logs("svc")
            .await
            .unwrap()
            .text()
            .ends_with("end\n")
    })
    .await;
    let printed = sandbox.service_logs("svc").await.unwrap().text();
    assert_eq!(printed, format!("{}end\n", "new\n".repeat(10)));
    let stopped = sandbox
        .stop_service("svc", Duration::from_secs(20))
        .await
        .unwrap();
    assert_eq!(
        stopped,
        Some(ServiceStatus::Exited { code: Some(5) }),
        "the exit code is its own"
    );
    sandbox.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn l16_of_starts_at_once_of_one_name_one_runs() {
    for config in both_paths() {
        let Some(test) = docker_with(config).await else {
            return;
        };
        for image in [DEBIAN, BUSYBOX] {
            let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(SandboxSpec::new(image));
            sandbox.start().await.unwrap();
            let starts = (0..4).map(|_| sandbox.start_service(ServiceSpec::new("one", ["sleep", "31882"])));
            let starts = futures::future::join_all(starts).await;
            let refused: Vec<ErrorKind> = starts
                .into_iter()
                .filter_map(Result::err)
                .map(|error| error.kind())
                .collect();
            assert_eq!(refused, [ErrorKind::Conflict; 3], "{image}");
            let count = "for p in /proc/[0-9]*; do tr '\\000' ' ' <$p/cmdline | grep -qx 'sleep 31882 ' && echo x; done";
            let mut running = String::new();
            // What was started may not have become the program yet.
            until("one runs", async || {
                running = sandbox.exec(count).await.unwrap().stdout().unwrap();
                !running.is_empty()
            })
            .await;
            assert_eq!(running, "x\n", "{image}");
            // The longest grace is no time that can be waited until.
            let ended = sandbox.stop_service("one", Duration::MAX).await.unwrap();
            assert!(matches!(ended, Some(ServiceStatus::Exited { .. })), "{ended:?}");
            // What a start that was killed in the middle has left is in nobody's way.
            let left = "echo '999999 1' >/tmp/.gym-sandbox-services/one/starting";
            assert!(sandbox.exec(left).await.unwrap().is_success());
            sandbox
                .start_service(ServiceSpec::new("one", ["sleep", "31882"]))
                .await
                .unwrap();
            sandbox.stop().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l16_every_user_may_have_services_of_its_own() {
    for config in both_paths() {
        let Some(test) = docker_with(config).await else {
            return;
        };
        let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(SandboxSpec::new(DEBIAN));
        sandbox.start().await.unwrap();
        let service = |name: &str, user: &str| ServiceSpec::new(name, ["sleep", "31883"]).with_user(user);
        sandbox.start_service(service("of-root", "0")).await.unwrap();
        sandbox.start_service(service("of-user", "1000")).await.unwrap();
        assert_eq!(
            sandbox.service_status("of-user").await.unwrap(),
            Some(ServiceStatus::Running)
        );
        sandbox
            .stop_service("of-root", Duration::from_secs(20))
            .await
            .unwrap();
        let error = sandbox
            .start_service(service("of-root", "1000"))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{}", error.report());
        assert!(error.to_string().contains("of-root"), "{error}");
        sandbox.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l16_a_service_that_throws_its_environment_away_is_stopped() {
    for config in both_paths() {
        let Some(test) = docker_with(config).await else {
            return;
        };
        let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(busybox());
        sandbox.start().await.unwrap();
        for argv in [
            vec!["env", "-i", "sleep", "31884"],
            vec![
                "sh",
                "-c",
                "env -i sh -c 'sleep 31884; true' & env -i sleep 31884; true",
            ],
        ] {
            sandbox
                .start_service(ServiceSpec::new("bare", argv))
                .await
                .unwrap();
            let count = "for p in /proc/[0-9]*; do tr '\\000' ' ' <$p/cmdline | grep -qx 'sleep 31884 ' && echo x; done; true";
            until("the service runs", async || {
                sandbox.exec(count).await.unwrap().stdout().unwrap().contains('x')
            })
            .await;
            sandbox
                .stop_service("bare", Duration::from_secs(20))
                .await
                .unwrap();
            assert_eq!(sandbox.exec(count).await.unwrap().stdout().unwrap(), "");
        }
        sandbox.stop().await.unwrap();
    }
}
