//! How clients come in: over the abstract socket, where another process of the sandbox hands over its descriptors, and by
//! dialling the one socket that the agent was told at its start.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use super::Source;
use crate::options::{Mode, Options};
use crate::sys::{self, POLLIN, PollFd};

/// How many clients there may be.
pub(super) const MOST_CLIENTS: usize = 64;
/// How many processes may be connected that have not yet handed over anything.
const MOST_VISITORS: usize = 16;
/// What the other process says with its descriptors: that it waits until they are no more needed, or that it does not.
pub(crate) const WAITS: u8 = b'w';
pub(crate) const LEAVES: u8 = b'l';
/// What a process that waits is told when its descriptors are no more needed.
pub(crate) const DONE: u8 = b'd';
/// The pause before a second dial, doubled with each one, and how often it is tried.
const FIRST_REDIAL_MS: u64 = 50;
const MOST_DIALS: u32 = 10;

/// The ways in.
pub(super) struct Doors {
    listener: Option<UnixListener>,
    visitors: Vec<UnixStream>,
    ready: Option<File>,
    socket: Option<Vec<u8>>,
    dials: u32,
    next_dial: Option<u64>,
}

impl Doors {
    pub(super) fn open(options: &Options) -> Result<Self, String> {
        let listener = SocketAddr::from_abstract_name(&options.name)
            .and_then(|address| UnixListener::bind_addr(&address))
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        let listener = match listener {
            Ok(listener) => Some(listener),
            // A main process does not give up its sandbox for that; another channel may do.
            Err(_) if options.mode == Mode::Init => None,
            Err(error) => return Err(format!("cannot listen: {error}")),
        };
        let ready = options
            .ready_descriptor
            .and_then(|fd| sys::inherited(fd).ok())
            .map(File::from);
        Ok(Self {
            listener,
            visitors: Vec::new(),
            ready,
            next_dial: options.socket.is_some().then(sys::now_ms),
            socket: options.socket.clone(),
            dials: 0,
        })
    }

    /// Tells whoever has started this agent that it can be reached.
    pub(super) fn say_ready(&mut self) {
        if let Some(mut ready) = self.ready.take() {
            let _ = ready.write_all(b"r");
        }
    }

    pub(super) fn wait_for(&self, add: &mut impl FnMut(PollFd, Source)) {
        if let Some(listener) = &self.listener {
            add(PollFd::new(listener, POLLIN), Source::Listener);
        }
        for (index, visitor) in self.visitors.iter().enumerate() {
            add(PollFd::new(visitor, POLLIN), Source::Visitor(index));
        }
    }

    /// Lets in a process of this sandbox that has the rights of the agent or more: whoever is a client can run commands as
    /// the agent's user.
    pub(super) fn accept(&mut self) {
        let Some(Ok((visitor, _))) = self.listener.as_ref().map(UnixListener::accept) else {
            return;
        };
        let own = sys::own_user().0;
        // Sandboxes that share a network share abstract sockets too; a process of another one has no number here.
        let is_welcome =
            sys::peer(visitor.as_fd()).is_ok_and(|peer| peer.pid > 0 && (peer.uid == own || peer.uid == 0));
        if is_welcome && visitor.set_nonblocking(true).is_ok() {
            if self.visitors.len() >= MOST_VISITORS {
                self.visitors.remove(0);
            }
            self.visitors.push(visitor);
        }
    }

    /// Takes what a visitor hands over. The visitor itself is returned if it waits for the end.
    pub(super) fn receive(&mut self, index: usize) -> Option<([OwnedFd; 2], Option<UnixStream>)> {
        let visitor = self.visitors.get(index)?;
        match sys::receive_descriptors(visitor.as_fd()) {
            Ok(Some((streams, word))) => {
                // Its place is left to the next one; sources of this turn hold places, so that none moves up unseen.
                let visitor = self.visitors.swap_remove(index);
                Some((streams, (word == WAITS).then_some(visitor)))
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => None,
            Ok(None) | Err(_) => {
                self.visitors.swap_remove(index);
                None
            }
        }
    }

    /// A client that was dialled is gone. `was_client`: it had spoken, so that it may well be there again soon.
    pub(super) fn dial_again(&mut self, was_client: bool) {
        if was_client {
            self.dials = 0;
        }
        self.plan_dial(sys::now_ms());
    }

    fn plan_dial(&mut self, now: u64) {
        self.dials += 1;
        self.next_dial =
            (self.dials < MOST_DIALS).then(|| now + (FIRST_REDIAL_MS << self.dials.min(MOST_DIALS)));
    }

    pub(super) fn next_dial(&self) -> Option<u64> {
        self.next_dial
    }

    /// Dials, if it is time.
    pub(super) fn dial(&mut self, now: u64) -> Option<[OwnedFd; 2]> {
        let path = self.socket.as_ref()?;
        self.next_dial.take_if(|at| *at <= now)?;
        let streams = sys::connect_at_once(path).and_then(|socket| Ok([socket.try_clone()?, socket]));
        if streams.is_err() {
            self.plan_dial(now);
        }
        streams.ok()
    }
}
