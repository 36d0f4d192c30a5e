//! Exit codes, start failures, arguments and environment.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use gym_sandbox::{
    Command, ErrorKind, ExecErrorType, ExecOptions, ExecPath, ExecReason, SandboxSpec, StartProblem,
};

use super::{common, engine_path, start, start_with};

#[tokio::test(flavor = "multi_thread")]
async fn no_exit_code_is_lost_or_made_up_at_32_in_flight() {
    let count = if common::long_tests_are_wanted() {
        2000
    } else {
        256
    };
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let wrong: Vec<(i32, i32)> = futures::stream::iter(0..count)
        .map(|number| {
            let sandbox = Arc::clone(&started.sandbox);
            async move {
                let result = sandbox.exec(format!("exit $(({number}%256))")).await.unwrap();
                assert_eq!(result.error_type, None, "{result:?}");
                (number % 256, result.return_code)
            }
        })
        .buffer_unordered(32)
        .filter(|&(expected, seen)| async move { expected != seen })
        .collect()
        .await;
    assert_eq!(wrong, []);
    started.close().await;
}

#[tokio::test]
async fn b06_d05_what_could_not_start_is_told_from_what_a_command_says() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX).with_workdir("/brand/new/dir")).await else {
        return;
    };
    started
        .stdout("printf '#!/bin/sh\n' >/tmp/noexec; chmod 644 /tmp/noexec")
        .await;
    for (command, cwd, problem, code) in [
        (["no-such-prog"].as_slice(), None, StartProblem::NotFound, 127),
        (&["/no/such/prog"], None, StartProblem::NotFound, 127),
        (&["/etc"], None, StartProblem::NotExecutable, 126),
        (&["/tmp/noexec"], None, StartProblem::NotExecutable, 126),
        (&["cd", "/tmp"], None, StartProblem::NotFound, 127),
        (&["pwd"], Some("/does/not/exist"), StartProblem::Cwd, 126),
        (&["pwd"], Some("/etc/passwd"), StartProblem::Cwd, 126),
    ] {
        let mut options = ExecOptions::new(command);
        options.cwd = cwd.map(str::to_owned);
        let result = started.exec(options).await;
        assert_eq!(
            result.error_type,
            Some(ExecErrorType::Start),
            "{command:?} {result:?}"
        );
        assert_eq!(
            result.reason,
            Some(ExecReason::Start(problem)),
            "{command:?} {result:?}"
        );
        assert_eq!(result.return_code, code, "{command:?}");
        assert_eq!(result.stdout().as_deref(), Some(""), "{command:?}");
        assert!(!result.stderr().unwrap().is_empty(), "{command:?}");
    }
    let user = started
        .exec(ExecOptions::new(["id"]).with_user("nobody-here"))
        .await;
    assert_eq!(
        user.reason,
        Some(ExecReason::Start(StartProblem::User)),
        "{user:?}"
    );

    let through_shell = started.exec(["sh", "-c", "no-such-prog"]).await;
    assert_eq!((through_shell.error_type, through_shell.return_code), (None, 127));
    assert!(through_shell.stderr().unwrap().contains("no-such-prog"));
    assert_eq!(started.stdout(["pwd"]).await, "/brand/new/dir\n");
    started.close().await;
}

#[tokio::test]
async fn b06_a_program_that_imitates_the_engine_is_an_ordinary_result() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let text = "OCI runtime exec failed: exec failed: unable to start container process: exec: \"x\": executable file not found in $PATH: unknown";
    for code in [126, 127, 128, 137, 125, 255] {
        let line = format!("printf '%s' '{text}'; printf '%s' 'No such container: x' >&2; exit {code}");
        let result = started.exec(line.as_str()).await;
        assert_eq!(result.error_type, None, "{result:?}");
        assert_eq!(result.return_code, code);
        assert_eq!(result.stdout().as_deref(), Some(text));
        assert_eq!(result.stderr().as_deref(), Some("No such container: x"));
    }
    started.close().await;
}

#[tokio::test]
async fn d05_late_start_failures_are_ordinary_on_the_engine_path() {
    let Some(test) = common::docker_with(engine_path()).await else {
        return;
    };
    let started = start_with(test, SandboxSpec::new(common::BUSYBOX)).await;
    started
        .stdout("printf '\\177ELFgarbage' >/tmp/g; printf '#!/no/interpreter\\n' >/tmp/i; chmod 755 /tmp/g /tmp/i")
        .await;
    for program in ["/tmp/g", "/tmp/i"] {
        let result = started.exec([program]).await;
        assert_eq!(result.exec_path, ExecPath::Engine);
        assert_eq!(result.error_type, None, "{result:?}");
        assert!([1, 255].contains(&result.return_code), "{result:?}");
    }
    started.close().await;
}

