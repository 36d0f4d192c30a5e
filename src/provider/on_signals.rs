//! Clean-up of a whole process when a signal ends it, for programs that ask for it. Knows no provider: those that make
//! things register how to remove them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{Error, ErrorKind, Operation, Result};

use super::reaper;

/// How long the removal may take until the process ends all the same.
const LIMIT: Duration = Duration::from_secs(20);

/// A signal ends this process: nothing more is to be made.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Says whether a signal ends this process, so that nothing more is to be made.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

type Cleanup = Box<dyn Fn() -> Option<BoxFuture<'static, Result<()>>> + Send + Sync>;

fn cleanups() -> &'static Mutex<Vec<Cleanup>> {
    static CLEANUPS: Mutex<Vec<Cleanup>> = Mutex::new(Vec::new());
    &CLEANUPS
}

/// Adds what is to be done when a signal ends the process. One that gives None has nothing to do any more, and is
/// forgotten.
pub fn register_cleanup(
    cleanup: impl Fn() -> Option<BoxFuture<'static, Result<()>>> + Send + Sync + 'static,
) {
    let mut cleanups = cleanups().lock().unwrap_or_else(PoisonError::into_inner);
    cleanups.retain(|cleanup| cleanup().is_some());
    cleanups.push(Box::new(cleanup));
}

/// Shows that [`remove_on_signals`] is in force. Dropping it changes nothing.
#[derive(Debug, Clone, Copy)]
pub struct RemovedOnSignals(());

/// From now on SIGINT (Ctrl-C), SIGTERM and SIGHUP remove everything that this process has made on any engine and not
/// kept on purpose, and then end the process with the exit code 128 + the number of the signal. Called again it does
/// nothing more.
///
/// The removal runs on the library's own thread, in parallel, whatever the program is doing; after 20 s, or at a second
/// signal, the process ends without it, and the lease ends what is left (`docs/leaks.md`). For programs that have no
/// handling of these signals of their own; those call [`SweepProvider::remove_own`](super::SweepProvider::remove_own).
///
/// # Errors
/// [`ErrorKind::Io`] when signals can't be listened for.
pub fn remove_on_signals() -> Result<RemovedOnSignals> {
    static IN_FORCE: OnceLock<()> = OnceLock::new();
    if IN_FORCE.get().is_some() {
        return Ok(RemovedOnSignals(()));
    }
    let runtime = reaper::runtime().ok_or_else(|| failed(None))?;
    let _context = runtime.enter();
    let listen = |kind| signal(kind).map_err(|error| failed(Some(error)));
    let mut signals = Signals {
        hangup: listen(SignalKind::hangup())?,
        interrupt: listen(SignalKind::interrupt())?,
        terminate: listen(SignalKind::terminate())?,
    };
    if IN_FORCE.set(()).is_ok() {
        runtime.spawn(async move {
            let number = signals.next().await;
            ENDING.store(true, Ordering::Relaxed);
            tracing::info!(signal = number, "removing everything of this process");
            tokio::select! {
                () = remove_everything() => {}
                _second = signals.next() => {}
                () = tokio::time::sleep(LIMIT) => {}
            }
            std::process::exit(128 + number);
        });
    }
    Ok(RemovedOnSignals(()))
}

async fn remove_everything() {
    let running: Vec<_> = cleanups()
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .iter()
        .filter_map(|cleanup| cleanup())
        .collect();
    for outcome in join_all(running).await {
        if let Err(error) = outcome {
            tracing::warn!(%error, "something is left to the lease");
        }
    }
}

struct Signals {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Waits for the next one and gives its number.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.hangup.recv() => SignalKind::hangup(),
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
        }
        .as_raw_value()
    }
}

fn failed(source: Option<std::io::Error>) -> Error {
    let error = Error::new(ErrorKind::Io, Operation::Start, "signals can't be listened for");
    match source {
        Some(source) => error.with_source(source),
        None => error,
    }
}
