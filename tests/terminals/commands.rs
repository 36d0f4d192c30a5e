//! Commands through sessions (contract Y1-Y14).

use std::time::Duration;

use gym_sandbox::{
    AsyncSandbox, ErrorKind, ExecErrorType, PtyAttachOptions, PtyExecOptions, PtyMode, SandboxPtySpec,
    SandboxSpec,
};

use crate::common::DEBIAN;
use crate::{LIMIT, Subject, on_both_paths, until, within};

on_both_paths!(
    y2_the_directory_is_the_specs,
    y5_a_session_takes_no_directory_variables_or_user,
    y6_the_oldest_living_shell_is_used_without_being_named,
    y7_a_command_of_its_own_has_a_session_of_its_own,
    y8_output_before_the_marker_and_the_status_are_the_result,
    y8_what_is_no_complete_command_fails_at_once,
    y9_a_command_that_ends_the_shell_is_an_error,
    y10_commands_take_turns_and_the_timeout_covers_the_wait,
    y11_a_timeout_leaves_the_callers_session_and_closes_the_implicit_one,
    y11_a_command_that_is_given_up_leaves_no_session_that_serves_others,
    y11_a_command_in_a_named_session_that_is_given_up_keeps_it_from_others,
    y12_directory_and_variables_persist,
    y13_detached_commands_have_one_stream,
    l18_after_a_pause_no_session_serves_commands_by_itself,
);

async fn y2_the_directory_is_the_specs(subject: &Subject) {
    let sandbox = AsyncSandbox::new(subject.test.provider.clone())
        .with_spec(subject.test.spec().with_workdir("/var/tmp"));
    let refused = sandbox.pty().create("pwd").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotStarted);
    sandbox.start().await.unwrap();
    let result = within(sandbox.pty().exec("pwd")).await.unwrap();
    assert_eq!(result.stdout().unwrap(), "/var/tmp\r\n");
    let options = PtyExecOptions::new("pwd").with_cwd("/tmp");
    let result = within(sandbox.pty().exec(options)).await.unwrap();
    assert_eq!(result.stdout().unwrap(), "/tmp\r\n");
    sandbox.stop().await.unwrap();
}

async fn y5_a_session_takes_no_directory_variables_or_user(subject: &Subject) {
    let shell = subject.create(SandboxPtySpec::default()).await;
    let options = || PtyExecOptions::new("true").with_session(&shell);
    for options in [
        options().with_cwd("/"),
        options().with_env("A", "b"),
        options().with_user("root"),
        options().with_detach().with_user("root"),
    ] {
        let refused = subject.sandbox.pty().exec(options).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    }
    let result = within(subject.sandbox.pty().exec(options().with_size(1, 1)))
        .await
        .unwrap();
    assert_eq!(result.return_code, 0);
}

async fn y6_the_oldest_living_shell_is_used_without_being_named(subject: &Subject) {
    let pty = subject.sandbox.pty();
    let first = subject.create(SandboxPtySpec::default()).await;
    let second = subject.create(SandboxPtySpec::default()).await;
    for (session, name) in [(&first, "first"), (&second, "second")] {
        let options = PtyExecOptions::new(format!("name={name}")).with_session(session);
        assert_eq!(within(pty.exec(options)).await.unwrap().return_code, 0);
    }
    let who = || async {
        let result = within(pty.exec("echo \"[$name]\"")).await.unwrap();
        let text = result.stdout().unwrap();
        text[text.rfind('[').unwrap()..].trim().to_owned()
    };
    assert_eq!(who().await, "[first]");
    first.close().await.unwrap();
    assert_eq!(who().await, "[second]");
    // Shaped, it is a session of its own.
    let shaped = within(pty.exec(PtyExecOptions::new("echo \"[$name]\"").with_size(10, 20)))
        .await
        .unwrap();
    assert_eq!(shaped.stdout().unwrap(), "[]\r\n");
    second.close().await.unwrap();
    assert_eq!(
        within(pty.exec("echo \"[$name]\""))
            .await
            .unwrap()
            .stdout()
            .unwrap(),
        "[]\r\n"
    );
}

