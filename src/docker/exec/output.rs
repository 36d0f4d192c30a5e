//! Where the two output streams of a command go: kept up to a cap, or handed to a reader who took the stream.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bollard::container::LogOutput;
use tokio_util::sync::CancellationToken;

use crate::spec::CapturedOutput;

pub(in crate::docker) use crate::provider::{Pending, Sink, deliver};

/// How much is kept of what the engine says of a command that never started.
const ENGINE_TEXT_BYTES: usize = 16 * 1024;

/// Both output streams of one command. Nothing is shared between them: each has its own sink and its own decoder.
#[derive(Debug, Clone)]
pub(in crate::docker) struct Outputs {
    pub(in crate::docker) stdout: Sink,
    pub(in crate::docker) stderr: Sink,
    speaker: Arc<Mutex<Speaker>>,
    /// Cancelled when nothing waits for readers any more: the command was killed.
    pub(in crate::docker) hurry: CancellationToken,
}

/// Who writes the output. The engine says on a command's standard output why it could not be started (engine-facts
/// S6); who has taken the stream must not get that for the command's own words (contract D5).
#[derive(Debug)]
enum Speaker {
    /// The command, or nobody reads along: then the result decides at the end.
    Command,
    /// Not known before the engine is asked, which is done when the first chunk comes.
    Unknown,
    /// The engine: these are its words.
    Engine(Vec<u8>),
}

impl Outputs {
    /// For a command of which only the result is wanted.
    pub(in crate::docker) fn capturing(cap_bytes: usize) -> Self {
        Self::new(cap_bytes, Speaker::Command)
    }

    /// For a command whose streams may be taken while it runs.
    pub(super) fn of_session(cap_bytes: usize) -> Self {
        Self::new(cap_bytes, Speaker::Unknown)
    }

    fn new(cap_bytes: usize, speaker: Speaker) -> Self {
        let speaker = Arc::new(Mutex::new(speaker));
        Self {
            stdout: Sink::new(cap_bytes),
            stderr: Sink::new(cap_bytes),
            speaker,
            hurry: CancellationToken::new(),
        }
    }

    /// Says whether the engine has to be asked who speaks, before a chunk is pushed.
    pub(super) fn speaker_is_unknown(&self) -> bool {
        matches!(*self.speaker(), Speaker::Unknown)
    }

    /// The command runs, or has run: the output is its own.
    pub(super) fn the_command_speaks(&self) {
        *self.speaker() = Speaker::Command;
    }

    /// The command never started: the output is the engine's.
    pub(super) fn the_engine_speaks(&self) {
        *self.speaker() = Speaker::Engine(Vec::new());
    }

    /// What the engine said of a command that never started. None where that was not asked for.
    pub(super) fn engine_text(&self) -> Option<String> {
        match &*self.speaker() {
            Speaker::Engine(text) => Some(String::from_utf8_lossy(text).into_owned()),
            Speaker::Command | Speaker::Unknown => None,
        }
    }

    fn speaker(&self) -> MutexGuard<'_, Speaker> {
        // Every change of it is one assignment or an append, so a panic can't have left half of one.
        self.speaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a chunk; gives back what must wait.
    pub(in crate::docker) fn push(&self, chunk: LogOutput) -> Option<Pending> {
        if let Speaker::Engine(text) = &mut *self.speaker() {
            let room = ENGINE_TEXT_BYTES.saturating_sub(text.len());
            text.extend(chunk.into_bytes().iter().take(room));
            return None;
        }
        match chunk {
            LogOutput::StdErr { message } => self.stderr.push(message),
            LogOutput::StdOut { message } | LogOutput::Console { message } => self.stdout.push(message),
            LogOutput::StdIn { .. } => None,
        }
    }

    /// Ends both streams for their readers and gives what was kept of those that were not taken.
    pub(in crate::docker) fn finish(&self) -> (CapturedOutput, CapturedOutput) {
        (self.stdout.finish(), self.stderr.finish())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tokio::io::AsyncReadExt;

    use super::*;

    fn chunk(text: &'static str) -> LogOutput {
        LogOutput::StdOut {
            message: Bytes::from_static(text.as_bytes()),
        }
    }

    #[tokio::test]
    async fn the_words_of_the_engine_reach_no_reader() {
        let outputs = Outputs::of_session(1024);
        assert!(outputs.speaker_is_unknown());
        let mut reader = outputs.stdout.take().unwrap();
        outputs.the_engine_speaks();
        assert!(outputs.push(chunk("exec failed: no such file")).is_none());
        assert_eq!(
            outputs.engine_text().as_deref(),
            Some("exec failed: no such file")
        );
        outputs.finish();
        let mut read = String::new();
        reader.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "");
    }

    #[tokio::test]
    async fn a_taken_stream_begins_with_what_was_kept_and_ends_with_the_command() {
        let outputs = Outputs::capturing(1024);
        assert!(outputs.push(chunk("one ")).is_none());
        let mut reader = outputs.stdout.take().unwrap();
        assert!(outputs.stdout.take().is_none());
        let mut pending = outputs.push(chunk("two"));
        deliver(&mut pending, &CancellationToken::new()).await;
        assert!(pending.is_none());
        let (stdout, stderr) = outputs.finish();
        assert_eq!((stdout.total_bytes(), stderr.total_bytes()), (0, 0));
        let mut text = String::new();
        reader.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "one two");
    }

    #[tokio::test]
    async fn a_reader_that_is_gone_does_not_hold_the_command() {
        let outputs = Outputs::capturing(1024);
        drop(outputs.stdout.take());
        for _ in 0..100 {
            let mut pending = outputs.push(chunk("x"));
            deliver(&mut pending, &CancellationToken::new()).await;
        }
    }

    #[tokio::test]
    async fn a_stream_can_be_taken_after_the_end() {
        let outputs = Outputs::capturing(1024);
        assert!(outputs.push(chunk("late")).is_none());
        let (stdout, _) = outputs.finish();
        assert_eq!(stdout.text(), "late");
        let mut text = String::new();
        outputs
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .await
            .unwrap();
        assert_eq!(text, "late");
    }
}
