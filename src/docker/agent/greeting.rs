//! The first message of an agent: whether it is one, and the right one.

use std::pin::Pin;

use gym_sandbox_agent::protocol::{AgentHello, AgentMessage, Fingerprint, OLDEST_VERSION, VERSION};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::decode::{Content, Decoder};
use super::link::Lost;

/// Reads until the agent has said hello.
pub(super) async fn hello(
    reader: &mut Pin<Box<dyn AsyncRead + Send>>,
    decoder: &mut Decoder,
) -> Result<AgentHello, Lost> {
    loop {
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
            Ok(0) => {
                return Err(Lost(
                    "the agent closed the connection before it said hello".into(),
                ));
            }
            Ok(_) => {}
            Err(error) => {
                return Err(Lost(
                    format!("the connection broke before the agent said hello: {error}").into(),
                ));
            }
        }
    }
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
