//! Clean-up that outlives the call that needs it: one thread of the library with its own small runtime.
//! A `Drop` hands a job over and does no I/O itself; a dropped runtime of the caller does not take the job with it.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc, watch};

use crate::error::{Error, ErrorKind, Operation, Result};

/// A piece of clean-up.
pub type ReaperJob = Pin<Box<dyn Future<Output = ()> + Send>>;

/// More jobs than this wait at once only when an engine hangs under hundreds of cancelled calls; what does not fit is
/// left to the sweep.
const QUEUE: usize = 4096;

/// How many jobs run at once; enough to be quick, few enough not to drown an engine that is in trouble.
const CONCURRENCY: usize = 16;

/// How many jobs have begun and not ended, those among them that wait aside.
const BEGUN: usize = 1024;

/// No job may hold its slot for ever.
const JOB_DEADLINE: Duration = Duration::from_secs(120);

/// The clean-up of one provider. Clones share it.
#[derive(Clone)]
pub struct Reaper {
    pending: Arc<watch::Sender<usize>>,
}

impl Reaper {
    /// Makes one with nothing to do. The thread starts with the first job of the process.
    pub fn new() -> Self {
        Self {
            pending: Arc::new(watch::Sender::new(0)),
        }
    }

    /// Hands a job over and returns at once. A job that is still running after 120 s is given up.
    ///
    /// When 4096 jobs wait already, the job is dropped with a warning: what it would have removed is left to the next
    /// sweep.
    pub fn submit(&self, what: &'static str, job: impl Future<Output = ()> + Send + 'static) {
        let pending = Pending::new(&self.pending);
        let job: ReaperJob = Box::pin(async move {
            let place = places().acquire().await.ok();
            let standing = Standing {
                place: Cell::new(place),
                pending: Cell::new(Some(pending)),
            };
            let job = STANDING.scope(standing, job);
            if tokio::time::timeout(JOB_DEADLINE, job).await.is_err() {
                tracing::warn!(what, "clean-up in the background did not end in time");
            }
        });
        if let Err(error) = queue().try_send(job) {
            tracing::warn!(what, %error, "clean-up is left to the next sweep");
        }
    }

    /// Waits within a job for what takes no work, such as a program that is frozen with its sandbox: others have the
    /// job's place meanwhile. Anywhere else it only waits.
    ///
    /// # Cancel safety
    /// That of the future. The place is not taken again.
    pub(crate) async fn aside<T: Send>(waiting: impl Future<Output = T> + Send) -> T {
        let had_place = STANDING
            .try_with(|own| own.place.take().is_some())
            .unwrap_or(false);
        let waited = waiting.await;
        if had_place && let Ok(place) = places().acquire().await {
            let _still_in_a_job = STANDING.try_with(|own| own.place.set(Some(place))).is_ok();
        }
        waited
    }

    /// Counts as a job of this provider what another one's job does, until it is dropped: whoever waits for this provider's
    /// clean-up waits for that, too.
    pub(crate) fn pledge(&self) -> Pending {
        Pending::new(&self.pending)
    }

    /// Waits within a job for what nobody may ever do, such as the resume of a paused sandbox: as [`aside`](Self::aside),
    /// and [`wait_idle`](Self::wait_idle) does not wait for the job meanwhile. Anywhere else it only waits.
    ///
    /// # Cancel safety
    /// That of the future. The job does not count any more.
    pub(crate) async fn unawaited<T: Send>(waiting: impl Future<Output = T> + Send) -> T {
        let count = STANDING
            .try_with(|own| own.pending.take())
            .ok()
            .flatten()
            .map(|pending| Arc::clone(&pending.0));
        let waited = Self::aside(waiting).await;
        if let Some(count) = count {
            let _still_in_a_job = STANDING
                .try_with(|own| own.pending.set(Some(Pending::new(&count))))
                .is_ok();
        }
        waited
    }

    /// How many jobs have not ended, but for those that wait for the resume of a paused sandbox.
    pub fn pending(&self) -> usize {
        *self.pending.borrow()
    }

    /// Waits until no job of this provider is left but those that wait for the resume of a paused sandbox.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] when some are left after that time.
    ///
    /// # Cancel safety
    /// Nothing changes.
    pub async fn wait_idle(&self, timeout: Duration) -> Result<()> {
        let mut pending = self.pending.subscribe();
        let idle = pending.wait_for(|&jobs| jobs == 0);
        match tokio::time::timeout(timeout, idle).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::new(
                ErrorKind::Timeout,
                Operation::Close,
                format!(
                    "clean-up in the background has {} jobs left after {timeout:?}",
                    self.pending()
                ),
            )
            .with_retryable(true)),
        }
    }
}

impl Default for Reaper {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Reaper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reaper")
            .field("pending", &self.pending())
            .finish()
    }
}

tokio::task_local! {
    /// That of the job.
    static STANDING: Standing;
}

/// What a job holds while it goes on.
struct Standing {
    /// Its place among those that work. None while it waits aside.
    place: Cell<Option<SemaphorePermit<'static>>>,
    /// That it is waited for. None while it is not.
    pending: Cell<Option<Pending>>,
}

