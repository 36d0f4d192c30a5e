//! Small files, listings and stat by the agent: quick, and right where the engine's archive calls don't see (tmpfs).
//! Only what goes the ordinary way is answered here. For anything else, and where there is no agent at hand, the answer
//! is [`Answer::Elsewhere`], and the archive way has the last word and the error.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gym_sandbox_agent::protocol::{
    ClientMessage, FileInfo, INPUT_WINDOW_BYTES, ListRequest, MAX_PAYLOAD_BYTES, NAMED_OR_NOT, ReadRequest,
    RenameRequest, WriteRequest,
};

use crate::spec::FileOwner;

use super::super::{DockerProvider, DockerRaw};
use super::answer::{End, FileAnswer, Limits, Whole};
use super::link::{Link, Lost};
use super::resident::Resident;

/// Files up to here go by the agent. They can be sent without waiting for room, and keep it from its other work for
/// less than a millisecond.
const SMALL_FILE_BYTES: usize = INPUT_WINDOW_BYTES as usize;

/// Directories with more entries are listed another way.
const MOST_ENTRIES: u32 = 50_000;

/// An agent that has not answered a question by then is not waited for: asking elsewhere does no harm.
const QUESTION: Duration = Duration::from_secs(2);

/// Capabilities that writing any file for any owner takes: CHOWN, `DAC_OVERRIDE` and FOWNER.
const WRITE_ANYTHING: u64 = 1 | 1 << 1 | 1 << 3;

const ENOENT: i32 = 2;

/// The version of the protocol that can rename.
const RENAMES_SINCE: u16 = 3;

/// What came of asking the agent.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::docker) enum Answer<T> {
    /// It did so.
    Agent(T),
    /// It can't, or not now: the archive way is to be gone.
    Elsewhere,
    /// The agent did not say in time whether it did so. It may still do it.
    Unknown,
}

/// What a written file gets.
#[derive(Debug, Clone, Copy)]
pub(in crate::docker) struct WriteAs {
    pub(in crate::docker) mode: u32,
    pub(in crate::docker) mtime_seconds: u64,
    pub(in crate::docker) owner: FileOwner,
}

impl DockerProvider {
    /// Writes a whole small file, and its missing parents. It is there with all its marks, or not at all.
    ///
    /// # Cancel safety
    /// Dropped, the file is written whole or not at all.
    pub(in crate::docker) async fn write_by_agent(
        &self,
        resident: &Resident,
        path: &str,
        marks: WriteAs,
        content: &Bytes,
        patience: Duration,
    ) -> Answer<()> {
        if content.len() > SMALL_FILE_BYTES {
            return Answer::Elsewhere;
        }
        let Some(link) = resident.link_at_hand().await else {
            return Answer::Elsewhere;
        };
        if !can_write_for(&link, marks.owner) {
            return Answer::Elsewhere;
        }
        let modified = i64::try_from(marks.mtime_seconds).unwrap_or(i64::MAX);
        let request = ClientMessage::WriteFile(WriteRequest {
            path: path.as_bytes().to_vec(),
            mode: marks.mode,
            uid: marks.owner.uid,
            gid: marks.owner.gid,
            modified_ns: modified.saturating_mul(1_000_000_000),
            make_parents: true,
            in_place: false,
        });
        let Ok(asked) = Asked::new(link, &request, Limits::default()).await else {
            return Answer::Elsewhere;
        };
        // What does not get to the agent is seen as the connection's loss below.
        for part in content.chunks(MAX_PAYLOAD_BYTES) {
            asked.push(&ClientMessage::Input(part.to_vec()));
        }
        asked.push(&ClientMessage::InputEnd);
        match tokio::time::timeout(patience, asked.end()).await {
            Ok((End::Done, _)) => Answer::Agent(()),
            // A lost agent may have written it: the archive way then writes the same again.
            Ok((End::Failed(_) | End::Lost, _)) => Answer::Elsewhere,
            Err(_) => Answer::Unknown,
        }
    }

    /// Reads a regular file with at most so many bytes, and never more than 256 KiB. A link is followed.
    pub(in crate::docker) async fn read_by_agent(
        &self,
        raw: &DockerRaw,
        path: &str,
        max_bytes: u64,
    ) -> Answer<(FileInfo, Vec<u8>)> {
        let most = usize::try_from(max_bytes).map_or(SMALL_FILE_BYTES, |most| most.min(SMALL_FILE_BYTES));
        let request = ClientMessage::ReadFile(ReadRequest {
            path: path.as_bytes().to_vec(),
            max_bytes: most as u64,
            // One more, or the end of a file of just this size is not looked for.
            credit: INPUT_WINDOW_BYTES + 1,
        });
        let limits = Limits {
            content: SMALL_FILE_BYTES,
            entries: 0,
        };
        match question(raw, &request, limits).await {
            Some((
                End::Done,
                Whole {
                    info: Some(info),
                    content,
                    ..
                },
            )) => Answer::Agent((info, content)),
            _ => Answer::Elsewhere,
        }
    }

