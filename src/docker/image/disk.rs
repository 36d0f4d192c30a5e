//! How much room there is on the disk of an engine on this machine.

use std::collections::HashMap;

use crate::error::{Error, ErrorKind, Operation, Resource};
use crate::spec::{ImageEvent, LayerState};

use super::super::DockerProvider;
use super::super::failure::{QUICK, call};

impl DockerProvider {
    /// None where that can't be seen: an engine on another machine, or one in a container.
    pub(super) async fn free_disk_bytes(&self) -> Option<u64> {
        let engine = self.engine().await.ok()?;
        if !engine.is_local {
            return None;
        }
        let root = call(QUICK, engine.client.info()).await.ok()?.docker_root_dir?;
        let look = tokio::task::spawn_blocking(move || rustix::fs::statvfs(root.as_str()).ok());
        let facts = tokio::time::timeout(QUICK, look).await.ok()?.ok()??;
        Some(facts.f_bavail.saturating_mul(facts.f_frsize))
    }
}

/// What a pull says of the size of its layers, against the room there was when it began.
#[derive(Debug)]
pub(super) struct Room {
    free_bytes: u64,
    min_free_bytes: u64,
    layers: HashMap<String, u64>,
}

impl Room {
    pub(super) fn new(free_bytes: u64, min_free_bytes: u64) -> Self {
        Self {
            free_bytes,
            min_free_bytes,
            layers: HashMap::new(),
        }
    }

    /// The error of an image that does not fit, as far as is known by now.
    pub(super) fn check(&self, image: &str) -> Option<Error> {
        let needed = self
            .layers
            .values()
            .fold(0_u64, |sum, &size| sum.saturating_add(size));
        if needed.saturating_add(self.min_free_bytes) <= self.free_bytes {
            return None;
        }
        Some(
            Error::new(
                ErrorKind::ResourceExhausted(Resource::Disk),
                Operation::Image,
                format!(
                    "there is no room for `{image}`: the engine's disk has {} MiB, the layers need at least {} MiB, and \
                     {} MiB are to be left",
                    self.free_bytes >> 20,
                    needed.div_ceil(1 << 20),
                    self.min_free_bytes >> 20,
                ),
            )
            .with_hint("free disk space of the engine, or lower how much is to be left"),
        )
    }

    /// Takes in what is said of a layer. Packed and unpacked sizes differ; the larger one counts.
    pub(super) fn note(&mut self, event: &ImageEvent) {
        if let ImageEvent::Layer {
            id,
            state: LayerState::Downloading | LayerState::Extracting,
            total_bytes: Some(total),
            ..
        } = event
        {
            let size = self.layers.entry(id.clone()).or_default();
            *size = (*size).max(*total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d35_an_image_that_does_not_fit_is_told_by_its_layers() {
        let layer = |id: &str, total| ImageEvent::Layer {
            id: id.to_owned(),
            state: LayerState::Downloading,
            current_bytes: 1,
            total_bytes: Some(total),
        };
        let mut room = Room::new(100 << 20, 10 << 20);
        assert!(room.check("a").is_none());
        room.note(&layer("one", 60 << 20));
        room.note(&layer("one", 60 << 20));
        assert!(room.check("a").is_none());
        room.note(&layer("two", 31 << 20));
        let error = room.check("a").unwrap();
        assert_eq!(error.kind(), ErrorKind::ResourceExhausted(Resource::Disk));
        assert!(
            error.to_string().contains("100 MiB") && error.to_string().contains("91 MiB"),
            "{error}"
        );
    }
}
