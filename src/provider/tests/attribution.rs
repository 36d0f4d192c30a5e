//! The reference's rules of precedence, as tables. They have no numbers in the contract (section 1.6).

use std::collections::BTreeMap;

use serde_json::json;

use crate::provider::{
    Attribution, AttributionEnvironment, log_attribution_once, resolve_attribution, resolve_run_id,
};

fn environment(variables: &[(&str, &str)], login: Option<&str>) -> AttributionEnvironment {
    AttributionEnvironment {
        variables: variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        login: login.map(str::to_owned),
    }
}

const EVERYTHING: [(&str, &str); 7] = [
    ("NEMO_GYM_TEAM", "gym-team"),
    ("NEMO_GYM_USER", "gym-user"),
    ("NEMO_GYM_WORKLOAD", "gym-workload"),
    ("SLURM_JOB_ACCOUNT", "slurm-team"),
    ("SLURM_JOB_USER", "slurm-user"),
    ("SLURM_JOB_NAME", "slurm-workload"),
    ("NEMO_GYM_CONFIG_PATH", "instance"),
];

#[test]
fn attribution_takes_the_first_that_is_there() {
    let explicit = Attribution::default()
        .with_team("my-team")
        .with_user("my-user")
        .with_workload("my-workload");
    let none = Attribution::default();
    // How many of the variables are missing from the front, and what then is the answer.
    let all = environment(&EVERYTHING, Some("me"));
    assert_eq!(all.resolve(&explicit), explicit);
    let gym = all.resolve(&none);
    assert_eq!(
        gym,
        none.clone()
            .with_team("gym-team")
            .with_user("gym-user")
            .with_workload("gym-workload")
    );
    let slurm = environment(&EVERYTHING[3..], Some("me")).resolve(&none);
    assert_eq!(
        slurm,
        none.clone()
            .with_team("slurm-team")
            .with_user("slurm-user")
            .with_workload("slurm-workload")
    );
    let last = environment(&EVERYTHING[6..], Some("me")).resolve(&none);
    assert_eq!(last, none.clone().with_user("me").with_workload("instance"));
    assert_eq!(environment(&[], None).resolve(&none), none);
}

#[test]
fn attribution_is_resolved_field_by_field() {
    let found = environment(&[("SLURM_JOB_USER", "slurm")], Some("me"))
        .resolve(&Attribution::default().with_team("mine"));
    assert_eq!(found, Attribution::default().with_team("mine").with_user("slurm"));
}

#[test]
fn blanks_are_no_attribution() {
    let blank = Attribution::default()
        .with_team(" ")
        .with_user("")
        .with_workload("\t");
    let found = environment(
        &[("NEMO_GYM_TEAM", "  "), ("SLURM_JOB_ACCOUNT", " team ")],
        Some(" "),
    )
    .resolve(&blank);
    assert_eq!(found, Attribution::default().with_team("team"));
}

#[test]
fn root_is_nobody_by_login_but_somebody_by_name() {
    let none = Attribution::default();
    assert_eq!(environment(&[], Some("root")).resolve(&none).user, None);
    for name in ["NEMO_GYM_USER", "SLURM_JOB_USER"] {
        let found = environment(&[(name, "root")], Some("root")).resolve(&none);
        assert_eq!(found.user.as_deref(), Some("root"), "{name}");
    }
    let found = environment(&[], Some("root")).resolve(&none.with_user("root"));
    assert_eq!(found.user.as_deref(), Some("root"));
}

#[test]
fn attribution_of_this_process_keeps_what_is_given() {
    let found = resolve_attribution(
        &Attribution::default()
            .with_team("a")
            .with_user("b")
            .with_workload("c"),
    );
    assert_eq!(json!(found), json!({"team": "a", "user": "b", "workload": "c"}));
    assert_eq!(
        json!(Attribution::default()),
        json!({}),
        "only what is known has a key"
    );
}

#[test]
fn attribution_becomes_labels_behind_a_prefix() {
    let attribution = Attribution::default().with_team("t").with_workload("w");
    let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    };
    assert_eq!(
        attribution.metadata("", "r"),
        labels(&[("team", "t"), ("workload", "w"), ("run", "r")])
    );
    assert_eq!(
        Attribution::default().metadata("example.org/", "r"),
        labels(&[("example.org/run", "r")])
    );
}

#[test]
fn the_run_is_given_or_one_for_the_process() {
    assert_eq!(resolve_run_id(Some("mine")), "mine");
    // Nothing of the tests sets the variable.
    if std::env::var_os("NEMO_GYM_RUN_ID").is_none() {
        let made = resolve_run_id(None);
        assert_eq!(
            made,
            resolve_run_id(Some("  ")),
            "one for the process, and blanks do not count"
        );
        assert!(
            made.len() == 12 && made.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{made}"
        );
    }
}

#[test]
fn attribution_is_logged_once() {
    let attribution = Attribution::default();
    // Another test of this process may have been first; the second call never is.
    log_attribution_once(&attribution, "r");
    assert!(!log_attribution_once(&attribution, "r"));
}