    /// What is at a path, whose last link is not followed; None for nothing.
    pub(in crate::docker) async fn stat_by_agent(
        &self,
        raw: &DockerRaw,
        path: &str,
    ) -> Answer<Option<FileInfo>> {
        let request = ClientMessage::Stat(path.as_bytes().to_vec());
        match question(raw, &request, Limits::default()).await {
            Some((End::Done, Whole { info: Some(info), .. })) => Answer::Agent(Some(info)),
            Some((End::Failed(failure), _)) if failure.errno == ENOENT => Answer::Agent(None),
            _ => Answer::Elsewhere,
        }
    }

    /// What is in a directory. A link is followed.
    pub(in crate::docker) async fn list_by_agent(
        &self,
        raw: &DockerRaw,
        path: &str,
    ) -> Answer<Vec<FileInfo>> {
        let request = ClientMessage::List(ListRequest {
            path: path.as_bytes().to_vec(),
            max_entries: MOST_ENTRIES,
        });
        let limits = Limits {
            content: 0,
            entries: MOST_ENTRIES as usize,
        };
        match question(raw, &request, limits).await {
            Some((End::Done, whole)) => Answer::Agent(whole.entries),
            _ => Answer::Elsewhere,
        }
    }
}

/// What came of a name that was to be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::docker) enum Given {
    Done,
    /// The agent can't.
    Refused,
    /// The agent was lost, before or after it has done so. Before, it has removed the file.
    Lost,
    /// It did not say whether it has.
    Silent,
}

/// A name that the agent gives a file when all of it is there. Dropped before, the agent removes the file, also when this
/// process ends.
pub(in crate::docker) struct PendingName(Asked);

impl PendingName {
    /// Asks an agent at hand to give a file in the sandbox another name. None where there is none that could.
    ///
    /// # Cancel safety
    /// Dropped, nothing was asked.
    pub(in crate::docker) async fn ask(resident: &Resident, from: &str, to: &str) -> Option<Self> {
        let link = resident.link_at_hand().await?;
        if link.hello().version < RENAMES_SINCE {
            return None;
        }
        let request = ClientMessage::Rename(RenameRequest {
            from: from.as_bytes().to_vec(),
            to: to.as_bytes().to_vec(),
        });
        let asked = Asked::new(link, &request, Limits::default()).await.ok()?;
        Some(Self(asked))
    }

    /// Gives the name. What was there under it is replaced, unless it is a directory.
    ///
    /// # Cancel safety
    /// Dropped, it is done or not.
    pub(in crate::docker) async fn give(self, patience: Duration) -> Given {
        self.0.push(&ClientMessage::InputEnd);
        match tokio::time::timeout(patience, self.0.end()).await {
            Ok((End::Done, _)) => Given::Done,
            Ok((End::Failed(failure), _)) if failure.what != NAMED_OR_NOT => Given::Refused,
            Ok((End::Failed(_) | End::Lost, _)) => Given::Lost,
            Err(_) => Given::Silent,
        }
    }

    /// Has the file removed, and says whether the agent has done so.
    pub(in crate::docker) async fn give_up(self, patience: Duration) -> bool {
        let link = Arc::clone(&self.0.link);
        drop(self);
        // What it answers after that it has read after that.
        matches!(tokio::time::timeout(patience, link.ping()).await, Ok(Ok(())))
    }
}

/// Asks for something that changes nothing. None where no answer came in time.
async fn question(raw: &DockerRaw, request: &ClientMessage, limits: Limits) -> Option<(End, Whole)> {
    let link = raw.agent.link_at_hand().await?;
    let ask = async {
        let asked = Asked::new(link, request, limits).await.ok()?;
        Some(asked.end().await)
    };
    tokio::time::timeout(QUESTION, ask).await.ok().flatten()
}

/// Without these rights a write may fail half-way, with parents that were made for another owner.
fn can_write_for(link: &Link, owner: FileOwner) -> bool {
    let hello = link.hello();
    (hello.uid == 0 && hello.effective_capabilities & WRITE_ANYTHING == WRITE_ANYTHING)
        || (owner.uid, owner.gid) == (hello.uid, hello.gid)
}

/// Something that was asked of a file. Dropped before its end it is given up, and half a file with it.
struct Asked {
    link: Arc<Link>,
    channel: u32,
    answer: Arc<FileAnswer>,
}

impl Asked {
    async fn new(link: Arc<Link>, request: &ClientMessage, limits: Limits) -> Result<Self, Lost> {
        let (channel, answer) = link.ask_file(request, limits).await?;
        Ok(Self {
            link,
            channel,
            answer,
        })
    }

    fn push(&self, message: &ClientMessage) {
        self.link.push(message, self.channel);
    }

    async fn end(&self) -> (End, Whole) {
        self.answer.whole().await
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if self.link.forget(self.channel) {
            self.push(&ClientMessage::Detach);
        }
    }
}
