//! How much memory the sandboxes of one provider may have together: who does not fit waits in the order of asking.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::Serialize;
use tokio::sync::Notify;

use crate::error::{Error, ErrorKind, Operation, Resource, Result};

use super::DockerProvider;
use super::config::AdmissionConfig;
use super::request::CreateRequest;

/// A create that waits for memory. Made by [`DockerProvider::queue`](super::DockerProvider::queue).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct QueuedCreate {
    /// Its place: 1 is next.
    pub position: usize,
    /// What its sandbox counts, in bytes.
    pub memory_bytes: u64,
    /// How long it has waited, in seconds.
    pub waited_s: f64,
}

/// Who waits to be created, and for what. Made by [`DockerProvider::queue`](super::DockerProvider::queue).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CreateQueue {
    /// How much memory the sandboxes of this provider may have together; none where that has no bound, or no engine was
    /// reached yet.
    pub memory_bytes: Option<u64>,
    /// How much those that are there count.
    pub reserved_bytes: u64,
    /// Creates that wait for memory, in the order in which they will get it.
    pub waiting: Vec<QueuedCreate>,
    /// How many creates the engine is given at once.
    pub creates_at_once: usize,
    /// How many of these places are free.
    pub creates_free: usize,
}

/// The memory of all sandboxes of a provider.
#[derive(Debug, Clone, Default)]
pub(super) struct Admission(Arc<Mutex<Books>>);

#[derive(Debug, Default)]
struct Books {
    reserved: u64,
    next: u64,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    ticket: u64,
    bytes: u64,
    since: Instant,
    is_next: Arc<Notify>,
}

/// Memory that a sandbox has been given; its drop gives it back.
#[derive(Debug)]
pub(super) struct Reservation {
    admission: Admission,
    bytes: Mutex<u64>,
}

impl Reservation {
    /// Gives the memory back. May be called again.
    pub(super) fn release(&self) {
        let bytes = std::mem::take(&mut *lock(&self.bytes));
        if bytes > 0 {
            let mut books = lock(&self.admission.0);
            books.reserved = books.reserved.saturating_sub(bytes);
            books.call_next();
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.release();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Books {
    fn call_next(&self) {
        if let Some(next) = self.waiting.front() {
            next.is_next.notify_one();
        }
    }

    fn position(&self, ticket: u64) -> Option<usize> {
        self.waiting.iter().position(|waiting| waiting.ticket == ticket)
    }
}

/// A place in the queue; its drop leaves it.
struct Place<'a> {
    admission: &'a Admission,
    ticket: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut books = lock(&self.admission.0);
        if let Some(position) = books.position(self.ticket) {
            books.waiting.remove(position);
            // Whoever comes next may fit where this one did not.
            books.call_next();
        }
    }
}

impl Admission {
    /// Waits until `bytes` fit into `capacity`, behind everybody who asked before.
    ///
    /// # Errors
    /// [`ErrorKind::ResourceExhausted`] where they never fit, or did not within the configured time.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the queue.
    pub(super) async fn admit(
        &self,
        bytes: u64,
        capacity: u64,
        config: &AdmissionConfig,
    ) -> Result<Reservation> {
        if bytes > capacity {
            return Err(exhausted(format!(
                "a sandbox of {} MiB never fits into the {} MiB that all may have together",
                bytes >> 20,
                capacity >> 20
            )));
        }
        let is_next = Arc::new(Notify::new());
        let (place, position) = self.join(bytes, &is_next);
        let began = Instant::now();
        if position > 0 || !self.fits(bytes, capacity) {
            tracing::info!(
                position = position + 1,
                memory_mib = bytes >> 20,
                "a create waits for memory"
            );
        }
        let turn = async {
            loop {
                if let Some(reservation) = self.take(&place, bytes, capacity) {
                    return reservation;
                }
                is_next.notified().await;
            }
        };
        let outcome = match config.max_wait {
            Some(limit) => tokio::time::timeout(limit, turn).await,
            None => Ok(turn.await),
        };
        outcome.map_err(|_| {
            let position = lock(&self.0).position(place.ticket).unwrap_or_default() + 1;
            exhausted(format!(
                "no memory became free in {:?} for a sandbox of {} MiB, at place {position} of the queue",
                began.elapsed(),
                bytes >> 20
            ))
            .with_retryable(true)
            .with_hint("close sandboxes, ask for less memory, or raise `admission.max_wait_s`")
        })
    }

    fn join(&self, bytes: u64, is_next: &Arc<Notify>) -> (Place<'_>, usize) {
        let mut books = lock(&self.0);
        let ticket = books.next;
        books.next += 1;
        books.waiting.push_back(Waiting {
            ticket,
            bytes,
            since: Instant::now(),
            is_next: Arc::clone(is_next),
        });
        let place = Place {
            admission: self,
            ticket,
        };
        (place, books.waiting.len() - 1)
    }

    fn fits(&self, bytes: u64, capacity: u64) -> bool {
        lock(&self.0).reserved.saturating_add(bytes) <= capacity
    }

    /// Takes the memory if it is this one's turn and it fits.
    fn take(&self, place: &Place<'_>, bytes: u64, capacity: u64) -> Option<Reservation> {
        let mut books = lock(&self.0);
        let is_first = books.position(place.ticket) == Some(0);
        if !is_first || books.reserved.saturating_add(bytes) > capacity {
            return None;
        }
        books.waiting.pop_front();
        books.reserved += bytes;
        books.call_next();
        Some(Reservation {
            admission: self.clone(),
            bytes: Mutex::new(bytes),
        })
    }

