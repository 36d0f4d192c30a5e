//! Signals and closed pipes: the command ends in good order and leaves nothing.

use std::process::Stdio;

use crate::support::{Call, assert_nothing_left, containers, ended, engine_or_skip, send, until};

#[tokio::test]
async fn a_signal_removes_the_sandbox_and_has_its_code() {
    let docker = engine_or_skip!();
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let mut call = Call::run(&["--", "sleep", "300"]);
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
    assert_eq!(ended(&mut child).await.code(), Some(143));
    assert_nothing_left(&call.run).await;
}

#[tokio::test]
async fn a_reader_that_goes_away_is_no_failure() {
    let _docker = engine_or_skip!();
    for arguments in [
        &["--shell", "head -c 1000000 /dev/zero"][..],
        &["--json", "--shell", "head -c 1000000 /dev/zero"],
    ] {
        let mut call = Call::run(arguments);
        let mut child = call.command.stdin(Stdio::null()).spawn().unwrap();
        drop(child.stdout.take());
        let output = tokio::time::timeout(crate::support::DEADLINE, child.wait_with_output())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        assert_nothing_left(&call.run).await;
    }
}
