//! Terminals that are open at the same time: how long a line takes to come back, and what each of them costs this process.

use std::time::{Duration, Instant};

use futures::future::{join_all, try_join_all};
use gym_sandbox::{Error, ErrorKind, Operation, Result, SandboxPtySession, SandboxPtySpec};

use super::context::Context;
use super::memory::{Each, resident_kib};
use super::sample::Samples;

/// The slowest of twenty round trips, at most.
pub(in crate::cli) const GOAL_S: f64 = 0.010;

/// How many terminals are open.
const TERMINALS: u32 = 64;

/// How often each of them has its turn.
const ROUNDS: usize = 40;
const QUICK_ROUNDS: usize = 4;

/// What is typed. The terminal shows it, then the program prints it, each with a return before the end of the line.
const LINE: &[u8] = b"x\n";
const ANSWER_BYTES: usize = 6;

/// A line that has not come back by then is lost.
const LOST: Duration = Duration::from_secs(30);

/// What came of it.
#[derive(Debug)]
pub(in crate::cli) struct Echo {
    /// A block is one round over all terminals.
    pub(in crate::cli) ours: Samples,
    /// What an open terminal costs.
    pub(in crate::cli) each: Each,
}

/// Opens the terminals, types in one after the other while the others are open, and closes them.
///
/// # Errors
/// A terminal could not be opened, or a line did not come back.
pub(in crate::cli) async fn measure(context: &Context<'_>) -> Result<Echo> {
    let pty = context.agent.sandbox.pty();
    let before = resident_kib();
    let opening = (0..TERMINALS).map(|_| pty.create(SandboxPtySpec::new(["cat"])));
    let sessions = try_join_all(opening).await?;
    // The first line of each also waits for its program to be there.
    let measured = async {
        round(&sessions).await?;
        let each = Each::since(before, TERMINALS);
        let rounds = if context.is_quick { QUICK_ROUNDS } else { ROUNDS };
        let mut blocks = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            blocks.push(round(&sessions).await?);
        }
        Ok(Echo {
            ours: Samples { blocks },
            each,
        })
    }
    .await;
    let closed = join_all(sessions.iter().map(|session| session.close())).await;
    let measured = measured?;
    closed.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(measured)
}

async fn round(sessions: &[SandboxPtySession]) -> Result<Vec<f64>> {
    let mut times = Vec::with_capacity(sessions.len());
    for session in sessions {
        let start = Instant::now();
        let came = tokio::time::timeout(LOST, echo(session)).await;
        came.map_err(|_| lost("a terminal did not give a line back in 30 s"))??;
        times.push(start.elapsed().as_secs_f64());
    }
    Ok(times)
}

async fn echo(session: &SandboxPtySession) -> Result<()> {
    session.write(LINE).await?;
    let mut bytes = 0;
    while bytes < ANSWER_BYTES {
        let chunk = session.read().await?;
        if chunk.is_empty() {
            return Err(lost("a terminal ended while it was measured"));
        }
        bytes += chunk.len();
    }
    Ok(())
}

fn lost(text: &'static str) -> Error {
    Error::new(ErrorKind::Internal, Operation::Pty, text)
}
