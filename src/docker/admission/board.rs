//! Which creates wait for memory, for all processes of this user on this machine to see: each writes its own into its
//! owner file. Other machines see nothing of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::spec::{OwnerState, SandboxFilter, SandboxId};

use super::super::DockerProvider;
use super::super::owner::{notices, owner, publish};
use super::{Admission, Books};

/// More of one provider are not shown.
const MOST: usize = 64;

/// A create of some process that waits for memory. Made by
/// [`DockerProvider::waiting_creates`](crate::docker::DockerProvider::waiting_creates).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WaitingCreate {
    /// The id that its sandbox will have.
    pub sandbox_id: SandboxId,
    /// Its place among the creates of its provider: 1 is next.
    pub position: usize,
    /// What its sandbox counts, in bytes.
    pub memory_bytes: u64,
    /// How long it has waited, in seconds.
    pub waited_s: u64,
    /// The id of the process that waits.
    pub owner: String,
    /// Whether that is this process.
    pub owner_state: OwnerState,
    /// The run of that process.
    pub run: String,
    /// The project that the sandbox will belong to.
    pub project: Option<String>,
}

/// One of them as the owner file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Entry {
    engine: String,
    sandbox: SandboxId,
    position: usize,
    memory_bytes: u64,
    since_s: u64,
    run: String,
    project: Option<String>,
}

/// What waits in this process, by its admissions.
static BOARD: Mutex<BTreeMap<usize, Vec<Entry>>> = Mutex::new(BTreeMap::new());

impl Admission {
    /// Shows who waits now, where somebody who is shown has come or gone.
    pub(super) fn show(&self, books: &Books, has_changed: bool) {
        if !has_changed {
            return;
        }
        let entries = entries(books);
        let mut board = BOARD.lock().unwrap_or_else(PoisonError::into_inner);
        let key = Arc::as_ptr(&self.0) as usize;
        if entries.is_empty() {
            board.remove(&key);
        } else {
            board.insert(key, entries);
        }
        let all: Vec<&Entry> = board.values().flatten().collect();
        let notice = if all.is_empty() {
            String::new()
        } else {
            serde_json::to_string(&all).unwrap_or_default()
        };
        // Under the lock, so that the last to write writes the last state.
        publish(&notice);
    }
}

fn entries(books: &Books) -> Vec<Entry> {
    let now = (Instant::now(), since_epoch());
    let waiting = books.waiting.iter().enumerate();
    let shown = waiting.filter(|(_, waiting)| waiting.shown.is_some());
    shown
        .take(MOST)
        .map(|(index, waiting)| Entry {
            engine: waiting.asked.engine.to_string(),
            sandbox: waiting.asked.sandbox.clone(),
            position: index + 1,
            memory_bytes: waiting.asked.bytes,
            since_s: now
                .1
                .saturating_sub(now.0.saturating_duration_since(waiting.since).as_secs()),
            run: owner().run.clone(),
            project: waiting.asked.project.clone(),
        })
        .collect()
}

fn since_epoch() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}

/// What a notice says of one engine, as far as a filter asks for it. What can't be read is nothing.
fn waiting(owner: &str, own: &str, notice: &str, engine: &str, filter: &SandboxFilter) -> Vec<WaitingCreate> {
    let entries: Vec<Entry> = serde_json::from_str(notice).unwrap_or_default();
    let asks_for =
        |wanted: &Option<String>, is: Option<&str>| wanted.as_deref().is_none_or(|wanted| is == Some(wanted));
    entries
        .into_iter()
        .filter(|entry| {
            entry.engine == *engine
                // The labels of what is not there yet are not known.
                && filter.labels.is_empty()
                && asks_for(&filter.owner, Some(owner))
                && asks_for(&filter.run, Some(&entry.run))
                && asks_for(&filter.project, entry.project.as_deref())
        })
        .map(|entry| WaitingCreate {
            sandbox_id: entry.sandbox,
            position: entry.position,
            memory_bytes: entry.memory_bytes,
            waited_s: since_epoch().saturating_sub(entry.since_s),
            owner: owner.to_owned(),
            owner_state: if owner == own {
                OwnerState::Own
            } else {
                OwnerState::Alive
            },
            run: entry.run,
            project: entry.project,
        })
        .collect()
}

impl DockerProvider {
    /// Which creates wait for memory on this engine, of all processes of this user on this machine, as far as the filter
    /// asks for them: a process elsewhere shows nothing, and no process more than 64 of each provider. Each process has a
    /// queue of its own: positions of different owners say nothing about each other.
    ///
    /// # Errors
    /// The engine can't be reached.
    ///
    /// # Cancel safety
    /// Nothing is changed.
    pub async fn waiting_creates(&self, filter: &SandboxFilter) -> Result<Vec<WaitingCreate>> {
        let engine = &self.engine().await?.address;
        let own = &owner().id;
        // Few and small files, on memory as a rule.
        Ok(notices()
            .iter()
            .flat_map(|(owner, notice)| waiting(owner, own, notice, engine, filter))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d27_a_notice_tells_of_one_engine_what_the_filter_asks_for() {
        let entry = |engine: &str, project: Option<&str>| Entry {
            engine: engine.to_owned(),
            sandbox: SandboxId::new("gym-sandbox-1").unwrap(),
            position: 1,
            memory_bytes: 5,
            since_s: since_epoch() - 7,
            run: "r".to_owned(),
            project: project.map(str::to_owned),
        };
        let entries = [
            entry("here", None),
            entry("there", None),
            entry("here", Some("p")),
        ];
        let notice = serde_json::to_string(&entries).unwrap();
        let any = SandboxFilter::default();
        let count = |filter: SandboxFilter| waiting("o", "me", &notice, "here", &filter).len();
        assert_eq!(count(any.clone()), 2);
        assert_eq!(count(any.clone().with_project("p")), 1);
        assert_eq!(count(any.clone().with_run("s")), 0);
        assert_eq!(count(any.clone().with_run("r").with_owner("o")), 2);
        assert_eq!(count(any.clone().with_label("k", "v")), 0);
        let found = &waiting("me", "me", &notice, "there", &any)[0];
        assert_eq!((found.position, found.memory_bytes), (1, 5));
        assert_eq!(found.owner_state, OwnerState::Own);
        assert!((7..600).contains(&found.waited_s), "{}", found.waited_s);
        for notice in ["", "[", "{}", &notice[..notice.len() / 2]] {
            assert_eq!(waiting("o", "me", notice, "here", &any), [], "{notice}");
        }
    }
}
