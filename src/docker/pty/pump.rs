//! The task that reads the stream of a session over the engine: output to its readers, and the exit.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bollard::container::LogOutput;
use bytes::Bytes;
use futures::StreamExt;
use tokio::sync::mpsc;

use crate::spec::PtyMode;

use super::super::DockerProvider;
use super::super::exec::{
    ExecCall, ExitLook, KillGuard, Output, Refusal, end_before_start, exit_of, look_for_exit, never_ran,
    sandbox_died, start_problem,
};
use super::core::{Core, Over, Taps};

/// How often the engine is asked whether a program has exited while nobody reads its output.
const LOOKS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// How long a program may run whose terminal's stream has ended. It can't be used any more: the connection was cut between
/// two looks at the engine, or the program has closed its terminal.
const WITHOUT_TERMINAL: Duration = Duration::from_secs(10);

/// How much of what has come first is kept: where the program never ran, it is the engine's word on why.
const WORD_BYTES: usize = 4096;

/// Reads a session's stream to its end, and then asks how the program ended.
pub(super) struct Pump {
    pub(super) core: Arc<Core>,
    pub(super) provider: DockerProvider,
    pub(super) guard: Arc<Mutex<KillGuard>>,
    pub(super) exec: ExecCall,
    pub(super) word: Vec<u8>,
}

impl Pump {
    pub(super) async fn run(mut self, mut output: Output, mut taps: Taps) {
        let mut broken = None;
        while let Some(chunk) = output.next().await {
            let (tap, bytes) = match chunk {
                Ok(LogOutput::StdOut { message } | LogOutput::Console { message }) => {
                    (&mut taps.stdout, message)
                }
                Ok(LogOutput::StdErr { message }) => (&mut taps.stderr, message),
                Ok(LogOutput::StdIn { .. }) => continue,
                Err(error) => {
                    broken = Some(error.to_string());
                    break;
                }
            };
            let room = WORD_BYTES.saturating_sub(self.word.len()).min(bytes.len());
            self.word.extend_from_slice(&bytes[..room]);
            if let Some(sender) = tap {
                self.put(sender, bytes).await;
            }
        }
        // The engine may still know the code of a program whose stream broke, but not what it had printed.
        if let Some(why) = broken {
            self.core.end(Over::Lost(
                format!("the connection to the engine broke: {why}").into(),
            ));
            return;
        }
        let patience = match self.core.mode {
            PtyMode::Pty => WITHOUT_TERMINAL,
            // A program may close its pipes and work on.
            PtyMode::Pipe => Duration::MAX,
        };
        match tokio::time::timeout(patience, exit_of(&self.exec)).await {
            Ok(Ok(code)) => self.note_exit(code).await,
            Err(_) => {
                let why = format!("the terminal's stream ended {patience:?} ago, and its program still runs");
                self.core.end(Over::Lost(why.into()));
            }
            Ok(Err(failure)) => {
                let why = Refusal::Engine(failure)
                    .into_error(&self.provider, &self.exec.container_id)
                    .await;
                self.core.end(Over::Lost(why.to_string().into()));
            }
        }
        drop(taps);
    }

    /// Hands a chunk to whoever reads. While nobody does, the program's exit is looked for; after the end of the session
    /// chunks are dropped, so that the engine is not held up.
    async fn put(&self, sender: &mpsc::Sender<Bytes>, bytes: Bytes) {
        let sending = sender.send(bytes);
        tokio::pin!(sending);
        let mut pause = LOOKS.0;
        loop {
            tokio::select! {
                biased;
                _sent = &mut sending => return,
                _over = self.core.until_over() => return,
                () = tokio::time::sleep(pause), if self.core.exit().is_none() => {
                    if let ExitLook::Exited(code) = look_for_exit(&self.exec).await {
                        self.note_exit(code).await;
                    }
                    pause = (pause * 2).min(LOOKS.1);
                }
            }
        }
    }

    /// A program that was killed may have been killed with its sandbox, and one that never ran not have run because of its
    /// end: that is no exit of its own.
    async fn note_exit(&self, code: i64) {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner).disarm();
        let (provider, exec) = (&self.provider, &self.exec);
        let died = if code == 137 {
            sandbox_died(provider, &exec.container_id, exec.started_at).await
        } else if never_ran(exec, code).await {
            let problem = start_problem(&String::from_utf8_lossy(&self.word));
            end_before_start(provider, &exec.container_id, problem).await
        } else {
            None
        };
        if let Some((_, why)) = died {
            self.core.end(Over::Lost(why.into()));
            return;
        }
        self.core.note_exit(i32::try_from(code).unwrap_or(i32::MAX));
    }
}
