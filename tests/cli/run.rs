//! `run`: exit codes, streams, options, JSON, and nothing left.

use serde_json::json;

use crate::support::{BUSYBOX, Call, containers, engine_or_skip, expected, remove};

#[tokio::test]
async fn the_exit_code_is_the_command_s() {
    let _docker = engine_or_skip!();
    for code in [0, 1, 7, 124, 125, 255] {
        let answer = Call::run(&["--shell", &format!("exit {code}")])
            .clean_answer()
            .await;
        assert_eq!(answer.text(), expected(code, "", ""));
    }
}

#[tokio::test]
async fn what_has_no_code_of_its_own_has_a_documented_one() {
    let _docker = engine_or_skip!();
    for (arguments, code) in [
        (&["--timeout", "1s", "--", "sleep", "600"][..], 124),
        (
            &[
                "--pull",
                "never",
                "--image",
                "gym-sandbox/nonexistent:test",
                "--",
                "true",
            ],
            125,
        ),
        (&["--shell", "kill -TERM 1; sleep 160"], 125),
        (&["--", "/etc/passwd"], 126),
        (&["--workdir", "/", "--user", "nobody-knows", "--", "true"], 126),
        (&["--", "no-such-program"], 127),
    ] {
        let call = match arguments {
            ["--pull", ..] => Call::new(&[&["run"], arguments].concat()),
            _ => Call::run(arguments),
        };
        let (answer, stdout, stderr) = call.clean_answer().await.text();
        assert_eq!(
            (answer, stdout.as_str()),
            (Some(code), ""),
            "{arguments:?}: {stderr}"
        );
        assert!(!stderr.is_empty(), "{arguments:?}");
    }
}

#[tokio::test]
async fn both_streams_are_passed_on_byte_for_byte() {
    let _docker = engine_or_skip!();
    let line = r"printf 'a\000\377\r\n'; printf '\001\002\000\000\000\000\000\005b' >&2; printf c";
    let answer = Call::run(&["--shell", line]).clean_answer().await;
    assert_eq!(answer.code, Some(0));
    assert_eq!(answer.stdout, b"a\0\xff\r\nc");
    assert_eq!(answer.stderr, b"\x01\x02\0\0\0\0\0\x05b");
}

#[tokio::test]
async fn what_was_printed_before_a_timeout_is_passed_on() {
    let _docker = engine_or_skip!();
    let answer = Call::run(&["--timeout", "10s", "--shell", "echo out; echo err >&2; sleep 600"])
        .clean_answer()
        .await;
    let (code, stdout, stderr) = answer.text();
    assert_eq!((code, stdout.as_str()), (Some(124), "out\n"), "{stderr}");
    assert!(stderr.starts_with("err\ngym-sandbox: "), "{stderr}");
}

#[tokio::test]
async fn an_argv_reaches_the_program_as_it_is() {
    let _docker = engine_or_skip!();
    let answer = Call::run(&["--", "printf", "[%s]", "a b", "$HOME", "*", "", "--json"])
        .clean_answer()
        .await;
    assert_eq!(answer.text(), expected(0, "[a b][$HOME][*][][--json]", ""));
}

#[tokio::test]
async fn a_large_output_arrives_whole() {
    let _docker = engine_or_skip!();
    let answer = Call::run(&["--shell", "head -c 50000000 /dev/zero"])
        .clean_answer()
        .await;
    assert_eq!((answer.code, answer.stdout.len()), (Some(0), 50_000_000));
}

#[tokio::test]
async fn variables_directory_and_user() {
    let _docker = engine_or_skip!();
    let call = Call::run(&[
        "--env",
        "GIVEN=a b",
        "--env",
        "PASSED",
        "--env",
        "UNSET_HERE",
        "--env",
        "EMPTY=",
        "--workdir",
        "/tmp",
        "--user",
        "nobody",
        "--shell",
        "echo \"$GIVEN|$PASSED|${UNSET_HERE-unset}|${EMPTY-unset}|$(pwd)|$(id -un)\"",
    ]);
    let answer = call.env("PASSED", "from outside").clean_answer().await;
    assert_eq!(
        answer.text(),
        expected(0, "a b|from outside|unset||/tmp|nobody\n", "")
    );
}

