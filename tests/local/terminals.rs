//! Terminal sessions on this machine (contract 2.14; bugs B34, B36).

use std::sync::Arc;
use std::time::Duration;

use gym_sandbox::provider::PtySession;
use gym_sandbox::{
    AsyncSandbox, ErrorKind, ExecPath, PtyAttachOptions, PtyExecOptions, PtyMode, SandboxHandle,
    SandboxProvider, SandboxPtySpec, SandboxSpec,
};

use crate::{LocalProvider, SOON, below, lives, pid_of, provider, until, workspace};

/// Fails the test instead of hanging.
async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, future).await.expect("it ends in time")
}

async fn started() -> (LocalProvider, SandboxHandle) {
    let provider = provider();
    let handle = provider.create(&SandboxSpec::default()).await.unwrap();
    (provider, handle)
}

async fn create(
    provider: &LocalProvider,
    handle: &SandboxHandle,
    spec: impl Into<SandboxPtySpec>,
) -> Arc<dyn PtySession> {
    let pty = provider.as_pty().unwrap();
    pty.create_pty(handle, &spec.into()).await.unwrap()
}

async fn to_end(session: &Arc<dyn PtySession>) -> Vec<u8> {
    let mut read = Vec::new();
    loop {
        let chunk = within(session.read()).await.unwrap();
        if chunk.is_empty() {
            return read;
        }
        read.extend_from_slice(&chunk);
    }
}

async fn shown(session: &Arc<dyn PtySession>, text: &str) {
    let mut seen = String::new();
    while !seen.contains(text) {
        let chunk = within(session.read()).await.unwrap();
        assert!(!chunk.is_empty(), "it ended before `{text}`: {seen:?}");
        seen.push_str(&String::from_utf8_lossy(&chunk));
    }
}

#[tokio::test]
async fn z15_b34_the_first_size_is_the_one_asked_for_and_a_storm_of_others_ends_in_the_last() {
    let (provider, handle) = started().await;
    for side in 1..20 {
        let spec = SandboxPtySpec::new("stty size").with_size(side, 2 * side);
        let session = create(&provider, &handle, spec).await;
        assert_eq!(
            to_end(&session).await,
            format!("{side} {}\r\n", 2 * side).as_bytes()
        );
    }
    let session = create(&provider, &handle, "echo ready; read x; stty size").await;
    assert_eq!(session.exec_path(), ExecPath::Host);
    shown(&session, "ready").await;
    for rows in 1..=500 {
        session.resize(rows, 7).await.unwrap();
    }
    for (rows, cols) in [(0, 0), (0, 80), (65535, 65535), (4097, 80)] {
        let refused = session.resize(rows, cols).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{rows} {cols}");
    }
    session.write(b"\n").await.unwrap();
    shown(&session, "500 7").await;
    assert_eq!(within(session.wait_exit()).await.unwrap(), 0);
    provider.close(&handle).await.unwrap();
}