async fn y7_a_command_of_its_own_has_a_session_of_its_own(subject: &Subject) {
    let pty = subject.sandbox.pty();
    let line = "echo out; echo err >&2; exit 3";
    let result = within(pty.exec(line)).await.unwrap();
    assert_eq!((result.return_code, result.error_type), (3, None));
    assert_eq!(result.stdout().unwrap(), "out\r\nerr\r\n");
    assert_eq!(result.stderr(), None);
    let result = within(pty.exec(PtyExecOptions::new(line).with_mode(PtyMode::Pipe)))
        .await
        .unwrap();
    assert_eq!(result.stdout().unwrap(), "out\n");
    assert_eq!(result.stderr().unwrap(), "err\n");
    let mut limit = Duration::from_secs(3);
    let result = loop {
        let options = PtyExecOptions::new("echo partly; sleep 4747").with_timeout(limit);
        let result = within(pty.exec(options)).await.unwrap();
        assert_eq!(
            (result.return_code, result.error_type),
            (125, Some(ExecErrorType::Timeout))
        );
        // A busy engine may not have begun with it in its time.
        if limit > LIMIT / 4 || result.partial_stdout().is_some_and(|text| !text.is_empty()) {
            break result;
        }
        limit *= 4;
    };
    assert_eq!(result.partial_stdout().unwrap(), "partly\r\n");
    subject.until_gone("4747").await;
}

async fn y8_output_before_the_marker_and_the_status_are_the_result(subject: &Subject) {
    let shell = subject.create(SandboxPtySpec::default()).await;
    for (line, output, code) in [
        ("printf 'no end'", "no end", 0),
        ("(exit 42)", "", 42),
        ("cat; echo \"in is empty\"", "in is empty\r\n", 0),
        ("printf 'tab\\there\t!'", "tab\there\t!", 0),
        ("echo one\necho two", "one\r\ntwo\r\n", 0),
    ] {
        let options = PtyExecOptions::new(line).with_session(&shell);
        let result = within(subject.sandbox.pty().exec(options)).await.unwrap();
        assert_eq!((result.return_code, result.error_type), (code, None), "{line}");
        let text = result.stdout().unwrap();
        assert!(text.ends_with(output), "{line}: {text:?}");
        assert_eq!(result.stderr(), None);
    }
    let options = PtyExecOptions::new(["printf", "%s|", "a b", "it's", "$HOME"]).with_session(&shell);
    let result = within(subject.sandbox.pty().exec(options)).await.unwrap();
    assert!(result.stdout().unwrap().ends_with("a b|it's|$HOME|"));
    // Behind pipes nothing is echoed, and errors are apart.
    let pipes = subject
        .create(SandboxPtySpec::default().with_mode(PtyMode::Pipe))
        .await;
    let options = PtyExecOptions::new("echo out; echo err >&2").with_session(&pipes);
    let result = within(subject.sandbox.pty().exec(options)).await.unwrap();
    assert_eq!(
        (result.stdout().unwrap(), result.stderr().unwrap()),
        ("out\n".to_owned(), "err\n".to_owned())
    );
}

/// Typed as they are, some would wait for their end, and others take the marker along.
async fn y8_what_is_no_complete_command_fails_at_once(subject: &Subject) {
    let debian = Subject::start_with(subject.path, SandboxSpec::new(DEBIAN))
        .await
        .unwrap();
    for (sandbox, spec) in [
        (subject, SandboxPtySpec::default()),
        (subject, SandboxPtySpec::default().with_mode(PtyMode::Pipe)),
        (&debian, SandboxPtySpec::new(["bash", "-i"])),
        (&debian, SandboxPtySpec::new(["dash", "-i"])),
        (&debian, SandboxPtySpec::new(["dash"]).with_mode(PtyMode::Pipe)),
    ] {
        let shell = sandbox.create(spec).await;
        for (line, fails) in [
            ("fi", true),
            ("echo 'abc", true),
            ("echo \"abc", true),
            ("echo $(", true),
            ("{ echo a", true),
            ("echo a; }", true),
            ("if true", true),
            ("echo a &&", true),
            ("| cat", true),
            ("done", true),
            ("# nothing", false),
            (" ", false),
            ("echo a \\", false),
            ("echo a # no more", false),
            ("cat <<END\nno end", false),
        ] {
            let options = PtyExecOptions::new(line).with_session(&shell).with_timeout(LIMIT);
            let result = within(sandbox.sandbox.pty().exec(options)).await.unwrap();
            assert_eq!(result.error_type, None, "{line}: {result:?}");
            assert_eq!(result.return_code != 0, fails, "{line}: {result:?}");
        }
        // Longer than the line of a terminal, as a script and as one line.
        let script = format!("x=0\n{}echo \"sum $x\"", "x=$((x + 1))\n".repeat(500));
        let word = format!("printf %s {} | wc -c", "a".repeat(6000));
        for (line, end) in [(script, "sum 500\n"), (word, "6000\n")] {
            let options = PtyExecOptions::new(line).with_session(&shell);
            let result = within(sandbox.sandbox.pty().exec(options)).await.unwrap();
            let text = result.stdout().unwrap().replace('\r', "");
            assert!(
                text.ends_with(end),
                "{:?}",
                text.get(text.len().saturating_sub(200)..)
            );
        }
        let options = PtyExecOptions::new("word=kept; cd /tmp; (exit 7)").with_session(&shell);
        assert_eq!(
            within(sandbox.sandbox.pty().exec(options))
                .await
                .unwrap()
                .return_code,
            7
        );
        let options = PtyExecOptions::new("echo \"$PWD $word\"").with_session(&shell);
        let text = within(sandbox.sandbox.pty().exec(options))
            .await
            .unwrap()
            .stdout()
            .unwrap();
        assert!(text.replace('\r', "").ends_with("/tmp kept\n"), "{text:?}");
        shell.close().await.unwrap();
    }
    debian.close().await;
}

