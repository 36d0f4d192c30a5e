//! Floods, and programs that don't read.

use std::time::Duration;

use gym_sandbox::{PtyMode, SandboxPtySpec};

use crate::{Subject, on_both_paths, until, within};

on_both_paths!(
    a_flood_is_read_to_its_last_byte_in_flat_memory,
    a_program_that_does_not_read_stops_nothing_else,
    an_exit_is_seen_while_nobody_reads,
);

/// Kilobytes of this process's memory that are in use.
fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

async fn a_flood_is_read_to_its_last_byte_in_flat_memory(subject: &Subject) {
    const BYTES: usize = 50 * 1000 * 1000;
    let session = subject
        .create(format!("stty raw; head -c {BYTES} /dev/zero; printf end"))
        .await;
    // The reader falls behind: the flood waits in the sandbox and not here.
    let before = memory_kib();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut total = 0;
    let mut tail = Vec::new();
    loop {
        let chunk = within(session.read()).await.unwrap();
        if chunk.is_empty() {
            break;
        }
        total += chunk.len();
        tail = [tail, chunk.to_vec()].concat();
        tail.drain(..tail.len().saturating_sub(3));
    }
    let grown = memory_kib().saturating_sub(before);
    assert_eq!((total, tail.as_slice()), (BYTES + 3, &b"end"[..]));
    // Other tests of this process run beside this one.
    assert!(grown < 64 * 1024, "memory has grown by {grown} KiB");
    assert_eq!(within(session.wait_exit()).await.unwrap(), 0);
}

async fn a_program_that_does_not_read_stops_nothing_else(subject: &Subject) {
    for mode in [PtyMode::Pty, PtyMode::Pipe] {
        let spec = SandboxPtySpec::new("[ -t 0 ] && stty raw -echo; echo ready; sleep 4646").with_mode(mode);
        let session = subject.create(spec).await;
        until(&session, "ready").await;
        let writer = tokio::spawn({
            let session = session.clone();
            async move { session.write(&vec![b'x'; 8 << 20]).await }
        });
        // What does not need the program's reading goes on.
        if mode == PtyMode::Pty {
            within(session.resize(10, 20)).await.unwrap();
        }
        let beside = subject.create("echo beside").await;
        until(&beside, "beside").await;
        assert!(!writer.is_finished());
        within(session.close()).await.unwrap();
        assert!(within(writer).await.unwrap().is_err());
    }
    subject.until_gone("4646").await;
}

async fn an_exit_is_seen_while_nobody_reads(subject: &Subject) {
    // More than all queues on the way hold, and little more than a terminal does.
    let spec = SandboxPtySpec::new("head -c 300000 /dev/zero; exit 6").with_mode(PtyMode::Pipe);
    let session = subject.create(spec).await;
    assert_eq!(within(session.wait_exit()).await.unwrap(), 6);
    let mut total = 0;
    loop {
        let chunk = within(session.read()).await.unwrap();
        if chunk.is_empty() {
            break;
        }
        total += chunk.len();
    }
    assert_eq!(total, 300_000);
}
