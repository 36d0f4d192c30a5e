//! A command typed into a shell, and how its end is found in what the shell prints (contract Y8). No I/O.

use std::fmt::Write;

use crate::spec::{Capture, CapturedOutput, Command};

/// More is no exit status, whatever the shell has printed behind the marker.
const STATUS_BYTES: usize = 16;

/// Where a command prints its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Errors {
    /// Where the shell does.
    Apart,
    /// With its other output, in the order of both.
    WithOutput,
}

/// What is typed, and what ends the output.
pub(super) struct Line {
    /// Two halves: what is typed never holds them side by side, so that an echo of it is no marker.
    halves: [String; 2],
}

impl Line {
    pub(super) fn new() -> Self {
        let token = || format!("gs{}", uuid::Uuid::new_v4().simple());
        Self {
            halves: [token(), token()],
        }
    }

    /// The keys that run a command and then print the marker with its status.
    pub(super) fn keys(&self, command: &Command, errors: Errors) -> String {
        let line = match command {
            Command::Shell(line) => line.clone(),
            Command::Argv(argv) => {
                let quoted: Vec<String> = argv.iter().map(|argument| quoted(argument)).collect();
                quoted.join(" ")
            }
        };
        let [first, second] = &self.halves;
        format!(
            "{EVAL} \"$(printf '{}')\" </dev/null{}; printf '%s%s:%s:' '{first}' '{second}' \"$?\"\n",
            spelled(&line),
            match errors {
                Errors::Apart => "",
                Errors::WithOutput => " 2>&1",
            }
        )
    }

    pub(super) fn search(&self, cap_bytes: usize) -> Search {
        Search {
            marker: format!("{}{}:", self.halves[0], self.halves[1]).into_bytes(),
            before: Capture::new(cap_bytes),
            pending: Vec::new(),
            is_found: false,
        }
    }
}

/// Runs a text so that one that is no complete command is a failed one, with a status as any other. Typed as it is, it
/// would wait for its end for ever, or take what follows it along. `command` keeps the shells of POSIX from giving up the
/// line at such a text; zsh looks for programs only by it. No reserved word is at its beginning: after such a text bash
/// 5.2 takes the next one for a program.
const EVAL: &str = "$(command eval 'echo command' 2>/dev/null || echo builtin) eval";

/// The line editor of busybox takes 1023 bytes of a line, and a terminal without an editor, as under dash, 4095. The others
/// are dropped.
const MOST_TYPED: usize = 600;

/// A text spelled out for `printf`, so that it can be typed: a tab would complete, other control characters are keys of the
/// line editor, `!` brings an old command back. A long one is the format of several, each on a line of its own.
fn spelled(text: &str) -> String {
    const NEXT: &str = "'\nprintf '";
    let mut spelled = String::with_capacity(text.len() * 2);
    let mut line = 0;
    for byte in text.bytes() {
        if spelled.len() - line >= MOST_TYPED {
            spelled.push_str(NEXT);
            line = spelled.len();
        }
        if byte.is_ascii_alphanumeric() || b" /._=".contains(&byte) {
            spelled.push(char::from(byte));
        } else {
            let _infallible = write!(spelled, "\\{byte:03o}");
        }
    }
    spelled
}

fn quoted(argument: &str) -> String {
    format!("'{}'", argument.replace('\'', r"'\''"))
}

/// Looks for the marker in output that comes in any pieces.
pub(super) struct Search {
    marker: Vec<u8>,
    before: Capture,
    /// What may be a part of the marker, or follows it.
    pending: Vec<u8>,
    is_found: bool,
}

/// What stands behind a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Code(i32),
    /// Not a number: the shell is none that keeps to the rules.
    Unreadable,
}

impl Search {
    /// Takes a piece of output in. Gives the status when it is complete.
    pub(super) fn push(&mut self, piece: &[u8]) -> Option<Status> {
        self.pending.extend_from_slice(piece);
        if !self.is_found {
            let at = find(&self.pending, &self.marker);
            let certain = at.unwrap_or_else(|| self.pending.len().saturating_sub(self.marker.len() - 1));
            self.before.push(&self.pending[..certain]);
            self.pending.drain(..certain);
            at?;
            self.pending.drain(..self.marker.len());
            self.is_found = true;
        }
        match self.pending.iter().position(|&byte| byte == b':') {
            Some(end) => Some(
                std::str::from_utf8(&self.pending[..end])
                    .ok()
                    .and_then(|digits| digits.parse().ok())
                    .map_or(Status::Unreadable, Status::Code),
            ),
            None if self.pending.len() > STATUS_BYTES => Some(Status::Unreadable),
            None => None,
        }
    }

    /// What came before the marker, or all of it.
    pub(super) fn finish(mut self) -> CapturedOutput {
        if !self.is_found {
            self.before.push(&self.pending);
        }
        self.before.finish()
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marker(line: &Line) -> String {
        line.halves.concat()
    }

    #[test]
    fn y8_an_echo_of_what_is_typed_is_no_marker() {
        let line = Line::new();
        let keys = line.keys(&"echo hi".into(), Errors::Apart);
        let mut search = line.search(1 << 20);
        assert_eq!(search.push(keys.as_bytes()), None);
        assert_eq!(
            search.push(format!("hi\r\n{}:0:", marker(&line)).as_bytes()),
            Some(Status::Code(0))
        );
        assert_eq!(search.finish().text(), format!("{keys}hi\r\n"));
    }

    #[test]
    fn y9_a_status_that_is_no_number_is_unreadable() {
        for status in ["x:", ":", "-:", "12345678901234567890", "1 :"] {
            let line = Line::new();
            let mut search = line.search(100);
            let output = format!("{}:{status}", marker(&line));
            assert_eq!(
                search.push(output.as_bytes()),
                Some(Status::Unreadable),
                "{status}"
            );
        }
    }

    #[test]
    fn what_is_no_key_is_spelled_out() {
        for (text, typed) in [
            ("cd /tmp", "cd /tmp"),
            ("a\tb", "a\\011b"),
            ("echo hi!", "echo hi\\041"),
            ("echo a\necho b", "echo a\\012echo b"),
            ("-f", "\\055f"),
            ("printf '%s' \u{e9}\t", "printf \\047\\045s\\047 \\303\\251\\011"),
        ] {
            assert_eq!(spelled(text), typed);
        }
    }

    #[test]
    fn no_line_that_is_typed_is_longer_than_a_terminal_takes() {
        for text in ["x".repeat(20_000), "'\n".repeat(9_000)] {
            let typed = Line::new().keys(&Command::Shell(text), Errors::WithOutput);
            assert!(typed.lines().count() > 5);
            assert!(typed.lines().all(|line| line.len() < 1023));
        }
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    proptest! {
        #[test]
        fn y8_the_marker_is_found_however_the_output_is_cut(
            before in proptest::collection::vec(any::<u8>(), 0..200),
            code in 0..256_i32,
            cut in 1..80_usize,
        ) {
            let line = Line::new();
            let mut output = before.clone();
            output.extend(format!("{}:{code}:rest", marker(&line)).into_bytes());
            let mut search = line.search(1 << 20);
            let mut found = None;
            for piece in output.chunks(cut) {
                found = search.push(piece);
                if found.is_some() {
                    break;
                }
            }
            prop_assert_eq!(found, Some(Status::Code(code)));
            let kept = search.finish();
            prop_assert_eq!(&*kept.bytes(), &before[..]);
        }
    }
}
