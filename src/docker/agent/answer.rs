//! What the agent answers about one file, listing or stat: collected until it is whole, and never more than was asked for.

use std::sync::{Mutex, MutexGuard, PoisonError};

use gym_sandbox_agent::protocol::{AgentMessage, FileFailure, FileInfo, Malformed, Stream};
use tokio::sync::Notify;

use super::decode::Content;

/// How much an answer may hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// Bytes of content.
    pub(super) content: usize,
    /// Entries of a listing.
    pub(super) entries: usize,
}

/// Names and link targets of one answer.
const NAME_BYTES: usize = 16 << 20;

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Done,
    Failed(FileFailure),
    /// The connection was lost before.
    Lost,
}

/// A whole answer.
#[derive(Debug, Default)]
pub(super) struct Whole {
    pub(super) info: Option<FileInfo>,
    pub(super) content: Vec<u8>,
    pub(super) entries: Vec<FileInfo>,
}

#[derive(Debug, Default)]
struct Parts {
    whole: Whole,
    name_bytes: usize,
    end: Option<End>,
}

/// An answer that is on its way.
#[derive(Debug)]
pub(super) struct FileAnswer {
    limits: Limits,
    parts: Mutex<Parts>,
    ended: Notify,
}

impl FileAnswer {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            parts: Mutex::default(),
            ended: Notify::new(),
        }
    }

    /// Adds a message. Says whether it was the last one.
    pub(super) fn put(&self, content: Content) -> Result<bool, Malformed> {
        let mut parts = self.parts();
        match content {
            Content::Output(Stream::Stdout, bytes) => {
                if parts.whole.content.len() + bytes.len() > self.limits.content {
                    return Err(Malformed("more of a file came than there was room for"));
                }
                parts.whole.content.extend_from_slice(&bytes);
            }
            Content::Message(AgentMessage::FileInfo(info)) => parts.whole.info = Some(info),
            Content::Message(AgentMessage::FileEntries(entries)) => {
                let names = entries.iter().map(|entry| entry.name.len() + entry.target.len());
                parts.name_bytes += names.sum::<usize>();
                if parts.whole.entries.len() + entries.len() > self.limits.entries
                    || parts.name_bytes > NAME_BYTES
                {
                    return Err(Malformed("more of a directory came than was asked for"));
                }
                parts.whole.entries.extend(entries);
            }
            // All that is written fits what may be sent ahead.
            Content::Message(AgentMessage::InputCredit(_)) => {}
            Content::Message(AgentMessage::FileDone(_)) => parts.end = Some(End::Done),
            Content::Message(AgentMessage::FileFailed(failure)) => parts.end = Some(End::Failed(failure)),
            Content::Output(Stream::Stderr, _) | Content::Message(_) => {
                return Err(Malformed("a file's channel has another message"));
            }
        }
        let is_last = parts.end.is_some();
        drop(parts);
        if is_last {
            self.ended.notify_one();
        }
        Ok(is_last)
    }

    /// Says that nothing more will come.
    pub(super) fn lose(&self) {
        let mut parts = self.parts();
        parts.end.get_or_insert(End::Lost);
        drop(parts);
        self.ended.notify_one();
    }

    /// Waits for the end, and takes what has come. One task waits. Dropping the future loses nothing.
    pub(super) async fn whole(&self) -> (End, Whole) {
        loop {
            {
                let mut parts = self.parts();
                if let Some(end) = parts.end.clone() {
                    return (end, std::mem::take(&mut parts.whole));
                }
            }
            self.ended.notified().await;
        }
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        // Nothing that is done under the lock can panic half-way.
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use gym_sandbox_agent::protocol::FileKind;

    use super::*;

    fn info(name: &str) -> FileInfo {
        FileInfo {
            name: name.into(),
            kind: FileKind::File,
            mode: 0o644,
            uid: 1,
            gid: 2,
            size: 3,
            modified_ns: 4,
            target: Vec::new(),
        }
    }

    fn output(bytes: &'static [u8]) -> Content {
        Content::Output(Stream::Stdout, bytes.into())
    }

    #[tokio::test]
    async fn an_answer_is_whole_at_its_end_and_not_before() {
        let answer = FileAnswer::new(Limits {
            content: 4,
            entries: 0,
        });
        assert_eq!(
            answer.put(Content::Message(AgentMessage::FileInfo(info("/f")))),
            Ok(false)
        );
        assert_eq!(answer.put(output(b"ab")), Ok(false));
        assert!(futures::FutureExt::now_or_never(answer.whole()).is_none());
        assert_eq!(answer.put(output(b"cd")), Ok(false));
        assert_eq!(answer.put(Content::Message(AgentMessage::FileDone(4))), Ok(true));
        let (end, whole) = answer.whole().await;
        assert_eq!(
            (end, whole.info, whole.content),
            (End::Done, Some(info("/f")), b"abcd".to_vec())
        );
    }

    #[test]
    fn more_than_was_asked_for_is_refused_and_never_kept() {
        let limits = Limits {
            content: 2,
            entries: 1,
        };
        let answer = FileAnswer::new(limits);
        assert!(answer.put(output(b"abc")).is_err());
        let two = AgentMessage::FileEntries(vec![info("a"), info("b")]);
        assert!(answer.put(Content::Message(two)).is_err());
        assert!(answer.put(Content::Message(AgentMessage::Started(1))).is_err());
        let mut long = info("a");
        long.target = vec![b'x'; NAME_BYTES];
        assert!(
            answer
                .put(Content::Message(AgentMessage::FileEntries(vec![long])))
                .is_err()
        );
    }

    #[tokio::test]
    async fn a_lost_connection_ends_an_answer() {
        let answer = FileAnswer::new(Limits::default());
        answer.lose();
        assert_eq!(answer.whole().await.0, End::Lost);
    }
}