#[tokio::test]
async fn standard_input_is_given_only_when_asked_for() {
    let _docker = engine_or_skip!();
    let input = b"x\0\xff".repeat(100_000);
    let given = Call::run(&["--stdin", "--", "wc", "-c"])
        .input(&input)
        .clean_answer()
        .await;
    assert_eq!(given.text(), expected(0, "300000\n", ""));
    let not_given = Call::run(&["--", "wc", "-c"]).input(&input).clean_answer().await;
    assert_eq!(not_given.text(), expected(0, "0\n", ""));
}

#[tokio::test]
async fn json_is_one_object_with_the_documented_fields() {
    let _docker = engine_or_skip!();
    let answer = Call::run(&["--json", "--shell", "echo out; echo err >&2; exit 7"])
        .clean_answer()
        .await;
    assert_eq!((answer.code, answer.stderr.len()), (Some(7), 0));
    let mut value = answer.json();
    let duration = value.as_object_mut().unwrap().remove("duration_s").unwrap();
    assert!(
        duration.as_f64().is_some_and(|seconds| seconds > 0.0),
        "{duration}"
    );
    assert_eq!(
        value,
        json!({
            "return_code": 7, "error_type": null, "reason": null, "stdout": "out\n", "stderr": "err\n",
            "partial_stdout": null, "partial_stderr": null, "truncated": {"stdout": false, "stderr": false},
            "bytes": {"stdout": 4, "stderr": 4}, "killed": null, "survivors": null, "background_output_open": false,
            "exec_path": "agent",
        })
    );
}

#[tokio::test]
async fn json_tells_a_timeout_from_a_code_of_the_same_number() {
    let _docker = engine_or_skip!();
    let late = Call::run(&["--json", "--timeout", "10s", "--shell", "echo out; sleep 600"])
        .clean_answer()
        .await;
    let value = late.json();
    assert_eq!(late.code, Some(124));
    assert_eq!(
        (
            &value["return_code"],
            &value["error_type"],
            &value["stdout"],
            &value["partial_stdout"]
        ),
        (&json!(125), &json!("timeout"), &json!(null), &json!("out\n"))
    );
    let own = Call::run(&["--json", "--shell", "exit 124"]).clean_answer().await;
    assert_eq!((own.code, &own.json()["error_type"]), (Some(124), &json!(null)));
}

#[tokio::test]
async fn limits_network_and_labels_reach_the_engine() {
    let docker = engine_or_skip!();
    let call = Call::run(&[
        "--json",
        "--keep",
        "--cpus",
        "0.5",
        "--memory",
        "64m",
        "--pids",
        "50",
        "--network",
        "none",
        "--",
        "true",
    ]);
    let run = call.run.clone();
    let answer = call.answer().await;
    assert_eq!(answer.code, Some(0), "{:?}", answer.text());
    let kept = containers(&docker, &run).await;
    assert_eq!(kept.len(), 1);
    let name = answer.json()["sandbox_id"].as_str().unwrap().to_owned();
    let container = docker.inspect_container(&name, None).await.unwrap();
    remove(&docker, &name).await;
    assert_eq!(container.id, kept[0].id);
    let host = container.host_config.unwrap();
    assert_eq!(
        (
            host.nano_cpus,
            host.memory,
            host.pids_limit,
            host.network_mode.as_deref()
        ),
        (Some(500_000_000), Some(64 << 20), Some(50), Some("none"))
    );
}

#[tokio::test]
async fn a_kept_sandbox_runs_on_and_its_id_is_said() {
    let docker = engine_or_skip!();
    let call = Call::run(&["--keep", "--shell", "echo out; exit 3"]);
    let run = call.run.clone();
    let (code, stdout, stderr) = call.answer().await.text();
    let kept = containers(&docker, &run).await;
    let name = stderr
        .trim_end()
        .strip_prefix("gym-sandbox: the sandbox is kept: ")
        .unwrap_or_default()
        .to_owned();
    for container in &kept {
        remove(&docker, container.id.as_deref().unwrap()).await;
    }
    assert_eq!((code, stdout.as_str()), (Some(3), "out\n"));
    assert_eq!(kept.len(), 1, "{stderr}");
    assert_eq!(kept[0].names, Some(vec![format!("/{name}")]), "{stderr}");
    assert_eq!(
        kept[0].state.as_ref().map(ToString::to_string).as_deref(),
        Some("running")
    );
}