async fn y9_a_command_that_ends_the_shell_is_an_error(subject: &Subject) {
    let shell = subject.create(SandboxPtySpec::default()).await;
    let options = PtyExecOptions::new("exit 3").with_session(&shell);
    let error = within(subject.sandbox.pty().exec(options)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Pty);
    assert_eq!(within(shell.wait_exit()).await.unwrap(), 3);
    // A program that is no shell tells no status.
    let no_shell = subject
        .create(
            "stty -echo; echo ready; while read -r line; do case $line in *printf*) set -- $line; \
                 eval \"set -- ${line#*:\\'}\"; printf '%s%s:zork:' $1 $2 ;; esac; done",
        )
        .await;
    until(&no_shell, "ready").await;
    let options = PtyExecOptions::new("true").with_session(&no_shell);
    let result = within(subject.sandbox.pty().exec(options)).await.unwrap();
    assert_eq!(
        (result.return_code, result.error_type),
        (125, Some(ExecErrorType::Pty))
    );
}

async fn y10_commands_take_turns_and_the_timeout_covers_the_wait(subject: &Subject) {
    let shell = subject.create(SandboxPtySpec::default()).await;
    let pty = subject.sandbox.pty();
    let line = "touch /tmp/begun; until test -e /tmp/go; do sleep 0.1; done; echo long";
    let long = pty.exec(PtyExecOptions::new(line).with_session(&shell));
    let short = async {
        // The other one has the turn.
        subject.line("until test -e /tmp/begun; do sleep 0.1; done").await;
        let options = PtyExecOptions::new("echo short")
            .with_session(&shell)
            .with_timeout(Duration::from_millis(500));
        let short = pty.exec(options).await;
        subject.line("touch /tmp/go").await;
        short
    };
    let (long, short) = within(async { tokio::join!(long, short) }).await;
    assert!(long.unwrap().stdout().unwrap().ends_with("long\r\n"));
    let short = short.unwrap();
    assert_eq!(
        (short.return_code, short.error_type),
        (125, Some(ExecErrorType::Timeout))
    );
    let after = within(pty.exec(PtyExecOptions::new("echo after").with_session(&shell)))
        .await
        .unwrap();
    assert!(after.stdout().unwrap().ends_with("after\r\n"));
}

async fn y11_a_timeout_leaves_the_callers_session_and_closes_the_implicit_one(subject: &Subject) {
    let shell = subject.create(SandboxPtySpec::default()).await;
    let pty = subject.sandbox.pty();
    let options = PtyExecOptions::new("sleep 4848")
        .with_session(&shell)
        .with_timeout(Duration::from_millis(500));
    let result = within(pty.exec(options)).await.unwrap();
    assert_eq!(
        (result.return_code, result.error_type),
        (125, Some(ExecErrorType::Timeout))
    );
    assert!(result.stderr().unwrap().contains("discard"), "{result:?}");
    assert!(!shell.is_closed());
    shell.write(&[3]).await.unwrap();
    let options = PtyExecOptions::new("sleep 4848").with_timeout(Duration::from_millis(500));
    let result = within(pty.exec(options)).await.unwrap();
    assert_eq!(result.error_type, Some(ExecErrorType::Timeout));
    assert!(shell.is_closed());
    subject.until_gone("4848").await;
}

