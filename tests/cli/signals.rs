//! Signals and closed pipes: the command ends in good order and leaves nothing.

use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Call, DEADLINE, assert_nothing_left, containers, ended, engine_or_skip, send, until};

#[tokio::test]
async fn a_signal_removes_the_sandbox_and_has_its_code() {
    let docker = engine_or_skip!();
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let mut call = Call::run(&["--exec-path", "engine", "--", "sleep", "300"]);
        let mut child = call.command.spawn().unwrap();
        until("the command runs in the sandbox", async || {
            let name = containers(&docker, &call.run).await.first()?.id.clone()?;
            let container = docker.inspect_container(&name, None).await.ok()?;
            container.exec_ids.filter(|ids| !ids.is_empty())
        })
        .await;
        send(&child, signal).await;
        assert_eq!(ended(&mut child).await.code(), Some(code), "{signal}");
        assert_nothing_left(&call.run).await;
    }
}

#[tokio::test]
async fn a_signal_while_the_sandbox_is_made_leaves_nothing() {
    let docker = engine_or_skip!();
    let mut call = Call::run(&["--", "sleep", "300"]);
    let mut child = call.command.spawn().unwrap();
    until("the container is made", async || {
        containers(&docker, &call.run).await.pop()
    })
    .await;
    send(&child, "INT").await;
    assert_eq!(ended(&mut child).await.code(), Some(130));
    assert_nothing_left(&call.run).await;
}

#[tokio::test]
async fn a_sandbox_that_was_to_be_kept_is_removed_by_a_signal() {
    let docker = engine_or_skip!();
    let mut call = Call::run(&["--keep", "--", "sleep", "300"]);
    let mut child = call.command.spawn().unwrap();
    until("the container is made", async || {
        containers(&docker, &call.run).await.pop()
    })
    .await;
    send(&child, "TERM").await;
    let mut stderr = child.stderr.take().unwrap();
    assert_eq!(ended(&mut child).await.code(), Some(143));
    let mut said = String::new();
    stderr.read_to_string(&mut said).await.unwrap();
    assert!(!said.contains("kept"), "{said}");
    assert_nothing_left(&call.run).await;
}

#[tokio::test]
async fn a_reader_that_goes_away_is_no_failure() {
    let _docker = engine_or_skip!();
    for arguments in [&["--", "echo", "x"][..], &["--json", "--", "echo", "x"]] {
        let mut call = Call::run(arguments);
        let mut child = call.command.stdin(Stdio::null()).spawn().unwrap();
        drop(child.stdout.take());
        let output = tokio::time::timeout(DEADLINE, child.wait_with_output())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        assert_eq!(output.status.code(), Some(0));
        assert_nothing_left(&call.run).await;
    }
}

#[tokio::test]
async fn a_command_whose_reader_goes_away_ends_as_in_a_pipe() {
    let _docker = engine_or_skip!();
    let mut call = Call::run(&["--timeout", "170s", "--", "yes"]);
    let mut child = call.command.stdin(Stdio::null()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut first = [0; 4];
    stdout.read_exact(&mut first).await.unwrap();
    drop(stdout);
    assert_eq!(&first, b"y\ny\n");
    // 128 and the number of SIGPIPE.
    assert_eq!(ended(&mut child).await.code(), Some(141));
    assert_nothing_left(&call.run).await;
}

#[tokio::test]
async fn output_arrives_while_the_command_runs() {
    let _docker = engine_or_skip!();
    let mut call = Call::run(&[
        "--stdin",
        "--shell",
        "echo ready; read line; echo got $line; echo end >&2",
    ]);
    let mut child = call.command.spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut ready = [0; 6];
    tokio::time::timeout(DEADLINE, stdout.read_exact(&mut ready))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&ready, b"ready\n");
    // Only now does the command get what it waits for.
    child.stdin.take().unwrap().write_all(b"word\n").await.unwrap();
    let mut rest = String::new();
    tokio::time::timeout(DEADLINE, stdout.read_to_string(&mut rest))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(rest, "got word\n");
    assert_eq!(ended(&mut child).await.code(), Some(0));
    assert_nothing_left(&call.run).await;
}
