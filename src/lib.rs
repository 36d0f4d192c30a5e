//! Isolated sandboxes for agent rollouts and benchmark harnesses, on any engine that speaks the Docker Engine API.
//!
//! [`AsyncSandbox`] is one sandbox from start to stop. It runs on a [`SandboxProvider`]; [`docker::DockerProvider`] is
//! the one for Docker-compatible engines. What a sandbox should be is a [`SandboxSpec`], what came of a command an
//! [`ExecResult`], and everything that can go wrong an [`Error`] with an [`ErrorKind`] to match on.
//!
//! [`Sandbox`] is the same for programs without an async runtime, and [`local::LocalProvider`] runs commands on this
//! machine, without isolation.
//!
//! [`compose`] reads Compose files as docker compose does, without its command.
//!
//! ```no_run
//! use gym_sandbox::{AsyncSandbox, SandboxSpec, provider::config_from_yaml};
//!
//! # async fn example() -> gym_sandbox::Result<()> {
//! let sandbox = AsyncSandbox::from_config(&config_from_yaml("docker: {}")?)?
//!     .with_spec(SandboxSpec::new("debian:bookworm").with_workdir("/work"));
//! sandbox.start().await?;
//! let result = sandbox.exec("echo hello").await?;
//! assert_eq!(result.stdout().as_deref(), Some("hello\n"));
//! sandbox.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `cli` | yes | the `gym-sandbox` command |
//! | `tls` | yes | engines reached over tcp with TLS |
//! | `ssh` | yes | engines reached over ssh |
//! | `conformance` | no | the public conformance suite for providers |
//! | `testing` | no | a provider in memory for unit tests without an engine |

mod blocking;
mod builtin;
pub mod compose;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod docker;
mod error;
pub mod local;
pub mod provider;
mod sandbox;
mod spec;
#[cfg(feature = "testing")]
pub mod testing;

pub use blocking::{SYNC_LOOP_CLOSE_TIMEOUT, SYNC_OPERATION_TIMEOUT, Sandbox};
pub use compose::AsyncSandboxCompose;
pub use error::{Error, ErrorKind, ImageProblem, Operation, PathProblem, Resource, Result, SandboxReason};
pub use provider::{Capability, CapabilitySet, ExecSession, SandboxHandle, SandboxProvider};
pub use sandbox::{
    AsyncSandbox, ConnectOptions, DEFAULT_EXEC_TIMEOUT, Fork, LocalForward, PtyExecOptions, PtyReader,
    PtyWriter, SandboxPty, SandboxPtySession,
};
pub use spec::container;
pub use spec::{
    CapturedOutput, Command, DEFAULT_OUTPUT_CAP_BYTES, DirectSandboxConnection, ExecErrorType, ExecOptions,
    ExecPath, ExecReason, ExecResult, ExecTimeout, ImageRewrite, MAX_ARGUMENT_BYTES, Mapping, OutputCap,
    PerStream, Ports, SandboxAccess, SandboxDescriptor, SandboxDetail, SandboxEndpoint, SandboxHealth,
    SandboxId, SandboxResources, SandboxSpec, SandboxStatus, StartProblem, Stdin, User, Value,
    check_environment, rewrite_image,
};
pub use spec::{
    CaseCollisions, DEFAULT_MAX_DOWNLOAD_BYTES, DEFAULT_MAX_ENTRIES, DEFAULT_MAX_READ_BYTES,
    DEFAULT_STALL_TIMEOUT, DownloadOptions, DownloadTarget, FileEntry, FileKind, FileOwner, FileStat,
    OutwardLinks, ProgressCallback, RemoveMode, SetIdBits, SpecialFiles, TransferProgress, UploadOptions,
    UploadSource,
};
pub use spec::{LogLine, LogOptions, LogStream, MAX_LOG_LINE_BYTES, SandboxStats};
pub use spec::{MAX_TERMINAL_SIDE, PtyAttachOptions, PtyMode, SandboxPtySpec, check_terminal_size};
pub use spec::{RuntimeRequirements, ServiceSpec, ServiceStatus};

pub use provider::{RemovedOnSignals, remove_on_signals};
pub use spec::{
    BaseImages, BuildCache, BuildSpec, BuildUlimit, BuildkitOptions, DEFAULT_BUILD_STALL_TIMEOUT,
    DEFAULT_MIN_FREE_BYTES, Dockerfile, ImageCallback, ImageDetail, ImageEvent, LayerState, PrefetchCallback,
    PrefetchOptions, Prefetched, PullOptions, PullPolicy, RegistryCredentials, SNAPSHOT_OPTION, Snapshot,
    SnapshotOptions,
};
pub use spec::{
    KeptSandboxes, ObjectKind, OwnerState, SandboxFilter, SandboxSummary, SecondLook, SharedObjects,
    SweepMode, SweepOptions, SweepReport, SweptObject,
};

/// The code of the README and of the guides is compiled with the documentation tests.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../docs/compose.md")]
    struct Compose;
    #[doc = include_str!("../docs/connected.md")]
    struct Connected;
    #[doc = include_str!("../docs/files.md")]
    struct Files;
    #[doc = include_str!("../docs/terminals.md")]
    struct Terminals;
}
