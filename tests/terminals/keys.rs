//! Bytes both ways, exactly (bugs B36).

use gym_sandbox::{ErrorKind, PtyMode, SandboxPtySpec};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{Subject, on_both_paths, to_end, until, within};

on_both_paths!(
    b36_a_terminal_prints_crlf_and_gives_the_code,
    b36_control_c_interrupts_and_control_d_ends,
    b36_no_key_is_swallowed,
    b36_output_is_exact_whatever_its_first_byte,
    z2_pipes_are_apart_and_their_input_ends,
    split_halves_move_to_tasks,
);

async fn b36_a_terminal_prints_crlf_and_gives_the_code(subject: &Subject) {
    assert_eq!(subject.run("echo hi").await, ("hi\r\n".to_owned(), 0));
    let (text, code) = subject.run("echo out; echo err >&2; exit 7").await;
    assert_eq!((text.as_str(), code), ("out\r\nerr\r\n", 7));
    // A plain command has no terminal.
    assert_eq!(subject.line("echo hi").await, "hi\n");
}

async fn b36_control_c_interrupts_and_control_d_ends(subject: &Subject) {
    let session = subject
        .create("trap 'echo INT; exit 5' INT; echo ready; while :; do sleep 0.1; done")
        .await;
    until(&session, "ready").await;
    session.write(&[3]).await.unwrap();
    until(&session, "INT").await;
    assert_eq!(within(session.wait_exit()).await.unwrap(), 5);

    let session = subject.create(["cat"]).await;
    session.write(b"hello\n").await.unwrap();
    until(&session, "hello\r\nhello\r\n").await;
    session.write(&[4]).await.unwrap();
    assert_eq!(to_end(&session).await, "");
    assert_eq!(within(session.wait_exit()).await.unwrap(), 0);
}

async fn b36_no_key_is_swallowed(subject: &Subject) {
    // Each byte alone: what the engine would hold back for its detach keys would be missing.
    let session = subject
        .create("stty raw -echo; echo ready; for i in 1 2 3 4 5 6; do dd bs=1 count=1 2>/dev/null | od -An -tx1; done")
        .await;
    until(&session, "ready").await;
    for (key, shown) in [
        (0x10, "10"),
        (0x11, "11"),
        (0x13, "13"),
        (0x1d, "1d"),
        (0x00, "00"),
        (0x1b, "1b"),
    ] {
        session.write(&[key]).await.unwrap();
        until(&session, shown).await;
    }
    assert_eq!(within(session.wait_exit()).await.unwrap(), 0);
}

async fn b36_output_is_exact_whatever_its_first_byte(subject: &Subject) {
    // Every byte as the first of a chunk, and what looks like a frame's header.
    let line = "stty raw; i=0; while [ $i -lt 256 ]; do printf \"\\\\$(printf %03o $i)frame\"; i=$((i+1)); done; \
                printf '\\001\\000\\000\\000\\000\\000\\000\\377'; printf '\\002\\n\\000'";
    let session = subject.create(line).await;
    let mut read = Vec::new();
    let (mut reader, _writer) = session.split();
    within(reader.read_to_end(&mut read)).await.unwrap();
    let mut expected: Vec<u8> = (0..=255)
        .flat_map(|byte| [&[byte][..], b"frame"].concat())
        .collect();
    expected.extend([1, 0, 0, 0, 0, 0, 0, 255, 2, b'\n', 0]);
    assert_eq!(read, expected);
}

async fn z2_pipes_are_apart_and_their_input_ends(subject: &Subject) {
    let spec = SandboxPtySpec::new("cat; echo err >&2; test -t 0 || echo pipe").with_mode(PtyMode::Pipe);
    let session = subject.create(spec).await;
    assert_eq!(session.mode(), PtyMode::Pipe);
    session.write(b"in\r\n").await.unwrap();
    session.close_input().await.unwrap();
    assert_eq!(to_end(&session).await, "in\r\npipe\n");
    assert_eq!(within(session.read_stderr()).await.unwrap(), "err\n");
    assert_eq!(within(session.read_stderr()).await.unwrap(), "");
    assert_eq!(within(session.wait_exit()).await.unwrap(), 0);
    let refused = subject.create(["cat"]).await.close_input().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
}

async fn split_halves_move_to_tasks(subject: &Subject) {
    let session = subject.create("stty raw -echo; echo ready; exec cat").await;
    until(&session, "ready\n").await;
    let (mut reader, mut writer) = session.split();
    let sent: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    let expected = sent.clone();
    let writing = tokio::spawn(async move {
        writer.write_all(&sent).await.unwrap();
        writer.flush().await.unwrap();
    });
    let reading = tokio::spawn(async move {
        let mut read = vec![0; expected.len()];
        reader.read_exact(&mut read).await.unwrap();
        assert!(read == expected, "what came back is not what was sent");
    });
    within(writing).await.unwrap();
    within(reading).await.unwrap();
    session.close().await.unwrap();
}
