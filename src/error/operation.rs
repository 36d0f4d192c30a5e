//! What was being done when an error came up.

use std::fmt;

/// What was being done. The first words of an error's text are made from it, so they cannot be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Reading configuration or checking arguments.
    Configure,
    /// Finding and reaching an engine.
    Connect,
    /// Creating a sandbox.
    Create,
    /// Pulling or looking up an image.
    Image,
    /// Building an image.
    Build,
    /// Making, listing or removing a snapshot.
    Snapshot,
    /// Starting a facade.
    Start,
    /// Running a command.
    Exec,
    /// Starting a command whose streams the caller handles.
    Spawn,
    /// Starting, joining or using a terminal session.
    Pty,
    /// Copying into a sandbox.
    Upload,
    /// Copying out of a sandbox.
    Download,
    /// Looking at, making or removing files in a sandbox.
    Files,
    /// Asking for a status.
    Status,
    /// Asking for details.
    Inspect,
    /// Listing sandboxes.
    List,
    /// Removing what dead owners have left.
    Sweep,
    /// Resolving an endpoint.
    Endpoint,
    /// Attaching to an existing sandbox.
    Attach,
    /// Describing a sandbox for another process.
    Serialize,
    /// Letting go of a sandbox that was connected to.
    Disconnect,
    /// Freezing a sandbox.
    Pause,
    /// Letting a paused sandbox run again.
    Resume,
    /// Asking for addresses of sandboxes, or setting names.
    Network,
    /// Starting, watching or stopping a background service.
    Service,
    /// Carrying connections.
    Forward,
    /// Reading what the main process printed.
    Logs,
    /// Measuring a sandbox.
    Stats,
    /// Removing a sandbox.
    Close,
    /// Stopping a facade.
    Stop,
    /// Reading a Compose project.
    Compose,
    /// Starting a Compose project.
    ComposeUp,
    /// Taking a Compose project down.
    ComposeDown,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Configure => "configure",
            Self::Connect => "connect to an engine",
            Self::Create => "create sandbox",
            Self::Image => "get image",
            Self::Build => "build image",
            Self::Snapshot => "snapshot sandbox",
            Self::Start => "start sandbox",
            Self::Exec => "run command",
            Self::Spawn => "spawn command",
            Self::Pty => "use terminal",
            Self::Upload => "upload",
            Self::Download => "download",
            Self::Files => "access files",
            Self::Status => "get status",
            Self::Inspect => "inspect",
            Self::List => "list sandboxes",
            Self::Sweep => "sweep",
            Self::Endpoint => "resolve endpoint",
            Self::Attach => "attach to sandbox",
            Self::Serialize => "serialize sandbox",
            Self::Disconnect => "disconnect from sandbox",
            Self::Pause => "pause sandbox",
            Self::Resume => "resume sandbox",
            Self::Network => "set up networking",
            Self::Service => "run service",
            Self::Forward => "forward port",
            Self::Logs => "read log",
            Self::Stats => "measure sandbox",
            Self::Close => "remove sandbox",
            Self::Stop => "stop sandbox",
            Self::Compose => "read compose project",
            Self::ComposeUp => "start compose project",
            Self::ComposeDown => "stop compose project",
        })
    }
}
