//! The client side of the resident agent: a program inside the sandbox that runs commands itself (docs/agent.md).
//! One part puts it there, one reaches it, one speaks with it; the operations only ask for a [`Route`].

mod answer;
mod apart;
mod command;
mod decode;
mod dial;
mod drive;
mod ending;
mod files;
mod greeting;
mod guard;
mod inject;
mod kind;
mod launch;
mod link;
mod mailbox;
mod offline;
mod outbox;
mod patience;
mod plan;
mod program;
mod reading;
mod renewal;
mod resident;
mod session;
mod socket;
mod stale;
mod terminal;
mod terminal_close;
mod terminal_pump;
mod terminal_session;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;

use super::DockerProvider;
use super::connect::Engine;

use kind::SandboxKind;

pub(super) use command::Started;
pub(super) use files::{Answer, Given, PendingName, WriteAs};
pub(super) use gym_sandbox_agent::protocol::{FileInfo, FileKind as AgentFileKind};
pub(super) use plan::{Failed, Plan};
pub(super) use program::FILLER;
pub(super) use program::PROGRAM;
pub(super) use renewal::Tended;
pub(super) use resident::Resident;
pub(super) use session::ended_session;

/// How long an agent that was started may take until it has said hello.
const PATIENCE: Duration = Duration::from_secs(5);

/// More kinds of sandboxes than this are not remembered.
const REMEMBERED: usize = 1024;

/// Which way commands are run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ExecPathPolicy {
    /// By the resident agent where it can be put into the sandbox and answers, else by the engine. The reason is kept,
    /// see [`DockerRaw::engine_reason`](super::DockerRaw::engine_reason).
    #[default]
    Auto,
    /// By an exec of the engine; no agent is put into the sandbox.
    Engine,
    /// By the resident agent; a sandbox where that can't be is not created.
    Agent,
}

/// Whether the agent runs in sandboxes of a kind.
#[derive(Debug)]
enum Known {
    Usable,
    Unusable(Arc<str>),
}

/// What the sandboxes of one provider share.
#[derive(Debug, Default)]
pub(super) struct Fleet {
    sockets: socket::Sockets,
    /// What is known of kinds of sandboxes: where the agent did not run it is not tried again for every sandbox.
    known: Mutex<HashMap<SandboxKind, Known>>,
    /// A socket of this process can't be reached from the engine's sandboxes, though the engine is reached by one.
    socket_failed: std::sync::atomic::AtomicBool,
}

impl DockerProvider {
    /// How commands are run on this engine, and why so, as far as that holds for all sandboxes.
    pub(super) fn exec_path_report(&self, engine: &Engine) -> (String, String) {
        let policy = self.config().exec.exec_path;
        let unusable = program::unusable_on(&engine.os_type, &engine.architecture);
        let by_engine = |why: String| ("engine".to_owned(), why);
        match (policy, unusable) {
            (ExecPathPolicy::Engine, _) => by_engine("`exec_path` is `engine`".to_owned()),
            (ExecPathPolicy::Auto, Some(why)) => by_engine(why),
            (ExecPathPolicy::Agent, Some(why)) => by_engine(format!(
                "`exec_path` is `agent`, so that no sandbox can be made: {why}"
            )),
            (ExecPathPolicy::Auto, None) => {
                let images = self.fleet().images_without();
                let mut why = "`exec_path` is `auto` and the engine can have the agent".to_owned();
                if !images.is_empty() {
                    why = format!("{why}; it does not work in {}", images.join(", "));
                }
                ("agent".to_owned(), why)
            }
            (ExecPathPolicy::Agent, None) => ("agent".to_owned(), "`exec_path` is `agent`".to_owned()),
        }
    }
}

impl Fleet {
    fn known(&self) -> MutexGuard<'_, HashMap<SandboxKind, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn images_without(&self) -> Vec<String> {
        let known = self.known();
        let mut images: Vec<String> = known
            .iter()
            .filter_map(|(kind, known)| match known {
                Known::Unusable(why) => Some(format!("`{}` ({why})", kind.image)),
                Known::Usable => None,
            })
            .collect();
        images.sort_unstable();
        images.dedup();
        images
    }

    fn why_unusable(&self, kind: &SandboxKind) -> Option<Arc<str>> {
        match self.known().get(kind)? {
            Known::Unusable(why) => Some(Arc::clone(why)),
            Known::Usable => None,
        }
    }

    /// Where it has worked once, a failure is one of that sandbox, such as a machine too busy for its patience.
    fn remember_unusable(&self, kind: &SandboxKind, why: &Arc<str>) {
        let mut known = self.known();
        if known.len() < REMEMBERED {
            let entry = known.entry(kind.clone());
            entry.or_insert_with(|| Known::Unusable(Arc::clone(why)));
        }
    }

    fn remember_usable(&self, kind: &SandboxKind) {
        let mut known = self.known();
        if known.len() < REMEMBERED || known.contains_key(kind) {
            known.insert(kind.clone(), Known::Usable);
        }
    }
}

/// Takes bytes in pieces as they come from an agent, for commands and files in turn. For the fuzz target: not for use.
///
/// # Errors
/// What ends the connection.
#[cfg(feature = "fuzzing")]
pub fn agent_stream_for_fuzzing<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Result<(), String> {
    let mut decoder = decode::Decoder::default();
    let limits = answer::Limits {
        content: 1000,
        entries: 10,
    };
    let (mailbox, file) = (
        mailbox::Mailbox::new(0, mailbox::Start::News),
        answer::FileAnswer::new(limits),
    );
    let told = |malformed: gym_sandbox_agent::protocol::Malformed| malformed.to_string();
    for piece in pieces {
        decoder.buffer().extend_from_slice(piece);
        while let Some(incoming) = decoder.next().map_err(told)? {
            match incoming.content {
                content if incoming.channel % 2 == 0 => file.put(content).map(drop),
                decode::Content::Output(stream, bytes) => mailbox.put_output(stream, bytes),
                decode::Content::Message(message) => mailbox.put(message).map(drop),
            }
            .map_err(told)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