#[tokio::test]
async fn b36_bytes_are_exact_and_the_last_ones_are_there_for_a_slow_reader() {
    let (provider, handle) = started().await;
    let line = "stty raw -echo; echo ready; exec head -c 400000";
    let session = create(&provider, &handle, line).await;
    shown(&session, "ready\n").await;
    let sent: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let (written, read) = tokio::join!(within(session.write(&sent)), to_end(&session));
    written.unwrap();
    assert!(read == sent, "{} bytes came back", read.len());

    // More pieces than wait here: the last ones are still in the pipe when the program has exited.
    let line =
        "i=0; while [ $i -lt 12 ]; do echo $i; sleep 0.02; i=$((i + 1)); done; head -c 5 /dev/zero >&2";
    let session = create(
        &provider,
        &handle,
        SandboxPtySpec::new(line).with_mode(PtyMode::Pipe),
    )
    .await;
    assert_eq!(within(session.wait_exit()).await.unwrap(), 0);
    let mut read = Vec::new();
    for turn in 0.. {
        // The reader is slow at first: this is no waiting for something.
        if turn < 4 {
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
        match within(session.read()).await.unwrap() {
            end if end.is_empty() => break,
            chunk => read.extend_from_slice(&chunk),
        }
    }
    let lines = (0..12).fold(String::new(), |lines, number| format!("{lines}{number}\n"));
    assert_eq!(String::from_utf8_lossy(&read), lines);
    assert_eq!(within(session.read_stderr()).await.unwrap().len(), 5);
    provider.close(&handle).await.unwrap();
}

#[tokio::test]
async fn z1_z10_a_terminals_output_is_whole_each_time_and_its_code_exact() {
    let (provider, handle) = started().await;
    for round in 0..100 {
        let session = create(&provider, &handle, format!("echo out{round}; exit {round}")).await;
        assert_eq!(to_end(&session).await, format!("out{round}\r\n").as_bytes());
        assert_eq!(within(session.wait_exit()).await.unwrap(), round);
    }
    for (line, code) in [("kill -TERM $$", 143), ("kill -KILL $$", 137)] {
        let session = create(&provider, &handle, line).await;
        assert_eq!(within(session.wait_exit()).await.unwrap(), code, "{line}");
    }
    for (spec, code) in [
        (SandboxPtySpec::new(["/no/such/program"]), 127),
        (SandboxPtySpec::new(["/etc/passwd"]), 126),
        (SandboxPtySpec::new(["true"]).with_cwd("no/such/folder"), 126),
    ] {
        let session = create(&provider, &handle, spec).await;
        assert!(!to_end(&session).await.is_empty());
        assert_eq!(within(session.wait_exit()).await.unwrap(), code);
        within(session.close()).await.unwrap();
    }
    let refused = provider.as_pty().unwrap();
    let refused = refused
        .create_pty(&handle, &SandboxPtySpec::default().with_user("root"))
        .await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
    provider.close(&handle).await.unwrap();
}

#[tokio::test]
async fn z7_keys_and_signals_reach_the_whole_group() {
    let (provider, handle) = started().await;
    let line = "trap 'exit 9' USR1; sh -c 'trap \"echo child; exit\" USR1; echo ready; while :; do sleep 0.1; done'; \
                while :; do sleep 0.1; done";
    let session = create(&provider, &handle, line).await;
    shown(&session, "ready").await;
    let unknown = session.send_signal("NOPE").await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::InvalidArgument);
    within(session.send_signal("SIGUSR1")).await.unwrap();
    shown(&session, "child").await;
    assert_eq!(within(session.wait_exit()).await.unwrap(), 9);
    // A shell that has said its word and not yet started the program may swallow the key.
    let session = create(&provider, &handle, "echo ready; exec sleep 600").await;
    shown(&session, "ready").await;
    session.write(&[3]).await.unwrap();
    assert_eq!(within(session.wait_exit()).await.unwrap(), 130);
    provider.close(&handle).await.unwrap();
}

/// A session with a child that has left it and does not mind its end.
const TREE: &str = "trap '' HUP; setsid sh -c 'echo $$ >escaped; exec sleep 600' & \
                    echo $$ >main; while [ ! -s escaped ]; do sleep 0.01; done; echo ready; sleep 600";

#[tokio::test]
async fn z5_z12_whoever_closes_a_session_ends_its_whole_tree_and_wakes_its_readers() {
    for by_provider in [false, true] {
        let (provider, handle) = started().await;
        let session = create(&provider, &handle, TREE).await;
        // With the end of the line, which may come by itself: nothing may be left to read.
        shown(&session, "ready\r\n").await;
        let (main, escaped) = (pid_of(&handle, "main").await, pid_of(&handle, "escaped").await);
        let closing = async {
            if by_provider {
                provider.aclose().await
            } else {
                session.close().await
            }
        };
        let (read, exit, closed) = tokio::join!(
            within(session.read()),
            within(session.wait_exit()),
            within(closing)
        );
        closed.unwrap();
        assert_eq!(read.unwrap_err().kind(), ErrorKind::Pty);
        assert_eq!(exit.unwrap_err().kind(), ErrorKind::Pty);
        assert!(!lives(main) && !lives(escaped));
        within(session.close()).await.unwrap();
        assert_eq!(session.write(b"x").await.unwrap_err().kind(), ErrorKind::Pty);
        provider.close(&handle).await.unwrap();
    }
}

