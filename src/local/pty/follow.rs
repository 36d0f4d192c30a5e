//! The task that follows the program of a session: output to its readers, the exit, the end.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncReadExt;
use tokio::process::Child;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::provider::pty_core::{Core, Over, Taps};

use super::super::create::Sandbox;
use super::super::drive;
use super::super::exec::{Guard, kill};
use super::super::kill::Target;
use super::start::Reader;

const CHUNK_BYTES: usize = 64 * 1024;

/// After the program's end its pipes are read until they end or are silent for this long: a child may hold them. A
/// terminal ends with its program.
const SILENCE: Duration = Duration::from_millis(300);

/// What the program itself has left in a pipe is at most this, the most that a pipe may hold. A child that goes on
/// writing holds the end of the output no longer up.
const LEFT_BYTES: usize = 1024 * 1024;

/// How long a killed program's process may take to leave the system's table.
const AFTER_KILL: Duration = Duration::from_secs(2);

pub(super) struct Follower {
    pub(super) core: Arc<Core>,
    pub(super) sandbox: Arc<Sandbox>,
    pub(super) child: Child,
    pub(super) target: Target,
    pub(super) guard: Guard,
    pub(super) end: End,
}

/// Tells the session that nothing follows its program any more, also when the task is dropped with its runtime.
pub(super) struct End {
    core: Arc<Core>,
    ended: CancellationToken,
}

impl End {
    pub(super) fn new(core: &Arc<Core>, ended: &CancellationToken) -> Self {
        Self {
            core: Arc::clone(core),
            ended: ended.clone(),
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if self.core.exit().is_none() {
            self.core
                .end(Over::Lost("the runtime of the session has ended".into()));
        }
        self.ended.cancel();
    }
}

impl Follower {
    pub(super) async fn follow(self, stdout: Reader, stderr: Option<Reader>, taps: Taps) {
        let Self {
            core,
            sandbox,
            mut child,
            target,
            guard,
            end,
        } = self;
        let exited = CancellationToken::new();
        let pump = |reader, tap| pump(reader, tap, &exited, &core, &sandbox);
        let pumps = async { tokio::join!(pump(Some(stdout), taps.stdout), pump(stderr, taps.stderr)) };
        tokio::pin!(pumps);
        let mut is_read = false;
        let status = loop {
            tokio::select! {
                status = child.wait() => break Some(status),
                _ = &mut pumps, if !is_read => is_read = true,
                _over = core.until_over() => break None,
                () = sandbox.closed.cancelled() => {
                    core.end(Over::Lost("the sandbox has been removed".into()));
                    break None;
                }
            }
        };
        let Some(status) = status else {
            // A session that was dropped has it killed already: then there is little left to do.
            let report = kill(target).await;
            // One that could not be killed is left to the runtime.
            let _status = tokio::time::timeout(AFTER_KILL, child.wait()).await;
            if report.survivors == 0 {
                guard.disarm();
            }
            return;
        };
        // Children in the background live on: only a close before this kills.
        guard.disarm();
        match status {
            Ok(status) => core.note_exit(drive::code(status)),
            Err(error) => {
                core.end(Over::Lost(error.to_string().into()));
            }
        }
        drop(end);
        exited.cancel();
        if !is_read {
            pumps.await;
        }
    }
}

/// Hands output to whoever reads it; while nobody does, the program waits.
async fn pump(
    reader: Option<Reader>,
    tap: Option<mpsc::Sender<Bytes>>,
    exited: &CancellationToken,
    core: &Core,
    sandbox: &Sandbox,
) {
    let (Some(mut reader), Some(tap)) = (reader, tap) else {
        return;
    };
    // Until the program's exit the end of the session is seen by who follows it.
    let over = async {
        exited.cancelled().await;
        core.until_over().await;
    };
    tokio::pin!(over);
    let mut left_bytes = LEFT_BYTES;
    while left_bytes > 0 {
        let mut chunk = BytesMut::with_capacity(CHUNK_BYTES);
        let silence = async {
            exited.cancelled().await;
            tokio::time::sleep(SILENCE).await;
        };
        tokio::select! {
            biased;
            // A terminal whose program is gone gives an error, which is its end.
            read = reader.read_buf(&mut chunk) => if !matches!(read, Ok(1..)) {
                return;
            },
            () = silence => break,
            () = &mut over => break,
        }
        if exited.is_cancelled() {
            left_bytes = left_bytes.saturating_sub(chunk.len());
        }
        tokio::select! {
            sent = tap.send(chunk.freeze()) => if sent.is_err() {
                break;
            },
            () = &mut over => break,
        }
    }
    // A child that still writes is not ended by a pipe that nobody reads.
    sandbox.keep_reading(async move {
        let _dropped = tokio::io::copy(&mut reader, &mut tokio::io::sink()).await;
    });
}
