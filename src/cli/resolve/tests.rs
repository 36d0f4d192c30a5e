//! From typed words to requests.

use std::time::Duration;

use super::super::args::parse_from;
use gym_sandbox::PullPolicy;
use gym_sandbox::docker::{ExecPathPolicy, Preset};
use gym_sandbox::{Command, ErrorKind, ExecTimeout, SandboxResources};

use super::*;

fn typed(arguments: &[&str]) -> Result<Action> {
    resolve(parse_from(&[&["gym-sandbox"], arguments].concat()))
}

fn run(arguments: &[&str]) -> RunRequest {
    match typed(arguments) {
        Ok(Action::Run(request)) => *request,
        other => panic!("not a run: {other:?}"),
    }
}

#[test]
fn a_plain_run_has_the_library_s_defaults() {
    let request = run(&["run", "--image", "i", "--", "true"]);
    assert_eq!(request.sandbox.config, DockerConfig::default());
    assert_eq!(request.sandbox.spec, SandboxSpec::new("i"));
    assert_eq!(request.program.options.command, Command::from(["true"]));
    assert_eq!(request.program.options.timeout, ExecTimeout::Default);
    assert_eq!(request.program.input, Input::Empty);
    assert_eq!(request.afterwards, Afterwards::Remove);
    assert_eq!(request.format, Format::Text);
}

#[test]
fn what_outlives_this_process_is_said_to() {
    let kept = |spec: &SandboxSpec| spec.provider_options().get("keep") == Some(&true.into());
    assert!(!kept(&run(&["run", "--image", "i", "--", "true"]).sandbox.spec));
    assert!(kept(
        &run(&["run", "--image", "i", "--keep", "--", "true"]).sandbox.spec
    ));
    let Ok(Action::Create(request)) = typed(&["create", "--image", "i"]) else {
        panic!("not a create");
    };
    assert!(kept(&request.sandbox.spec));
}

#[test]
fn every_option_of_a_sweep_arrives() {
    let sweep = |arguments: &[&str]| match typed(&[&["gc"], arguments].concat()) {
        Ok(Action::Sweep(request)) => request,
        other => panic!("not a sweep: {other:?}"),
    };
    let plain = sweep(&[]);
    assert_eq!(plain.options, gym_sandbox::SweepOptions::default());
    assert_eq!(plain.patience, Patience::Waits);
    let all = sweep(&[
        "--dry-run",
        "--shared",
        "--kept",
        "--no-wait",
        "--run",
        "r",
        "--project",
        "p",
    ]);
    let expected = gym_sandbox::SweepOptions::default()
        .with_mode(gym_sandbox::SweepMode::DryRun)
        .with_shared(gym_sandbox::SharedObjects::RemoveUnused)
        .with_kept(gym_sandbox::KeptSandboxes::Remove)
        .with_filter(
            gym_sandbox::SandboxFilter::default()
                .with_run("r")
                .with_project("p"),
        );
    assert_eq!((all.options, all.patience), (expected, Patience::DoesNotWait));
}

#[test]
fn every_option_of_a_run_arrives() {
    let request = run(&[
        "--host",
        "unix:///x",
        "--json",
        "run",
        "--image",
        "i",
        "--env",
        "A=1",
        "--env",
        "NOT_SET_ANYWHERE",
        "--workdir",
        "/w",
        "--user",
        "u:g",
        "--timeout",
        "1m30s",
        "--cpus",
        "0.5",
        "--memory",
        "512m",
        "--pids",
        "9",
        "--network",
        "net",
        "--preset",
        "hardened",
        "--upload",
        "a:/b",
        "--download",
        "/c:d",
        "--port",
        "80",
        "--port",
        "81",
        "--pull",
        "never",
        "--stdin",
        "--exec-path",
        "engine",
        "--keep",
        "--shell",
        "echo x",
    ]);
    assert_eq!(request.sandbox.config.host.as_deref(), Some("unix:///x"));
    assert_eq!(request.sandbox.config.create.network.as_deref(), Some("net"));
    assert_eq!(request.sandbox.config.exec.exec_path, ExecPathPolicy::Engine);
    assert_eq!(request.sandbox.config.create.pids_limit, Some(9));
    assert_eq!(request.sandbox.config.create.preset, Preset::Hardened);
    assert_eq!(request.sandbox.config.create.pull_policy, PullPolicy::Never);
    let expected = SandboxSpec::new("i")
        .with_env("A", "1")
        .with_workdir("/w")
        .with_resources(SandboxResources::default().with_cpu(0.5).with_memory_mib(512))
        .with_provider_option("keep", true)
        .with_ports([80, 81])
        .unwrap();
    assert_eq!(request.sandbox.spec, expected);
    assert_eq!(
        request.program.options.command,
        Command::Shell("echo x".to_owned())
    );
    assert_eq!(request.program.options.user, Some("u:g".into()));
    assert_eq!(
        request.program.options.timeout,
        ExecTimeout::After(Duration::from_secs(90))
    );
    assert_eq!(request.program.input, Input::Process);
    assert_eq!(
        request.sandbox.uploads,
        [Upload {
            local: "a".into(),
            remote: "/b".into()
        }]
    );
    assert_eq!(
        request.downloads,
        [Download {
            remote: "/c".into(),
            local: "d".into()
        }]
    );
    assert_eq!(request.afterwards, Afterwards::Keep);
    assert_eq!(request.format, Format::Json);
}

