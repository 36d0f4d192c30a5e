//! What the agent says to the client.

mod exit;
mod file;
mod hello;

pub use exit::{Exit, ExitCause, StartStage};
pub use file::{FileFailure, FileInfo, FileKind};
pub use hello::AgentHello;

use super::wire::{Malformed, Reader, Writer};
use super::{Attached, Frame, Stream};

const HELLO: u8 = 0x81;
const PONG: u8 = 0x82;
const REFUSED: u8 = 0x83;
const STARTED: u8 = 0x90;
const START_FAILED: u8 = 0x91;
const STDOUT: u8 = 0x92;
const STDERR: u8 = 0x93;
const STREAM_END: u8 = 0x94;
const DRAINED: u8 = 0x95;
const EXITED: u8 = 0x96;
const INPUT_CREDIT: u8 = 0x97;
const INPUT_CLOSED: u8 = 0x98;
const KILLED: u8 = 0x99;
const GONE: u8 = 0x9a;
const ATTACHED: u8 = 0x9b;
const EVICTED: u8 = 0x9c;
const FILE_INFO: u8 = 0xa0;
const FILE_ENTRIES: u8 = 0xa1;
const FILE_DONE: u8 = 0xa2;
const FILE_FAILED: u8 = 0xa3;
// 0xb0 to 0xbf are kept for ports.

/// A message of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentMessage {
    /// The first message of a connection. Channel 0.
    Hello(AgentHello),
    /// The answer to a ping, on its channel.
    Pong(Vec<u8>),
    /// The agent ends this connection, and why. Channel 0.
    Refused(String),
    /// The command runs; its process id in the sandbox.
    Started(u32),
    /// The command does not run, and nothing else follows on its channel.
    StartFailed {
        /// What could not be done.
        stage: StartStage,
        /// The system's error number, 0 where there is none.
        errno: i32,
        /// The path or name that it is about; never an argument or a variable's value.
        subject: String,
    },
    /// Bytes of a stream: the command's output, or those of a read file as stdout.
    Output(Stream, Vec<u8>),
    /// No process holds this stream any more; all of it has been sent.
    StreamEnd {
        /// Which one.
        stream: Stream,
        /// How many bytes were written to it, with those that were dropped after a detach.
        total_bytes: u64,
    },
    /// Everything that was written to this stream before the command exited has been sent, and somebody else still
    /// holds it open. Sent at most once, only after the exit.
    Drained(Stream),
    /// The command's own process has ended; its descendants and streams may live on.
    Exited(Exit),
    /// The command took this many bytes of its input: as many more may be sent.
    InputCredit(u32),
    /// The command closed its input: what is still sent is dropped.
    InputClosed,
    /// What came of a kill.
    Killed {
        /// Who asked for it.
        cause: ExitCause,
        /// How many processes were killed.
        killed: u32,
        /// The processes that lived on when the time was over. Empty when the tree is gone.
        survivors: Vec<u32>,
        /// The process that watches over the tree was itself killed, so that there may be survivors unseen.
        is_unsure: bool,
    },
    /// Exited, all streams ended and no descendant lives: the last message of a command's channel.
    Gone,
    /// The session was joined. Comes before its output.
    Attached(Attached),
    /// Another client has taken the session over: the last message of this channel.
    Evicted,
    /// The answer to stat, and the first to a read.
    FileInfo(FileInfo),
    /// Entries of a directory, in no order; comes any number of times before done.
    FileEntries(Vec<FileInfo>),
    /// All was read, written or listed: the last message of a file's channel. With the bytes or entries.
    FileDone(u64),
    /// It could not be: the last message of a file's channel.
    FileFailed(FileFailure),
}

impl AgentMessage {
    /// Appends the message to a buffer.
    pub fn append(&self, buffer: &mut Vec<u8>, channel: u32) {
        let (kind, payload) = self.encode();
        Frame::append(buffer, channel, kind, &payload);
    }

    /// The kind of a frame of [`Output`](Self::Output), whose payload is the bytes: to send or take them without a copy.
    pub const fn output_kind(stream: Stream) -> u8 {
        match stream {
            Stream::Stdout => STDOUT,
            Stream::Stderr => STDERR,
        }
    }

