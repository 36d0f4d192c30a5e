//! Which shell the images of services have, each image looked at once: copies of a project are of the same images.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::ContainerArchiveInfoOptionsBuilder;

use crate::error::Result;

use super::super::DockerProvider;
use super::super::failure::{QUICK, call};

/// Shells that are looked for, the better ones first (contract X9).
const SHELLS: [(&str, &str); 4] = [
    ("/bin/bash", "bash"),
    ("/usr/bin/bash", "bash"),
    ("/bin/sh", "sh"),
    ("/usr/bin/sh", "sh"),
];

/// More images than this are not remembered.
const MOST: usize = 1000;

/// The shell of an image; none for one without.
#[derive(Debug, Clone)]
struct Shell(Option<String>);

/// The shells of images, by the images' ids.
#[derive(Debug, Default)]
pub(in crate::docker) struct KnownShells(Mutex<HashMap<String, Shell>>);

impl KnownShells {
    fn of(&self, image: &str) -> Option<Shell> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(image).cloned()
    }

    fn remember(&self, image: &str, shell: Shell) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST {
            known.insert(image.to_owned(), shell);
        }
    }
}

impl DockerProvider {
    /// Which shell is there, by its file: a service is not kept waiting for a command, and may not run yet.
    pub(super) async fn shell_of(
        &self,
        container: &str,
        inspected: &ContainerInspectResponse,
    ) -> Result<Option<String>> {
        let image = inspected
            .image
            .as_deref()
            .filter(|_| has_its_images_programs(inspected));
        if let Some(Shell(known)) = image.and_then(|image| self.known_shells().of(image)) {
            return Ok(known);
        }
        let client = &self.engine().await?.client;
        let mut found = None;
        for (path, shell) in SHELLS {
            let options = ContainerArchiveInfoOptionsBuilder::new().path(path).build();
            match call(QUICK, client.get_container_archive_info(container, Some(options))).await {
                Ok(_) => {
                    found = Some(shell.to_owned());
                    break;
                }
                Err(failure) if failure.is_status(404) => {}
                // Whatever keeps it from being seen, most images have one.
                Err(_) => return Ok(Some("sh".to_owned())),
            }
        }
        if let Some(image) = image {
            self.known_shells().remember(image, Shell(found.clone()));
        }
        Ok(found)
    }
}

/// Whether nothing is mounted over the folders of shells.
fn has_its_images_programs(inspected: &ContainerInspectResponse) -> bool {
    let mounts = inspected.mounts.iter().flatten();
    let mounts = mounts.filter_map(|mount| mount.destination.as_deref());
    let host = inspected.host_config.iter();
    let tmpfs = host
        .flat_map(|host| host.tmpfs.iter().flatten())
        .map(|(path, _)| path.as_str());
    mounts.chain(tmpfs).all(|path| {
        let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        !["", "bin", "usr"].contains(&first)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_mounted_over_programs_is_looked_at_by_itself() {
        let with = |mounts: &[&str], tmpfs: &[&str]| {
            let mounts: Vec<_> = mounts.iter().map(|path| json!({"Destination": path})).collect();
            let tmpfs: HashMap<_, _> = tmpfs.iter().map(|path| (*path, "")).collect();
            let inspected = json!({"Mounts": mounts, "HostConfig": {"Tmpfs": tmpfs}});
            has_its_images_programs(&serde_json::from_value(inspected).unwrap())
        };
        assert!(with(&[], &[]));
        assert!(with(&["/data", "/binaries", "/opt/bin"], &["/tmp", "/run/usr"]));
        for over in ["/bin", "/usr", "/usr/bin", "/bin/sh", "/"] {
            assert!(!with(&["/data", over], &[]), "{over}");
            assert!(!with(&[], &[over]), "{over}");
        }
    }
}
