//! Kills that are wanted at the same time in one sandbox are done by one run of the script. Each run looks at all
//! processes many times, the other runs among them: fifty runs for fifty commands take a busy machine minutes, one run for
//! all takes a second.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};

use super::super::DockerProvider;
use super::guard::Abandoned;
use super::kill_script::{self, Ask, Place, Run};

/// How many runs go on at once at one place: what is hard to kill does not hold up all others.
const AT_ONCE: usize = 2;

/// How many commands one run kills at most; their marks have to fit in its arguments.
const MOST: usize = 256;

/// The kills of one provider that wait for a run, and those that wait for a job.
#[derive(Default)]
pub(in crate::docker) struct Kills {
    queues: Mutex<HashMap<Place, Weak<Queue>>>,
    pub(super) abandoned: Abandoned,
}

struct Queue {
    waiting: Mutex<Vec<Waiting>>,
    turns: Semaphore,
}

struct Waiting {
    marker: String,
    oldest: Option<Duration>,
    answer: oneshot::Sender<Option<Answer>>,
}

struct Answer {
    run: Run,
    /// It was a run for one command, which finds more.
    is_thorough: bool,
}

/// Kills the processes of one command, and says what that has done. None when it is not known.
///
/// # Cancel safety
/// The kill may be done or not. Others whose kill it did along with its own begin again.
pub(super) async fn kill(
    provider: &DockerProvider,
    place: &Place,
    marker: &str,
    oldest: Option<Duration>,
) -> Option<Run> {
    let queue = provider.shared.kills.queue(place);
    let answer = loop {
        let (answer, mut answered) = oneshot::channel();
        queue.waiting().push(Waiting {
            marker: marker.to_owned(),
            oldest,
            answer,
        });
        // Those who come at the same moment are to be in the same run.
        tokio::task::yield_now().await;
        let outcome = loop {
            tokio::select! {
                biased;
                outcome = &mut answered => break outcome,
                turn = queue.turns.acquire() => {
                    let batch = queue.take();
                    if batch.is_empty() {
                        // Somebody else does it.
                        drop(turn);
                        break answered.await;
                    }
                    run(provider, place, batch).await;
                }
            }
        };
        // Without an answer whoever did it was cancelled.
        if let Ok(answer) = outcome {
            break answer?;
        }
    };
    let report = answer.run.report;
    if answer.is_thorough || report.killed + report.survivors > 0 || oldest.is_none() {
        return Some(answer.run);
    }
    // What has cleared its mark is found by a run of its own.
    let _turn = queue.turns.acquire().await;
    let ask = Ask {
        markers: &[marker.to_owned()],
        signal: "KILL",
        oldest,
        known: &[],
    };
    kill_script::run(provider, place, &ask).await?.pop()
}

/// Kills a batch and tells those who wait.
async fn run(provider: &DockerProvider, place: &Place, batch: Vec<Waiting>) {
    let markers: Vec<String> = batch.iter().map(|waiting| waiting.marker.clone()).collect();
    let is_thorough = batch.len() == 1;
    let ask = Ask {
        markers: &markers,
        signal: "KILL",
        oldest: batch
            .first()
            .and_then(|waiting| waiting.oldest)
            .filter(|_| is_thorough),
        known: &[],
    };
    let runs = kill_script::run(provider, place, &ask).await;
    let mut runs = runs.into_iter().flatten();
    for waiting in batch {
        let answer = runs.next().map(|run| Answer { run, is_thorough });
        // Who has gone needs no answer.
        let _gone = waiting.answer.send(answer).is_err();
    }
}

impl Kills {
    fn queue(&self, place: &Place) -> Arc<Queue> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get(place).and_then(Weak::upgrade) {
            return queue;
        }
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = Arc::new(Queue {
            waiting: Mutex::default(),
            turns: Semaphore::new(AT_ONCE),
        });
        queues.insert(place.clone(), Arc::downgrade(&queue));
        queue
    }
}

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next batch, without those that nobody waits for any more.
    fn take(&self) -> Vec<Waiting> {
        let mut waiting = self.waiting();
        waiting.retain(|waiting| !waiting.answer.is_closed());
        let count = waiting.len().min(MOST);
        waiting.drain(..count).collect()
    }
}

impl fmt::Debug for Kills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kills").finish_non_exhaustive()
    }
}
