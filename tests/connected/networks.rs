//! User-defined networks of sandboxes: several for one sandbox, aliases, names that are used twice, and what is internal
//! (bugs B33). The engine's default pools are for others: each network has a small subnet of its own.

use futures::future::join_all;
use gym_sandbox::container::{IpPool, NetworkSpec};
use gym_sandbox::docker::DockerProvider;
use gym_sandbox::provider::ContainersProvider;
use gym_sandbox::{ErrorKind, SandboxHandle, SandboxProvider};
use serde_json::json;

use crate::common::{DockerTest, busybox, docker};
use crate::{stdout, until};

/// Networks that are removed at the end of a test. What a panic leaves has the library's labels: the next sweep takes it.
struct Networks<'a> {
    provider: &'a DockerProvider,
    ids: Vec<String>,
}

async fn network(provider: &DockerProvider, mut spec: NetworkSpec) -> String {
    let mut last = None;
    for _ in 0..20 {
        let bytes = *uuid::Uuid::new_v4().as_bytes();
        let subnet = format!("10.{}.{}.{}/28", 200 + bytes[0] % 50, bytes[1], bytes[2] & 0xf0);
        spec.pools = vec![IpPool {
            subnet: Some(subnet),
            ..IpPool::default()
        }];
        match provider.create_network(&spec).await {
            Ok(id) => return id,
            // Another test may have the subnet.
            Err(error) => last = Some(error),
        }
    }
    panic!("no subnet is free: {last:?}");
}

impl<'a> Networks<'a> {
    async fn new(provider: &'a DockerProvider, specs: impl IntoIterator<Item = NetworkSpec>) -> Self {
        let made = specs.into_iter().map(|spec| network(provider, spec));
        Self {
            provider,
            ids: join_all(made).await,
        }
    }

    async fn remove(self) {
        for id in &self.ids {
            self.provider.remove_network(id).await.unwrap();
            // One that is gone is a success.
            self.provider.remove_network(id).await.unwrap();
        }
    }
}

fn unique() -> String {
    format!("test-net-{}", uuid::Uuid::new_v4().simple())
}

/// A sandbox in these networks, under an alias in each.
async fn within(test: &DockerTest, places: &[(&str, &str)]) -> SandboxHandle {
    let networks: Vec<String> = places
        .iter()
        .map(|(network, alias)| format!("name={network},alias={alias}"))
        .collect();
    let spec = busybox().with_provider_option("network", json!(networks));
    test.provider.create(&spec).await.unwrap()
}

/// Waits until a name answers with this text: a busy machine may take longer for it than one try.
async fn until_says(test: &DockerTest, handle: &SandboxHandle, name: &str, answer: &str) {
    let what = format!("`{name}` says {answer:?}");
    until(&what, async || says(test, handle, name).await == answer).await;
}

/// Whether a name leads anywhere: it answers with this text.
async fn says(test: &DockerTest, handle: &SandboxHandle, name: &str) -> String {
    let line = format!("timeout 10 wget -qO- http://{name}:8000/who 2>/dev/null; true");
    stdout(&test.provider, handle, &line).await
}

