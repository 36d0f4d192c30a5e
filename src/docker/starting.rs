//! No container is frozen while a command begins in it: a runtime that is caught between its own process and the command's
//! leaves an engine (20.10, cgroup v1) that answers nothing about the container until somebody thaws it by hand. What
//! begins in other processes is looked for, but can't be held back.

use std::time::Duration;

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::time::{Instant, timeout};

use crate::error::{Error, ErrorKind, Operation, Result};

use super::DockerProvider;
use super::failure::{EngineFailure, QUICK, call};
use super::per_container::PerContainer;

/// Whoever starts a command reads, whoever freezes writes.
static STARTS: PerContainer<RwLock<()>, 64> = PerContainer([const { RwLock::const_new(()) }; 64]);

/// How long commands may take to begin. A busy engine takes ten seconds for one.
const BEGUN: Duration = Duration::from_secs(60);

/// How often it is looked whether they have.
const LOOK: Duration = Duration::from_millis(5);

/// An engine answers a start a moment before it says of itself that it starts.
const UNSTARTED: Duration = Duration::from_millis(100);

/// Held from before an exec of the container is made until the engine has answered its start.
pub(super) async fn starting(container_id: &str) -> RwLockReadGuard<'static, ()> {
    STARTS.of(container_id).read().await
}

/// How far an exec is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Made, and not started: nobody may ever start it.
    Made,
    Starting,
    /// It runs or has ended.
    Begun,
}

fn stage(running: Option<bool>, pid: Option<i64>, exit_code: Option<i64>) -> Stage {
    match (running, pid) {
        (_, Some(1..)) => Stage::Begun,
        (Some(true), _) => Stage::Starting,
        _ if exit_code.is_some() => Stage::Begun,
        _ => Stage::Made,
    }
}

impl DockerProvider {
    /// Waits until all commands of a container have begun, and lets none begin until the guard is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] when one does not begin.
    pub(super) async fn all_begun(&self, container_id: &str) -> Result<RwLockWriteGuard<'static, ()>> {
        let late = || {
            Error::new(
                ErrorKind::Timeout,
                Operation::Pause,
                "commands of the sandbox are being started, and have not begun in time",
            )
            .with_hint("to freeze it now could leave it unusable; pause it again later")
        };
        let guard = timeout(BEGUN, STARTS.of(container_id).write())
            .await
            .map_err(|_| late())?;
        let since = Instant::now();
        while self.is_starting(container_id, since.elapsed() < UNSTARTED).await {
            if since.elapsed() > BEGUN {
                return Err(late());
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(guard)
    }

    /// What can't be seen is not waited for: the pause itself says what is wrong.
    async fn is_starting(&self, container_id: &str, wait_for_made: bool) -> bool {
        let look = async {
            let engine = self.engine().await.ok()?;
            let inspected = call(QUICK, engine.client.inspect_container(container_id, None))
                .await
                .ok()?;
            for exec_id in inspected.exec_ids.into_iter().flatten() {
                let stage = match call(QUICK, engine.client.inspect_exec(&exec_id)).await {
                    Ok(exec) => stage(exec.running, exec.pid, exec.exit_code),
                    Err(EngineFailure::Refused { .. }) => Stage::Begun,
                    Err(_) => return None,
                };
                if stage == Stage::Starting || (stage == Stage::Made && wait_for_made) {
                    return Some(true);
                }
            }
            Some(false)
        };
        look.await.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b25_an_exec_has_begun_when_it_has_a_process_or_a_code() {
        for (running, pid, code, expected) in [
            (Some(false), Some(0), None, Stage::Made),
            (Some(false), None, None, Stage::Made),
            (Some(true), Some(0), None, Stage::Starting),
            (Some(true), None, None, Stage::Starting),
            (Some(true), Some(17), None, Stage::Begun),
            (Some(false), Some(17), Some(0), Stage::Begun),
            (Some(false), Some(0), Some(126), Stage::Begun),
        ] {
            assert_eq!(
                stage(running, pid, code),
                expected,
                "{running:?} {pid:?} {code:?}"
            );
        }
    }
}
