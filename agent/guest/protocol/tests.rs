//! What is written is read again, and no bytes from outside do harm.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::protocol::{
    AgentHello, AgentMessage, ClientHello, ClientMessage, Decoder, ExecRequest, Exit, ExitCause, FileFailure,
    FileInfo, FileKind, Fingerprint, Frame, HEADER_BYTES, ListRequest, MAX_MESSAGE_BYTES, MAX_PAYLOAD_BYTES,
    ReadRequest, RenameRequest, SignalTarget, StartStage, Stream, WriteRequest,
};

fn client_messages() -> Vec<ClientMessage> {
    let exec = ExecRequest {
        id: b"id".to_vec(),
        argv: vec![b"printf".to_vec(), b"\xff%s".to_vec(), Vec::new()],
        env: vec![b"A=b".to_vec(), b"GONE".to_vec()],
        cwd: b"/tmp".to_vec(),
        user: b"1000:5".to_vec(),
        has_input: true,
        keep_on_disconnect: true,
        timeout_ms: 1 << 40,
        kill_wait_ms: 2000,
        stdout_credit: 7,
        stderr_credit: 8,
    };
    let write = WriteRequest {
        path: b"/a".to_vec(),
        mode: 0o4755,
        uid: u32::MAX,
        gid: 3,
        modified_ns: i64::MIN,
        make_parents: true,
        in_place: true,
    };
    vec![
        ClientMessage::Hello(ClientHello::default()),
        ClientMessage::Ping(b"x".to_vec()),
        ClientMessage::Lease(90_000),
        ClientMessage::Exec(Box::new(exec)),
        ClientMessage::Exec(Box::default()),
        ClientMessage::Input(vec![0; 70_000]),
        ClientMessage::InputEnd,
        ClientMessage::Credit(Stream::Stderr, u32::MAX),
        ClientMessage::Signal(15, SignalTarget::Process),
        ClientMessage::Signal(15, SignalTarget::Group),
        ClientMessage::Signal(15, SignalTarget::Tree),
        ClientMessage::Kill(5000),
        ClientMessage::Detach,
        ClientMessage::ReadFile(ReadRequest {
            path: b"/p".to_vec(),
            max_bytes: u64::MAX,
            credit: 1,
        }),
        ClientMessage::WriteFile(write),
        ClientMessage::Stat(b"/x".to_vec()),
        ClientMessage::Rename(RenameRequest {
            from: b"/x".to_vec(),
            to: b"/y\xff".to_vec(),
        }),
        ClientMessage::List(ListRequest {
            path: b"/".to_vec(),
            max_entries: 9,
        }),
    ]
}

fn agent_messages() -> Vec<AgentMessage> {
    let hello = AgentHello {
        version: 1,
        oldest_version: 1,
        fingerprint: [7; 16],
        pid: 1,
        uid: 2,
        gid: 3,
        effective_capabilities: u64::MAX,
        has_subreaper: true,
        has_close_range: false,
        has_pidfd: true,
        has_proc: true,
        seccomp: 2,
        no_new_privileges: true,
        lease_ms: 4,
        time_left_ms: 5,
    };
    let exit = Exit {
        code: Some(255),
        signal: None,
        cause: ExitCause::Itself,
        oom_kills: 1,
        user_us: 2,
        system_us: 3,
    };
    let info = FileInfo {
        name: b"\xfe".to_vec(),
        kind: FileKind::Link,
        mode: 0o777,
        uid: 1,
        gid: 2,
        size: 3,
        modified_ns: -4,
        target: b"/t".to_vec(),
    };
    let killed = |survivors, is_unsure| AgentMessage::Killed {
        cause: ExitCause::Timeout,
        killed: 3,
        survivors,
        is_unsure,
    };
    let failed = |stage| AgentMessage::StartFailed {
        stage,
        errno: 2,
        subject: "nope".to_owned(),
    };
    vec![
        AgentMessage::Hello(hello),
        AgentMessage::Pong(b"x".to_vec()),
        AgentMessage::Refused("why".to_owned()),
        AgentMessage::Started(9),
        failed(StartStage::Request),
        failed(StartStage::BadFormat),
        failed(StartStage::Other),
        AgentMessage::Output(Stream::Stdout, vec![1; 65_536]),
        AgentMessage::Output(Stream::Stderr, Vec::new()),
        AgentMessage::StreamEnd {
            stream: Stream::Stdout,
            total_bytes: 1 << 50,
        },
        AgentMessage::Drained(Stream::Stderr),
        AgentMessage::Exited(exit),
        AgentMessage::Exited(Exit {
            code: None,
            signal: Some(9),
            cause: ExitCause::Request,
            ..exit
        }),
        AgentMessage::Exited(Exit {
            code: None,
            cause: ExitCause::Disconnect,
            ..exit
        }),
        AgentMessage::InputCredit(5),
        AgentMessage::InputClosed,
        killed(vec![1, 2, 3], true),
        killed(Vec::new(), false),
        AgentMessage::Gone,
        AgentMessage::FileInfo(info.clone()),
        AgentMessage::FileEntries(vec![
            info.clone(),
            FileInfo {
                kind: FileKind::Other,
                ..info
            },
        ]),
        AgentMessage::FileDone(3),
        AgentMessage::FileFailed(FileFailure {
            errno: 13,
            what: "open".to_owned(),
        }),
    ]
}

