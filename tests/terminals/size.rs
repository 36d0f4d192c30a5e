//! The size of the screen (bugs B34, contract Z15).

use gym_sandbox::{ErrorKind, PtyMode, SandboxPtySpec};

use crate::{Subject, on_both_paths, until, within};

on_both_paths!(
    b34_the_size_is_what_the_program_sees_first,
    b34_a_resize_is_seen_and_fifty_at_once_end_in_the_last,
    b34_a_storm_of_resizes_under_output_ends_in_the_last,
    b34_sizes_that_are_none_are_refused_and_none_panics,
);

async fn b34_the_size_is_what_the_program_sees_first(subject: &Subject) {
    // Under load: many at once.
    let looks = (0..12).map(|look| async move {
        let spec = SandboxPtySpec::new("stty size").with_size(40 + look, 120 + look);
        (look, subject.run(spec).await)
    });
    for (look, (text, code)) in futures::future::join_all(looks).await {
        assert_eq!((text, code), (format!("{} {}\r\n", 40 + look, 120 + look), 0));
    }
}

async fn b34_a_resize_is_seen_and_fifty_at_once_end_in_the_last(subject: &Subject) {
    let spec = SandboxPtySpec::new("stty size; read x; stty size; read x; stty size; read x; stty size")
        .with_size(40, 120);
    let session = subject.create(spec).await;
    until(&session, "40 120").await;
    session.resize(30, 100).await.unwrap();
    session.write(b"\n").await.unwrap();
    until(&session, "30 100").await;
    let resizing = (1..=50).map(|rows| session.resize(rows, 2 * rows));
    for resized in within(futures::future::join_all(resizing)).await {
        resized.unwrap();
    }
    session.write(b"\n").await.unwrap();
    until(&session, "50 100").await;
    session.resize(4096, 4096).await.unwrap();
    session.write(b"\n").await.unwrap();
    until(&session, "4096 4096").await;
    assert_eq!(within(session.wait_exit()).await.unwrap(), 0);
    assert_eq!(session.resize(24, 80).await.unwrap_err().kind(), ErrorKind::Pty);
}

async fn b34_a_storm_of_resizes_under_output_ends_in_the_last(subject: &Subject) {
    // The program counts the signals, prints all the time, and is asked for its size at the end.
    let line = "n=0; trap 'n=$((n+1))' WINCH; echo ready; while [ ! -e /tmp/enough ]; do echo line; done; \
                echo \"changes $((n > 0))\"; stty size";
    let session = subject.create(SandboxPtySpec::new(line).with_size(10, 10)).await;
    until(&session, "ready").await;
    let reading = tokio::spawn({
        let session = session.clone();
        async move {
            let mut last = String::new();
            while let Ok(chunk) = session.read().await
                && !chunk.is_empty()
            {
                last.push_str(&String::from_utf8_lossy(&chunk));
                let keep = last.len().saturating_sub(200);
                last = last.chars().skip(keep).collect();
            }
            last
        }
    });
    let storm = (1..=400_u16).map(|rows| session.resize(rows, 2 * rows));
    for resized in within(futures::future::join_all(storm)).await {
        resized.unwrap();
    }
    subject.line("touch /tmp/enough").await;
    let last = within(reading).await.unwrap();
    assert!(last.ends_with("changes 1\r\n400 800\r\n"), "{last:?}");
    assert_eq!(within(session.wait_exit()).await.unwrap(), 0);
}

async fn b34_sizes_that_are_none_are_refused_and_none_panics(subject: &Subject) {
    let session = subject.create(["cat"]).await;
    for (rows, cols) in [(0, 0), (0, 80), (24, 0), (65535, 65535), (4097, 80)] {
        let refused = session.resize(rows, cols).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{rows} {cols}");
        let spec = SandboxPtySpec::new(["cat"]).with_size(rows, cols);
        let refused = subject.sandbox.pty().create(spec).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{rows} {cols}");
    }
    session.close().await.unwrap();
    let pipes = subject
        .create(SandboxPtySpec::new(["cat"]).with_mode(PtyMode::Pipe))
        .await;
    assert_eq!(
        pipes.resize(24, 80).await.unwrap_err().kind(),
        ErrorKind::Unsupported
    );
    pipes.close().await.unwrap();
}
