//! One piece of work that any number of callers wait for: it goes on while one of them waits, and ends with the last.
//! Knows nothing of images but the events that are told.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;

use crate::spec::ImageEvent;

use super::pull::{PullFailure, Wanted};

/// Events that wait for who is told of them. Who is slower loses the oldest: the outcome comes another way.
const EVENTS: usize = 1024;

/// How often work is begun again whose runtime has ended under it.
const BEGINNINGS: u32 = 5;

type Outcome = Result<(), PullFailure>;

/// The pulls that are under way.
pub(in crate::docker) type Pulls = Work<Wanted>;

/// The work that is under way, by what it is for.
pub(in crate::docker) struct Work<Key> {
    running: Mutex<HashMap<Key, Weak<Running>>>,
}

struct Running {
    events: broadcast::Sender<ImageEvent>,
    outcome: watch::Receiver<Option<Outcome>>,
    task: AbortHandle,
}

impl Drop for Running {
    /// Nobody waits any more.
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<Key> Default for Work<Key> {
    fn default() -> Self {
        Self {
            running: Mutex::default(),
        }
    }
}

impl<Key> fmt::Debug for Work<Key> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}

impl<Key: Clone + Eq + Hash + Send + Sync> Work<Key> {
    /// Waits for the work of that key, which is begun unless it is under way, and tells what happens.
    ///
    /// Dropping the future ends the work if nobody else waits for it.
    pub(super) async fn join<Begun: Future<Output = Outcome> + Send + 'static>(
        &self,
        key: &Key,
        begin: impl Fn(broadcast::Sender<ImageEvent>) -> Begun + Send + Sync,
        mut tell: impl FnMut(&ImageEvent) + Send,
    ) -> Outcome {
        for _ in 0..BEGINNINGS {
            let (running, mut events) = self.running(key, &begin);
            let mut outcome = running.outcome.clone();
            loop {
                let ended = tokio::select! {
                    biased;
                    event = events.recv() => {
                        // Else some were missed: the sender is held here, and can't be gone.
                        if let Ok(event) = event {
                            tell(&event);
                        }
                        continue;
                    }
                    ended = outcome.wait_for(Option::is_some) => ended.map(|outcome| outcome.clone()),
                };
                match ended {
                    Ok(Some(outcome)) => return outcome,
                    Ok(None) => {}
                    // The task ended without an outcome: the runtime of who began it is gone.
                    Err(_) => break,
                }
            }
        }
        Err(PullFailure::lost())
    }

    fn running<Begun: Future<Output = Outcome> + Send + 'static>(
        &self,
        key: &Key,
        begin: &impl Fn(broadcast::Sender<ImageEvent>) -> Begun,
    ) -> (Arc<Running>, broadcast::Receiver<ImageEvent>) {
        let mut all = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, running| running.strong_count() > 0);
        if let Some(running) = all.get(key).and_then(Weak::upgrade)
            && running.outcome.borrow().is_none()
            && running.outcome.has_changed().is_ok()
        {
            let events = running.events.subscribe();
            return (running, events);
        }
        let (events, receiver) = broadcast::channel(EVENTS);
        let (sender, outcome) = watch::channel(None);
        let work = begin(events.clone());
        let task = tokio::spawn(async move {
            let ended = work.await;
            sender.send_replace(Some(ended));
        });
        let running = Arc::new(Running {
            events,
            outcome,
            task: task.abort_handle(),
        });
        all.insert(key.clone(), Arc::downgrade(&running));
        (running, receiver)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tokio::sync::Semaphore;

    use super::*;

    struct Scene {
        work: Arc<Work<u8>>,
        begun: Arc<AtomicUsize>,
        ended: Arc<AtomicUsize>,
        gate: Arc<Semaphore>,
    }

    /// Counts what is dropped, whether it came to its end or not.
    struct Counted(Arc<AtomicUsize>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Scene {
        fn new() -> Self {
            Self {
                work: Arc::default(),
                begun: Arc::default(),
                ended: Arc::default(),
                gate: Arc::new(Semaphore::new(0)),
            }
        }

        async fn join(&self, tell: impl FnMut(&ImageEvent) + Send) -> Outcome {
            let begin = |events: broadcast::Sender<ImageEvent>| {
                self.begun.fetch_add(1, Ordering::SeqCst);
                let (gate, ended) = (Arc::clone(&self.gate), Arc::clone(&self.ended));
                async move {
                    let _counted = Counted(ended);
                    gate.acquire().await.unwrap().forget();
                    let _nobody = events.send(ImageEvent::Status("moved".to_owned()));
                    Ok(())
                }
            };
            self.work.join(&1, begin, tell).await
        }

        async fn until(&self, count: &AtomicUsize, wanted: usize) {
            for _ in 0..1000 {
                if count.load(Ordering::SeqCst) == wanted {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            panic!("it did not happen");
        }
    }

    #[tokio::test]
    async fn d12_work_outlives_who_began_it_and_is_done_once_for_all() {
        let scene = Arc::new(Scene::new());
        let first = tokio::spawn({
            let scene = Arc::clone(&scene);
            async move { scene.join(|_| {}).await }
        });
        scene.until(&scene.begun, 1).await;
        let told = Arc::new(AtomicUsize::new(0));
        let mut others = Vec::new();
        for _ in 0..5 {
            let (scene, told) = (Arc::clone(&scene), Arc::clone(&told));
            others.push(tokio::spawn(async move {
                scene
                    .join(|_| {
                        told.fetch_add(1, Ordering::SeqCst);
                    })
                    .await
            }));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        scene.gate.add_permits(1);
        for other in others {
            other.await.unwrap().unwrap();
        }
        assert_eq!(scene.begun.load(Ordering::SeqCst), 1);
        assert_eq!(told.load(Ordering::SeqCst), 5, "each is told");
    }

    #[tokio::test]
    async fn d12_work_ends_with_the_last_who_waits_and_is_begun_anew_after_that() {
        let scene = Arc::new(Scene::new());
        let waiting = tokio::time::timeout(Duration::from_millis(50), scene.join(|_| {}));
        assert!(waiting.await.is_err());
        scene.until(&scene.ended, 1).await;
        scene.gate.add_permits(1);
        scene.join(|_| {}).await.unwrap();
        assert_eq!(scene.begun.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn d12_work_whose_runtime_is_gone_is_begun_again_by_who_still_waits() {
        let scene = Arc::new(Scene::new());
        let first = tokio::runtime::Runtime::new().unwrap();
        first.spawn({
            let scene = Arc::clone(&scene);
            async move { scene.join(|_| {}).await }
        });
        let second = tokio::runtime::Runtime::new().unwrap();
        second.block_on(async {
            scene.until(&scene.begun, 1).await;
            let waiting = tokio::spawn({
                let scene = Arc::clone(&scene);
                async move { scene.join(|_| {}).await }
            });
            tokio::time::sleep(Duration::from_millis(50)).await;
            first.shutdown_background();
            scene.until(&scene.begun, 2).await;
            scene.gate.add_permits(1);
            waiting.await.unwrap().unwrap();
        });
    }
}