async fn serve(test: &DockerTest, at: &SandboxHandle, content: &str) {
    let line = format!("mkdir -p /www && echo {content} > /www/who && httpd -p 8000 -h /www");
    stdout(&test.provider, at, &line).await;
    until("it answers", async || {
        says(test, at, "127.0.0.1").await == format!("{content}\n")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b33_of_eight_creates_of_one_name_one_makes_a_network() {
    let Some(test) = docker().await else { return };
    let provider = &*test.provider;
    let name = unique();
    let made = join_all((0..8).map(|number| {
        let mut spec = NetworkSpec::new(name.as_str());
        let bytes = *uuid::Uuid::new_v4().as_bytes();
        spec.pools = vec![IpPool {
            subnet: Some(format!(
                "10.{}.{}.{}/28",
                200 + bytes[0] % 50,
                bytes[1],
                number * 16
            )),
            ..IpPool::default()
        }];
        async move { provider.create_network(&spec).await }
    }))
    .await;
    let (ids, refused): (Vec<_>, Vec<_>) = made.into_iter().partition(Result::is_ok);
    let ids: Vec<String> = ids.into_iter().map(Result::unwrap).collect();
    assert_eq!(ids.len(), 1, "{refused:?}");
    for error in refused.into_iter().map(Result::unwrap_err) {
        assert_eq!(error.kind(), ErrorKind::Conflict, "{}", error.report());
        assert!(error.to_string().contains(&name), "{error}");
    }
    let found = provider.find_networks(&name).await.unwrap();
    assert_eq!(found.iter().map(|one| &one.id).collect::<Vec<_>>(), [&ids[0]]);
    // By its id and by its name it is the same.
    let db = within(&test, &[(&ids[0], "db")]).await;
    serve(&test, &db, "served").await;
    let web = within(&test, &[(&name, "web")]).await;
    for asked in ["db", &format!("db.{name}"), db.sandbox_id().as_str()] {
        until_says(&test, &web, asked, "served\n").await;
    }
    let error = provider.remove_network(&ids[0]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "it is in use");
    provider.close(&db).await.unwrap();
    provider.close(&web).await.unwrap();
    provider.remove_network(&ids[0]).await.unwrap();
    assert!(provider.find_networks(&name).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn b33_a_sandbox_in_several_networks_has_a_name_and_an_address_in_each() {
    let Some(test) = docker().await else { return };
    let networks = Networks::new(
        &test.provider,
        [NetworkSpec::new(unique()), NetworkSpec::new(unique())],
    )
    .await;
    let [first, second] = &networks.ids[..] else {
        panic!("two networks were made");
    };
    // Before API 1.44 an engine takes one with the create; the other is joined before the start.
    let both = within(&test, &[(first, "here"), (second, "there")]).await;
    serve(&test, &both, "both").await;
    let interfaces = stdout(&test.provider, &both, "ls /sys/class/net | grep -vc '^lo$'").await;
    assert_eq!(interfaces, "2\n");
    let in_first = within(&test, &[(first, "one")]).await;
    let in_second = within(&test, &[(second, "two")]).await;
    for (handle, name, reached) in [
        (&in_first, "here", true),
        (&in_first, "there", false),
        (&in_second, "there", true),
        (&in_second, "here", false),
    ] {
        if reached {
            until_says(&test, handle, name, "both\n").await;
        } else {
            assert_eq!(says(&test, handle, name).await, "", "`{name}`");
        }
    }
    // Two networks are apart.
    serve(&test, &in_second, "second").await;
    until_says(&test, &both, "two", "second\n").await;
    assert_eq!(says(&test, &in_first, "two").await, "");
    for handle in [&both, &in_first, &in_second] {
        test.provider.close(handle).await.unwrap();
    }
    networks.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_that_two_sandboxes_have_is_either_of_them() {
    let Some(test) = docker().await else { return };
    let mut spec = NetworkSpec::new(unique());
    spec.internal = true;
    let networks = Networks::new(&test.provider, [spec]).await;
    let id = networks.ids[0].as_str();
    let (one, two) = (
        within(&test, &[(id, "db")]).await,
        within(&test, &[(id, "db")]).await,
    );
    serve(&test, &one, "one").await;
    serve(&test, &two, "two").await;
    let web = within(&test, &[(id, "web")]).await;
    for _ in 0..5 {
        let mut said = String::new();
        until("it answers", async || {
            said = says(&test, &web, "db").await;
            !said.is_empty()
        })
        .await;
        assert!(["one\n", "two\n"].contains(&said.as_str()), "{said:?}");
    }
    // By its id each is found as itself.
    let name = one.sandbox_id().as_str();
    until_says(&test, &web, name, "one\n").await;
    for handle in [&one, &two, &web] {
        test.provider.close(handle).await.unwrap();
    }
    networks.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_is_not_there_is_named_and_nothing_is_left() {
    let Some(test) = docker().await else { return };
    let networks = Networks::new(&test.provider, [NetworkSpec::new(unique())]).await;
    let none = unique();
    for places in [vec![none.as_str()], vec![networks.ids[0].as_str(), none.as_str()]] {
        let spec = busybox().with_provider_option("network", json!(places));
        let error = test.provider.create(&spec).await.unwrap_err();
        assert!(error.kind().is_create_failure(), "{}", error.report());
        assert!(
            error.to_string().contains(&format!("no network `{none}`")),
            "{}",
            error.report()
        );
        assert!(
            error
                .hint()
                .unwrap()
                .contains("make it first, as with `docker network create ")
        );
        test.provider.aclose().await.unwrap();
        assert_eq!(test.containers().await, Vec::<String>::new());
    }
    networks.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_network_by_its_name_and_its_id_is_refused_before_anything_is_made() {
    let Some(test) = docker().await else { return };
    let name = unique();
    let networks = Networks::new(
        &test.provider,
        [NetworkSpec::new(name.as_str()), NetworkSpec::new(unique())],
    )
    .await;
    let (id, other) = (networks.ids[0].as_str(), networks.ids[1].as_str());
    for twice in [
        [id, &name],
        [&name, id],
        [&name, &id[..20]],
        [id, &id[..20]],
        [id, id],
    ] {
        let spec = busybox().with_provider_option("network", json!(twice));
        let error = test.provider.create(&spec).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{}", error.report());
        let told = error.to_string();
        assert!(
            told.contains("the same network") || told.contains("named twice"),
            "{told}"
        );
        assert!(twice.iter().all(|word| told.contains(word)), "{told}");
        assert_eq!(test.containers().await, Vec::<String>::new());
    }
    let both = within(&test, &[(&name, "here"), (other, "there")]).await;
    let interfaces = stdout(&test.provider, &both, "ls /sys/class/net | grep -vc '^lo$'").await;
    assert_eq!(interfaces, "2\n");
    test.provider.close(&both).await.unwrap();
    networks.remove().await;
}