#[tokio::test]
async fn a_sandbox_that_could_not_be_made_or_filled_is_not_said_to_be_kept() {
    let _docker = engine_or_skip!();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x"), "x").unwrap();
    let upload = format!("{}:/etc/passwd/x", folder.path().join("x").display());
    for arguments in [
        &["--pull", "never", "--image", "gym-sandbox/nonexistent:test"][..],
        &["--image", BUSYBOX, "--upload", &upload],
        &["--image", BUSYBOX, "--upload", &upload, "--json"],
    ] {
        let call = Call::new(&[&["run", "--keep"], arguments, &["--", "true"]].concat());
        let (code, stdout, stderr) = call.clean_answer().await.text();
        assert_eq!((code, stdout.as_str()), (Some(125), ""), "{arguments:?}");
        assert!(!stderr.contains("kept"), "{stderr}");
    }
}

#[tokio::test]
async fn a_port_is_said_with_the_address_where_it_answers() {
    let _docker = engine_or_skip!();
    let answer = Call::run(&["--json", "--port", "8080", "--", "true"])
        .clean_answer()
        .await;
    assert_eq!(answer.code, Some(0), "{:?}", answer.text());
    let endpoint = answer.json()["endpoints"]["8080"].as_str().unwrap().to_owned();
    assert!(endpoint.starts_with("http://"), "{endpoint}");
    let text = Call::run(&["--port", "8080", "--", "true"]).clean_answer().await;
    assert!(
        text.stderr().starts_with("gym-sandbox: port 8080 is at http://"),
        "{:?}",
        text.text()
    );
}

#[tokio::test]
async fn a_hardened_sandbox_has_no_capabilities() {
    let _docker = engine_or_skip!();
    let line = "grep -E 'CapBnd|NoNewPrivs' /proc/self/status";
    let answer = Call::run(&["--preset", "hardened", "--shell", line])
        .clean_answer()
        .await;
    assert_eq!(
        answer.text(),
        expected(0, "CapBnd:\t0000000000000000\nNoNewPrivs:\t1\n", "")
    );
}

#[tokio::test]
async fn a_missing_image_is_named_with_what_to_do() {
    let _docker = engine_or_skip!();
    let image = "gym-sandbox/nonexistent:test";
    let answer = Call::new(&["run", "--image", image, "--pull", "never", "--", "true"])
        .clean_answer()
        .await;
    let (code, stdout, stderr) = answer.text();
    assert_eq!((code, stdout.as_str()), (Some(125), ""));
    assert!(
        stderr.starts_with("error: ") && stderr.contains(image),
        "{stderr}"
    );
}

#[tokio::test]
async fn a_missing_network_is_named_with_what_to_do() {
    let _docker = engine_or_skip!();
    let answer = Call::run(&["--network", "gym-sandbox-nonexistent", "--", "true"])
        .clean_answer()
        .await;
    let hint = "make it first, as with `docker network create gym-sandbox-nonexistent`, or correct its name";
    assert_eq!(answer.code, Some(125));
    let said = answer.stderr();
    assert!(
        said.starts_with("error: create sandbox: the engine has no network `gym-sandbox-nonexistent`")
            && said.contains(hint),
        "{said}"
    );
}

#[tokio::test]
async fn the_log_goes_to_standard_error_and_only_when_asked_for() {
    let _docker = engine_or_skip!();
    let answer = Call::new(&[
        "-vv",
        "run",
        "--image",
        BUSYBOX,
        "--env",
        "A=hunter2",
        "--",
        "echo",
        "out",
    ])
    .clean_answer();
    let (code, stdout, stderr) = answer.await.text();
    assert_eq!((code, stdout.as_str()), (Some(0), "out\n"));
    assert!(stderr.contains("sandbox_id"), "{stderr}");
    assert!(!stderr.contains("hunter2"), "{stderr}");
}
