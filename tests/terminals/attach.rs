//! Sessions that outlive who made them: replay, gap, takeover, other processes (contract Z8, Y4, Y14, D25).

use std::process::Stdio;
use std::time::Duration;

use gym_sandbox::docker::{DockerConfig, DockerProvider, ExecPathPolicy};
use gym_sandbox::{ErrorKind, PtyAttachOptions, PtyExecOptions, PtyMode, SandboxPtySession, SandboxPtySpec};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::{LIMIT, Subject, to_end, until, within};

/// Tells a process of this program to be the first one, in the sandbox of this name.
const FIRST: &str = "GYM_SANDBOX_TEST_FIRST_IN";

async fn subject() -> Option<Subject> {
    Subject::start(ExecPathPolicy::Agent).await
}

fn since(offset: u64) -> PtyAttachOptions {
    PtyAttachOptions::default().with_since(offset)
}

async fn attach(subject: &Subject, id: &str, options: PtyAttachOptions) -> SandboxPtySession {
    within(subject.sandbox.pty().attach(id, options)).await.unwrap()
}

#[tokio::test]
async fn z8_replay_begins_at_the_byte_that_is_asked_for() {
    let Some(subject) = subject().await else { return };
    let session = subject
        .create("stty -echo; printf 0123456789; read x; printf abc; read x")
        .await;
    until(&session, "0123456789").await;
    let id = session.session_id().to_owned();
    let joined = attach(&subject, &id, since(4)).await;
    assert_eq!(joined.replay_offset(), 4);
    until(&joined, "456789").await;
    // Only what comes from now on.
    let live = attach(&subject, &id, PtyAttachOptions::default()).await;
    assert_eq!(live.replay_offset(), 10);
    let evicted = within(joined.read()).await.unwrap_err();
    assert!(
        evicted.kind() == ErrorKind::Pty && evicted.to_string().contains("taken over"),
        "{evicted}"
    );
    live.write(b"\n").await.unwrap();
    assert_eq!(until(&live, "abc").await, "abc");
    live.write(b"\n").await.unwrap();
    assert_eq!(to_end(&live).await, "");
    assert_eq!(within(live.wait_exit()).await.unwrap(), 0);
    // The end is there for who comes later, too.
    let late = attach(&subject, &id, since(8)).await;
    assert_eq!(to_end(&late).await, "89abc");
    assert_eq!(within(late.wait_exit()).await.unwrap(), 0);
    subject.close().await;
}

#[tokio::test]
async fn z8_what_is_not_kept_any_more_is_seen_by_its_number() {
    let Some(subject) = subject().await else { return };
    let line = "stty raw; head -c 3000000 /dev/zero; printf tail; touch /tmp/done; sleep 600";
    let id = within(subject.sandbox.pty().start_detached(line)).await.unwrap();
    subject.line("while [ ! -e /tmp/done ]; do sleep 0.1; done").await;
    let joined = attach(&subject, &id, since(0)).await;
    // Nobody held it, so it was not held up; the last MiB is kept.
    assert_eq!(joined.replay_offset(), 3_000_004 - 1024 * 1024);
    let mut total = 0;
    while total < 1024 * 1024 {
        let chunk = within(joined.read()).await.unwrap();
        total += chunk.len();
        assert!(total <= 1024 * 1024);
        if total == 1024 * 1024 {
            assert!(chunk.ends_with(b"tail"));
        }
    }
    subject.close().await;
}

