//! How much memory the sandboxes of one provider may have together: who does not fit waits in the order of asking.

mod board;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::Serialize;
use tokio::sync::Notify;

use crate::error::{Error, ErrorKind, Operation, Resource, Result};
use crate::spec::SandboxId;

use super::DockerProvider;
use super::config::AdmissionConfig;
use super::owner::Presence;
use super::request::CreateRequest;

pub use board::WaitingCreate;

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
    asked: Asked,
    since: Instant,
    is_next: Arc<Notify>,
    /// It did not get its memory at once, and others may know.
    shown: Option<Presence>,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) sandbox: SandboxId,
    pub(super) engine: Arc<str>,
    pub(super) project: Option<String>,
    pub(super) bytes: u64,
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
            let gone = books.waiting.remove(position);
            // Whoever comes next may fit where this one did not.
            books.call_next();
            self.admission
                .show(&books, gone.and_then(|waiting| waiting.shown).is_some());
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
        asked: Asked,
        capacity: u64,
        config: &AdmissionConfig,
    ) -> Result<Reservation> {
        let bytes = asked.bytes;
        if bytes > capacity {
            return Err(exhausted(format!(
                "a sandbox of {} MiB never fits into the {} MiB that all may have together",
                bytes >> 20,
                capacity >> 20
            )));
        }
        let is_next = Arc::new(Notify::new());
        let (place, position) = self.join(asked, &is_next);
        let began = Instant::now();
        if let Some(reservation) = self.take(&place, bytes, capacity) {
            return Ok(reservation);
        }
        tracing::info!(
            position = position + 1,
            memory_mib = bytes >> 20,
            "a create waits for memory"
        );
        self.let_others_know(place.ticket);
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

    fn join(&self, asked: Asked, is_next: &Arc<Notify>) -> (Place<'_>, usize) {
        let mut books = lock(&self.0);
        let ticket = books.next;
        books.next += 1;
        books.waiting.push_back(Waiting {
            ticket,
            asked,
            since: Instant::now(),
            is_next: Arc::clone(is_next),
            shown: None,
        });
        let place = Place {
            admission: self,
            ticket,
        };
        (place, books.waiting.len() - 1)
    }

    /// Others of this machine may see that it waits.
    fn let_others_know(&self, ticket: u64) {
        let presence = Presence::show();
        let mut books = lock(&self.0);
        if let Some(position) = books.position(ticket) {
            books.waiting[position].shown = Some(presence);
            self.show(&books, true);
        }
    }

    /// Takes the memory if it is this one's turn and it fits.
    fn take(&self, place: &Place<'_>, bytes: u64, capacity: u64) -> Option<Reservation> {
        let mut books = lock(&self.0);
        let is_first = books.position(place.ticket) == Some(0);
        if !is_first || books.reserved.saturating_add(bytes) > capacity {
            return None;
        }
        let taken = books.waiting.pop_front();
        books.reserved += bytes;
        books.call_next();
        self.show(&books, taken.and_then(|waiting| waiting.shown).is_some());
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
            memory_bytes: waiting.asked.bytes,
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
    pub(super) async fn admit(
        &self,
        request: &CreateRequest,
        sandbox: &SandboxId,
    ) -> Result<Option<Arc<Reservation>>> {
        let config = &self.config().admission;
        let Some(capacity) = self.memory_capacity() else {
            return Ok(None);
        };
        let limit = request.body.host_config.as_ref().and_then(|host| host.memory);
        let bytes = limit
            .and_then(|limit| u64::try_from(limit).ok())
            // 0 is no limit.
            .filter(|&limit| limit > 0)
            .unwrap_or(config.unlimited_counts_mib << 20);
        let asked = Asked {
            sandbox: sandbox.clone(),
            engine: Arc::clone(&self.engine().await?.address),
            project: request.options.project.clone(),
            bytes,
        };
        let reservation = self.shared.admission.admit(asked, capacity, config).await?;
        Ok(Some(Arc::new(reservation)))
    }

    /// How much memory all sandboxes may have together; none where that has no bound or the engine is not known.
    fn memory_capacity(&self) -> Option<u64> {
        let fraction = self.config().admission.memory_fraction?;
        let engine = self.shared.engine.get()?;
        Some(capacity(engine.memory_bytes?, fraction))
    }

    /// Which creates of this provider wait, and for what. Asks no engine; [`waiting_creates`](Self::waiting_creates) sees those
    /// of other processes, too.
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
mod tests;
