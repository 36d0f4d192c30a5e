//! Folders that several sandboxes share.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::spec::Mapping;

use super::SandboxProvider;

/// What a sandbox may do with a shared folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SharedAccess {
    /// Read and change what is in it.
    #[default]
    ReadWrite,
    /// Only read it.
    ReadOnly,
}

/// Storage of whoever operates the provider, of which sandboxes get folders (contract 1.3).
///
/// The methods do no I/O: what they refuse is refused before anything is made. A provider has the capability where such
/// storage is configured.
///
/// ```no_run
/// use gym_sandbox::provider::{SharedAccess, SharedStorageProvider};
/// use gym_sandbox::SandboxSpec;
/// # fn example(storage: &dyn SharedStorageProvider) -> gym_sandbox::Result<()> {
/// let options = storage.shared_volume_options(Some("run-7/data"), "/data", SharedAccess::ReadOnly)?;
/// let spec = SandboxSpec::new("debian:bookworm").with_added_provider_options(options);
/// # drop(spec);
/// # Ok(())
/// # }
/// ```
pub trait SharedStorageProvider: SandboxProvider {
    /// Gives the provider options of a sandbox that gets a folder of the storage: a list `volumes`, whose entries are the
    /// provider's own. Add them with
    /// [`with_added_provider_options`](crate::SandboxSpec::with_added_provider_options).
    ///
    /// `source` is the folder, relative to the storage and with `/` between its names; none is all of the storage.
    /// `target` is the absolute path at which the sandbox has it.
    ///
    /// # Behavior
    /// - A folder is never made: a sandbox with all of the storage makes it before.
    /// - A folder that is missing, is none, or is reached by a link is refused by the create, which leaves nothing.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) naming the path: an empty source, an absolute one,
    /// a target that is not absolute or is `/`, and in either a part `..`, a `:`, a backslash, a control character, a
    /// name over 255 or a path over 4,000 bytes; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where there
    /// is no such storage.
    fn shared_volume_options(
        &self,
        source: Option<&str>,
        target: &str,
        access: SharedAccess,
    ) -> Result<Mapping>;

    /// Metadata that a spec needs for its sandbox to be made where the storage is. The spec's own metadata wins.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where there is no such storage.
    fn shared_volume_metadata(&self) -> Result<BTreeMap<String, String>>;
}
