use std::time::Duration;

use serde_json::json;

use super::super::{ImageRewrite, SandboxResources, SandboxSpec, rewrite_image};
use super::invalid;

fn rules(pairs: &[(&str, &str)]) -> Vec<ImageRewrite> {
    pairs
        .iter()
        .map(|(from, to)| ImageRewrite {
            from: (*from).to_owned(),
            to: (*to).to_owned(),
        })
        .collect()
}

/// A spec with every field set, all values telling.
pub(super) fn full() -> SandboxSpec {
    SandboxSpec::new("debian:bookworm")
        .with_ttl(Duration::from_millis(1500))
        .with_ready_timeout(Duration::from_secs(30))
        .with_workdir("/work")
        .with_env("TOKEN", "hunter2")
        .with_file("/z", "last letter first")
        .with_file("/a", "secret text")
        .with_metadata("team", "red")
        .with_resources(SandboxResources::default().with_cpu(0.5).with_memory_mib(256))
        .with_entrypoint(["sleep", "inf"])
        .with_provider_option("pull_policy", "never")
        .with_ports([8080, 22])
        .unwrap()
}

#[test]
fn r10_changing_a_copy_leaves_the_spec_as_it_was() {
    let spec = full();
    let changed = spec
        .clone()
        .with_env("MORE", "1")
        .with_file("/more", "")
        .with_workdir("/else");
    assert_eq!(spec, full());
    assert_eq!(changed.env().len(), 2);
    assert_eq!(spec.workdir(), Some("/work"));
}

#[test]
fn r10_everything_defaults_to_nothing() {
    let spec = SandboxSpec::from_value(json!({})).unwrap();
    assert_eq!(spec, SandboxSpec::default());
    assert_eq!(spec.image(), None);
    assert_eq!(spec.ttl(), None);
    assert_eq!(spec.ready_timeout(), None);
    assert_eq!(spec.workdir(), None);
    assert!(spec.env().is_empty() && spec.metadata().is_empty() && spec.provider_options().is_empty());
    assert_eq!(spec.files().len(), 0);
    assert!(spec.entrypoint().is_empty());
}

#[test]
fn r13_env_files_metadata_workdir_and_ttl_are_not_checked_here() {
    let spec = SandboxSpec::from_value(json!({
        "env": {"": "empty name", "A=B": "x"},
        "files": {"": "no path"},
        "metadata": {"gym-sandbox": "reserved"},
        "workdir": "relative",
        "ttl_s": 0,
    }))
    .unwrap();
    assert_eq!(spec.env().len(), 2);
    assert_eq!(spec.workdir(), Some("relative"));
    assert_eq!(spec.ttl(), Some(Duration::ZERO));
}

#[test]
fn l04_files_keep_their_order_also_through_json() {
    let spec = full();
    let order: Vec<&str> = spec.files().map(|(path, _)| path).collect();
    assert_eq!(order, ["/z", "/a"]);
    let text = serde_json::to_string(&spec).unwrap();
    let read: SandboxSpec = serde_json::from_str(&text).unwrap();
    assert_eq!(read.files().collect::<Vec<_>>(), spec.files().collect::<Vec<_>>());
}

#[test]
fn l04_a_file_given_twice_is_written_once_with_the_last_text() {
    let spec = SandboxSpec::new("i")
        .with_file("/a", "1")
        .with_file("/b", "2")
        .with_file("/a", "3");
    assert_eq!(spec.files().collect::<Vec<_>>(), [("/b", "2"), ("/a", "3")]);
}

#[test]
fn d36_the_specs_debug_text_holds_no_values() {
    let shown = format!("{:?}", full());
    assert!(
        shown.contains("TOKEN") && shown.contains("pull_policy") && shown.contains("/a"),
        "{shown}"
    );
    for hidden in ["hunter2", "secret text", "never"] {
        assert!(!shown.contains(hidden), "{hidden} in {shown}");
    }
}

#[test]
fn d36_an_unknown_field_of_a_spec_is_refused_by_name() {
    assert!(invalid(SandboxSpec::from_value(json!({"imag": "a"}))).contains("imag"));
}

#[test]
fn d36_a_duration_that_is_none_is_refused() {
    for wrong in [json!(-1), json!("soon"), json!(1e300)] {
        invalid(SandboxSpec::from_value(json!({"ttl_s": wrong})));
    }
}

#[test]
fn i01_no_image_stays_none() {
    assert_eq!(rewrite_image(None, &rules(&[("", "x/")])), None);
    assert_eq!(
        SandboxSpec::default()
            .with_image_rewrites(&rules(&[("", "x/")]))
            .image(),
        None
    );
}

#[test]
fn i02_the_first_match_wins_and_ends_it() {
    let rules = rules(&[
        ("docker.io/", "mirror/"),
        ("docker.io/library/", "never/"),
        ("mirror/", "chained/"),
    ]);
    assert_eq!(
        rewrite_image(Some("docker.io/library/a"), &rules).as_deref(),
        Some("mirror/library/a")
    );
}

#[test]
fn i03_no_match_leaves_the_image() {
    assert_eq!(
        rewrite_image(Some("quay.io/a"), &rules(&[("docker.io/", "m/")])).as_deref(),
        Some("quay.io/a")
    );
    assert_eq!(rewrite_image(Some("a"), &[]).as_deref(), Some("a"));
}

#[test]
fn i04_the_prefix_is_plain_text() {
    assert_eq!(
        rewrite_image(Some("registry-two/a"), &rules(&[("reg", "m")])).as_deref(),
        Some("mistry-two/a")
    );
    assert_eq!(
        rewrite_image(Some("a/reg"), &rules(&[("reg", "m")])).as_deref(),
        Some("a/reg")
    );
}

#[test]
fn i05_a_rule_needs_from_and_to() {
    for wrong in [
        json!({"from": "a"}),
        json!({"to": "a"}),
        json!({}),
        json!({"from": "a", "to": "b", "too": "c"}),
    ] {
        serde_json::from_value::<ImageRewrite>(wrong).unwrap_err();
    }
    let rule: ImageRewrite = serde_json::from_value(json!({"from": "a", "to": "b"})).unwrap();
    assert_eq!(rule, rules(&[("a", "b")])[0]);
}
