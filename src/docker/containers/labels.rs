//! The library's own labels on objects of a project, so that a sweep finds what a dead process left (contract D17), and
//! the lease that keeps them while this process lives.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::super::config::LeaseConfig;
use super::super::connect::Engine;
use super::super::lease::{give_up, let_go};
use super::super::owner::{Keep, LABEL, Stamp};

/// What an object of a project is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Service,
    Network,
    Volume,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Network => "network",
            Self::Volume => "volume",
        }
    }
}

/// Whether an object outlives this process, as its labels say.
pub(super) fn keep_of(labels: &BTreeMap<String, String>) -> Keep {
    if labels.contains_key(&format!("{LABEL}.kept")) {
        Keep::Yes
    } else {
        Keep::No
    }
}

/// The labels of a new object: those that were asked for, with our own over them.
pub(super) fn stamped(
    labels: &BTreeMap<String, String>,
    more: &BTreeMap<String, String>,
    kind: Kind,
    engine: &Engine,
    lease: &LeaseConfig,
) -> HashMap<String, String> {
    let created = engine.engine_now();
    let project = format!("{LABEL}.project");
    let stamp = Stamp {
        kind: kind.as_str(),
        created,
        expires: None,
        lease: created.plus(lease.length),
        renewal: lease.renewal,
        project: labels.get(&project).map(String::as_str),
        keep: keep_of(labels),
    };
    let mut all: HashMap<String, String> = more.clone().into_iter().chain(labels.clone()).collect();
    all.extend(stamp.labels());
    all
}

/// The names of the containers of this process's projects, by their ids: leases are kept by name, removals are by id.
fn names() -> &'static Mutex<HashMap<String, String>> {
    static NAMES: OnceLock<Mutex<HashMap<String, String>>> = OnceLock::new();
    NAMES.get_or_init(Mutex::default)
}

/// Notes a container that is there.
pub(super) fn note_name(id: &str, name: &str) {
    let mut names = names().lock().unwrap_or_else(PoisonError::into_inner);
    names.insert(id.to_owned(), name.to_owned());
}

/// What a container of this process is called, for a message; its id where that is not known.
pub(super) fn name_of(container: &str) -> String {
    let names = names().lock().unwrap_or_else(PoisonError::into_inner);
    names.get(container).map_or(container, String::as_str).to_owned()
}

/// The container is gone: nobody needs the lease for it any more.
pub(super) fn forget(container: &str) {
    let name = names()
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(container);
    match name {
        Some(name) => give_up(&name),
        None => let_go(container),
    }
}
