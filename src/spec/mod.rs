//! Provider-neutral data: what a sandbox should be, what a command is, what came of it.
//! No I/O and no async; knows no provider.

mod access;
mod build;
pub(crate) mod calendar;
mod capture;
mod command;
pub mod container;
mod descriptor;
mod detail;
mod endpoint;
mod environment;
mod exec;
mod files;
mod id;
mod image;
mod image_reference;
mod listing;
mod logs;
mod ordered;
mod ports;
mod pty;
mod requirements;
mod resources;
mod result;
mod sandbox;
mod service;
mod snapshot;
mod stat;
mod status;
mod sweep;
pub(crate) mod units;

pub use access::{DirectSandboxConnection, SandboxAccess};
pub use build::{
    BaseImages, BuildCache, BuildSpec, BuildUlimit, BuildkitOptions, DEFAULT_BUILD_STALL_TIMEOUT, Dockerfile,
};
pub(crate) use capture::Capture;
pub use capture::CapturedOutput;
pub use command::{Command, MAX_ARGUMENT_BYTES};
pub use descriptor::SandboxDescriptor;
pub use detail::{SandboxDetail, SandboxHealth};
pub use endpoint::SandboxEndpoint;
pub use environment::check_environment;
pub use exec::{DEFAULT_OUTPUT_CAP_BYTES, ExecOptions, ExecTimeout, OutputCap, Stdin, User};
pub use files::{
    CaseCollisions, DEFAULT_MAX_DOWNLOAD_BYTES, DEFAULT_MAX_ENTRIES, DEFAULT_MAX_READ_BYTES,
    DEFAULT_STALL_TIMEOUT, DownloadOptions, DownloadTarget, OutwardLinks, ProgressCallback, SetIdBits,
    SpecialFiles, TransferProgress, UploadOptions, UploadSource,
};
pub use id::SandboxId;
pub use image::{
    DEFAULT_MIN_FREE_BYTES, ImageCallback, ImageDetail, ImageEvent, LayerState, PrefetchCallback,
    PrefetchOptions, Prefetched, PullOptions, PullPolicy, RegistryCredentials,
};
pub use image_reference::ImageReference;
pub use listing::{OwnerState, SandboxFilter, SandboxSummary};
pub use logs::{LogLine, LogOptions, LogStream, MAX_LOG_LINE_BYTES, SandboxStats};
pub use ports::Ports;
pub use pty::{MAX_TERMINAL_SIDE, PtyAttachOptions, PtyMode, SandboxPtySpec, check_terminal_size};
pub use requirements::RuntimeRequirements;
pub use resources::SandboxResources;
pub use result::{ExecErrorType, ExecPath, ExecReason, ExecResult, PerStream, StartProblem};
pub use sandbox::{ImageRewrite, SandboxSpec, rewrite_image};
pub(crate) use service::check_service_name;
pub use service::{ServiceSpec, ServiceStatus};
pub use snapshot::{SNAPSHOT_OPTION, Snapshot, SnapshotOptions};
pub use stat::{FileEntry, FileKind, FileOwner, FileStat, RemoveMode};
pub use status::SandboxStatus;
pub use sweep::{
    KeptSandboxes, ObjectKind, SecondLook, SharedObjects, SweepMode, SweepOptions, SweepReport, SweptObject,
};

/// A JSON value, as in provider options and configuration blocks. It is `serde_json`'s.
pub use serde_json::Value;

/// A JSON object whose keys keep their order. It is `serde_json`'s.
pub type Mapping = serde_json::Map<String, Value>;

#[cfg(test)]
mod tests;
