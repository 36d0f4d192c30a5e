//! What is refused whatever the engine.

use super::{Plan, PlanOptions};
use crate::compose::{ComposeLoader, LoadOptions, Source};

fn plan(service: &str) -> Result<Plan, super::Diagnostics> {
    let text = format!("services: {{a: {{image: i, {service}}}}}");
    let options = LoadOptions::new()
        .with_file(Source::text("compose.yaml", text))
        .with_project_name("p");
    let project = ComposeLoader::new(options).load().unwrap().project;
    Plan::new(&project, &PlanOptions::default())
}

#[test]
fn b40_a_health_check_that_runs_nothing_or_half_of_its_line_is_refused() {
    for test in ["[CMD]", "[CMD-SHELL]", "[CMD-SHELL, test, -f]"] {
        let said = plan(&format!("healthcheck: {{test: {test}}}"))
            .unwrap_err()
            .to_string();
        assert!(
            said.starts_with("services.a.healthcheck.test: `CMD"),
            "{test}: {said}"
        );
        plan(&format!("healthcheck: {{test: {test}, disable: true}}")).unwrap();
    }
    for test in [
        "[CMD, test]",
        "[CMD-SHELL, 'test -f /ok']",
        "'test -f /ok'",
        "[NONE]",
        "[]",
    ] {
        plan(&format!("healthcheck: {{test: {test}}}")).unwrap();
    }
}

#[test]
fn b48_who_shares_with_a_service_that_has_no_container_is_told_that_alone() {
    for key in [
        "network_mode: 'service:none'",
        "pid: 'service:none'",
        "volumes_from: [none]",
    ] {
        let text = format!("services: {{a: {{image: i, {key}}}, none: {{image: i, scale: 0}}}}");
        let options = LoadOptions::new()
            .with_file(Source::text("compose.yaml", text))
            .with_project_name("p");
        let project = ComposeLoader::new(options).load().unwrap().project;
        let said = Plan::new(&project, &PlanOptions::default()).unwrap_err();
        assert_eq!(said.len(), 1, "{said}");
        assert!(
            said.to_string().contains("service \"none\" has no containers"),
            "{said}"
        );
    }
}