/// The places of the jobs that work.
fn places() -> &'static Semaphore {
    static PLACES: Semaphore = Semaphore::const_new(CONCURRENCY);
    &PLACES
}

/// Counts a job from its submission to its end, however it ends.
#[derive(Debug)]
pub(crate) struct Pending(Arc<watch::Sender<usize>>);

impl Pending {
    fn new(count: &Arc<watch::Sender<usize>>) -> Self {
        count.send_modify(|jobs| *jobs += 1);
        Self(Arc::clone(count))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.send_modify(|jobs| *jobs -= 1);
    }
}

/// The library's own thread: it goes on when all runtimes of the caller are gone.
struct OwnThread {
    jobs: mpsc::Sender<ReaperJob>,
    /// None when it could not be started; then every `submit` warns.
    runtime: Option<Handle>,
}

/// The runtime of the library's own thread, for work that lasts as long as the process. None when there is none.
pub(crate) fn runtime() -> Option<&'static Handle> {
    own_thread().runtime.as_ref()
}

fn queue() -> &'static mpsc::Sender<ReaperJob> {
    &own_thread().jobs
}

fn own_thread() -> &'static OwnThread {
    static THREAD: OnceLock<OwnThread> = OnceLock::new();
    THREAD.get_or_init(|| {
        let (jobs, receiver) = mpsc::channel(QUEUE);
        let runtime = match start(receiver) {
            Ok(handle) => Some(handle),
            Err(error) => {
                tracing::error!(%error, "the clean-up thread could not be started");
                None
            }
        };
        OwnThread { jobs, runtime }
    })
}

fn start(jobs: mpsc::Receiver<ReaperJob>) -> std::io::Result<Handle> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("gym-sandbox-reaper".to_owned())
        .spawn(move || runtime.block_on(run(jobs)))?;
    Ok(handle)
}

async fn run(mut jobs: mpsc::Receiver<ReaperJob>) {
    let mut running = tokio::task::JoinSet::new();
    while let Some(job) = jobs.recv().await {
        while running.len() >= BEGUN {
            // A panicking job is reported by the panic hook; the next one still runs.
            let _ended = running.join_next().await;
        }
        running.spawn(job);
        while running.try_join_next().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// No test waits longer than this for what should come.
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_job_survives_the_runtime_that_handed_it_over() {
        let reaper = Reaper::new();
        let (sender, receiver) = std::sync::mpsc::channel();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            reaper.submit("test", async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                sender.send(()).unwrap();
            });
        });
        runtime.shutdown_background();
        receiver.recv_timeout(LONG).unwrap();
    }

    #[tokio::test]
    async fn waiting_ends_when_the_last_job_has_ended_even_by_a_panic() {
        let reaper = Reaper::new();
        reaper.submit("test", async { panic!("a job of the test panics") });
        reaper.submit("test", async {});
        reaper.wait_idle(LONG).await.unwrap();
        assert_eq!(reaper.pending(), 0);
    }

    #[tokio::test]
    async fn jobs_that_wait_aside_hold_up_no_others() {
        let (waiting, working) = (Reaper::new(), Reaper::new());
        let release = CancellationToken::new();
        for _ in 0..4 * CONCURRENCY {
            let released = release.clone();
            waiting.submit("test", async move {
                Reaper::aside(released.cancelled()).await;
            });
        }
        working.submit("test", async {});
        working.wait_idle(LONG).await.unwrap();
        assert_eq!(waiting.pending(), 4 * CONCURRENCY);
        release.cancel();
        waiting.wait_idle(LONG).await.unwrap();
        assert_eq!(
            Reaper::aside(async { 7 }).await,
            7,
            "outside of a job it only waits"
        );
    }

    #[tokio::test]
    async fn b25_jobs_that_wait_for_others_are_waited_for_again_when_they_go_on() {
        let reaper = Reaper::new();
        let (resume, end) = (CancellationToken::new(), CancellationToken::new());
        let (resumed, ended) = (resume.clone(), end.clone());
        let (sender, receiver) = tokio::sync::oneshot::channel();
        reaper.submit("test", async move {
            Reaper::unawaited(resumed.cancelled()).await;
            sender.send(()).unwrap();
            ended.cancelled().await;
        });
        reaper.wait_idle(LONG).await.unwrap();
        resume.cancel();
        receiver.await.unwrap();
        assert_eq!(reaper.pending(), 1);
        reaper.wait_idle(Duration::from_millis(20)).await.unwrap_err();
        end.cancel();
        reaper.wait_idle(LONG).await.unwrap();
    }

    #[tokio::test]
    async fn waiting_is_bounded() {
        let reaper = Reaper::new();
        let (release, blocked) = tokio::sync::oneshot::channel::<()>();
        reaper.submit("test", async move {
            let _ = blocked.await;
        });
        let error = reaper.wait_idle(Duration::from_millis(20)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        release.send(()).unwrap();
        reaper.wait_idle(LONG).await.unwrap();
    }
}
