//! Floods, and programs that don't read.

use std::time::Duration;

use gym_sandbox::{PtyExecOptions, PtyMode, SandboxProvider, SandboxPtySession, SandboxPtySpec};

use crate::{Subject, on_both_paths, until, within};

on_both_paths!(
    a_flood_is_read_to_its_last_byte_in_flat_memory,
    a_program_that_does_not_read_stops_nothing_else,
    an_exit_is_seen_while_nobody_reads,
    floods_that_nobody_reads_to_the_end_leave_nothing,
    z1_reads_that_are_given_up_lose_no_byte,
    y7_y8_a_flood_of_a_command_is_kept_up_to_its_cap,
);

/// What flows a lot here is in nobody's measure of this process's memory.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Kilobytes of this process's memory that are in use.
fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

async fn a_flood_is_read_to_its_last_byte_in_flat_memory(subject: &Subject) {
    const BYTES: usize = 50 * 1000 * 1000;
    let _alone = ALONE.lock().await;
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
    let _alone = ALONE.lock().await;
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

/// Reads at least so many bytes.
async fn read_some(session: &SandboxPtySession, bytes: usize) {
    let mut total = 0;
    while total < bytes {
        let chunk = within(session.read()).await.unwrap();
        assert!(!chunk.is_empty(), "a flood has no end");
        total += chunk.len();
    }
}

/// Readers that stop, go away, give up or close in the middle, several of each at once.
async fn floods_that_nobody_reads_to_the_end_leave_nothing(subject: &Subject) {
    const FLOOD: &str = "stty raw; while :; do head -c 1000000 /dev/zero; done";
    let _alone = ALONE.lock().await;
    let before = memory_kib();
    let rounds = (0..4).map(|_| async {
        let flood = || subject.create(SandboxPtySpec::new(["sh", "-c", FLOOD, "5454"]));
        let stalled = flood().await;
        read_some(&stalled, 1_000_000).await;
        let dropped = flood().await;
        read_some(&dropped, 1_000_000).await;
        let half = dropped.split().0;
        drop((dropped, half));
        let given_up = flood().await;
        let reading = read_some(&given_up, usize::MAX);
        assert!(
            tokio::time::timeout(Duration::from_millis(300), reading)
                .await
                .is_err()
        );
        drop(given_up);
        let unread = flood().await;
        within(unread.close()).await.unwrap();
        // What nobody has read for a while is there to be read.
        read_some(&stalled, 1_000_000).await;
        within(stalled.close()).await.unwrap();
    });
    futures::future::join_all(rounds).await;
    let grown = memory_kib().saturating_sub(before);
    assert!(grown < 64 * 1024, "memory has grown by {grown} KiB");
    within(subject.test.provider.aclose()).await.unwrap();
    subject.until_gone("5454").await;
}

async fn z1_reads_that_are_given_up_lose_no_byte(subject: &Subject) {
    let _alone = ALONE.lock().await;
    let session = subject
        .create("stty raw -echo; echo ready; read x; seq 1 200000")
        .await;
    until(&session, "ready\n").await;
    // Some are given up for certain: nothing comes yet.
    for _ in 0..3 {
        assert!(
            tokio::time::timeout(Duration::from_millis(1), session.read())
                .await
                .is_err()
        );
    }
    session.write(b"\n").await.unwrap();
    let mut seen = Vec::new();
    let mut given_up = 0;
    let reading = async {
        loop {
            let patience = Duration::from_micros((given_up % 7) * 50);
            match tokio::time::timeout(patience, session.read()).await {
                Ok(chunk) => {
                    let chunk = chunk.unwrap();
                    if chunk.is_empty() {
                        break;
                    }
                    seen.extend_from_slice(&chunk);
                }
                Err(_) => given_up += 1,
            }
        }
    };
    within(reading).await;
    let numbers = (1..=200_000_u32).flat_map(|number| format!("{number}\n").into_bytes());
    let expected: Vec<u8> = numbers.collect();
    assert!(seen == expected, "{} of {} bytes", seen.len(), expected.len());
}

async fn y7_y8_a_flood_of_a_command_is_kept_up_to_its_cap(subject: &Subject) {
    const BYTES: u64 = 50_000_000;
    let _alone = ALONE.lock().await;
    let line = format!("stty raw; head -c {BYTES} /dev/zero");
    let pty = subject.sandbox.pty();
    let shell = subject.create(SandboxPtySpec::default()).await;
    let alone = PtyExecOptions::new(&*line).with_size(25, 80);
    for options in [alone, PtyExecOptions::new(&*line).with_session(&shell)] {
        let result = within(pty.exec(options)).await.unwrap();
        assert_eq!((result.return_code, result.error_type), (0, None));
        let total = result.bytes().stdout;
        // The echo of what was typed is a part of it.
        assert!((BYTES..BYTES + 10_000).contains(&total), "{total}");
        assert!(result.truncated().stdout);
    }
}
