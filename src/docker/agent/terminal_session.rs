//! A session of the agent as its callers use it. The task of `terminal_pump` reads it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use gym_sandbox_agent::protocol::{AgentMessage, ClientMessage, MAX_PAYLOAD_BYTES, SignalTarget};
use tokio::sync::watch;

use crate::error::{Operation, Result};
use crate::provider::PtySession;
use crate::spec::{ExecPath, PtyMode, check_terminal_size};

use super::super::PROVIDER;
use super::super::exec::is_paused;
use super::super::pty::core::{Core, Over};
use super::link::Link;
use super::mailbox::Mailbox;
use super::patience::SILENT;
use super::session::signal_number;
use super::terminal_close::{Closing, Home};
use super::terminal_pump::{ANSWER, Line};

pub(super) struct AgentPty {
    pub(super) core: Arc<Core>,
    pub(super) line: watch::Receiver<Line>,
    pub(super) home: Home,
    /// Made here, so that closing it ends its program.
    pub(super) is_creator: bool,
    pub(super) replay_offset: u64,
    /// One write at a time: credit is waited for by one.
    pub(super) writing: tokio::sync::Mutex<()>,
    /// It is being ended, or was left to live on.
    pub(super) is_let_go: AtomicBool,
}

/// Gives credit back that was taken for bytes that were not sent.
struct Credit<'a> {
    mailbox: &'a Mailbox,
    bytes: usize,
}

impl Drop for Credit<'_> {
    fn drop(&mut self) {
        if let Ok(bytes) = u32::try_from(self.bytes)
            && bytes > 0
        {
            let _not_last = self.mailbox.put(AgentMessage::InputCredit(bytes));
        }
    }
}

impl AgentPty {
    fn push(&self, message: &ClientMessage) {
        self.line.borrow().push(message);
    }

    async fn write_all(&self, mut bytes: &[u8]) -> Result<()> {
        let _turn = self.writing.lock().await;
        while !bytes.is_empty() {
            let line = self.line.borrow().clone();
            let most = bytes.len().min(MAX_PAYLOAD_BYTES);
            if let Some(taken) = line.mailbox.input_credit(most).await {
                let mut credit = Credit {
                    mailbox: &line.mailbox,
                    bytes: taken,
                };
                let (now, rest) = bytes.split_at(taken);
                if line
                    .link
                    .send(&ClientMessage::Input(now.to_vec()), line.channel)
                    .await
                {
                    credit.bytes = 0;
                    bytes = rest;
                    continue;
                }
            } else if line.link.lost().is_none() {
                return Err(self
                    .core
                    .pty_error("the session takes no input any more".to_owned()));
            }
            // Another connection is being made, or the session is over, which ends this from outside.
            let mut changed = self.line.clone();
            let is_same = |now: &Line| Arc::ptr_eq(&now.mailbox, &line.mailbox);
            if changed.wait_for(|now| !is_same(now)).await.is_err() {
                self.core.until_over().await;
            }
        }
        Ok(())
    }

    /// Waits until the agent has done what it was told before. One that stands still with its sandbox has heard it.
    async fn settle(&self, link: &Link) {
        let mut pong = link.ping();
        let settled = async {
            if tokio::time::timeout(SILENT, &mut pong).await.is_err()
                && !is_paused(&self.home.provider, &self.home.container_id).await
            {
                let _lost = pong.await.is_err();
            }
        };
        let _silent = tokio::time::timeout(ANSWER, settled).await.is_err();
    }

    /// What is to be done for the end of the session, if it is to be ended by now: it was not over yet, or it was lost,
    /// and may live on where it cannot be reached.
    fn closing(&self) -> Option<Closing> {
        let was_live = self.core.end(Over::Closed);
        if !self.is_creator || !(was_live || matches!(self.core.over(), Some(Over::Lost(_)))) {
            if was_live {
                self.push(&ClientMessage::Detach);
            }
            return None;
        }
        if self.is_let_go.swap(true, Ordering::Relaxed) {
            return None;
        }
        let line = self.line.borrow().clone();
        Some(Closing::new(
            self.home.clone(),
            self.core.session_id.clone(),
            line,
        ))
    }
}

#[async_trait]
impl PtySession for AgentPty {
    fn session_id(&self) -> &str {
        &self.core.session_id
    }

    fn mode(&self) -> PtyMode {
        self.core.mode
    }

    fn exec_path(&self) -> ExecPath {
        ExecPath::Agent
    }

    fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    fn replay_offset(&self) -> u64 {
        self.replay_offset
    }

    async fn read(&self) -> Result<Bytes> {
        self.core.read().await
    }

    async fn read_stderr(&self) -> Result<Bytes> {
        self.core.read_stderr().await
    }

    async fn write(&self, bytes: &[u8]) -> Result<()> {
        self.core.while_live(self.write_all(bytes)).await?
    }

    async fn close_input(&self) -> Result<()> {
        self.core.check_live()?;
        if self.core.mode == PtyMode::Pty {
            return Err(self.core.no_input_end(PROVIDER));
        }
        let closing = async {
            let _turn = self.writing.lock().await;
            self.push(&ClientMessage::InputEnd);
        };
        self.core.while_live(closing).await
    }

    async fn resize(&self, rows: u16, cols: u16) -> Result<()> {
        check_terminal_size(Operation::Pty, rows, cols)?;
        self.core.check_live()?;
        if self.core.mode == PtyMode::Pipe {
            return Err(self.core.no_size(PROVIDER));
        }
        self.push(&ClientMessage::Resize(rows, cols));
        Ok(())
    }

    async fn send_signal(&self, name: &str) -> Result<()> {
        let number = signal_number(name, Operation::Pty)?;
        self.core.check_live()?;
        self.push(&ClientMessage::Signal(number, SignalTarget::Group));
        Ok(())
    }

    async fn wait_exit(&self) -> Result<i32> {
        self.core.wait_exit().await
    }

    async fn close(&self) -> Result<()> {
        let was_over = self.core.over().is_some();
        if let Some(closing) = self.closing() {
            Box::pin(closing.run()).await;
        } else if !was_over {
            let line = self.line.borrow().clone();
            self.settle(&line.link).await;
        }
        Ok(())
    }

    async fn detach(&self) -> Result<()> {
        self.core.check_live()?;
        let line = self.line.borrow().clone();
        if self.core.end(Over::Left) {
            line.push(&ClientMessage::Detach);
            self.settle(&line.link).await;
        }
        Ok(())
    }
}

impl Drop for AgentPty {
    fn drop(&mut self) {
        // A closing that is dropped goes on in the background.
        drop(self.closing());
        if !self.is_creator {
            let line = self.line.borrow();
            line.link.forget(line.channel);
        }
    }
}

impl fmt::Debug for AgentPty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentPty")
            .field("core", &self.core)
            .field("is_creator", &self.is_creator)
            .finish_non_exhaustive()
    }
}
