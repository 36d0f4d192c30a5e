//! The mailbox by itself: order, room, ends.

use futures::FutureExt;

use super::*;

#[test]
fn output_keeps_its_order_whatever_the_sizes() {
    let mailbox = Mailbox::new(0, Start::News);
    let mut expected = Vec::new();
    for size in [1, 5, 9000, 3, 8192, 8191, 100, 20_000, 1] {
        let bytes = vec![u8::try_from(size % 251).unwrap(); size];
        expected.extend_from_slice(&bytes);
        mailbox.put_output(Stream::Stdout, bytes.into()).unwrap();
    }
    let mut all = Vec::new();
    while let Ok(chunk) = mailbox.take(Stream::Stdout) {
        all.extend_from_slice(&chunk);
    }
    assert_eq!(all, expected);
    assert_eq!(mailbox.take(Stream::Stdout), Err(StreamState::Open));
    assert_eq!(mailbox.take(Stream::Stderr), Err(StreamState::Open));
}

#[test]
fn more_than_the_credit_is_refused_and_never_kept() {
    let mailbox = Mailbox::new(0, Start::News);
    let window = vec![0; WINDOW_BYTES as usize];
    mailbox.put_output(Stream::Stdout, window.into()).unwrap();
    assert!(
        mailbox
            .put_output(Stream::Stdout, Bytes::from_static(b"x"))
            .is_err()
    );
    assert!(
        mailbox
            .put_output(Stream::Stderr, Bytes::from_static(b"x"))
            .is_ok()
    );
    mailbox.allow(Stream::Stdout, 1);
    assert!(
        mailbox
            .put_output(Stream::Stdout, Bytes::from_static(b"x"))
            .is_ok()
    );
}

#[test]
fn a_reader_is_woken_once_and_for_what_it_waits_for() {
    for (start, wakes) in [(Start::News, true), (Start::Noted, false)] {
        let mailbox = Mailbox::new(0, start);
        mailbox.put(AgentMessage::Started(1)).unwrap();
        mailbox.tell();
        assert!(mailbox.has_started());
        assert_eq!(mailbox.changed().now_or_never().is_some(), wakes);
        let bytes = Bytes::from_static(b"x");
        mailbox.put_output(Stream::Stdout, bytes.clone()).unwrap();
        assert!(mailbox.changed().now_or_never().is_none());
        mailbox.put_output(Stream::Stdout, bytes).unwrap();
        mailbox.tell();
        mailbox.tell();
        assert!(mailbox.changed().now_or_never().is_some());
        assert!(mailbox.changed().now_or_never().is_none());
    }
}

#[tokio::test]
async fn input_waits_for_credit_and_ends_with_its_reader() {
    let mailbox = Mailbox::new(10, Start::News);
    assert_eq!(mailbox.input_credit(4).await, Some(4));
    assert_eq!(mailbox.input_credit(100).await, Some(6));
    mailbox.put(AgentMessage::InputCredit(3)).unwrap();
    assert_eq!(mailbox.input_credit(100).await, Some(3));
    mailbox.put(AgentMessage::InputClosed).unwrap();
    assert_eq!(mailbox.input_credit(100).await, None);
}

/// A command that ends by itself while its kill is on its way: the report of the kill has no channel any more.
#[test]
fn d03_of_a_command_that_is_gone_nothing_is_left_to_kill() {
    let mailbox = Mailbox::new(0, Start::Noted);
    mailbox.put(AgentMessage::Started(7)).unwrap();
    let exit = Exit {
        code: Some(0),
        signal: None,
        cause: ExitCause::Itself,
        oom_kills: 0,
        user_us: 0,
        system_us: 0,
    };
    mailbox.put(AgentMessage::Exited(exit)).unwrap();
    assert!(!mailbox.news().is_killed(), "it may have left children");
    assert_eq!(mailbox.put(AgentMessage::Gone), Ok(true));
    assert!(mailbox.news().is_killed());
}
