//! The stream of an engine's exec, cut anywhere: the bytes of both outputs and their texts are the same (B4, B34, B36).

use std::time::Duration;

use bollard::container::LogOutput;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::{ClientVersion, Docker};
use futures::StreamExt;
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

use super::output::Outputs;

/// A frame: standard error or not, and what it holds.
type Frame = (bool, Vec<u8>);

const ANSWER: &[u8] = b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n\
                        Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n";

/// Longer than the client lets a chunk be in this test.
const CHUNK_BYTES: usize = 512;

/// Bytes that look like headers, characters of several bytes, and whatever else.
fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..40),
        Just(b"\x01\0\0\0\0\0\0\x05".to_vec()),
        Just(b"\x02\0\0\0\xff\xff\xff\xff\r\n".to_vec()),
        Just("line\r\n\u{20ac}\u{1f980}".as_bytes().to_vec()),
        vec(any::<u8>(), CHUNK_BYTES..3 * CHUNK_BYTES),
    ]
}

fn encoded(frames: &[Frame]) -> Vec<u8> {
    let mut stream = Vec::new();
    for (is_stderr, content) in frames {
        stream.extend([1 + u8::from(*is_stderr), 0, 0, 0]);
        stream.extend(u32::try_from(content.len()).unwrap().to_be_bytes());
        stream.extend_from_slice(content);
    }
    stream
}

/// Answers one start of an exec with a stream that is sent in pieces.
async fn serve(listener: UnixListener, stream: Vec<u8>, cuts: Vec<usize>) {
    let (mut client, _) = listener.accept().await.unwrap();
    let mut request = Vec::new();
    while !request.ends_with(b"}") {
        assert_ne!(
            client.read_buf(&mut request).await.unwrap(),
            0,
            "the request ended"
        );
    }
    client.write_all(ANSWER).await.unwrap();
    let mut rest = &stream[..];
    for cut in cuts {
        let (now, later) = rest.split_at(cut.min(rest.len()));
        client.write_all(now).await.unwrap();
        // What is sent at once is read at once: the pause lets the reader see the cut.
        tokio::time::sleep(Duration::from_micros(300)).await;
        rest = later;
    }
    client.write_all(rest).await.unwrap();
    client.shutdown().await.unwrap();
}

/// What the client makes of it.
async fn received(frames: &[Frame], cuts: Vec<usize>) -> Vec<LogOutput> {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("engine.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let serving = tokio::spawn(serve(listener, encoded(frames), cuts));
    let version = ClientVersion {
        major_version: 1,
        minor_version: 41,
    };
    let client = Docker::connect_with_unix(socket.to_str().unwrap(), 60, &version).unwrap();
    let options = StartExecOptions {
        detach: false,
        tty: false,
        output_capacity: Some(CHUNK_BYTES),
    };
    let started = client.start_exec("x", Some(options)).await.unwrap();
    let StartExecResults::Attached {
        output,
        input: _input,
    } = started
    else {
        panic!("it was not attached");
    };
    let chunks = output.map(|chunk| chunk.unwrap()).collect().await;
    serving.await.unwrap();
    chunks
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn b04_b36_frames_may_be_cut_anywhere(
        frames in vec((any::<bool>(), content()), 0..12),
        cuts in vec(0..60_usize, 0..24),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let chunks = runtime.block_on(received(&frames, cuts));
        let outputs = Outputs::capturing(1024 * 1024);
        for chunk in chunks {
            prop_assert!(outputs.push(chunk).is_none());
        }
        let (stdout, stderr) = outputs.finish();
        for (is_stderr, captured) in [(false, stdout), (true, stderr)] {
            let sent: Vec<u8> = frames
                .iter()
                .filter(|(of_stderr, _)| *of_stderr == is_stderr)
                .flat_map(|(_, content)| content.iter().copied())
                .collect();
            prop_assert_eq!(captured.text(), String::from_utf8_lossy(&sent));
            prop_assert_eq!(&captured.bytes()[..], &sent[..]);
        }
    }
}
