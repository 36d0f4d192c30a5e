//! The order of the search, from environments and configuration folders that are made up.

use super::*;

fn listed(plan: &Plan) -> Vec<(String, &str)> {
    plan.candidates
        .iter()
        .map(|candidate| (candidate.address.to_string(), candidate.how.as_str()))
        .collect()
}

/// A home folder whose docker configuration is in use of the context `lab`.
fn home_with_context(host: &str, skip: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let meta = home.path().join(".docker/contexts/meta/01");
    std::fs::create_dir_all(&meta).unwrap();
    std::fs::write(
        home.path().join(".docker/config.json"),
        r#"{"currentContext": "lab"}"#,
    )
    .unwrap();
    let text = format!(
        r#"{{"Name": "lab", "Endpoints": {{"docker": {{"Host": "{host}", "SkipTLSVerify": {skip}}}}}}}"#
    );
    std::fs::write(meta.join("meta.json"), text).unwrap();
    home
}

#[test]
fn with_nothing_set_the_usual_sockets_are_tried_in_order_and_each_once() {
    let environment = Environment::default()
        .with_home("/nowhere")
        .with_user_id(1000)
        .with("XDG_RUNTIME_DIR", "/run/user/1000")
        .with("DOCKER_HOST", "");
    let plan = plan(None, &environment).unwrap();
    assert_eq!(plan.choice, Choice::Searched);
    assert_eq!(
        listed(&plan),
        [
            ("unix:///var/run/docker.sock".to_owned(), "default socket"),
            (
                "unix:///run/user/1000/docker.sock".to_owned(),
                "rootless socket, XDG_RUNTIME_DIR"
            ),
            (
                "unix:///nowhere/.docker/run/docker.sock".to_owned(),
                "socket in the home folder"
            ),
            (
                "unix:///nowhere/.docker/desktop/docker.sock".to_owned(),
                "Docker Desktop socket"
            ),
            (
                "unix:///run/user/1000/podman/podman.sock".to_owned(),
                "podman socket, XDG_RUNTIME_DIR"
            ),
            (
                "unix:///run/podman/podman.sock".to_owned(),
                "podman system socket"
            ),
        ]
    );
    let bare = super::plan(None, &Environment::default()).unwrap();
    assert_eq!(bare.candidates.len(), 2);
}

#[test]
fn the_first_that_names_an_engine_is_the_only_candidate() {
    let home = home_with_context("tcp://lab:1", "false");
    let mut environment = Environment::default().with_home(home.path());
    let from = format!(
        "docker context `lab`, currentContext of `{}`",
        home.path().join(".docker/config.json").display()
    );
    assert_eq!(
        listed(&plan(None, &environment).unwrap()),
        [("tcp://lab:1".to_owned(), from.as_str())]
    );

    environment = environment.with("DOCKER_CONTEXT", "lab");
    let found = plan(None, &environment).unwrap();
    assert_eq!(
        listed(&found),
        [("tcp://lab:1".to_owned(), "docker context `lab`, DOCKER_CONTEXT")]
    );

    environment = environment.with("DOCKER_HOST", "tcp://variable:1");
    let found = plan(None, &environment).unwrap();
    assert_eq!(listed(&found), [("tcp://variable:1".to_owned(), "DOCKER_HOST")]);
    assert_eq!(found.choice, Choice::Named);

    let found = plan(Some("unix:///explicit.sock"), &environment).unwrap();
    assert_eq!(
        listed(&found),
        [("unix:///explicit.sock".to_owned(), "the configured host")]
    );
    assert_eq!(found.choice, Choice::Named);
}

#[test]
fn the_context_default_and_a_broken_configuration_file_mean_no_context() {
    let home = home_with_context("tcp://lab:1", "false");
    let environment = Environment::default()
        .with_home(home.path())
        .with("DOCKER_CONTEXT", "default");
    assert_eq!(plan(None, &environment).unwrap().choice, Choice::Searched);

    std::fs::write(home.path().join(".docker/config.json"), "{").unwrap();
    let broken = plan(None, &Environment::default().with_home(home.path())).unwrap();
    assert_eq!(broken.choice, Choice::Searched);
    assert!(
        broken.failed[0].to_string().contains("can't be understood"),
        "{:?}",
        broken.failed
    );
}

#[test]
fn docker_config_moves_the_contexts() {
    let home = home_with_context("", "false");
    let environment = Environment::default()
        .with_home("/nowhere")
        .with("DOCKER_CONFIG", home.path().join(".docker").to_str().unwrap());
    assert_eq!(
        listed(&plan(None, &environment).unwrap())[0].0,
        "unix:///var/run/docker.sock"
    );
}

#[test]
fn a_context_that_cannot_be_used_is_an_error_and_not_skipped() {
    let home = home_with_context("tcp://lab:1", "true");
    let environment = Environment::default().with_home(home.path());
    let error = plan(None, &environment).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("`lab`"), "{error}");

    let error = plan(None, &environment.clone().with("DOCKER_CONTEXT", "zork")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("`zork` (DOCKER_CONTEXT)"), "{error}");

    let home = home_with_context("tcp://me:secret@lab:1", "false");
    let error = plan(None, &Environment::default().with_home(home.path())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(
        error.to_string().contains("tcp://me:***@lab:1") && !error.to_string().contains("secret"),
        "{error}"
    );
}

#[test]
fn certificates_come_from_the_variable_the_context_or_the_configuration_folder() {
    let tls =
        |host: &str, environment: &Environment| match plan((!host.is_empty()).then_some(host), environment)
            .unwrap()
            .candidates
            .remove(0)
            .address
        {
            Address::Tcp { tls, .. } => tls.map(|tls| (tls.directory.display().to_string(), tls.presence)),
            other => panic!("{other}"),
        };
    let environment = Environment::default().with_home("/h");
    let default = Some(("/h/.docker".to_owned(), Presence::Any));
    assert_eq!(tls("tcp://e", &environment), None);
    assert_eq!(tls("https://e", &environment), default);
    let verified = environment.clone().with("DOCKER_TLS_VERIFY", "1");
    assert_eq!(tls("tcp://e", &verified), default);
    assert_eq!(tls("http://e", &verified), None);
    let named = Some(("/certs".to_owned(), Presence::All));
    assert_eq!(
        tls("tcp://e", &verified.with("DOCKER_CERT_PATH", "/certs")),
        named
    );
    assert_eq!(
        tls("tcp://e", &environment.clone().with("DOCKER_CERT_PATH", "/certs")),
        None
    );
    assert_eq!(
        tls("https://e", &environment.with("DOCKER_CERT_PATH", "/certs")),
        named
    );

    let home = home_with_context("tcp://lab:1", "false");
    let folder = home.path().join(".docker/contexts/tls/01/docker");
    std::fs::create_dir_all(&folder).unwrap();
    let context = tls("", &Environment::default().with_home(home.path()));
    assert_eq!(context, Some((folder.display().to_string(), Presence::Any)));
}

#[test]
fn a_bad_address_is_an_invalid_argument_that_names_it_and_its_origin() {
    let environment = Environment::default().with("DOCKER_HOST", "tcp://me:secret@e");
    let error = plan(None, &environment).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(
        error.to_string(),
        "connect to an engine: the engine address `tcp://me:***@e` (DOCKER_HOST) can't be used: user and password \
         are not supported; use a client certificate"
    );
    assert!(plan(Some(""), &environment).is_err());
}
