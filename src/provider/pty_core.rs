//! What a session is to its callers, however its program is reached: two bounded queues of output, an exit that many wait
//! for, and an end that wakes everybody. Knows no engine and no agent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, Weak};

use bytes::Bytes;
use tokio::sync::{Mutex, mpsc, watch};

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::{PtyMode, SandboxId};

use super::PtySession;

/// Chunks of at most 64 KiB that wait for a reader; then the program waits.
const CHUNKS: usize = 4;

/// Why a session can't be used any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Over {
    Closed,
    /// Left to live on in the sandbox.
    Left,
    Evicted,
    Lost(Arc<str>),
}

/// What has become of a session.
#[derive(Debug, Clone, Default)]
struct Fate {
    exit: Option<i32>,
    over: Option<Over>,
}

/// One session.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) sandbox_id: SandboxId,
    pub(crate) session_id: String,
    pub(crate) mode: PtyMode,
    stdout: Queue,
    stderr: Queue,
    fate: watch::Sender<Fate>,
}

#[derive(Debug)]
struct Queue {
    chunks: Mutex<mpsc::Receiver<Bytes>>,
    /// The end was seen.
    drained: AtomicBool,
}

/// Where output is put in. Dropping a sender ends its stream.
#[derive(Debug)]
pub(crate) struct Taps {
    pub(crate) stdout: Option<mpsc::Sender<Bytes>>,
    pub(crate) stderr: Option<mpsc::Sender<Bytes>>,
}

impl Core {
    pub(crate) fn new(sandbox_id: &SandboxId, session_id: &str, mode: PtyMode) -> (Arc<Self>, Taps) {
        let (stdout, stdout_queue) = Queue::new();
        let (stderr, stderr_queue) = Queue::new();
        let core = Arc::new(Self {
            sandbox_id: sandbox_id.clone(),
            session_id: session_id.to_owned(),
            mode,
            stdout: stdout_queue,
            stderr: stderr_queue,
            fate: watch::Sender::default(),
        });
        let taps = Taps {
            stdout: Some(stdout),
            stderr: Some(stderr),
        };
        (core, taps)
    }

    /// A session whose program could not be started, with what there is to say of it.
    pub(crate) fn ended(
        sandbox_id: &SandboxId,
        session_id: &str,
        mode: PtyMode,
        text: &str,
        exit_code: i32,
    ) -> Arc<Self> {
        let (core, taps) = Self::new(sandbox_id, session_id, mode);
        let line_end = if mode == PtyMode::Pty { "\r\n" } else { "\n" };
        let text = Bytes::from(format!("{}{line_end}", text.trim_end()));
        let tap = if mode == PtyMode::Pty {
            taps.stdout
        } else {
            taps.stderr
        };
        if let Some(tap) = tap {
            // The queue is empty: there is room.
            let _full = tap.try_send(text).is_err();
        }
        core.note_exit(exit_code);
        core
    }

    pub(crate) fn exit(&self) -> Option<i32> {
        self.fate.borrow().exit
    }

    pub(crate) fn over(&self) -> Option<Over> {
        self.fate.borrow().over.clone()
    }

    pub(crate) fn is_closed(&self) -> bool {
        let fate = self.fate.borrow();
        fate.exit.is_some() || fate.over.is_some()
    }

    /// The first code that is told stays.
    pub(crate) fn note_exit(&self, code: i32) {
        self.fate.send_if_modified(|fate| {
            let is_news = fate.exit.is_none();
            fate.exit.get_or_insert(code);
            is_news
        });
    }

    /// Ends the session for its callers. Says whether it was not over before.
    pub(crate) fn end(&self, why: Over) -> bool {
        self.fate.send_if_modified(|fate| {
            let is_news = fate.over.is_none();
            fate.over.get_or_insert(why);
            is_news
        })
    }

    /// Waits until the session is over.
    pub(crate) async fn until_over(&self) -> Over {
        let mut fate = self.fate.subscribe();
        // The sender is in here, so that it can't be gone.
        match fate.wait_for(|fate| fate.over.is_some()).await {
            Ok(fate) => fate.over.clone().unwrap_or(Over::Closed),
            Err(_) => Over::Closed,
        }
    }

    /// Waits until the program has exited or the session is over.
    pub(crate) async fn until_done(&self) {
        let mut fate = self.fate.subscribe();
        let _gone = fate
            .wait_for(|fate| fate.exit.is_some() || fate.over.is_some())
            .await
            .is_err();
    }

    pub(crate) async fn wait_exit(&self) -> Result<i32> {
        self.until_done().await;
        let fate = self.fate.borrow().clone();
        match (fate.exit, fate.over) {
            (Some(code), _) => Ok(code),
            (None, over) => Err(self.error(&over.unwrap_or(Over::Closed))),
        }
    }

    pub(crate) async fn read(&self) -> Result<Bytes> {
        self.read_from(&self.stdout).await
    }

    pub(crate) async fn read_stderr(&self) -> Result<Bytes> {
        if self.mode == PtyMode::Pty {
            return self.wait_exit().await.map(|_| Bytes::new());
        }
        self.read_from(&self.stderr).await
    }

    async fn read_from(&self, queue: &Queue) -> Result<Bytes> {
        loop {
            if queue.drained.load(Ordering::Acquire) {
                return self.wait_exit().await.map(|_| Bytes::new());
            }
            if let Some(over) = self.over() {
                return Err(self.error(&over));
            }
            let receive = async { queue.chunks.lock().await.recv().await };
            tokio::select! {
                chunk = receive => match chunk {
                    Some(chunk) if chunk.is_empty() => {}
                    Some(chunk) => return Ok(chunk),
                    // What ends a session also ends its queues: that is no end of the output.
                    None if self.over().is_none() || self.exit().is_some() => {
                        queue.drained.store(true, Ordering::Release);
                    }
                    None => {}
                },
                _ = self.until_over() => {}
            }
        }
    }