#[tokio::test]
async fn b10_arguments_up_to_the_limit_of_linux_pass_and_more_is_refused() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let longest = "x".repeat(gym_sandbox::MAX_ARGUMENT_BYTES);
    let length = started
        .stdout(Command::Argv(vec![
            "sh".into(),
            "-c".into(),
            "echo ${#1}".into(),
            "x".into(),
            longest.clone(),
        ]))
        .await;
    assert_eq!(length.trim(), gym_sandbox::MAX_ARGUMENT_BYTES.to_string());
    let many: Vec<String> = ["sh", "-c", "echo $#", "x"]
        .map(str::to_owned)
        .into_iter()
        .chain((0..1000).map(|_| "y".repeat(100)))
        .collect();
    assert_eq!(started.stdout(many).await, "1000\n");
    for refused in [
        ExecOptions::new(Command::Argv(vec!["true".into(), format!("{longest}x")])),
        ExecOptions::new(format!("{longest}x")),
        ExecOptions::new(["true"]).with_env("A", longest.clone()),
        ExecOptions::new(Command::Argv(Vec::new())),
        ExecOptions::new("a\0b"),
        ExecOptions::new("true").with_timeout(Duration::ZERO),
    ] {
        let error = started.sandbox.exec_with(refused).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    started.close().await;
}

#[tokio::test]
async fn b09_x06_values_of_the_environment_arrive_as_they_are() {
    let values = [
        ("A", ""),
        ("B", "x=y=z"),
        ("C", "one\ntwo"),
        ("D", " sp ace "),
        ("E", "é"),
    ];
    let print = r#"printf "[%s]" "${A-unset}" "$B" "$C" "$D" "$E""#;
    let expected = "[][x=y=z][one\ntwo][ sp ace ][é]";
    let spec = values.iter().fold(
        SandboxSpec::new(common::BUSYBOX).with_env("F", "box"),
        |spec, (name, value)| spec.with_env(*name, *value),
    );
    let Some(started) = start(spec).await else { return };
    assert_eq!(started.stdout(print).await, expected);
    let options = values
        .iter()
        .fold(ExecOptions::new(print), |options, (name, value)| {
            options.with_env(*name, format!("{value}{value}"))
        });
    assert_eq!(
        started.stdout(options).await,
        "[][x=y=zx=y=z][one\ntwoone\ntwo][ sp ace  sp ace ][éé]"
    );
    assert_eq!(
        started
            .stdout(ExecOptions::new("echo $F").with_env("F", "call"))
            .await,
        "call\n"
    );
    assert_eq!(started.stdout("echo $F").await, "box\n");
    for name in ["", "X=Y", "N\0"] {
        let error = started
            .sandbox
            .exec_with(ExecOptions::new("true").with_env(name, "hush"))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(!format!("{error:?} {}", error.report()).contains("hush"));
    }
    started.close().await;
}

#[tokio::test]
async fn x08_users_by_name_and_number() {
    let Some(started) = start(SandboxSpec::new("gym-sandbox/user:test")).await else {
        return;
    };
    assert_eq!(started.stdout("id -u").await, "1001\n");
    for (user, uid) in [
        ("root", "0"),
        ("0", "0"),
        ("nobody", "65534"),
        ("1234", "1234"),
        ("tester", "1001"),
    ] {
        assert_eq!(
            started
                .stdout(ExecOptions::new("id -u").with_user(user))
                .await
                .trim(),
            uid,
            "{user}"
        );
    }
    assert_eq!(
        started
            .stdout(ExecOptions::new("id -u; id -g").with_user("5:7"))
            .await,
        "5\n7\n"
    );
    started.close().await;
}

#[tokio::test]
async fn d31_an_image_without_a_shell_runs_lists_and_refuses_lines() {
    let Some(started) = start(SandboxSpec::new(common::STATIC).with_entrypoint(["/static"])).await else {
        return;
    };
    assert_eq!(
        started.stdout(["/static", "print", "hello"]).await.trim_end(),
        "hello"
    );
    let exit = started.exec(["/static", "exit", "9"]).await;
    assert_eq!((exit.return_code, exit.error_type), (9, None));
    let line = started.exec("echo hello").await;
    assert_eq!(
        line.reason,
        Some(ExecReason::Start(StartProblem::NotFound)),
        "{line:?}"
    );
    started.close().await;
}
