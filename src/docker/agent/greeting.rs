//! The first message of an agent: whether it is one, and the right one.

use std::pin::Pin;

use gym_sandbox_agent::protocol::{
    AgentHello, AgentMessage, Fingerprint, HEADER_BYTES, Header, OLDEST_VERSION, VERSION,
};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::decode::{Content, Decoder};
use super::link::Lost;

/// How much of what is no hello is told.
const TOLD_BYTES: usize = 300;

/// Reads until the agent has said hello. What comes in its place is told of: where no agent could be reached the engine
/// writes the reason to where the agent would speak.
pub(super) async fn hello(
    reader: &mut Pin<Box<dyn AsyncRead + Send>>,
    decoder: &mut Decoder,
) -> Result<AgentHello, Lost> {
    loop {
        if !may_be_hello(decoder.rest()) {
            return Err(no_agent(decoder.rest()));
        }
        let next = decoder
            .next()
            .map_err(|malformed| Lost(format!("no agent answers: {malformed}").into()))?;
        match next.map(|incoming| incoming.content) {
            Some(Content::Message(AgentMessage::Hello(hello))) => return Ok(hello),
            Some(Content::Message(AgentMessage::Refused(reason))) => return Err(refused(&reason)),
            Some(_) => return Err(Lost("no agent answers: its first message is no hello".into())),
            None => {}
        }
        match reader.read_buf(decoder.buffer()).await {
            Ok(0) if decoder.rest().is_empty() => {
                return Err(Lost(
                    "the agent closed the connection before it said hello".into(),
                ));
            }
            Ok(0) => return Err(no_agent(decoder.rest())),
            Ok(_) => {}
            Err(error) => {
                return Err(Lost(
                    format!("the connection broke before the agent said hello: {error}").into(),
                ));
            }
        }
    }
}

/// Says whether a stream that begins so can be an agent's. Its first message, a hello or a refusal, is of no channel and
/// fits into one frame.
fn may_be_hello(begun: &[u8]) -> bool {
    let Some(head) = begun.first_chunk::<HEADER_BYTES>() else {
        return true;
    };
    Header::parse(*head).is_ok_and(|header| header.channel == 0 && !header.more)
}

/// Something else than an agent speaks, and this is what it says.
fn no_agent(begun: &[u8]) -> Lost {
    let told = &begun[..begun.len().min(TOLD_BYTES)];
    let text = String::from_utf8_lossy(told);
    Lost(format!("no agent answers, but: `{}`", text.trim().escape_debug()).into())
}

/// The hello is the last proof that the right program runs, and the whole of it.
pub(super) fn check(hello: &AgentHello) -> Result<(), Lost> {
    if hello.oldest_version > VERSION || hello.version < OLDEST_VERSION {
        return Err(Lost(
            format!(
                "the agent speaks protocol {} to {}, this library {VERSION}",
                hello.oldest_version, hello.version
            )
            .into(),
        ));
    }
    let expected = gym_sandbox_agent::BINARY.map(Fingerprint::of);
    if expected.is_some_and(|expected| expected != hello.fingerprint) {
        return Err(Lost("the agent in the sandbox is another build".into()));
    }
    Ok(())
}

pub(super) fn refused(reason: &str) -> Lost {
    let reason: String = reason.chars().take(200).collect();
    Lost(format!("the agent refused the connection: {}", reason.escape_debug()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answer_to(bytes: &'static [u8]) -> Result<AgentHello, String> {
        let mut reader: Pin<Box<dyn AsyncRead + Send>> = Box::pin(bytes);
        let answer = hello(&mut reader, &mut Decoder::default()).await;
        answer.map_err(|Lost(why)| why.to_string())
    }

    #[tokio::test]
    async fn b08_what_the_engine_says_in_place_of_an_agent_is_told_and_no_frame() {
        let long = "OCI runtime exec failed: exec failed: cannot exec in a stopped container: unknown\r\n";
        for text in [long, "Error"] {
            let why = answer_to(text.as_bytes()).await.unwrap_err();
            assert!(why.contains(text.trim()) && !why.contains("frame"), "{why}");
        }
        let why = answer_to(b"").await.unwrap_err();
        assert!(why.contains("closed the connection"), "{why}");
        let why = answer_to(&[b'x'; 10_000]).await.unwrap_err();
        assert!(why.len() < 400, "{why}");
    }

    #[tokio::test]
    async fn a_message_of_a_command_is_no_hello() {
        let mut bytes = Vec::new();
        AgentMessage::Started(1).append(&mut bytes, 0);
        let why = answer_to(bytes.leak()).await.unwrap_err();
        assert!(why.contains("no hello"), "{why}");
    }
}
