//! The first message of the agent.

use super::super::MAGIC;
use super::super::wire::{Malformed, Reader, Writer};

/// Who the agent is and what it can do here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts")]
pub struct AgentHello {
    /// The newest version the agent speaks. The lower one of both sides is used.
    pub version: u16,
    /// The oldest version it understands.
    pub oldest_version: u16,
    /// The fingerprint of its program file.
    pub fingerprint: [u8; 16],
    /// Its process id in the sandbox.
    pub pid: u32,
    /// Its user id.
    pub uid: u32,
    /// Its group id.
    pub gid: u32,
    /// `CapEff` of /proc/self/status. With SETUID and SETGID it can run commands as any user.
    pub effective_capabilities: u64,
    /// It is told of descendants whose parent is gone, so that whole trees can be killed.
    pub has_subreaper: bool,
    /// It can close descriptors by range.
    pub has_close_range: bool,
    /// It can signal a process that can't be mistaken for another.
    pub has_pidfd: bool,
    /// /proc shows the sandbox's processes.
    pub has_proc: bool,
    /// `Seccomp` of /proc/self/status: 0 off, 1 strict, 2 filter.
    pub seccomp: u8,
    /// No program gains rights by being started.
    pub no_new_privileges: bool,
    /// The lease that holds now, in milliseconds; 0 for none.
    pub lease_ms: u64,
    /// Milliseconds until the sandbox ends itself; 0 for never.
    pub time_left_ms: u64,
}

const SUBREAPER: u32 = 1;
const CLOSE_RANGE: u32 = 2;
const PIDFD: u32 = 4;
const PROC: u32 = 8;
const NO_NEW_PRIVILEGES: u32 = 16;

impl AgentHello {
    pub(super) fn write(&self, writer: Writer) -> Writer {
        let features = [
            (self.has_subreaper, SUBREAPER),
            (self.has_close_range, CLOSE_RANGE),
            (self.has_pidfd, PIDFD),
            (self.has_proc, PROC),
            (self.no_new_privileges, NO_NEW_PRIVILEGES),
        ];
        let features = features
            .iter()
            .filter(|(has, _)| *has)
            .fold(0, |sum, (_, bit)| sum | bit);
        writer
            .raw(&MAGIC)
            .u16(self.version)
            .u16(self.oldest_version)
            .raw(&self.fingerprint)
            .u32(self.pid)
            .u32(self.uid)
            .u32(self.gid)
            .u32(features)
            .u64(self.effective_capabilities)
            .u8(self.seccomp)
            .u64(self.lease_ms)
            .u64(self.time_left_ms)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        if reader.array()? != MAGIC {
            return Err(Malformed("the other side is no agent of ours"));
        }
        let mut hello = Self {
            version: reader.u16()?,
            oldest_version: reader.u16()?,
            fingerprint: reader.array()?,
            pid: reader.u32()?,
            uid: reader.u32()?,
            gid: reader.u32()?,
            ..Self::default()
        };
        let features = reader.u32()?;
        hello.has_subreaper = features & SUBREAPER != 0;
        hello.has_close_range = features & CLOSE_RANGE != 0;
        hello.has_pidfd = features & PIDFD != 0;
        hello.has_proc = features & PROC != 0;
        hello.no_new_privileges = features & NO_NEW_PRIVILEGES != 0;
        hello.effective_capabilities = reader.u64()?;
        hello.seccomp = reader.u8()?;
        hello.lease_ms = reader.u64()?;
        hello.time_left_ms = reader.u64()?;
        Ok(hello)
    }
}
