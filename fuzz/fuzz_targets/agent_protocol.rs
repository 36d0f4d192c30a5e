//! Bytes from the other side of a connection to the resident agent, for both sides: the agent reads what clients send, the
//! client what comes out of a sandbox.

#![no_main]

use gym_sandbox_agent::protocol::{AgentMessage, ClientMessage, Decoder};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // The first byte says how the stream is cut.
    let Some((cut, stream)) = bytes.split_first() else { return };
    let mut decoder = Decoder::new();
    for part in stream.chunks(usize::from(*cut).max(1)) {
        decoder.push(part);
        loop {
            match decoder.next() {
                Ok(Some(frame)) => {
                    let channel = frame.channel;
                    if let Ok(message) = ClientMessage::decode(frame.clone()) {
                        check(channel, &message, ClientMessage::append, ClientMessage::decode);
                    }
                    if let Ok(message) = AgentMessage::decode(frame) {
                        check(channel, &message, AgentMessage::append, AgentMessage::decode);
                    }
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
});

/// What was understood is written and understood as the same again.
fn check<M: PartialEq + std::fmt::Debug, E: std::fmt::Debug + PartialEq>(
    channel: u32,
    message: &M,
    append: impl Fn(&M, &mut Vec<u8>, u32),
    decode: impl Fn(gym_sandbox_agent::protocol::Frame) -> Result<M, E>,
) {
    let mut bytes = Vec::new();
    append(message, &mut bytes, channel);
    let mut decoder = Decoder::new();
    decoder.push(&bytes);
    let frame = decoder.next().expect("well-formed").expect("whole");
    assert_eq!(decode(frame).as_ref(), Ok(message));
}
