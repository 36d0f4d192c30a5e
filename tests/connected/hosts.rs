//! Names in the hosts file of a sandbox: many, at once, and in either case.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use gym_sandbox::{AsyncSandbox, ErrorKind, PathProblem, SandboxReason, SandboxSpec};

use crate::both_paths;
use crate::common::{BUSYBOX, DEBIAN, docker_with};

fn names(names: impl IntoIterator<Item = String>, last: u8) -> BTreeMap<String, IpAddr> {
    let address = IpAddr::V4(Ipv4Addr::new(10, 9, 8, last));
    names.into_iter().map(|name| (name, address)).collect()
}

async fn count(sandbox: &AsyncSandbox, pattern: &str) -> String {
    let result = sandbox.exec(["grep", "-c", pattern, "/etc/hosts"]).await.unwrap();
    result.stdout().unwrap_or_default().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_names_can_be_set_and_set_again() {
    for config in both_paths() {
        let Some(test) = docker_with(config).await else {
            return;
        };
        for image in [DEBIAN, BUSYBOX] {
            let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(SandboxSpec::new(image));
            sandbox.start().await.unwrap();
            let many = |last| {
                names(
                    (0..4000).map(|number| format!("name-{number}.of.a.long.domain.internal")),
                    last,
                )
            };
            sandbox.set_hosts(&many(1)).await.unwrap();
            sandbox.set_hosts(&many(2)).await.unwrap();
            assert_eq!(count(&sandbox, "^10.9.8.1").await, "0", "{image}");
            assert_eq!(count(&sandbox, "^10.9.8.2").await, "4000", "{image}");
            assert_ne!(count(&sandbox, "localhost").await, "0", "{image}");
            sandbox.stop().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_set_at_once_are_all_set_and_one_in_another_case_is_the_same() {
    for config in both_paths() {
        let Some(test) = docker_with(config).await else {
            return;
        };
        let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(SandboxSpec::new(BUSYBOX));
        sandbox.start().await.unwrap();
        let each: Vec<_> = (0..8)
            .map(|number| names([format!("at-once-{number}")], 3))
            .collect();
        let set = futures::future::join_all(each.iter().map(|one| sandbox.set_hosts(one))).await;
        assert!(set.iter().all(Result::is_ok), "{set:?}");
        assert_eq!(count(&sandbox, "at-once-").await, "8");
        sandbox.set_hosts(&names(["db".to_owned()], 4)).await.unwrap();
        sandbox.set_hosts(&names(["DB".to_owned()], 5)).await.unwrap();
        assert_eq!(count(&sandbox, "^10.9.8.4").await, "0");
        assert_eq!(count(&sandbox, "^10.9.8.5").await, "1");
        sandbox.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hosts_file_that_can_not_be_read_is_left_as_it_is() {
    for config in both_paths() {
        let Some(test) = docker_with(config).await else {
            return;
        };
        let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(SandboxSpec::new(DEBIAN));
        sandbox.start().await.unwrap();
        let without = sandbox
            .exec("cp /etc/hosts /tmp/before && rm -f /bin/grep /usr/bin/grep")
            .await
            .unwrap();
        assert!(without.is_success(), "{without:?}");
        let error = sandbox.set_hosts(&names(["db".to_owned()], 6)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{}", error.report());
        let same = sandbox
            .exec("[ \"$(cat /etc/hosts)\" = \"$(cat /tmp/before)\" ]")
            .await
            .unwrap();
        assert!(same.is_success(), "{same:?}");
        sandbox.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hosts_file_that_is_read_only_or_of_a_paused_sandbox_is_said_to_be_so() {
    for config in both_paths() {
        let Some(test) = docker_with(config).await else {
            return;
        };
        let spec = SandboxSpec::new(BUSYBOX).with_provider_option("read_only", true);
        let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(spec);
        sandbox.start().await.unwrap();
        let error = sandbox.set_hosts(&names(["db".to_owned()], 7)).await.unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::Path(PathProblem::ReadOnly),
            "{}",
            error.report()
        );
        let hint = error.hint().unwrap();
        assert!(hint.contains("extra_hosts") && hint.contains("aliases"), "{hint}");
        sandbox.stop().await.unwrap();

        let sandbox = AsyncSandbox::new(test.provider.clone()).with_spec(SandboxSpec::new(BUSYBOX));
        sandbox.start().await.unwrap();
        sandbox.pause().await.unwrap();
        let error = sandbox.set_hosts(&names(["db".to_owned()], 8)).await.unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::Sandbox(SandboxReason::Paused),
            "{}",
            error.report()
        );
        assert!(error.hint().unwrap().contains("resume"));
        sandbox.resume().await.unwrap();
        sandbox.stop().await.unwrap();
    }
}