async fn y11_a_command_that_is_given_up_leaves_no_session_that_serves_others(subject: &Subject) {
    let shell = subject.create(SandboxPtySpec::default()).await;
    let pty = subject.sandbox.pty();
    within(pty.exec("word=here")).await.unwrap();
    // The key that ends it must find it.
    subject.give_up(pty.exec("sleep 4850"), "4850").await;
    // It would wait for the other one.
    let result = within(pty.exec("echo \"[$word]\"")).await.unwrap();
    assert_eq!(result.stdout().unwrap(), "[]\r\n");
    // The caller of the session has it still.
    shell.write(&[3]).await.unwrap();
    let options = PtyExecOptions::new("echo \"[$word]\"").with_session(&shell);
    let text = within(pty.exec(options)).await.unwrap().stdout().unwrap();
    assert!(text.ends_with("[here]\r\n"), "{text:?}");
}

async fn y11_a_command_in_a_named_session_that_is_given_up_keeps_it_from_others(subject: &Subject) {
    let shell = subject.create(SandboxPtySpec::default()).await;
    let pty = subject.sandbox.pty();
    within(pty.exec("word=here")).await.unwrap();
    let options = PtyExecOptions::new("sleep 4851").with_session(&shell);
    subject.give_up(pty.exec(options), "4851").await;
    let result = within(pty.exec("echo \"[$word]\"")).await.unwrap();
    assert_eq!(result.stdout().unwrap(), "[]\r\n");
}

async fn y12_directory_and_variables_persist(subject: &Subject) {
    let shell = subject.create(SandboxPtySpec::default()).await;
    for line in ["cd /var/tmp", "export WORD=kept", "x=1"] {
        let options = PtyExecOptions::new(line).with_session(&shell);
        assert_eq!(
            within(subject.sandbox.pty().exec(options))
                .await
                .unwrap()
                .return_code,
            0
        );
    }
    let options = PtyExecOptions::new("echo \"$PWD $x $(env | grep ^WORD)\"").with_session(&shell);
    let text = within(subject.sandbox.pty().exec(options))
        .await
        .unwrap()
        .stdout()
        .unwrap();
    assert!(text.ends_with("/var/tmp 1 WORD=kept\r\n"), "{text:?}");
}

async fn l18_after_a_pause_no_session_serves_commands_by_itself(subject: &Subject) {
    let shell = subject.create(SandboxPtySpec::default()).await;
    let pty = subject.sandbox.pty();
    within(pty.exec("x=kept")).await.unwrap();
    let said = async |options: PtyExecOptions| within(pty.exec(options)).await.unwrap().stdout().unwrap();
    let show = || PtyExecOptions::new("echo \"<${x:-none}>\"");
    assert!(said(show()).await.ends_with("<kept>\r\n"));
    subject.sandbox.pause().await.unwrap();
    subject.sandbox.resume().await.unwrap();
    assert!(said(show()).await.ends_with("<none>\r\n"));
    // Its caller still has it.
    assert!(said(show().with_session(&shell)).await.ends_with("<kept>\r\n"));
}

async fn y13_detached_commands_have_one_stream(subject: &Subject) {
    let pty = subject.sandbox.pty();
    let options = PtyExecOptions::new("echo out; echo err >&2; exit 2").with_detach();
    let result = within(pty.exec(options)).await.unwrap();
    assert_eq!(result.return_code, 2);
    assert_eq!(result.stdout().unwrap(), "out\r\nerr\r\n");
    assert_eq!(result.stderr(), None);
    let on_engine = subject.path == gym_sandbox::docker::ExecPathPolicy::Engine;
    assert_eq!(result.hint.is_some(), on_engine, "{result:?}");
    // The session of the caller can be used afterwards.
    let shell = subject.create(SandboxPtySpec::default()).await;
    for word in ["one", "two"] {
        let options = PtyExecOptions::new(format!("echo {word}"))
            .with_session(&shell)
            .with_detach();
        let text = within(pty.exec(options)).await.unwrap().stdout().unwrap();
        assert!(text.ends_with(&format!("{word}\r\n")), "{text:?}");
    }
    let pipes = subject
        .create(SandboxPtySpec::default().with_mode(PtyMode::Pipe))
        .await;
    let options = PtyExecOptions::new("echo out; echo err >&2").with_session(&pipes);
    let result = within(pty.exec(options.with_detach())).await.unwrap();
    assert_eq!(result.stdout().unwrap(), "out\nerr\n");
    assert_eq!(result.stderr(), None);
    let options = PtyExecOptions::new("sleep 4949")
        .with_detach()
        .with_timeout(Duration::from_millis(700));
    let result = within(pty.exec(options)).await.unwrap();
    assert_eq!(
        (result.return_code, result.error_type),
        (125, Some(ExecErrorType::Timeout))
    );
    subject.until_gone("4949").await;
    if on_engine {
        let refused = pty.attach("x", PtyAttachOptions::default()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
    }
}
