//! What the client says to the agent.

use super::wire::{Malformed, Reader, Writer};
use super::{
    AttachRequest, Frame, ListRequest, MAGIC, OLDEST_VERSION, ReadRequest, RenameRequest, SessionRequest,
    VERSION, WriteRequest,
};

const HELLO: u8 = 0x01;
const PING: u8 = 0x02;
const LEASE: u8 = 0x03;
const EXEC: u8 = 0x10;
const INPUT: u8 = 0x11;
const INPUT_END: u8 = 0x12;
const CREDIT: u8 = 0x13;
const SIGNAL: u8 = 0x14;
const KILL: u8 = 0x15;
const DETACH: u8 = 0x16;
const OPEN_SESSION: u8 = 0x18;
const ATTACH_SESSION: u8 = 0x19;
const RESIZE: u8 = 0x1a;
const CLOSE_SESSION: u8 = 0x1b;
const READ_FILE: u8 = 0x20;
const WRITE_FILE: u8 = 0x21;
const STAT: u8 = 0x22;
const LIST: u8 = 0x23;
const RENAME: u8 = 0x24;
// 0x25 to 0x2f are kept for more about files: make directory, remove.
// 0x30 to 0x3f are kept for ports: forward, listen.

/// A message of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientMessage {
    /// The first message of a connection. Channel 0.
    Hello(ClientHello),
    /// Asks for a pong with the same bytes (at most 64 are sent back). Any channel.
    Ping(Vec<u8>),
    /// From now on the sandbox ends this many milliseconds after the last message of any client: a lease that traffic
    /// renews, and that this message only renews where a longer one holds. 0 ends the lease. It is no use of the sandbox
    /// that would keep it from its idle timeout. Only an agent that is PID 1 can end its sandbox. Channel 0.
    Lease(u64),
    /// Runs a command. The channel is new and becomes the command's.
    Exec(Box<ExecRequest>),
    /// Bytes for the command's standard input, or of the file that is written on this channel.
    Input(Vec<u8>),
    /// The end of them.
    InputEnd,
    /// The client has room for this many more bytes of a stream. A read file's stream is stdout.
    Credit(Stream, u32),
    /// Sends a signal by its number.
    Signal(u8, SignalTarget),
    /// Kills the command's whole tree; the answer comes when it is gone or after this many milliseconds, whichever is
    /// first. The killing goes on after that. Answered by [`AgentMessage::Killed`](super::AgentMessage::Killed).
    Kill(u32),
    /// The client wants no more of this channel's output: it goes on being read and is dropped. Exit and end of the
    /// streams are still told. A file that is being read or written is given up.
    Detach,
    /// Starts a session. The channel is new and becomes the session's. `Detach` on it leaves the session to live on.
    OpenSession(Box<SessionRequest>),
    /// Joins a session. The channel is new; the answer is [`AgentMessage::Attached`](super::AgentMessage::Attached) or
    /// `StartFailed`.
    AttachSession(AttachRequest),
    /// Sets rows and columns of the session's terminal.
    Resize(u16, u16),
    /// Kills what runs in the session as [`Kill`](Self::Kill) does, and forgets the session.
    CloseSession(u32),
    /// Reads a file. The channel is new and is the file's until done or failed.
    ReadFile(ReadRequest),
    /// Writes a file with the inputs that follow, up to the end of input. The channel is new.
    WriteFile(WriteRequest),
    /// Asks what a path is; a link is not followed. The channel is new.
    Stat(Vec<u8>),
    /// Lists a directory. The channel is new.
    List(ListRequest),
    /// Gives a file that somebody else writes another name at the end of input. The channel is new and is the file's
    /// until done or failed; given up before, the file is removed. Since version 3.
    Rename(RenameRequest),
}

/// Who the client is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientHello {
    /// The newest version the client speaks.
    pub version: u16,
    /// The oldest version it understands.
    pub oldest_version: u16,
}

impl Default for ClientHello {
    fn default() -> Self {
        Self {
            version: VERSION,
            oldest_version: OLDEST_VERSION,
        }
    }
}

