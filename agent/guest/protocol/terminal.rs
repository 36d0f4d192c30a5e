//! What client and agent say about sessions: programs that outlive the connections to them.

use super::ExecRequest;
use super::wire::{Malformed, Reader, Writer};

/// How many of the last bytes of each stream of a session are kept.
pub const KEPT_BYTES: usize = 1024 * 1024;

/// A session and how it is started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionRequest {
    /// Its name, by which it is joined. New.
    pub name: Vec<u8>,
    /// It gets a terminal; else pipes.
    pub is_terminal: bool,
    /// Rows of the terminal.
    pub rows: u16,
    /// Columns of the terminal.
    pub cols: u16,
    /// What runs in it. `has_input`, `keep_on_disconnect` and the timeout are not looked at: a session has an input, lives
    /// on, and has no timeout.
    pub exec: ExecRequest,
}

/// Which session to join, and from where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttachRequest {
    /// Its name.
    pub name: Vec<u8>,
    /// Whoever holds it loses it; else a held one is refused with EBUSY. An unknown one is ENOENT.
    pub takeover: bool,
    /// The first wanted byte of standard output, counted from the session's start; `u64::MAX` for what comes from now on.
    pub stdout_since: u64,
    /// The same for standard error.
    pub stderr_since: u64,
    /// How many bytes of standard output the client has room for at first.
    pub stdout_credit: u32,
    /// The same for standard error.
    pub stderr_credit: u32,
}

/// A session that was joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attached {
    /// It has a terminal; else pipes.
    pub is_terminal: bool,
    /// The first byte of standard output that comes. More than was asked for when the bytes before are not kept.
    pub stdout_offset: u64,
    /// The same for standard error.
    pub stderr_offset: u64,
    /// How many bytes of input may be sent.
    pub input_credit: u32,
}

impl SessionRequest {
    pub(super) fn write(&self, writer: Writer) -> Writer {
        let writer = writer
            .bytes(&self.name)
            .u8(u8::from(self.is_terminal))
            .u16(self.rows)
            .u16(self.cols);
        self.exec.write(writer)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            name: reader.bytes()?,
            is_terminal: reader.u8()? != 0,
            rows: reader.u16()?,
            cols: reader.u16()?,
            exec: ExecRequest::read(reader)?,
        })
    }
}

impl AttachRequest {
    pub(super) fn write(&self, writer: Writer) -> Writer {
        writer
            .u8(u8::from(self.takeover))
            .u64(self.stdout_since)
            .u64(self.stderr_since)
            .u32(self.stdout_credit)
            .u32(self.stderr_credit)
            .bytes(&self.name)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            takeover: reader.u8()? != 0,
            stdout_since: reader.u64()?,
            stderr_since: reader.u64()?,
            stdout_credit: reader.u32()?,
            stderr_credit: reader.u32()?,
            name: reader.bytes()?,
        })
    }
}

impl Attached {
    pub(super) fn write(&self, writer: Writer) -> Writer {
        writer
            .u8(u8::from(self.is_terminal))
            .u64(self.stdout_offset)
            .u64(self.stderr_offset)
            .u32(self.input_credit)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            is_terminal: reader.u8()? != 0,
            stdout_offset: reader.u64()?,
            stderr_offset: reader.u64()?,
            input_credit: reader.u32()?,
        })
    }
}
