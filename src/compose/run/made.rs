//! What a start has made, so that all of it can be removed: by a stop, or by the clean-up thread.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::spec::container::SharedObject;

/// A container that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MadeContainer {
    pub(crate) id: String,
    /// The service it belongs to, by its place in the plan; None for one that fills a volume.
    pub(crate) service: Option<usize>,
}

/// Everything that exists on the engine because of one start.
#[derive(Debug, Default)]
pub(crate) struct Made(Mutex<Objects>);

/// The objects themselves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    pub(crate) containers: Vec<MadeContainer>,
    /// Ids.
    pub(crate) networks: Vec<String>,
    /// Names.
    pub(crate) volumes: Vec<String>,
    /// Volumes that were there already and are somebody's, as they were.
    found: Vec<SharedObject>,
    /// Ids of containers whose hooks before the stop have begun: no other stop runs them again.
    hooked: Vec<String>,
}

impl Objects {
    pub(crate) fn is_empty(&self) -> bool {
        self.containers.is_empty() && self.networks.is_empty() && self.volumes.is_empty()
    }
}

impl Made {
    fn objects(&self) -> MutexGuard<'_, Objects> {
        // Lists are only pushed to and filtered: a panic elsewhere leaves none half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn snapshot(&self) -> Objects {
        self.objects().clone()
    }

    pub(crate) fn add_container(&self, id: &str, service: Option<usize>) {
        self.objects().containers.push(MadeContainer {
            id: id.to_owned(),
            service,
        });
    }

    pub(crate) fn add_network(&self, id: &str) {
        self.objects().networks.push(id.to_owned());
    }

    pub(crate) fn add_volume(&self, name: &str) {
        self.objects().volumes.push(name.to_owned());
    }

    /// Notes a volume that was there already.
    pub(crate) fn find_volume(&self, volume: SharedObject) {
        self.objects().found.push(volume);
    }

    /// The volumes that were there already.
    pub(crate) fn found_volumes(&self) -> Vec<SharedObject> {
        self.objects().found.clone()
    }

    /// Notes that the hooks before the stop of a container begin. Says whether it is for the first time.
    pub(crate) fn begin_hooks(&self, id: &str) -> bool {
        let mut objects = self.objects();
        let is_first = !objects.hooked.iter().any(|hooked| hooked == id);
        if is_first {
            objects.hooked.push(id.to_owned());
        }
        is_first
    }

    pub(crate) fn forget_container(&self, id: &str) {
        self.objects().containers.retain(|container| container.id != id);
    }

    pub(crate) fn forget_network(&self, id: &str) {
        self.objects().networks.retain(|network| network != id);
    }

    pub(crate) fn forget_volume(&self, name: &str) {
        self.objects().volumes.retain(|volume| volume != name);
    }

    /// Takes everything: it is somebody else's to remove, or to keep.
    pub(crate) fn take(&self) -> Objects {
        std::mem::take(&mut *self.objects())
    }
}
