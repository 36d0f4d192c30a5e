use serde_json::json;

use crate::error::Operation;
use crate::provider::check_provider_options;
use crate::spec::Mapping;

use super::invalid;

fn options(names: &[&str]) -> Mapping {
    names
        .iter()
        .map(|name| ((*name).to_owned(), json!("hunter2")))
        .collect()
}

#[test]
fn d10_known_options_pass() {
    let allowed = ["pull_policy", "platform"];
    check_provider_options(Operation::Create, "option", &Mapping::new(), &allowed).unwrap();
    check_provider_options(Operation::Create, "option", &options(&["platform"]), &allowed).unwrap();
}

#[test]
fn d10_unknown_options_are_all_named_with_the_allowed_ones() {
    let given = options(&["zeta", "platform", "alpha"]);
    let text = invalid(check_provider_options(
        Operation::Create,
        "option",
        &given,
        &["pull_policy", "platform"],
    ));
    assert!(text.contains("`alpha`, `zeta`"), "{text}");
    assert!(text.contains("allowed are platform, pull_policy"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn d10_names_are_matched_exactly_and_shown_escaped() {
    for wrong in ["Platform", "platform ", "plat\nform", ""] {
        let text = invalid(check_provider_options(
            Operation::Create,
            "option",
            &options(&[wrong]),
            &["platform"],
        ));
        assert_eq!(text.lines().count(), 2, "one line and its hint: {text}");
    }
}