    fn encode(&self) -> (u8, Vec<u8>) {
        let writer = Writer::default();
        let (kind, writer) = match self {
            Self::Hello(hello) => (HELLO, hello.write(writer)),
            Self::Pong(bytes) => (PONG, writer.raw(bytes)),
            Self::Refused(reason) => (REFUSED, writer.bytes(reason.as_bytes())),
            Self::Started(pid) => (STARTED, writer.u32(*pid)),
            Self::StartFailed {
                stage,
                errno,
                subject,
            } => (
                START_FAILED,
                writer.u8(stage.to_byte()).i32(*errno).bytes(subject.as_bytes()),
            ),
            Self::Output(stream, bytes) => (Self::output_kind(*stream), writer.raw(bytes)),
            Self::StreamEnd { stream, total_bytes } => {
                (STREAM_END, writer.u8(stream.to_byte()).u64(*total_bytes))
            }
            Self::Drained(stream) => (DRAINED, writer.u8(stream.to_byte())),
            Self::Exited(exit) => (EXITED, exit.write(writer)),
            Self::InputCredit(bytes) => (INPUT_CREDIT, writer.u32(*bytes)),
            Self::InputClosed => (INPUT_CLOSED, writer),
            Self::Killed {
                cause,
                killed,
                survivors,
                is_unsure,
            } => (
                KILLED,
                writer
                    .u8(cause.to_byte())
                    .u8(u8::from(*is_unsure))
                    .u32(*killed)
                    .list(survivors, |writer, pid| writer.u32(*pid)),
            ),
            Self::Gone => (GONE, writer),
            Self::Attached(attached) => (ATTACHED, attached.write(writer)),
            Self::Evicted => (EVICTED, writer),
            Self::FileInfo(info) => (FILE_INFO, info.write(writer)),
            Self::FileEntries(entries) => (
                FILE_ENTRIES,
                writer.list(entries, |writer, entry| entry.write(writer)),
            ),
            Self::FileDone(count) => (FILE_DONE, writer.u64(*count)),
            Self::FileFailed(failure) => (
                FILE_FAILED,
                writer.i32(failure.errno).bytes(failure.what.as_bytes()),
            ),
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
            HELLO => Self::Hello(AgentHello::read(&mut reader)?),
            PONG => Self::Pong(frame.payload),
            REFUSED => Self::Refused(reader.text()?),
            STARTED => Self::Started(reader.u32()?),
            START_FAILED => Self::StartFailed {
                stage: StartStage::from_byte(reader.u8()?),
                errno: reader.i32()?,
                subject: reader.text()?,
            },
            STDOUT => Self::Output(Stream::Stdout, frame.payload),
            STDERR => Self::Output(Stream::Stderr, frame.payload),
            STREAM_END => Self::StreamEnd {
                stream: Stream::from_byte(reader.u8()?)?,
                total_bytes: reader.u64()?,
            },
            DRAINED => Self::Drained(Stream::from_byte(reader.u8()?)?),
            EXITED => Self::Exited(Exit::read(&mut reader)?),
            INPUT_CREDIT => Self::InputCredit(reader.u32()?),
            INPUT_CLOSED => Self::InputClosed,
            KILLED => Self::Killed {
                cause: ExitCause::from_byte(reader.u8()?)?,
                is_unsure: reader.u8()? != 0,
                killed: reader.u32()?,
                survivors: reader.list(4, Reader::u32)?,
            },
            GONE => Self::Gone,
            ATTACHED => Self::Attached(Attached::read(&mut reader)?),
            EVICTED => Self::Evicted,
            FILE_INFO => Self::FileInfo(FileInfo::read(&mut reader)?),
            FILE_ENTRIES => Self::FileEntries(reader.list(FileInfo::SMALLEST_BYTES, FileInfo::read)?),
            FILE_DONE => Self::FileDone(reader.u64()?),
            FILE_FAILED => Self::FileFailed(FileFailure {
                errno: reader.i32()?,
                what: reader.text()?,
            }),
            _ => return Err(Malformed("an unknown kind of message")),
        };
        Ok(message)
    }
}