#[tokio::test]
async fn b36_closing_the_provider_waits_for_the_end_of_a_dropped_session() {
    let (provider, handle) = started().await;
    for mode in [PtyMode::Pty, PtyMode::Pipe] {
        let session = create(&provider, &handle, SandboxPtySpec::new(TREE).with_mode(mode)).await;
        shown(&session, "ready").await;
        let (main, escaped) = (pid_of(&handle, "main").await, pid_of(&handle, "escaped").await);
        drop(session);
        provider.aclose().await.unwrap();
        assert!(!lives(main) && !lives(escaped));
        for file in ["main", "escaped"] {
            std::fs::remove_file(workspace(&handle).join(file)).unwrap();
        }
    }
    provider.close(&handle).await.unwrap();
}

#[test]
fn b36_a_session_that_outlives_its_runtime_is_lost_and_ends_with_its_last_clone() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let first = runtime();
    let (provider, handle) = first.block_on(started());
    let (session, main) = first.block_on(async {
        let session = create(&provider, &handle, TREE).await;
        shown(&session, "ready").await;
        (session, pid_of(&handle, "main").await)
    });
    drop(first);
    let second = runtime();
    second.block_on(async {
        until("the end of the tree", || !lives(main)).await;
        within(session.close()).await.unwrap();
        drop(session);
        provider.aclose().await.unwrap();
        provider.close(&handle).await.unwrap();
    });
}

#[tokio::test]
async fn what_runs_on_after_the_exit_is_not_ended_by_its_output() {
    let (provider, handle) = started().await;
    let line = "(while sleep 0.05; do echo on; date +%s%N >last; done) & echo $! >child; exit 0";
    let session = create(
        &provider,
        &handle,
        SandboxPtySpec::new(line).with_mode(PtyMode::Pipe),
    )
    .await;
    assert_eq!(within(session.wait_exit()).await.unwrap(), 0);
    within(session.close()).await.unwrap();
    drop(session);
    let child = pid_of(&handle, "child").await;
    let last = workspace(&handle).join("last");
    let mut seen = std::collections::BTreeSet::new();
    until("ten more turns", || {
        seen.extend(std::fs::read_to_string(&last).ok());
        seen.len() > 10
    })
    .await;
    assert!(lives(child));
    provider.close(&handle).await.unwrap();
    assert!(!lives(child));
}

#[tokio::test]
async fn y12_commands_in_a_session_keep_directory_and_variables() {
    let root = tempfile::tempdir().unwrap();
    let sandbox = AsyncSandbox::owning(Arc::new(below(&root)));
    let sandbox = sandbox.with_spec(SandboxSpec::default());
    sandbox.start().await.unwrap();
    let shell = sandbox.pty().create(SandboxPtySpec::default()).await.unwrap();
    let run = |line: &str| PtyExecOptions::new(line).with_session(&shell);
    within(sandbox.pty().exec(run("mkdir -p a/b; cd a/b; word=kept")))
        .await
        .unwrap();
    let result = within(sandbox.pty().exec(run("echo \"<${PWD##*/} $word>\"; (exit 5)")))
        .await
        .unwrap();
    assert_eq!(result.return_code, 5, "{result:?}");
    assert!(result.stdout().unwrap().contains("<b kept>"), "{result:?}");
    let joined = sandbox
        .pty()
        .attach(shell.session_id(), PtyAttachOptions::default())
        .await;
    assert_eq!(joined.unwrap_err().kind(), ErrorKind::Unsupported);
    sandbox.stop().await.unwrap();
}
