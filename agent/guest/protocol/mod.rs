//! What the client and the resident agent say to each other, byte for byte. The same source is compiled into both.
//! Knows no socket, no process and no clock: it turns bytes into messages and back.
//!
//! All numbers are little-endian. A connection is a stream of frames in each direction; both sides send a hello first
//! and need not wait for the other's. See docs/agent.md for the order of messages.

mod agent;
mod client;
mod file;
mod fingerprint;
mod frame;
mod terminal;
mod wire;

pub use agent::{AgentHello, AgentMessage, Exit, ExitCause, FileFailure, FileInfo, FileKind, StartStage};
pub use client::{ClientHello, ClientMessage, ExecRequest, SignalTarget, Stream};
pub use file::{ListRequest, ReadRequest, RenameRequest, WriteRequest};
pub use fingerprint::Fingerprint;
pub use frame::{Decoder, Frame, Header};
pub use terminal::{AttachRequest, Attached, KEPT_BYTES, SessionRequest};
pub use wire::Malformed;

/// The first bytes of every hello.
pub const MAGIC: [u8; 8] = *b"gymsbx\x00\x01";

/// The version of the protocol that this source speaks.
pub const VERSION: u16 = 3;

/// The oldest version that this source still understands.
pub const OLDEST_VERSION: u16 = 1;

/// What [`FileFailure::what`] says of a name that may have been given or not.
pub const NAMED_OR_NOT: &str = "named or not";

/// The bytes of a frame before its payload.
pub const HEADER_BYTES: usize = 12;

/// The longest payload of one frame. Longer ones make the frames of a neighbour wait.
pub const MAX_PAYLOAD_BYTES: usize = 64 * 1024;

/// The longest message that may be sent as several frames: more than the longest argument list Linux takes.
pub const MAX_MESSAGE_BYTES: usize = 8 * 1024 * 1024;

/// How many bytes of standard input, or of a file that is written, may be sent before the agent gives credit for more.
pub const INPUT_WINDOW_BYTES: u32 = 256 * 1024;

/// The environment variable that marks every process of one command.
pub const MARKER: &str = "GYM_SANDBOX_EXEC";

/// The abstract socket on which an agent waits for `connect` unless it is told another name.
pub const DEFAULT_NAME: &str = "gym-sandbox-agent";
