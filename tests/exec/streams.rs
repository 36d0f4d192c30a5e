//! Input, output, and when a command has ended.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use gym_sandbox::{ErrorKind, ExecOptions, OutputCap, SandboxSpec};
use tokio::io::{AsyncRead, ReadBuf};

use super::{LIMIT, common, sleepers, start};

#[tokio::test]
async fn b01_d04_a_background_child_does_not_hold_the_call_and_lives_on() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let began = Instant::now();
    let result = started
        .exec(
            ExecOptions::new(["sh", "-c", "sleep 900 & echo started"]).with_timeout(Duration::from_secs(300)),
        )
        .await;
    assert!(began.elapsed() < LIMIT, "{result:?}");
    assert_eq!(
        (result.return_code, result.stdout().as_deref()),
        (0, Some("started\n"))
    );
    assert!(result.background_output_open);
    // The child may not have come to its own program yet.
    assert_eq!(
        started
            .until("pidof sleep >/dev/null && echo lives", "lives\n")
            .await,
        "lives\n",
        "the child lives on and the next command works"
    );
    // The child has let go of the output before the command ends.
    let line = "{ touch /tmp/apart; sleep 30; } >/dev/null 2>&1 & \
                until test -e /tmp/apart; do sleep 0.01; done; echo started";
    let redirected = started.exec(line).await;
    assert!(!redirected.background_output_open);
    started.close().await;
}

#[tokio::test]
async fn d04_a_background_child_that_goes_on_writing_does_not_hold_the_call() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let result = started
        .exec(ExecOptions::new("(yes &); exit 3").with_timeout(LIMIT))
        .await;
    assert_eq!(
        (
            result.return_code,
            result.error_type,
            result.background_output_open
        ),
        (3, None, true)
    );
    started.close().await;
}

#[tokio::test]
async fn a_command_that_closes_its_output_is_waited_for() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let result = started.exec("echo out; exec >&- 2>&-; sleep 1; exit 4").await;
    assert_eq!(
        (result.return_code, result.stdout().as_deref()),
        (4, Some("out\n"))
    );
    let timed = started
        .exec(ExecOptions::new("exec >&- 2>&-; sleep 60").with_timeout(Duration::from_secs(1)))
        .await;
    assert_eq!(timed.return_code, 125, "{timed:?}");
    started.close().await;
}

#[tokio::test]
async fn b03_the_end_of_the_input_reaches_the_command() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    for size in [0, 5, 1 << 20] {
        let count = started
            .stdout(ExecOptions::new(["wc", "-c"]).with_stdin(vec![b'x'; size]))
            .await;
        assert_eq!(count.trim(), size.to_string());
        let read = started
            .stdout(ExecOptions::new(["wc", "-c"]).with_stdin_reader(io::Cursor::new(vec![b'x'; size])))
            .await;
        assert_eq!(read.trim(), size.to_string());
    }
    let bytes: Vec<u8> = (0..4_u32 << 20)
        .map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let echoed = started
        .exec(ExecOptions::new(["cat"]).with_stdin(bytes.clone()))
        .await;
    assert_eq!(echoed.captured_stdout.bytes().as_ref(), bytes.as_slice());
    let head = started
        .exec(ExecOptions::new(["head", "-c", "1"]).with_stdin(bytes))
        .await;
    assert_eq!((head.return_code, head.captured_stdout.total_bytes()), (0, 1));
    assert_eq!(started.stdout(["cat"]).await, "");
    started.close().await;
}

#[tokio::test]
async fn a_failing_input_reader_is_an_error_of_the_call_and_ends_the_command() {
    struct Failing;
    impl AsyncRead for Failing {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::Error::other("no more")))
        }
    }
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let error = started
        .sandbox
        .exec_with(ExecOptions::new("cat; sleep 77").with_stdin_reader(Failing))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(
        started.until(&sleepers(), "0\n").await,
        "0\n",
        "nothing sleeps any more"
    );
    started.close().await;
}

#[tokio::test]
async fn b04_characters_split_over_frames_and_streams_stay_whole() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let result = started
        .exec(r#"printf "caf\303"; sleep 0.3; printf "E\342\202" >&2; sleep 0.3; printf "\251\n"; sleep 0.3; printf "\254\n" >&2"#)
        .await;
    assert_eq!(result.captured_stdout.bytes().as_ref(), b"caf\xc3\xa9\n");
    assert_eq!(result.captured_stderr.bytes().as_ref(), b"E\xe2\x82\xac\n");
    assert_eq!(
        (result.stdout().as_deref(), result.stderr().as_deref()),
        (Some("café\n"), Some("E€\n"))
    );
    let invalid = started.exec(r"printf '\377\376\n'").await;
    assert_eq!(invalid.captured_stdout.bytes().as_ref(), b"\xff\xfe\n");
    assert_eq!(invalid.stdout().as_deref(), Some("\u{fffd}\u{fffd}\n"));
    started.close().await;
}

#[tokio::test]
async fn bytes_that_look_like_frames_of_the_engine_arrive_as_they_are() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let mut bytes = Vec::new();
    for first in 0..=255_u8 {
        bytes.extend([first, 0, 0, 0, 0, 0, 0, 9, b'x']);
    }
    let result = started
        .exec(ExecOptions::new("cat; cat >&2 </dev/null").with_stdin(bytes.clone()))
        .await;
    assert_eq!(result.captured_stdout.bytes().as_ref(), bytes.as_slice());
    started.close().await;
}

#[tokio::test]
async fn b10_long_output_is_whole_and_in_order() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let result = started
        .exec("i=0; while [ $i -lt 100000 ]; do echo line-$i; i=$((i+1)); done; printf END")
        .await;
    let text = result.stdout().unwrap();
    let mut lines = text.lines();
    for number in 0..100_000 {
        assert_eq!(lines.next(), Some(format!("line-{number}").as_str()));
    }
    assert_eq!(lines.next(), Some("END"));
    assert_eq!(lines.next(), None);
    started.close().await;
}

#[tokio::test]
async fn d32_each_stream_has_a_cap_of_its_own_with_exact_totals() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    let options = ExecOptions::new("yes out | head -c 3000000; yes err | head -c 500 >&2; printf END")
        .with_output_cap(OutputCap::Bytes(1000));
    let result = started.exec(options).await;
    assert_eq!((result.bytes().stdout, result.bytes().stderr), (3_000_003, 500));
    assert_eq!(
        (result.truncated().stdout, result.truncated().stderr),
        (true, false)
    );
    assert_eq!(
        (
            result.captured_stdout.head().len(),
            result.captured_stdout.tail().len()
        ),
        (500, 500)
    );
    assert!(result.captured_stdout.tail().ends_with(b"END"));
    started.close().await;
}