    /// Refuses what only a living session can do (contract Z6).
    pub(crate) fn check_live(&self) -> Result<()> {
        if let Some(over) = self.over() {
            return Err(self.error(&over));
        }
        if let Some(code) = self.exit() {
            return Err(self.pty_error(format!("the program of the session has exited with {code}")));
        }
        Ok(())
    }

    /// Does something for as long as the session lives.
    pub(crate) async fn while_live<T>(&self, future: impl Future<Output = T>) -> Result<T> {
        self.check_live()?;
        tokio::select! {
            biased;
            () = self.until_done() => match self.check_live() {
                Err(error) => Err(error),
                Ok(()) => Err(self.error(&Over::Closed)),
            },
            done = future => Ok(done),
        }
    }

    pub(crate) fn error(&self, over: &Over) -> Error {
        match over {
            Over::Closed => self.pty_error("the session was closed".to_owned()),
            Over::Left => self
                .pty_error("the session was left here".to_owned())
                .with_hint("attach to it again by its id"),
            Over::Evicted => self.pty_error("the session was taken over by another client".to_owned()),
            Over::Lost(why) => self.pty_error(format!("the session was lost: {why}")),
        }
    }

    /// What ending the input of a terminal is answered with.
    pub(crate) fn no_input_end(&self, provider: &str) -> Error {
        Error::unsupported(Operation::Pty, provider, "ending the input of a terminal")
            .with_sandbox(&self.sandbox_id)
            .with_hint("write the key ^D, byte 4, at the start of a line")
    }

    /// What resizing pipes is answered with.
    pub(crate) fn no_size(&self, provider: &str) -> Error {
        Error::unsupported(Operation::Pty, provider, "a size of pipes").with_sandbox(&self.sandbox_id)
    }

    pub(crate) fn pty_error(&self, message: String) -> Error {
        Error::new(ErrorKind::Pty, Operation::Pty, message).with_sandbox(&self.sandbox_id)
    }
}

/// The sessions that this provider has made or joined and that may still be open (contract Z12).
#[derive(Debug, Default)]
pub(crate) struct OpenSessions(std::sync::Mutex<Vec<Weak<dyn PtySession>>>);

impl OpenSessions {
    pub(crate) fn add(&self, session: &Arc<dyn PtySession>) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|known| known.upgrade().is_some_and(|known| !known.is_closed()));
        open.push(Arc::downgrade(session));
    }

    /// Closes those that were made here and leaves those that were joined.
    pub(crate) async fn close_all(&self) {
        let open = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let closing = open
            .iter()
            .filter_map(Weak::upgrade)
            .map(|session| async move {
                if let Err(error) = session.close().await {
                    tracing::warn!(session = session.session_id(), %error, "a terminal session could not be closed");
                }
            });
        futures::future::join_all(closing).await;
    }
}

impl Queue {
    fn new() -> (mpsc::Sender<Bytes>, Self) {
        let (sender, chunks) = mpsc::channel(CHUNKS);
        let queue = Self {
            chunks: Mutex::new(chunks),
            drained: AtomicBool::new(false),
        };
        (sender, queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core() -> (Arc<Core>, Taps) {
        Core::new(&SandboxId::new("gym-sandbox-x").unwrap(), "s", PtyMode::Pty)
    }

    #[tokio::test]
    async fn z1_z3_nothing_means_exited_and_drained_and_stays() {
        let (core, taps) = core();
        taps.stdout.as_ref().unwrap().send(Bytes::new()).await.unwrap();
        taps.stdout
            .as_ref()
            .unwrap()
            .send(Bytes::from_static(b"x"))
            .await
            .unwrap();
        core.note_exit(3);
        drop(taps);
        assert_eq!(core.read().await.unwrap(), "x");
        assert_eq!(core.read().await.unwrap(), "");
        assert!(core.end(Over::Closed));
        assert_eq!(core.read().await.unwrap(), "");
        assert_eq!(core.wait_exit().await.unwrap(), 3);
        assert_eq!(core.check_live().unwrap_err().kind(), ErrorKind::Pty);
    }

    #[tokio::test]
    async fn z4_z5_an_end_before_the_exit_wakes_everybody_with_an_error() {
        let (core, _taps) = core();
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                let core = Arc::clone(&core);
                tokio::spawn(async move { core.wait_exit().await })
            })
            .collect();
        let reader = tokio::spawn({
            let core = Arc::clone(&core);
            async move { core.read().await }
        });
        tokio::task::yield_now().await;
        assert!(core.end(Over::Evicted));
        assert!(!core.end(Over::Closed));
        for waiter in waiters {
            assert_eq!(waiter.await.unwrap().unwrap_err().kind(), ErrorKind::Pty);
        }
        let error = reader.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("taken over"), "{error}");
        // A code that comes too late is still told.
        core.note_exit(0);
        assert_eq!(core.wait_exit().await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_program_that_could_not_be_started_is_a_session_that_ended() {
        let id = SandboxId::new("gym-sandbox-x").unwrap();
        let core = Core::ended(&id, "s", PtyMode::Pty, "no such thing\n", 127);
        assert_eq!(core.read().await.unwrap(), "no such thing\r\n");
        assert_eq!(core.read().await.unwrap(), "");
        assert_eq!(core.wait_exit().await.unwrap(), 127);
    }
}