fn decode_all(bytes: &[u8], chunk: usize) -> Vec<Frame> {
    let mut decoder = Decoder::new();
    let mut frames = Vec::new();
    for part in bytes.chunks(chunk) {
        decoder.push(part);
        while let Some(frame) = decoder.next().expect("well-formed") {
            frames.push(frame);
        }
    }
    assert!(decoder.is_between_messages());
    frames
}

#[test]
fn every_message_is_read_as_it_was_written() {
    for (channel, message) in (1..).zip(client_messages()) {
        let mut bytes = Vec::new();
        message.append(&mut bytes, channel);
        let mut frames = decode_all(&bytes, 1000);
        if let ClientMessage::Input(sent) = &message {
            // Only parts of one message make more than one frame, and these are joined.
            assert_eq!(frames[0].payload.len(), sent.len());
        }
        let frame = frames.remove(0);
        assert!(frames.is_empty());
        assert_eq!(frame.channel, channel);
        assert_eq!(ClientMessage::decode(frame), Ok(message));
    }
    for message in agent_messages() {
        let mut bytes = Vec::new();
        message.append(&mut bytes, 5);
        let frame = decode_all(&bytes, bytes.len()).remove(0);
        assert_eq!(AgentMessage::decode(frame), Ok(message));
    }
}

#[test]
fn a_message_cut_anywhere_is_refused_or_shorter() {
    for message in client_messages() {
        let mut bytes = Vec::new();
        message.append(&mut bytes, 1);
        let frame = decode_all(&bytes, bytes.len()).remove(0);
        for kept in 0..frame.payload.len().min(300) {
            let _ = ClientMessage::decode(Frame {
                payload: frame.payload[..kept].to_vec(),
                ..frame
            });
        }
    }
}

#[test]
fn parts_that_are_too_long_together_are_refused() {
    let mut decoder = Decoder::new();
    let mut bytes = Vec::new();
    Frame::append(&mut bytes, 1, 0x10, &vec![0; MAX_MESSAGE_BYTES + 1]);
    decoder.push(&bytes);
    assert!(decoder.next().is_err());
}

#[test]
fn a_long_frame_is_refused_before_it_comes() {
    let mut decoder = Decoder::new();
    decoder.push(&u32::try_from(MAX_PAYLOAD_BYTES + 1).expect("small").to_le_bytes());
    decoder.push(&[0; HEADER_BYTES - 4]);
    assert!(decoder.next().is_err());
}

proptest! {
    #[test]
    fn frames_survive_any_cut(messages in vec((any::<u32>(), any::<u8>(), any::<u8>(), 0usize..200_000), 0..5),
                              chunk in 100usize..100_000) {
        let messages: Vec<_> =
            messages.into_iter().map(|(channel, kind, fill, count)| (channel, kind, vec![fill; count])).collect();
        let mut bytes = Vec::new();
        for (channel, kind, payload) in &messages {
            Frame::append(&mut bytes, *channel, *kind, payload);
        }
        let frames = decode_all(&bytes, chunk);
        prop_assert_eq!(frames.len(), messages.len());
        for (frame, (channel, kind, payload)) in frames.into_iter().zip(messages) {
            prop_assert_eq!(frame, Frame { channel, kind, payload });
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..5000), chunk in 1usize..500) {
        let mut decoder = Decoder::new();
        'stream: for part in bytes.chunks(chunk) {
            decoder.push(part);
            loop {
                match decoder.next() {
                    Ok(Some(frame)) => {
                        let _ = ClientMessage::decode(frame.clone());
                        let _ = AgentMessage::decode(frame);
                    }
                    Ok(None) => break,
                    Err(_) => break 'stream,
                }
            }
        }
    }

    #[test]
    fn any_payload_is_read_or_refused(kind in any::<u8>(), payload in vec(any::<u8>(), 0..300)) {
        let frame = Frame { channel: 1, kind, payload };
        let _ = ClientMessage::decode(frame.clone());
        let _ = AgentMessage::decode(frame);
    }

    #[test]
    fn a_fingerprint_does_not_depend_on_the_cut(bytes in vec(any::<u8>(), 0..500), chunk in 1usize..100) {
        let mut fingerprint = Fingerprint::new();
        for part in bytes.chunks(chunk) {
            fingerprint.update(part);
        }
        prop_assert_eq!(fingerprint.finish(), Fingerprint::of(&bytes));
    }

    #[test]
    fn a_changed_byte_changes_the_fingerprint(mut bytes in vec(any::<u8>(), 1..500), at in any::<usize>(), bit in 0..8u8) {
        let before = Fingerprint::of(&bytes);
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        prop_assert_ne!(before, Fingerprint::of(&bytes));
    }
}
