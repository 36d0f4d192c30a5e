//! The storage of which sandboxes get folders.

use serde::Deserialize;

use crate::error::{Error, Operation, Result};
use crate::provider::{Policy, policy_error};
use crate::spec::container::{ContainerSpec, MountSpec};

/// Storage of which sandboxes get folders, see [`SharedStorageProvider`](crate::provider::SharedStorageProvider). None by
/// default; at most one of the two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SharedStorageConfig {
    /// A folder of the engine's machine, as an absolute path. It must be there. Who names it here needs no
    /// `policy.allow_host_binds` for it; a sandbox that gets a folder of it is made without the resident agent, as all
    /// that see the engine's machine.
    pub host_path: Option<String>,
    /// A named volume. Folders of it need an engine with API 1.45; the whole of it can be had everywhere.
    pub volume: Option<String>,
}

impl SharedStorageConfig {
    pub(super) const KEYS: [&'static str; 2] = ["host_path", "volume"];

    /// Whether there is any.
    pub(in crate::docker) fn is_there(&self) -> bool {
        self.host_path.is_some() || self.volume.is_some()
    }

    pub(super) fn check(&self, policy: &Policy) -> Result<()> {
        let invalid = |problem: String| Err(Error::invalid(Operation::Configure, problem));
        match (&self.host_path, &self.volume) {
            (Some(_), Some(_)) => {
                invalid("shared_storage has either a host_path or a volume, not both".to_owned())
            }
            (None, Some(name)) if !crate::docker::container::is_volume_name(name) => invalid(format!(
                "shared_storage.volume `{}` is not the name of a volume",
                name.escape_debug()
            )),
            (Some(path), None) => {
                crate::docker::shared::check_absolute("shared_storage.host_path", path)
                    .map_err(|problem| Error::invalid(Operation::Configure, problem))?;
                // The folder itself is allowed by being named here; one with an engine's socket in it is not.
                let mut policy = policy.clone();
                policy.allow_host_binds.push(path.clone());
                let mut container = ContainerSpec::new("image");
                container.mounts.push(MountSpec::bind(path, "/shared"));
                policy
                    .check(&container)
                    .map_err(|refused| policy_error(Operation::Configure, &refused))
            }
            _ => Ok(()),
        }
    }
}
