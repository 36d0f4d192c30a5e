//! The runtime of the connections to agents. A connection is shared by all who use its sandbox, and a caller's runtime
//! may stand still between two calls or end with one of them: what reads and writes can't live there.

use std::io;
use std::sync::OnceLock;

use tokio::runtime::{Handle, Runtime};

use super::link::Lost;

/// One thread carries some 500 MB/s and thousands of commands a second; many processors get some more.
const MOST_THREADS: usize = 4;
const PROCESSORS_A_THREAD: usize = 4;

/// The runtime, made by the first connection of the process.
pub(super) fn runtime() -> io::Result<&'static Handle> {
    static RUNTIME: OnceLock<Result<Runtime, io::ErrorKind>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads((processors / PROCESSORS_A_THREAD).clamp(1, MOST_THREADS))
            .thread_name("gym-sandbox-agent")
            .enable_all()
            .build()
            .map_err(|error| error.kind())
    });
    match made {
        Ok(runtime) => Ok(runtime.handle()),
        Err(kind) => Err((*kind).into()),
    }
}

/// Runs something there, and what it spawns. Dropped before its end, it is cut off.
pub(super) async fn run<T: Send + 'static>(
    work: impl Future<Output = Result<T, Lost>> + Send + 'static,
) -> Result<T, Lost> {
    let runtime =
        runtime().map_err(|error| Lost(format!("no thread for the agents can be had: {error}").into()))?;
    let mut task = AbortOnDrop(runtime.spawn(work));
    (&mut task.0)
        .await
        .unwrap_or_else(|_| Err(Lost("connecting was cut off".into())))
}

struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_spawned_there_outlives_the_runtime_of_its_caller() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let caller = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let begun = caller.block_on(run(async move {
            tokio::spawn(async move {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                sender.send(7).unwrap();
            });
            Ok(1)
        }));
        assert_eq!(begun.unwrap(), 1);
        drop(caller);
        let sent = receiver.recv_timeout(std::time::Duration::from_secs(60));
        assert_eq!(sent.unwrap(), 7);
    }
}
