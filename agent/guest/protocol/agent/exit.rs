//! How commands end, or why they do not start.

use super::super::wire::{Malformed, Reader, Writer};

/// How the command's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The exit code, if it exited.
    pub code: Option<u8>,
    /// The signal, if one killed it. Neither: the process that watched over it was killed, the exit is lost.
    pub signal: Option<u8>,
    /// Who ended it.
    pub cause: ExitCause,
    /// How often the kernel killed for want of memory in this sandbox since the last exit that said so. Only looked up
    /// when SIGKILL was the end, or 137.
    pub oom_kills: u32,
    /// Microseconds of processor time in user mode, with waited-for children.
    pub user_us: u64,
    /// The same in the kernel.
    pub system_us: u64,
}

/// Who ended a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitCause {
    /// Nobody of ours.
    Itself,
    /// A client's kill.
    Request,
    /// Its timeout.
    Timeout,
    /// The end of its client's connection.
    Disconnect,
}

/// What could not be done when a command was to be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StartStage {
    /// The request makes no sense: no program, a NUL in an argument.
    Request,
    /// A pipe, a process or memory could not be had.
    Resources,
    /// The user or group is unknown, or the agent may not become it.
    User,
    /// The working directory can't be entered.
    Cwd,
    /// The program is not in the path, or a path to it does not exist.
    NotFound,
    /// There is such a file, and it may not be executed (also: a directory).
    NotExecutable,
    /// Arguments and environment are too long.
    TooLong,
    /// The file has no format that can be executed, or its interpreter is missing.
    BadFormat,
    /// Something else; see the error number.
    Other,
}

impl Exit {
    const LOST: u8 = 0;
    const CODE: u8 = 1;
    const SIGNAL: u8 = 2;

    pub(super) fn write(&self, writer: Writer) -> Writer {
        let (how, value) = match (self.code, self.signal) {
            (Some(code), _) => (Self::CODE, code),
            (None, Some(signal)) => (Self::SIGNAL, signal),
            (None, None) => (Self::LOST, 0),
        };
        writer
            .u8(how)
            .u8(value)
            .u8(self.cause.to_byte())
            .u32(self.oom_kills)
            .u64(self.user_us)
            .u64(self.system_us)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (how, value) = (reader.u8()?, reader.u8()?);
        let (code, signal) = match how {
            Self::LOST => (None, None),
            Self::CODE => (Some(value), None),
            Self::SIGNAL => (None, Some(value)),
            _ => return Err(Malformed("an unknown way to exit")),
        };
        Ok(Self {
            code,
            signal,
            cause: ExitCause::from_byte(reader.u8()?)?,
            oom_kills: reader.u32()?,
            user_us: reader.u64()?,
            system_us: reader.u64()?,
        })
    }
}

impl ExitCause {
    pub(super) fn to_byte(self) -> u8 {
        match self {
            Self::Itself => 0,
            Self::Request => 1,
            Self::Timeout => 2,
            Self::Disconnect => 3,
        }
    }

    pub(super) fn from_byte(byte: u8) -> Result<Self, Malformed> {
        match byte {
            0 => Ok(Self::Itself),
            1 => Ok(Self::Request),
            2 => Ok(Self::Timeout),
            3 => Ok(Self::Disconnect),
            _ => Err(Malformed("an unknown cause")),
        }
    }
}

impl StartStage {
    const ALL: [Self; 8] = [
        Self::Request,
        Self::Resources,
        Self::User,
        Self::Cwd,
        Self::NotFound,
        Self::NotExecutable,
        Self::TooLong,
        Self::BadFormat,
    ];

    /// Its number on the wire.
    pub fn to_byte(self) -> u8 {
        let index = Self::ALL.iter().position(|stage| *stage == self);
        index.and_then(|index| u8::try_from(index + 1).ok()).unwrap_or(0)
    }

    /// The stage of a number on the wire.
    pub fn from_byte(byte: u8) -> Self {
        usize::from(byte)
            .checked_sub(1)
            .and_then(|index| Self::ALL.get(index).copied())
            .unwrap_or(Self::Other)
    }
}