/// One of a command's output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output; also the bytes of a file that is read.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    pub(super) fn to_byte(self) -> u8 {
        match self {
            Self::Stdout => 1,
            Self::Stderr => 2,
        }
    }

    pub(super) fn from_byte(byte: u8) -> Result<Self, Malformed> {
        match byte {
            1 => Ok(Self::Stdout),
            2 => Ok(Self::Stderr),
            _ => Err(Malformed("an unknown stream")),
        }
    }
}

/// Whom a signal is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SignalTarget {
    /// The command's own process.
    Process,
    /// The process group that it was started as.
    Group,
    /// All its descendants.
    Tree,
}

/// A command and how it is run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecRequest {
    /// The value of [`MARKER`](super::MARKER) in the command's environment.
    pub id: Vec<u8>,
    /// The program and its arguments. The program is looked up in the `PATH` of the command's environment unless its
    /// name holds a slash.
    pub argv: Vec<Vec<u8>>,
    /// Entries `NAME=value` over the sandbox's environment; one without `=` removes the variable.
    pub env: Vec<Vec<u8>>,
    /// The working directory; empty for the sandbox's own.
    pub cwd: Vec<u8>,
    /// `name`, `uid`, `name:group`, `uid:gid`...; empty for the agent's own user and groups.
    pub user: Vec<u8>,
    /// The command has a standard input that the client sends; else it is /dev/null.
    pub has_input: bool,
    /// The command lives on when its client's connection ends; else it is killed then. A command whose main process has
    /// exited lives on in any case.
    pub keep_on_disconnect: bool,
    /// Milliseconds after which the tree is killed; 0 for no limit.
    pub timeout_ms: u64,
    /// How long after that the report about it may take, in milliseconds.
    pub kill_wait_ms: u32,
    /// How many bytes of standard output the client has room for at first.
    pub stdout_credit: u32,
    /// The same for standard error.
    pub stderr_credit: u32,
}

impl ClientMessage {
    /// Appends the message to a buffer.
    pub fn append(&self, buffer: &mut Vec<u8>, channel: u32) {
        let (kind, payload) = self.encode();
        Frame::append(buffer, channel, kind, &payload);
    }

    /// The kind of a frame of [`Input`](Self::Input), whose payload is the bytes: to send them without a copy.
    pub const INPUT_KIND: u8 = INPUT;

    fn encode(&self) -> (u8, Vec<u8>) {
        let writer = Writer::default();
        let (kind, writer) = match self {
            Self::Hello(hello) => (
                HELLO,
                writer.raw(&MAGIC).u16(hello.version).u16(hello.oldest_version),
            ),
            Self::Ping(bytes) => (PING, writer.raw(bytes)),
            Self::Lease(milliseconds) => (LEASE, writer.u64(*milliseconds)),
            Self::Exec(request) => (EXEC, request.write(writer)),
            Self::Input(bytes) => (INPUT, writer.raw(bytes)),
            Self::InputEnd => (INPUT_END, writer),
            Self::Credit(stream, bytes) => (CREDIT, writer.u8(stream.to_byte()).u32(*bytes)),
            Self::Signal(number, target) => (SIGNAL, writer.u8(*number).u8(target.to_byte())),
            Self::Kill(milliseconds) => (KILL, writer.u32(*milliseconds)),
            Self::Detach => (DETACH, writer),
            Self::OpenSession(request) => (OPEN_SESSION, request.write(writer)),
            Self::AttachSession(request) => (ATTACH_SESSION, request.write(writer)),
            Self::Resize(rows, cols) => (RESIZE, writer.u16(*rows).u16(*cols)),
            Self::CloseSession(milliseconds) => (CLOSE_SESSION, writer.u32(*milliseconds)),
            Self::ReadFile(request) => (
                READ_FILE,
                writer
                    .u64(request.max_bytes)
                    .u32(request.credit)
                    .bytes(&request.path),
            ),
            Self::WriteFile(request) => (WRITE_FILE, request.write(writer)),
            Self::Stat(path) => (STAT, writer.bytes(path)),
            Self::List(request) => (LIST, writer.u32(request.max_entries).bytes(&request.path)),
            Self::Rename(request) => (RENAME, writer.bytes(&request.from).bytes(&request.to)),
        };
        (kind, writer.0)
    }