#[test]
fn what_the_local_provider_lacks_is_refused_by_name() {
    let local = ["--provider", "local"];
    for (arguments, name) in [
        (&["doctor"][..], "`doctor`"),
        (&["create", "--image", "i"], "`create`"),
        (&["exec", "id", "--", "x"], "`exec`"),
        (&["rm", "id"], "`rm`"),
        (&["run", "--image", "i", "--", "x"], "--image"),
        (&["run", "--memory", "64m", "--", "x"], "--memory"),
        (&["run", "--user", "nobody", "--", "x"], "--user"),
        (&["run", "--keep", "--", "x"], "--keep"),
        (&["run", "--host", "unix:///x", "--", "x"], "--host"),
    ] {
        let error = typed(&[&local, arguments].concat()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains(name), "{error}");
        assert!(error.hint().is_some());
    }
    let request = run(&[&local[..], &["run", "--workdir", "/w", "--env", "A=1", "--", "x"]].concat());
    assert_eq!(request.backend, Backend::Local);
    assert_eq!(
        (request.sandbox.spec.image(), request.sandbox.spec.workdir()),
        (None, Some("/w"))
    );
}

#[test]
fn what_can_t_be_honoured_exactly_is_refused() {
    for arguments in [
        &["run", "--", "x"][..],
        &["run", "--image", "i", "--memory", "1000k", "--", "x"],
        &["run", "--image", "i", "--port", "80", "--port", "80", "--", "x"],
    ] {
        assert_eq!(
            typed(arguments).unwrap_err().kind(),
            ErrorKind::InvalidArgument,
            "{arguments:?}"
        );
    }
}

#[test]
fn an_exec_has_its_own_directory_and_variables() {
    let Ok(Action::Exec(request)) = typed(&[
        "exec",
        "some-id",
        "--env",
        "A=1",
        "--workdir",
        "/w",
        "--user",
        "7",
        "--json",
        "--",
        "env",
        "-i",
    ]) else {
        panic!("not an exec");
    };
    assert_eq!(request.id, "some-id");
    assert_eq!(request.program.options.command, Command::from(["env", "-i"]));
    assert_eq!(request.program.options.cwd.as_deref(), Some("/w"));
    assert_eq!(
        request.program.options.env,
        [("A".to_owned(), "1".to_owned())].into()
    );
    assert_eq!(request.program.options.user, Some("7".into()));
    assert_eq!(request.format, Format::Json);
}

#[test]
fn create_takes_the_options_of_a_sandbox_and_rm_takes_ids() {
    let Ok(Action::Create(request)) = typed(&["create", "--image", "i", "--network", "none"]) else {
        panic!("not a create");
    };
    // It outlives the command that made it.
    let expected = SandboxSpec::new("i").with_provider_option("keep", true);
    assert_eq!(request.sandbox.spec, expected);
    assert_eq!(request.sandbox.config.create.network.as_deref(), Some("none"));
    let Ok(Action::Remove(request)) = typed(&["rm", "a", "b"]) else {
        panic!("not a removal");
    };
    assert_eq!(request.ids, ["a", "b"]);
}
