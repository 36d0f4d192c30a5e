//! Where to look for an engine and in which order. Reads the docker command's configuration, opens no connection.

use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Operation, Result};

use super::address::{Address, Presence, TlsFiles, TlsSettings, redacted};
use super::context;
use super::environment::Environment;
use super::tried::Attempt;

/// The places to try.
#[derive(Debug)]
pub(super) struct Plan {
    /// In order; the first that answers is used.
    pub(super) candidates: Vec<Candidate>,
    /// What was looked at and gave no candidate.
    pub(super) failed: Vec<Attempt>,
    pub(super) choice: Choice,
}

/// Who chose the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// The user: there is one candidate, and no other engine is used in its place.
    Named,
    /// Nobody: there are several.
    Searched,
}

/// An address and who said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) address: Address,
    pub(super) how: String,
}

/// Lists where to look: the configured host, else `DOCKER_HOST`, else the docker context, else the usual sockets.
///
/// `DOCKER_HOST` wins over `DOCKER_CONTEXT`, as in the docker command.
pub(super) fn plan(host: Option<&str>, environment: &Environment) -> Result<Plan> {
    let mut failed = Vec::new();
    let settings = tls_settings(environment);
    if let Some(host) = host {
        return named(host, "the configured host", &settings);
    }
    if let Some(host) = environment.variable("DOCKER_HOST") {
        return named(host, "DOCKER_HOST", &settings);
    }
    if let Some((name, from)) = context_name(environment, &mut failed) {
        return of_context(&name, &from, environment, failed);
    }
    Ok(Plan {
        candidates: sockets(environment),
        failed,
        choice: Choice::Searched,
    })
}

fn named(host: &str, how: &str, settings: &TlsSettings) -> Result<Plan> {
    let address =
        Address::parse(host, settings).map_err(|problem| bad_address(host, how, &problem))?;
    Ok(Plan {
        candidates: vec![Candidate {
            address,
            how: how.to_owned(),
        }],
        failed: Vec::new(),
        choice: Choice::Named,
    })
}

fn bad_address(host: &str, how: &str, problem: &str) -> Error {
    Error::invalid(
        Operation::Connect,
        format!("the engine address `{}` ({how}) can't be used: {problem}", redacted(host)),
    )
    .with_hint("use an address such as `unix:///var/run/docker.sock`, `tcp://host:2376` or `ssh://user@host`")
}

/// The name of the context in use and where it is from; none for the context `default`, which means "no context".
fn context_name(environment: &Environment, failed: &mut Vec<Attempt>) -> Option<(String, String)> {
    let (name, from) = if let Some(name) = environment.variable("DOCKER_CONTEXT") {
        (name.to_owned(), "DOCKER_CONTEXT".to_owned())
    } else {
        let config = environment.docker_config()?;
        let file = config.join("config.json");
        match context::current(&config) {
            Ok(name) => (name?, format!("currentContext of `{}`", file.display())),
            // The docker command goes on without its configuration file, too; the reason is kept for the error.
            Err(problem) => {
                failed.push(Attempt::new(file.display(), "docker context", problem));
                return None;
            }
        }
    };
    (name != "default").then_some((name, from))
}

fn of_context(
    name: &str,
    from: &str,
    environment: &Environment,
    failed: Vec<Attempt>,
) -> Result<Plan> {
    let refused = |kind, problem: String| {
        Error::new(kind, Operation::Connect, format!("docker context `{name}` ({from}) can't be used: {problem}"))
            .with_hint("`docker context ls` lists the contexts; set DOCKER_HOST or DOCKER_CONTEXT to use another engine")
    };
    let Some(config) = environment.docker_config() else {
        return Err(refused(
            ErrorKind::InvalidArgument,
            "there is no home folder and DOCKER_CONFIG is not set".to_owned(),
        ));
    };
    let context = context::load(&config, name)
        .map_err(|problem| refused(ErrorKind::InvalidArgument, problem))?;
    let how = format!("docker context `{name}`, {from}");
    let files = context.tls.map(|directory| TlsFiles {
        directory,
        presence: Presence::Any,
    });
    let settings = TlsSettings {
        https: files.clone().unwrap_or_else(|| default_files(&config)),
        tcp: files,
    };
    let host = if context.host.is_empty() {
        "unix:///var/run/docker.sock"
    } else {
        &context.host
    };
    let address =
        Address::parse(host, &settings).map_err(|problem| bad_address(host, &how, &problem))?;
    if context.skip_tls_verify && matches!(address, Address::Tcp { .. }) {
        return Err(refused(
            ErrorKind::Unsupported,
            "it skips the verification of the engine's certificate, which is not supported"
                .to_owned(),
        ));
    }
    Ok(Plan {
        candidates: vec![Candidate { address, how }],
        failed,
        choice: Choice::Named,
    })
}

