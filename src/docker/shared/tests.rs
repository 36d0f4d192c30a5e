use crate::docker::config::DockerConfig;
use crate::provider::capabilities;
use crate::provider::{Capability, SandboxProvider};

use super::*;

fn provider(settings: &Value) -> Result<DockerProvider> {
    let config = DockerConfig::from_settings(json!({ "shared_storage": settings }).as_object().unwrap())?;
    DockerProvider::new(config)
}

fn spec(options: Mapping) -> SandboxSpec {
    SandboxSpec::new("image").with_added_provider_options(options)
}

fn kinds(storage: &SharedStorageConfig, spec: &SandboxSpec) -> Vec<MountSpec> {
    mounts(storage, spec).unwrap().mounts
}

#[test]
fn d11_what_is_no_name_below_the_storage_is_refused_before_anything_is_made() {
    let provider = provider(&json!({"host_path": "/srv/shared"})).unwrap();
    let share = |source, target| provider.shared_volume_options(source, target, SharedAccess::ReadWrite);
    let long = "x".repeat(256);
    for source in [
        "",
        ".",
        "./.",
        "/",
        "/outside",
        "..",
        "../outside",
        "a/../b",
        "a/..",
        "a:b",
        "a\\b",
        "a\0b",
        "a\nb",
        &long,
    ] {
        let error = share(Some(source), "/data").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{source:?}");
        assert!(
            error.to_string().contains(&*source.escape_debug().to_string()),
            "{error}"
        );
        // The same where the option is written by hand.
        let by_hand = json!([{"type": "shared", "source": source, "target": "/data"}]);
        let spec = SandboxSpec::new("image").with_provider_option("volumes", by_hand);
        let error = mounts(&provider.config().shared_storage, &spec).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{source:?}");
    }
    for target in ["", "/", "data", "/a/../b", "/data:rw", "/a\\b", "/a\0"] {
        let error = share(Some("safe"), target).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{target:?}");
    }
    for source in [
        None,
        Some("a"),
        Some("a/b.c/d-e_f"),
        Some("./a//b/"),
        Some("a b"),
        Some("..a"),
    ] {
        share(source, "/data").unwrap();
    }
}

#[test]
fn a_folder_of_the_host_is_mounted_and_looked_at() {
    let provider = provider(&json!({"host_path": "/srv/shared/"})).unwrap();
    let storage = &provider.config().shared_storage;
    let all = provider
        .shared_volume_options(None, "/all", SharedAccess::ReadWrite)
        .unwrap();
    assert_eq!(
        json!(all),
        json!({"volumes": [{"type": "shared", "source": null, "target": "/all", "read_only": false}]})
    );
    let one = provider
        .shared_volume_options(Some("./p//data"), "/data", SharedAccess::ReadOnly)
        .unwrap();
    let spec = spec(all).with_added_provider_options(one);
    assert_eq!(
        kinds(storage, &spec),
        [
            MountSpec::bind("/srv/shared", "/all"),
            MountSpec::bind("/srv/shared/p/data", "/data").read_only(),
        ]
    );
    // All of the storage is the operator's own folder: there is nothing below it to look at.
    assert_eq!(
        mounts(storage, &spec).unwrap().looks,
        Some(Looks {
            root: "/srv/shared/".to_owned(),
            folders: vec![vec!["p".to_owned(), "data".to_owned()]],
        })
    );
    assert_eq!(provider.shared_volume_metadata().unwrap(), BTreeMap::new());
}

#[test]
fn a_folder_of_a_volume_is_mounted_without_what_the_image_has() {
    let provider = provider(&json!({"volume": "shared"})).unwrap();
    let options = provider
        .shared_volume_options(Some("p/data"), "/data", SharedAccess::ReadWrite)
        .unwrap();
    let shared = mounts(&provider.config().shared_storage, &spec(options)).unwrap();
    assert_eq!(
        shared.looks, None,
        "the engine sees to it that nothing leads out of a volume"
    );
    assert_eq!(
        shared.mounts[0].kind,
        MountKind::Volume {
            source: Some("shared".to_owned()),
            no_copy: true,
            subpath: Some("p/data".to_owned()),
            labels: BTreeMap::new(),
            selinux: None,
        }
    );
}

#[test]
fn without_storage_there_is_no_capability_and_no_option() {
    let none = DockerProvider::new(DockerConfig::default()).unwrap();
    assert!(!capabilities(&none).contains(&Capability::SharedStorage));
    assert!(none.as_shared_storage().is_none());
    let error = none
        .shared_volume_options(None, "/data", SharedAccess::ReadWrite)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.hint().unwrap().contains("shared_storage.host_path"));
    assert_eq!(
        none.shared_volume_metadata().unwrap_err().kind(),
        ErrorKind::Unsupported
    );
    let by_hand = json!([{"type": "shared", "source": "a", "target": "/data"}]);
    let spec = SandboxSpec::new("image").with_provider_option("volumes", by_hand);
    let error = mounts(&SharedStorageConfig::default(), &spec).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let there = provider(&json!({"volume": "shared"})).unwrap();
    assert!(capabilities(&there).contains(&Capability::SharedStorage));
}

#[test]
fn d10_storage_that_is_none_is_refused() {
    for (settings, named) in [
        (json!({"host_path": "srv"}), "host_path"),
        (json!({"host_path": "/srv/../etc"}), "host_path"),
        (json!({"host_path": "/"}), "host_path"),
        (json!({"host_path": "/a:b"}), "host_path"),
        (json!({"host_path": "/run"}), "`/run`"),
        (json!({"host_path": "/var/run/docker.sock"}), "docker.sock"),
        (json!({"volume": "a/b"}), "volume"),
        (json!({"volume": ""}), "volume"),
        (json!({"host_path": "/srv", "volume": "shared"}), "not both"),
        (json!({"path": "/srv"}), "`path`"),
    ] {
        let error = provider(&settings).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{settings}");
        assert!(error.to_string().contains(named), "{settings}: {error}");
    }
}

#[test]
fn d10_an_unknown_field_of_an_entry_is_refused() {
    let storage = SharedStorageConfig {
        volume: Some("shared".to_owned()),
        host_path: None,
    };
    for entry in [
        json!({"type": "shared", "target": "/data", "sourc": "a"}),
        json!({"type": "shared", "source": "a"}),
        json!({"type": "shared", "source": 3, "target": "/data"}),
    ] {
        let spec = SandboxSpec::new("image").with_provider_option("volumes", json!([entry]));
        assert_eq!(
            mounts(&storage, &spec).unwrap_err().kind(),
            ErrorKind::InvalidArgument,
            "{entry}"
        );
    }
}
