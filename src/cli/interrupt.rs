//! The signals that end the command early, and the exit codes that stand for them.

use gym_sandbox::{Error, ErrorKind, Operation, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal that asks the command to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interrupt {
    /// The terminal went away.
    Hangup,
    /// Ctrl-C.
    CtrlC,
    /// A polite kill.
    Terminate,
}

impl Interrupt {
    /// 128 and the number of the signal, as shells have it.
    pub(super) fn exit_code(self) -> u8 {
        match self {
            Self::Hangup => 129,
            Self::CtrlC => 130,
            Self::Terminate => 143,
        }
    }
}

/// Listens for the signals from the moment it is made.
#[derive(Debug)]
pub(super) struct Interrupts {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    /// Starts to listen; from now on the signals no longer end the process by themselves.
    pub(super) fn listen() -> Result<Self> {
        let listen = |kind| {
            signal(kind).map_err(|error| {
                Error::new(ErrorKind::Io, Operation::Start, "signals can't be listened for")
                    .with_source(error)
            })
        };
        Ok(Self {
            hangup: listen(SignalKind::hangup())?,
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) -> Interrupt {
        tokio::select! {
            _ = self.hangup.recv() => Interrupt::Hangup,
            _ = self.interrupt.recv() => Interrupt::CtrlC,
            _ = self.terminate.recv() => Interrupt::Terminate,
        }
    }
}
