use proptest::prelude::*;

use super::super::capture::Capture;
use super::super::{CapturedOutput, OutputCap};

fn capture(cap: usize, chunks: &[Vec<u8>]) -> CapturedOutput {
    let mut capture = Capture::new(cap);
    for chunk in chunks {
        capture.push(chunk);
    }
    capture.finish()
}

/// Cuts bytes at the given places, taken modulo their number.
fn cut(bytes: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places
        .windows(2)
        .map(|pair| bytes[pair[0]..pair[1]].to_vec())
        .collect()
}

proptest! {
    #[test]
    fn d32_first_and_last_half_are_kept_whatever_the_chunks(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        cuts in proptest::collection::vec(any::<usize>(), 0..20),
        cap in 1usize..128,
    ) {
        let captured = capture(cap, &cut(&bytes, &cuts));
        prop_assert_eq!(captured.total_bytes(), bytes.len() as u64);
        if bytes.len() <= cap {
            prop_assert!(!captured.is_truncated());
            prop_assert_eq!(captured.missing_bytes(), 0);
            prop_assert_eq!(captured.bytes().into_owned(), bytes.clone());
            prop_assert_eq!(captured.head().as_ref(), bytes.as_slice());
            prop_assert!(captured.tail().is_empty());
            prop_assert_eq!(captured.text(), String::from_utf8_lossy(&bytes));
        } else {
            let tail = cap / 2;
            let head = cap - tail;
            prop_assert!(captured.is_truncated());
            prop_assert_eq!(captured.missing_bytes(), (bytes.len() - cap) as u64);
            prop_assert_eq!(captured.head().as_ref(), &bytes[..head]);
            prop_assert_eq!(captured.tail().as_ref(), &bytes[bytes.len() - tail..]);
            prop_assert_eq!(captured.bytes().len(), cap);
        }
    }

    #[test]
    fn d32_text_under_the_cap_is_whole_also_across_the_border(
        text in "\\PC{0,60}",
        cuts in proptest::collection::vec(any::<usize>(), 0..20),
        spare in 0usize..4,
    ) {
        // The border between the two halves lies inside a character for many of these caps.
        let cap = (text.len() + spare).max(1);
        let captured = capture(cap, &cut(text.as_bytes(), &cuts));
        prop_assert_eq!(captured.text(), text);
    }
}

#[test]
fn d32_the_text_has_one_marker_line_at_the_gap() {
    let captured = capture(8, &[b"first middle last".to_vec()]);
    assert_eq!(captured.text(), "firs\n[... 9 bytes not kept ...]\nlast");
    assert_eq!(captured.missing_bytes(), 9);
}

#[test]
fn d32_memory_stays_under_the_cap() {
    let mut capture = Capture::new(1000);
    for _ in 0..10_000 {
        capture.push(&[b'x'; 777]);
    }
    let captured = capture.finish();
    assert_eq!(captured.total_bytes(), 7_770_000);
    assert_eq!(captured.head().len() + captured.tail().len(), 1000);
}

#[test]
fn d32_16_mib_are_kept_by_default() {
    assert_eq!(OutputCap::default().bytes(), 16 * 1024 * 1024);
}

#[test]
fn x02_bytes_that_are_no_text_are_replaced_and_kept_as_bytes() {
    let captured = CapturedOutput::complete(vec![b'a', 0xff, b'b']);
    assert_eq!(captured.text(), "a\u{fffd}b");
    assert_eq!(captured.bytes().as_ref(), [b'a', 0xff, b'b']);
    assert_eq!(CapturedOutput::default().text(), "");
}