#[tokio::test]
async fn y14_more_than_is_kept_is_an_error_and_not_cut() {
    let Some(subject) = subject().await else { return };
    let pty = subject.sandbox.pty();
    let id = within(pty.start_detached("stty raw; head -c 2000000 /dev/zero; touch /tmp/done"))
        .await
        .unwrap();
    subject.line("while [ ! -e /tmp/done ]; do sleep 0.1; done").await;
    let error = within(pty.collect(&id, LIMIT)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Pty, "{error}");
    // What fits is whole, both streams of pipes, again and again.
    let spec = SandboxPtySpec::new("echo out; echo err >&2; exit 4").with_mode(PtyMode::Pipe);
    let id = within(pty.start_detached(spec)).await.unwrap();
    for _ in 0..2 {
        let result = within(pty.collect(&id, LIMIT)).await.unwrap();
        assert_eq!(result.return_code, 4);
        assert_eq!(
            (result.stdout().unwrap(), result.stderr().unwrap()),
            ("out\n".to_owned(), "err\n".to_owned())
        );
    }
    let id = within(pty.start_detached("sleep 600")).await.unwrap();
    let late = within(pty.collect(&id, Duration::from_millis(300)))
        .await
        .unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Timeout);
    subject.close().await;
}

#[tokio::test]
async fn y4_joined_sessions_serve_no_commands_by_themselves() {
    let Some(subject) = subject().await else { return };
    let pty = subject.sandbox.pty();
    let session = subject.create(SandboxPtySpec::default()).await;
    within(pty.exec("word=here")).await.unwrap();
    let joined = attach(&subject, session.session_id(), PtyAttachOptions::default()).await;
    while within(session.read()).await.is_ok() {}
    // The one that was made here is lost, and the joined one is not taken in its place.
    let result = within(pty.exec("echo \"[$word]\"")).await.unwrap();
    assert_eq!(result.stdout().unwrap(), "[]\r\n");
    let options = PtyExecOptions::new("echo \"[$word]\"").with_session(&joined);
    assert!(
        within(pty.exec(options))
            .await
            .unwrap()
            .stdout()
            .unwrap()
            .contains("[here]")
    );
    subject.close().await;
}

#[tokio::test]
async fn z8_unknown_and_held_sessions_are_refused() {
    let Some(subject) = subject().await else { return };
    let polite = PtyAttachOptions::default().with_takeover(false);
    let pty = subject.sandbox.pty();
    assert_eq!(
        within(pty.attach("nope", polite)).await.unwrap_err().kind(),
        ErrorKind::Pty
    );
    let session = subject.create(["cat"]).await;
    let held = within(pty.attach(session.session_id(), polite))
        .await
        .unwrap_err();
    assert!(held.to_string().contains("held"), "{held}");
    session.detach().await.unwrap();
    let joined = attach(&subject, session.session_id(), polite).await;
    // Closing what was joined leaves it; closing what was made ends it.
    joined.close().await.unwrap();
    let again = attach(&subject, session.session_id(), polite).await;
    again.write(b"alive\n").await.unwrap();
    until(&again, "alive").await;
    subject.close().await;
}

/// Starts this program again as the first process, and reads the ids of its sessions.
async fn first_process(subject: &Subject) -> (Child, Vec<String>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "attach::the_first_process", "--nocapture"])
        .env(FIRST, subject.sandbox.sandbox_id().unwrap().as_str())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ids = Vec::new();
    while ids.len() < 2 {
        let line = within(lines.next_line()).await.unwrap().expect("it says the ids");
        if let Some((_, id)) = line.split_once("session=") {
            ids.push(id.to_owned());
        }
    }
    (child, ids)
}

