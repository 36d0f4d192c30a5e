//! What is refused before anything is made, and how it is said. Needs no engine.

use crate::support::{BUSYBOX, Call, expected};

/// An address where nothing can listen: these calls must not get that far.
const NOWHERE: &str = "unix:///nonexistent/engine.sock";

async fn call(arguments: &[&str]) -> (Option<i32>, String, String) {
    Call::new(arguments)
        .env("DOCKER_HOST", NOWHERE)
        .answer()
        .await
        .text()
}

#[tokio::test]
async fn the_version_is_data() {
    let version = format!("gym-sandbox {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(call(&["--version"]).await, expected(0, &version, ""));
}

#[tokio::test]
async fn help_is_data_and_names_every_command() {
    let (code, stdout, stderr) = call(&["--help"]).await;
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    for command in [
        "run",
        "create",
        "exec",
        "cp",
        "rm",
        "ps",
        "inspect",
        "gc",
        "compose",
        "doctor",
        "bench",
        "completions",
    ] {
        assert!(stdout.contains(&format!("\n  {command} ")), "{stdout}");
    }
}

#[tokio::test]
async fn help_says_what_is_needed_and_which_codes_there_are() {
    for (command, said) in [
        (
            &["create"][..],
            "Usage: gym-sandbox create --image <REF> [OPTIONS]",
        ),
        (
            &["shell"],
            "Usage: gym-sandbox shell --image <REF> [OPTIONS] [-- <CMD>...]",
        ),
        (
            &["compose", "run"],
            "Usage: gym-sandbox compose run [OPTIONS] <SERVICE> <--shell <LINE>|-- <CMD>...>",
        ),
        (&["compose", "run"], "124: it ran out of time, 125: no sandbox"),
        (&["compose", "exec"], "124: it ran out of time, 125: no sandbox"),
        (&["pty"], "no time limit: 124 is the program's own"),
        (&["shell"], "no time limit: 124 is the program's own"),
    ] {
        let (code, stdout, stderr) = call(&[command, &["--help"]].concat()).await;
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{command:?}");
        let words: Vec<&str> = stdout.split_whitespace().collect();
        assert!(words.join(" ").contains(said), "{command:?}: {stdout}");
    }
}

#[tokio::test]
async fn wrong_usage_is_2_and_leaves_standard_output_empty() {
    let run = ["run", "--image", BUSYBOX];
    for (arguments, said) in [
        (&[][..], "Usage: gym-sandbox"),
        (&["zork"], "unrecognized subcommand 'zork'"),
        (&["ps", "x"], "unexpected argument 'x'"),
        (&["inspect"], "required arguments were not provided"),
        (&["gc", "--all"], "unexpected argument '--all'"),
        (&["cp", "a"], "required arguments were not provided"),
        (
            &["cp", "a", "b"],
            "exactly one of SRC and DST is a path in a sandbox",
        ),
        (
            &["cp", "a:/b", "c:/d"],
            "exactly one of SRC and DST is a path in a sandbox",
        ),
        (
            &["cp", "./a:b", "/c:d"],
            "exactly one of SRC and DST is a path in a sandbox",
        ),
        (&["cp", "a", "id:"], "`id:` names no path in the sandbox"),
        (&["cp", "", "id:/b"], "a path is empty"),
        (
            &["cp", "--mode", "0644", "id:/a", "b"],
            "for copies into a sandbox",
        ),
        (&["cp", "--mode", "999", "a", "id:/b"], "'999'"),
        (&["cp", "--owner", "root", "a", "id:/b"], "'root'"),
        (&["run", "--zork"], "unexpected argument '--zork'"),
        (&run, "required arguments were not provided"),
        (&[&run[..], &["true"]].concat(), "unexpected argument 'true'"),
        (
            &[&run[..], &["--shell", "true", "--", "true"]].concat(),
            "cannot be used with",
        ),
        (
            &[&run[..], &["--timeout", "soon", "--", "true"]].concat(),
            "a duration looks like `30s`",
        ),
        (
            &[&run[..], &["--timeout", "0s", "--", "true"]].concat(),
            "the duration is zero",
        ),
        (
            &[&run[..], &["--memory", "much", "--", "true"]].concat(),
            "a size is a whole number",
        ),
        (
            &[&run[..], &["--memory", "1000k", "--", "true"]].concat(),
            "not a whole number of MiB",
        ),
        (
            &[&run[..], &["--cpus", "0", "--", "true"]].concat(),
            "a number of cores is over 0",
        ),
        (
            &[&run[..], &["--pids", "0", "--", "true"]].concat(),
            "invalid value '0' for '--pids",
        ),
        (
            &[&run[..], &["--port", "0", "--", "true"]].concat(),
            "invalid value '0' for '--port",
        ),
        (
            &[&run[..], &["--port", "80", "--port", "80", "--", "true"]].concat(),
            "port 80 is given twice",
        ),
        (
            &[&run[..], &["--env", "=x", "--", "true"]].concat(),
            "a variable is `NAME=VALUE`",
        ),
        (
            &[&run[..], &["--upload", "a:b:c", "--", "true"]].concat(),
            "exactly one `:`",
        ),
        (
            &[&run[..], &["--preset", "loose", "--", "true"]].concat(),
            "[possible values: compat, hardened]",
        ),
        (
            &[&run[..], &["--pull", "often", "--", "true"]].concat(),
            "[possible values: missing, always, never]",
        ),
        (&["run", "--", "true"], "no image is given"),
        (&["create"], "no image is given"),
        (&["exec", "--", "true"], "required arguments were not provided"),
        (&["exec", "some-id"], "required arguments were not provided"),
        (&["rm"], "required arguments were not provided"),
        (&["exec", "no/id", "--", "true"], "`no/id` is not a sandbox id"),
        (
            &["--provider", "zork", "doctor"],
            "[possible values: docker, local]",
        ),
        (&["bench", "--rows", "zork"], "rows are: exec engine true"),
    ] {
        let (code, stdout, stderr) = call(arguments).await;
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
}

#[tokio::test]
async fn what_cannot_be_is_refused_before_an_engine_is_asked() {
    let rows: &[(&[&str], &str)] = &[
        (&["run", "--image", "", "--", "true"], "--image names no image"),
        (
            &["run", "--image", "A B", "--", "true"],
            "`A B` is not an image reference",
        ),
        (&["create", "--image", ""], "--image names no image"),
        (&["shell", "--image", "A B"], "--image names no image"),
        (
            &[
                "run",
                "--image",
                BUSYBOX,
                "--port",
                "80",
                "--network",
                "none",
                "--",
                "true",
            ],
            "--port 80: a sandbox on --network none publishes no ports",
        ),
        (
            &["create", "--image", BUSYBOX, "--network", "none", "--port", "80"],
            "--network none publishes no ports",
        ),
        (&["pty", "some-id", "--json"], "--json has no meaning with `pty`"),
        (
            &["--json", "shell", "--image", BUSYBOX],
            "--json has no meaning with `shell`",
        ),
        (
            &[
                "compose",
                "exec",
                "-p",
                "p",
                "--exec-path",
                "agent",
                "web",
                "--",
                "true",
            ],
            "--exec-path agent: the resident agent is not put into services",
        ),
        (
            &["compose", "run", "--exec-path", "agent", "web", "--", "true"],
            "--exec-path agent: the resident agent is not put into services",
        ),
        (
            &["compose", "plan", "--image", "web=A B"],
            "--image names no image",
        ),
        (
            &["compose", "down", "-p", ""],
            "`` can't be the name of a project",
        ),
        (
            &["compose", "ps", "-p", "A B"],
            "`A B` can't be the name of a project",
        ),
        (
            &["compose", "up", "--image", "=x"],
            "the service before `=` is missing",
        ),
    ];
    for (arguments, said) in rows {
        let (code, stdout, stderr) = call(arguments).await;
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
}

#[tokio::test]
async fn what_has_no_meaning_without_an_engine_is_refused_by_name() {
    for command in [&["doctor"][..], &["ps"], &["gc"], &["inspect", "x"]] {
        let (code, stdout, stderr) = call(&[&["--provider", "local"], command].concat()).await;
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{command:?}");
        let said = format!("`{}` has no meaning with --provider local", command[0]);
        assert!(stderr.contains(&said), "{stderr}");
    }
    for command in [
        &["plan"][..],
        &["up"],
        &["run", "web", "--", "true"],
        &["ps", "-p", "p"],
        &["logs", "-p", "p"],
        &["exec", "-p", "p", "web", "--", "true"],
        &["down", "-p", "p"],
    ] {
        let arguments = [&["--provider", "local", "compose"], command].concat();
        let (code, stdout, stderr) = call(&arguments).await;
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{command:?}");
        let said = format!("`compose {}` has no meaning with --provider local", command[0]);
        assert!(stderr.contains(&said), "{stderr}");
    }
}

#[tokio::test]
async fn a_variable_that_can_t_be_read_is_not_repeated() {
    let (code, _, stderr) = call(&["run", "--image", BUSYBOX, "--env", "=hunter2", "--", "true"]).await;
    assert_eq!(code, Some(2));
    assert!(!stderr.contains("hunter2"), "{stderr}");
}

#[tokio::test]
async fn an_upload_of_nothing_is_refused_before_a_sandbox_is_made() {
    let answer = call(&[
        "run",
        "--image",
        BUSYBOX,
        "--upload",
        "/nonexistent/x:/x",
        "--",
        "true",
    ])
    .await;
    assert_eq!(
        answer,
        expected(
            125,
            "",
            "error: upload: `/nonexistent/x` does not exist on this machine\n"
        )
    );
}

#[tokio::test]
async fn completions_are_data_and_name_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (code, stdout, stderr) = call(&["completions", shell]).await;
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{shell}");
        for word in ["run", "compose", "doctor", "--provider", "--exec-path"] {
            assert!(
                stdout.contains(word.trim_start_matches('-')),
                "{word} is not in the script of {shell}"
            );
        }
    }
    assert_eq!(call(&["completions", "dos"]).await.0, Some(2));
}
