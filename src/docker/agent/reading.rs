//! The reading side of a connection: takes messages apart, puts them where they belong and wakes those who wait. What a
//! short command costs this process is mostly what is waked here, so that as little as possible is.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, Sleep};

use super::decode::Decoder;
use super::link::{Lost, Shared};
use super::mailbox::Mailbox;

/// Reads until the connection ends, and says why it did. Never waits for whoever a message is for.
pub(super) async fn read(
    shared: &Shared,
    mut reader: Pin<Box<dyn AsyncRead + Send>>,
    mut decoder: Decoder,
) -> String {
    let mut stirred = Stirred::default();
    let mut pace = Pace::new();
    loop {
        loop {
            match decoder.next() {
                Ok(Some(incoming)) => match shared.deliver(incoming, &mut stirred) {
                    Ok(None) => {}
                    Ok(Some(Lost(why))) => return why.to_string(),
                    Err(malformed) => return format!("the agent does not keep to the protocol: {malformed}"),
                },
                Ok(None) => break,
                Err(malformed) => return format!("the agent does not keep to the protocol: {malformed}"),
            }
        }
        stirred.tell();
        let read = tokio::select! {
            biased;
            read = reader.read_buf(decoder.buffer()) => read,
            () = pace.over() => {
                pace.go_on(shared.is_busy());
                continue;
            }
        };
        match read {
            Ok(0) => return "the agent closed the connection".to_owned(),
            Ok(_) => {
                shared.heard();
                pace.go_on(true);
            }
            Err(error) => return format!("the connection broke: {error}"),
        }
    }
}

/// The mailboxes that something was put into. Their readers are woken together when all that was read is put away: else
/// one that is woken for the first of its messages goes to sleep again before the next.
#[derive(Default)]
pub(super) struct Stirred(Vec<Arc<Mailbox>>);

impl Stirred {
    pub(super) fn add(&mut self, mailbox: Arc<Mailbox>) {
        if self.0.last().is_none_or(|last| !Arc::ptr_eq(last, &mailbox)) {
            self.0.push(mailbox);
        }
    }

    fn tell(&mut self) {
        for mailbox in self.0.drain(..) {
            mailbox.tell();
        }
    }
}

impl Drop for Stirred {
    fn drop(&mut self) {
        self.tell();
    }
}

/// A tick, shorter than the timers of commands, while a connection is busy. The runtime's clock has to be woken for a
/// timer that ends before all others: with this one there each command's own timers cost no such wake.
struct Pace {
    tick: Pin<Box<Sleep>>,
    is_on: bool,
}

impl Pace {
    const TICK: Duration = Duration::from_millis(100);

    fn new() -> Self {
        Self {
            tick: Box::pin(tokio::time::sleep(Self::TICK)),
            is_on: true,
        }
    }

    /// Waits for the tick; for ever when it is off.
    async fn over(&mut self) {
        if !self.is_on {
            std::future::pending::<()>().await;
        }
        self.tick.as_mut().await;
        self.is_on = false;
    }

    /// Turns it on, unless it is.
    fn go_on(&mut self, is_busy: bool) {
        if is_busy && !self.is_on {
            self.is_on = true;
            self.tick.as_mut().reset(Instant::now() + Self::TICK);
        }
    }
}