    /// Reads a message.
    ///
    /// # Errors
    /// [`Malformed`] for an unknown kind and for a payload that is none of its kind.
    pub fn decode(frame: Frame) -> Result<Self, Malformed> {
        let mut reader = Reader::new(&frame.payload);
        let message = match frame.kind {
            HELLO => {
                if reader.array()? != MAGIC {
                    return Err(Malformed("the other side is no client of ours"));
                }
                Self::Hello(ClientHello {
                    version: reader.u16()?,
                    oldest_version: reader.u16()?,
                })
            }
            PING => Self::Ping(frame.payload),
            LEASE => Self::Lease(reader.u64()?),
            EXEC => Self::Exec(Box::new(ExecRequest::read(&mut reader)?)),
            INPUT => Self::Input(frame.payload),
            INPUT_END => Self::InputEnd,
            CREDIT => Self::Credit(Stream::from_byte(reader.u8()?)?, reader.u32()?),
            SIGNAL => Self::Signal(reader.u8()?, SignalTarget::from_byte(reader.u8()?)?),
            KILL => Self::Kill(reader.u32()?),
            DETACH => Self::Detach,
            OPEN_SESSION => Self::OpenSession(Box::new(SessionRequest::read(&mut reader)?)),
            ATTACH_SESSION => Self::AttachSession(AttachRequest::read(&mut reader)?),
            RESIZE => Self::Resize(reader.u16()?, reader.u16()?),
            CLOSE_SESSION => Self::CloseSession(reader.u32()?),
            READ_FILE => Self::ReadFile(ReadRequest {
                max_bytes: reader.u64()?,
                credit: reader.u32()?,
                path: reader.bytes()?,
            }),
            WRITE_FILE => Self::WriteFile(WriteRequest::read(&mut reader)?),
            STAT => Self::Stat(reader.bytes()?),
            LIST => Self::List(ListRequest {
                max_entries: reader.u32()?,
                path: reader.bytes()?,
            }),
            RENAME => Self::Rename(RenameRequest {
                from: reader.bytes()?,
                to: reader.bytes()?,
            }),
            _ => return Err(Malformed("an unknown kind of message")),
        };
        Ok(message)
    }
}

impl SignalTarget {
    fn to_byte(self) -> u8 {
        match self {
            Self::Process => 1,
            Self::Group => 2,
            Self::Tree => 3,
        }
    }

    fn from_byte(byte: u8) -> Result<Self, Malformed> {
        match byte {
            1 => Ok(Self::Process),
            2 => Ok(Self::Group),
            3 => Ok(Self::Tree),
            _ => Err(Malformed("an unknown target of a signal")),
        }
    }
}

const HAS_INPUT: u32 = 1;
const KEEP_ON_DISCONNECT: u32 = 2;

impl ExecRequest {
    pub(super) fn write(&self, writer: Writer) -> Writer {
        let mut flags = 0;
        if self.has_input {
            flags |= HAS_INPUT;
        }
        if self.keep_on_disconnect {
            flags |= KEEP_ON_DISCONNECT;
        }
        writer
            .u32(flags)
            .u64(self.timeout_ms)
            .u32(self.kill_wait_ms)
            .u32(self.stdout_credit)
            .u32(self.stderr_credit)
            .bytes(&self.id)
            .bytes(&self.user)
            .bytes(&self.cwd)
            .list(&self.argv, |writer, argument| writer.bytes(argument))
            .list(&self.env, |writer, entry| writer.bytes(entry))
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let flags = reader.u32()?;
        // A flag that this source does not know would change what the command is: it can't be ignored.
        if flags & !(HAS_INPUT | KEEP_ON_DISCONNECT) != 0 {
            return Err(Malformed("an unknown flag of a command"));
        }
        Ok(Self {
            has_input: flags & HAS_INPUT != 0,
            keep_on_disconnect: flags & KEEP_ON_DISCONNECT != 0,
            timeout_ms: reader.u64()?,
            kill_wait_ms: reader.u32()?,
            stdout_credit: reader.u32()?,
            stderr_credit: reader.u32()?,
            id: reader.bytes()?,
            user: reader.bytes()?,
            cwd: reader.bytes()?,
            argv: reader.list(4, Reader::bytes)?,
            env: reader.list(4, Reader::bytes)?,
        })
    }
}