    /// How much is reserved, and who waits.
    pub(super) fn report(&self) -> (u64, Vec<QueuedCreate>) {
        let books = lock(&self.0);
        let waiting = books.waiting.iter().enumerate();
        let waiting = waiting.map(|(index, waiting)| QueuedCreate {
            position: index + 1,
            memory_bytes: waiting.bytes,
            waited_s: waiting.since.elapsed().as_secs_f64(),
        });
        (books.reserved, waiting.collect())
    }
}

fn exhausted(message: String) -> Error {
    Error::new(
        ErrorKind::ResourceExhausted(Resource::Memory),
        Operation::Create,
        message,
    )
}

/// How many bytes all sandboxes may have together.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a fraction of a memory size needs no exact bytes"
)]
pub(super) fn capacity(engine_bytes: u64, fraction: f64) -> u64 {
    (engine_bytes as f64 * fraction) as u64
}

impl DockerProvider {
    /// Waits for the memory that a sandbox counts for, where that is bounded.
    pub(super) async fn admit(&self, request: &CreateRequest) -> Result<Option<Arc<Reservation>>> {
        let config = &self.config().admission;
        let Some(capacity) = self.memory_capacity() else {
            return Ok(None);
        };
        let limit = request.body.host_config.as_ref().and_then(|host| host.memory);
        let bytes = limit
            .and_then(|limit| u64::try_from(limit).ok())
            .unwrap_or(config.unlimited_counts_mib << 20);
        let reservation = self.shared.admission.admit(bytes, capacity, config).await?;
        Ok(Some(Arc::new(reservation)))
    }

    /// How much memory all sandboxes may have together; none where that has no bound or the engine is not known.
    fn memory_capacity(&self) -> Option<u64> {
        let fraction = self.config().admission.memory_fraction?;
        let engine = self.shared.engine.get()?;
        Some(capacity(engine.memory_bytes?, fraction))
    }

    /// Who waits to be created, and for what. Asks no engine.
    pub fn queue(&self) -> CreateQueue {
        let (reserved_bytes, waiting) = self.shared.admission.report();
        let (creates_at_once, creates_free) = self.lanes().creates();
        CreateQueue {
            memory_bytes: self.memory_capacity(),
            reserved_bytes,
            waiting,
            creates_at_once,
            creates_free,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn config(max_wait: Option<Duration>) -> AdmissionConfig {
        AdmissionConfig {
            max_wait,
            ..AdmissionConfig::default()
        }
    }

    fn positions(admission: &Admission) -> Vec<u64> {
        let (_, waiting) = admission.report();
        assert!(
            waiting
                .iter()
                .enumerate()
                .all(|(index, one)| one.position == index + 1)
        );
        waiting.iter().map(|one| one.memory_bytes / MIB).collect()
    }

    async fn until(mut holds: impl FnMut() -> bool) {
        for _ in 0..2000 {
            if holds() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("it never came to be");
    }

    #[tokio::test]
    async fn who_asked_first_gets_it_first_and_nobody_overtakes() {
        let admission = Admission::default();
        let first = admission.admit(60 * MIB, 100 * MIB, &config(None)).await.unwrap();
        let wait = |bytes: u64| {
            let admission = admission.clone();
            tokio::spawn(async move { admission.admit(bytes * MIB, 100 * MIB, &config(None)).await })
        };
        let large = wait(80);
        until(|| positions(&admission) == [80]).await;
        // It would fit, but somebody asked before.
        let small = wait(10);
        until(|| positions(&admission) == [80, 10]).await;
        first.release();
        first.release();
        let large = large.await.unwrap().unwrap();
        let small = small.await.unwrap().unwrap();
        assert_eq!(admission.report(), (90 * MIB, vec![]));
        drop(large);
        assert_eq!(admission.report().0, 10 * MIB);
        drop(small);
        assert_eq!(admission.report().0, 0);
    }

    #[tokio::test]
    async fn who_gives_up_lets_the_next_one_in() {
        let admission = Admission::default();
        let held = admission.admit(60 * MIB, 100 * MIB, &config(None)).await.unwrap();
        let other = admission.clone();
        let large = tokio::spawn(async move { other.admit(80 * MIB, 100 * MIB, &config(None)).await });
        until(|| positions(&admission) == [80]).await;
        let other = admission.clone();
        let small = tokio::spawn(async move { other.admit(40 * MIB, 100 * MIB, &config(None)).await });
        until(|| positions(&admission) == [80, 40]).await;
        large.abort();
        drop(small.await.unwrap().unwrap());
        drop(held);
        assert_eq!(admission.report(), (0, vec![]));
    }

    #[tokio::test]
    async fn a_wait_ends_and_what_never_fits_does_not_wait() {
        let admission = Admission::default();
        let never = admission
            .admit(101 * MIB, 100 * MIB, &config(None))
            .await
            .unwrap_err();
        assert_eq!(never.kind(), ErrorKind::ResourceExhausted(Resource::Memory));
        assert!(!never.is_retryable());
        let held = admission.admit(60 * MIB, 100 * MIB, &config(None)).await.unwrap();
        let late = admission
            .admit(60 * MIB, 100 * MIB, &config(Some(Duration::from_millis(50))))
            .await
            .unwrap_err();
        assert_eq!(late.kind(), ErrorKind::ResourceExhausted(Resource::Memory));
        assert!(
            late.is_retryable() && late.to_string().contains("place 1"),
            "{late}"
        );
        assert_eq!(admission.report(), (60 * MIB, vec![]));
        drop(held);
    }

    #[test]
    fn a_fraction_of_the_engines_memory() {
        assert_eq!(capacity(1000, 0.8), 800);
        assert_eq!(capacity(1000, 1.0), 1000);
    }
}
