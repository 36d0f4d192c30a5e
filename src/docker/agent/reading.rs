//! The reading side of a connection: takes messages apart, puts them where they belong and wakes those who wait. What a
//! short command costs this process is mostly what is woken here.

use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt};

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
        match reader.read_buf(decoder.buffer()).await {
            Ok(0) => return "the agent closed the connection".to_owned(),
            Ok(_) => shared.heard(),
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
