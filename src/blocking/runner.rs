//! One thread with a runtime, and calls that wait for what runs there.
//!
//! Waiting is done on a channel of the standard library, never by entering a runtime: that panics in a task, this does
//! not, wherever it is called from.

use std::fmt;
use std::future::Future;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::error::{Error, ErrorKind, Operation, Resource, Result};

/// The futures of a sandbox are deep without optimization.
const STACK_BYTES: usize = 8 << 20;

/// Where calls may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Callers {
    OutsideOfRuntimes,
    Anywhere,
}

pub(super) struct LoopRunner {
    handle: Handle,
    thread: Mutex<Option<Thread>>,
    callers: Callers,
    wait_timeout: Duration,
    close_timeout: Duration,
}

struct Thread {
    /// Dropping it ends the loop.
    _stop: oneshot::Sender<()>,
    ended: Receiver<()>,
    joiner: JoinHandle<()>,
}

impl LoopRunner {
    /// Starts the thread.
    pub(super) fn start(wait_timeout: Duration, close_timeout: Duration) -> Result<Self> {
        let failed = |error: std::io::Error| {
            Error::new(
                ErrorKind::ResourceExhausted(Resource::Processes),
                Operation::Configure,
                "the thread of the sandbox could not be started",
            )
            .with_source(error)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let (end, ended) = mpsc::channel();
        let joiner = std::thread::Builder::new()
            .name("gym-sandbox-sync".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                // An error says that the other end was dropped, which is the sign to stop.
                let _stopped = runtime.block_on(stopped);
                // Threads that block are not waited for.
                runtime.shutdown_background();
                let _unwanted = end.send(());
            })
            .map_err(failed)?;
        Ok(Self {
            handle,
            thread: Mutex::new(Some(Thread {
                _stop: stop,
                ended,
                joiner,
            })),
            callers: Callers::OutsideOfRuntimes,
            wait_timeout,
            close_timeout,
        })
    }

    pub(super) fn allow_in_runtime(&mut self) {
        self.callers = Callers::Anywhere;
    }

    pub(super) fn set_wait_timeout(&mut self, timeout: Duration) {
        self.wait_timeout = timeout;
    }

    pub(super) fn close_timeout(&self) -> Duration {
        self.close_timeout
    }

    #[cfg(test)]
    pub(super) fn set_close_timeout(&mut self, timeout: Duration) {
        self.close_timeout = timeout;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.thread().is_none()
    }

    /// Does something that needs a runtime to be there, without waiting.
    pub(super) fn entered<T>(&self, work: impl FnOnce() -> T) -> T {
        let _entered = self.handle.enter();
        work()
    }

    /// Refuses calls where waiting would hold a runtime up (contract V1, D29).
    pub(super) fn check(&self, operation: Operation) -> Result<()> {
        if self.callers == Callers::OutsideOfRuntimes && in_runtime() {
            return Err(Error::new(
                ErrorKind::BlockingInAsync,
                operation,
                "`Sandbox` is blocking; use AsyncSandbox inside an async runtime",
            )
            .with_hint(
                "on a thread that may block, as in `spawn_blocking`, make it with `allow_in_runtime`",
            ));
        }
        Ok(())
    }

    /// Runs a call on the thread and waits for its end.
    pub(super) fn run<T: Send + 'static>(
        &self,
        operation: Operation,
        call: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.run_for(operation, self.wait_timeout, call)
    }

    /// As [`run`](Self::run), for at most this long. A call that takes longer is dropped.
    pub(super) fn run_for<T: Send + 'static>(
        &self,
        operation: Operation,
        timeout: Duration,
        call: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.check(operation)?;
        if self.is_closed() {
            return Err(closed(operation));
        }
        let (sender, receiver) = mpsc::sync_channel(1);
        let task = self.handle.spawn(async move {
            // The caller may have stopped waiting.
            let _unwanted = sender.send(call.await);
        });
        match receiver.recv_timeout(timeout) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => {
                task.abort();
                Err(Error::new(
                    ErrorKind::Timeout,
                    operation,
                    format!("the call did not end in {timeout:?} and was dropped"),
                ))
            }
            Err(RecvTimeoutError::Disconnected) if self.is_closed() => Err(closed(operation)),
            Err(RecvTimeoutError::Disconnected) => Err(Error::new(
                ErrorKind::Internal,
                operation,
                "the call panicked on the thread of the sandbox",
            )),
        }
    }

    /// Ends the thread and waits for it, for a bounded time. Called again it does nothing (contract V5).
    pub(super) fn close(&self) {
        let Some(thread) = self.thread().take() else {
            return;
        };
        let Thread {
            _stop: stop,
            ended,
            joiner,
        } = thread;
        drop(stop);
        if ended.recv_timeout(self.close_timeout).is_ok() {
            // It panics nowhere; a panic would have been printed by its hook.
            let _panicked = joiner.join();
        } else {
            tracing::warn!("the thread of a sandbox did not end in time and is left");
        }
    }

    fn thread(&self) -> std::sync::MutexGuard<'_, Option<Thread>> {
        // It is only taken as a whole.
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says whether this thread belongs to a runtime, or has entered one.
pub(super) fn in_runtime() -> bool {
    Handle::try_current().is_ok()
}

fn closed(operation: Operation) -> Error {
    Error::new(
        ErrorKind::Stopped,
        operation,
        "the sandbox has been stopped: its sync loop is closed",
    )
    .with_hint("a stopped sandbox is not started again; make a new one")
}

impl Drop for LoopRunner {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for LoopRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopRunner")
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
