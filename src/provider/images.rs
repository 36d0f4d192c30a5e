//! Images and snapshots as capabilities of a provider. Says what is had; knows no way of having it.

use async_trait::async_trait;

use crate::error::Result;
use crate::spec::{
    BuildSpec, ImageDetail, PrefetchOptions, Prefetched, PullOptions, Snapshot, SnapshotOptions,
};

use super::{SandboxHandle, SandboxProvider};

/// Images: pulled, built, looked up and removed (contract D12, D35).
#[async_trait]
pub trait ImageProvider: SandboxProvider {
    /// Sees to it that an image is there, by the policy of the options, and describes it.
    ///
    /// # Behavior
    /// - However many ask for the same image, platform and credentials at once, it is pulled once; each of them is told
    ///   of the progress.
    /// - A rate limit of the registry is waited out, a bounded number of times.
    /// - The platform of what was pulled, or was there, is checked against the one asked for.
    ///
    /// # Errors
    /// [`ErrorKind::Image`](crate::ErrorKind::Image) with what is wrong;
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) when nothing moves for `pull.stall_timeout_s` (five minutes). The
    /// caller bounds the whole.
    ///
    /// # Cancel safety
    /// Dropping the future ends the pull, unless somebody else waits for it, too. Layers that have come are kept.
    async fn pull_image(&self, image: &str, options: &PullOptions) -> Result<ImageDetail>;

    /// Sees to it that images are there, and says of each, in their order, what became of it. One that can't be had
    /// does not stop the others.
    ///
    /// # Errors
    /// [`ImageProblem::InvalidReference`](crate::ImageProblem::InvalidReference) for the first that is none, before
    /// anything is pulled; [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable).
    ///
    /// # Cancel safety
    /// As [`pull_image`](Self::pull_image).
    async fn prefetch_images(&self, images: &[String], options: &PrefetchOptions) -> Result<Vec<Prefetched>>;

    /// Builds an image and describes it.
    ///
    /// # Behavior
    /// - What the provider can't build is refused by name before anything is sent.
    /// - The text of a failure names the step, and its cause holds the last output.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for what needs another builder;
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) or
    /// [`ErrorKind::Path`](crate::ErrorKind::Path) for a bad request or context;
    /// [`ImageProblem::Build`](crate::ImageProblem::Build) for a step that fails.
    ///
    /// # Cancel safety
    /// Dropping the future ends the build; its containers, and the images of its steps, are removed in the background.
    async fn build_image(&self, spec: &BuildSpec) -> Result<ImageDetail>;

    /// Describes an image that is there; None where it is not.
    ///
    /// # Errors
    /// [`ImageProblem::Platform`](crate::ImageProblem::Platform) when it is there for another platform than this.
    async fn find_image(&self, image: &str, platform: Option<&str>) -> Result<Option<ImageDetail>>;

    /// Removes a name of an image, and the image with its last name. Says whether it was there.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) while a sandbox uses it.
    ///
    /// # Cancel safety
    /// Dropping the future may leave it.
    async fn remove_image(&self, image: &str) -> Result<bool>;
}

/// Snapshots: the files of a sandbox, kept to start others from.
///
/// A sandbox starts from one with the provider option [`SNAPSHOT_OPTION`](crate::SNAPSHOT_OPTION), and needs no image
/// then. A snapshot has the entrypoint, command, user, environment and working directory of the image that the sandbox
/// was made from. Not in it are processes, volumes, mounts and tmpfs, and what the spec gave the sandbox beside its
/// files: give it to the next one as well.
#[async_trait]
pub trait SnapshotProvider: SandboxProvider {
    /// Keeps the files of a sandbox. Its processes stand still meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) when the sandbox is gone;
    /// [`ErrorKind::ResourceExhausted`](crate::ErrorKind::ResourceExhausted) when the disk is full.
    ///
    /// # Cancel safety
    /// Dropping the future leaves no snapshot: what was made is removed in the background.
    async fn snapshot(&self, handle: &SandboxHandle, options: &SnapshotOptions) -> Result<Snapshot>;

    /// All snapshots, of every owner, the oldest first.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) or [`ErrorKind::Timeout`](crate::ErrorKind::Timeout).
    async fn list_snapshots(&self) -> Result<Vec<Snapshot>>;

    /// Removes a snapshot and says whether it was there.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for what names no snapshot;
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) while a sandbox runs from it.
    ///
    /// # Cancel safety
    /// Dropping the future may leave it.
    async fn delete_snapshot(&self, id: &str) -> Result<bool>;
}