#[tokio::test]
#[allow(clippy::print_stdout, reason = "the other process reads the ids")]
async fn the_first_process() {
    let Ok(sandbox_id) = std::env::var(FIRST) else {
        return;
    };
    let mut config = DockerConfig::default();
    config.exec.exec_path = ExecPathPolicy::Agent;
    let provider = DockerProvider::connect(config).await.unwrap();
    let handle = provider.attach(&sandbox_id).await.unwrap();
    let pty = gym_sandbox::SandboxProvider::as_pty(&provider).unwrap();
    let shell = pty.create_pty(&handle, &SandboxPtySpec::default()).await.unwrap();
    shell.write(b"cd /var/tmp; word=kept\n").await.unwrap();
    // The echo may come in pieces.
    let mut echoed = Vec::new();
    while !String::from_utf8_lossy(&echoed).contains("kept") {
        echoed.extend_from_slice(&shell.read().await.unwrap());
    }
    let line = "echo begun; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo ended; exit 6";
    let job = pty.create_pty(&handle, &SandboxPtySpec::new(line)).await.unwrap();
    println!("session={}", shell.session_id());
    println!("session={}", job.session_id());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn d25_another_process_goes_on_after_the_first_was_killed() {
    let Some(subject) = subject().await else { return };
    let (mut first, ids) = first_process(&subject).await;
    first.start_kill().unwrap();
    within(first.wait()).await.unwrap();
    // The shell and its state live on, with all that was printed.
    let shell = attach(&subject, &ids[0], since(0)).await;
    until(&shell, "word=kept").await;
    shell.write(b"echo \"<$PWD $word>\"\n").await.unwrap();
    until(&shell, "</var/tmp kept>").await;
    // The command goes on and is collected here.
    subject.line("touch /tmp/go").await;
    let result = within(subject.sandbox.pty().collect(&ids[1], LIMIT))
        .await
        .unwrap();
    assert_eq!(result.return_code, 6);
    assert_eq!(result.stdout().unwrap(), "begun\r\nended\r\n");
    subject.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z13_a_broken_connection_is_made_again() {
    let Some(subject) = Subject::start(ExecPathPolicy::Agent).await else {
        return;
    };
    let Some(afar) = subject.seen_from_afar().await else {
        return subject.close().await;
    };
    let session = afar
        .create("stty -echo; echo ready; read x; echo one; read x; echo two; exit 3")
        .await;
    until(&session, "ready").await;
    session.write(b"\n").await.unwrap();
    until(&session, "one").await;
    afar.proxy.go_down();
    afar.proxy.come_up();
    // The key may be lost with the connection, so it is typed until it has come.
    let ended = async {
        let mut seen = String::new();
        while !seen.contains("two") {
            let _exited = session.write(b"\n").await.is_err();
            match session.read_timeout(Duration::from_millis(500)).await {
                Ok(chunk) => seen.push_str(&String::from_utf8_lossy(&chunk)),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Timeout, "{error}"),
            }
        }
        assert_eq!(seen.matches("one").count(), 0, "{seen:?}");
    };
    within(ended).await;
    assert_eq!(within(session.wait_exit()).await.unwrap(), 3);
    subject.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z1_a_lost_connection_of_the_engine_is_an_error_and_no_end() {
    let Some(proxy) = crate::proxy::Proxy::start().await else {
        return;
    };
    let mut config = crate::common::config();
    config.exec.exec_path = ExecPathPolicy::Engine;
    config.host = Some(proxy.address());
    let Some(subject) = Subject::start_configured(config, ExecPathPolicy::Engine).await else {
        return;
    };
    // In the second round the engine is back before anybody gives up, in the third before anybody has missed it: it says
    // that the programs run, but what they print is lost.
    for outage in ["long", "short", "unseen"] {
        let session = subject.create("echo ready; sleep 5252").await;
        until(&session, "ready").await;
        let closed = subject.create("echo ready; sleep 5252").await;
        until(&closed, "ready").await;
        proxy.go_down();
        match outage {
            "long" => {
                lost(&session).await;
                lost(&closed).await;
            }
            "short" => within(proxy.until_execs_are_sought(2)).await,
            _ => {}
        }
        proxy.come_up();
        lost(&session).await;
        lost(&closed).await;
        // What was lost is killed all the same.
        drop(session);
        within(closed.close()).await.unwrap();
        subject.until_gone("5252").await;
    }
    subject.close().await;
}

async fn lost(session: &SandboxPtySession) {
    assert_eq!(within(session.read()).await.unwrap_err().kind(), ErrorKind::Pty);
    assert_eq!(
        within(session.wait_exit()).await.unwrap_err().kind(),
        ErrorKind::Pty
    );
}