fn tls_settings(environment: &Environment) -> TlsSettings {
    let files = match (
        environment.variable("DOCKER_CERT_PATH"),
        environment.docker_config(),
    ) {
        (Some(directory), _) => TlsFiles {
            directory: directory.into(),
            presence: Presence::All,
        },
        (None, config) => default_files(&config.unwrap_or_default()),
    };
    // As for the docker command, any value turns it on, also `0`.
    let tcp = environment
        .variable("DOCKER_TLS_VERIFY")
        .map(|_| files.clone());
    TlsSettings { tcp, https: files }
}

fn default_files(config: &Path) -> TlsFiles {
    TlsFiles {
        directory: config.to_owned(),
        presence: Presence::Any,
    }
}

/// The sockets that engines listen on when nobody says otherwise; each once.
fn sockets(environment: &Environment) -> Vec<Candidate> {
    let runtime = environment
        .variable("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let run_user = environment
        .user_id()
        .map(|id| PathBuf::from(format!("/run/user/{id}")));
    let docker = environment.home().map(|home| home.join(".docker"));
    let below =
        |folder: &Option<PathBuf>, name: &str| folder.as_ref().map(|folder| folder.join(name));
    let places = [
        (
            Some(PathBuf::from("/var/run/docker.sock")),
            "default socket",
        ),
        (
            below(&runtime, "docker.sock"),
            "rootless socket, XDG_RUNTIME_DIR",
        ),
        (below(&run_user, "docker.sock"), "rootless socket"),
        (
            below(&docker, "run/docker.sock"),
            "socket in the home folder",
        ),
        (
            below(&docker, "desktop/docker.sock"),
            "Docker Desktop socket",
        ),
        (
            below(&runtime, "podman/podman.sock"),
            "podman socket, XDG_RUNTIME_DIR",
        ),
        (below(&run_user, "podman/podman.sock"), "podman socket"),
        (
            Some(PathBuf::from("/run/podman/podman.sock")),
            "podman system socket",
        ),
    ];
    let mut candidates: Vec<Candidate> = Vec::new();
    for (path, how) in places {
        let Some(path) = path else { continue };
        let address = Address::Unix(path);
        if !candidates
            .iter()
            .any(|candidate| candidate.address == address)
        {
            candidates.push(Candidate {
                address,
                how: how.to_owned(),
            });
        }
    }
    candidates
}

#[cfg(test)]
mod tests {
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
            [(
                "tcp://lab:1".to_owned(),
                "docker context `lab`, DOCKER_CONTEXT"
            )]
        );

        environment = environment.with("DOCKER_HOST", "tcp://variable:1");
        let found = plan(None, &environment).unwrap();
        assert_eq!(
            listed(&found),
            [("tcp://variable:1".to_owned(), "DOCKER_HOST")]
        );
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
        let environment = Environment::default().with_home("/nowhere").with(
            "DOCKER_CONFIG",
            home.path().join(".docker").to_str().unwrap(),
        );
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
        assert!(
            error.to_string().contains("`zork` (DOCKER_CONTEXT)"),
            "{error}"
        );

        let home = home_with_context("tcp://me:secret@lab:1", "false");
        let error = plan(None, &Environment::default().with_home(home.path())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(
            error.to_string().contains("tcp://me:***@lab:1")
                && !error.to_string().contains("secret"),
            "{error}"
        );
    }

    #[test]
    fn certificates_come_from_the_variable_the_context_or_the_configuration_folder() {
        let tls = |host: &str, environment: &Environment| match plan(
            (!host.is_empty()).then_some(host),
            environment,
        )
        .unwrap()
        .candidates
        .remove(0)
        .address
        {
            Address::Tcp { tls, .. } => {
                tls.map(|tls| (tls.directory.display().to_string(), tls.presence))
            }
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
            tls(
                "tcp://e",
                &environment.clone().with("DOCKER_CERT_PATH", "/certs")
            ),
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
}
