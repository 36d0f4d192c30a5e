//! From the engine's frames to lines: pure, bounded, and tested as a table.

use bollard::container::LogOutput;
use bytes::{Bytes, BytesMut};

use crate::spec::{LogLine, LogStream, MAX_LOG_LINE_BYTES};

/// No time that an engine writes is longer, with the space behind it.
const MAX_TIMESTAMP_BYTES: usize = 40;

/// Puts lines together. What it keeps is at most one piece a stream.
#[derive(Debug)]
pub(super) struct Lines {
    timestamps: bool,
    stdout: Part,
    stderr: Part,
    terminal: Part,
}

/// The beginning of a line whose end has not come.
#[derive(Debug, Default)]
struct Part {
    bytes: BytesMut,
    timestamp: Option<String>,
    /// A piece of the line was given out before.
    is_continued: bool,
    /// The time stands at the beginning of the line's bytes: what a terminal printed has no frames.
    has_time_in_bytes: bool,
}

impl Lines {
    pub(super) fn new(timestamps: bool) -> Self {
        Self {
            timestamps,
            stdout: Part::default(),
            stderr: Part::default(),
            terminal: Part {
                has_time_in_bytes: timestamps,
                ..Part::default()
            },
        }
    }

    /// Takes a frame and gives the lines that it ends.
    pub(super) fn push(&mut self, frame: LogOutput) -> Vec<LogLine> {
        let (stream, part, message) = match frame {
            LogOutput::StdOut { message } => (LogStream::Stdout, &mut self.stdout, message),
            LogOutput::StdErr { message } => (LogStream::Stderr, &mut self.stderr, message),
            LogOutput::Console { message } => (LogStream::Terminal, &mut self.terminal, message),
            LogOutput::StdIn { .. } => return Vec::new(),
        };
        let mut rest = message;
        // A frame is one entry of the log with one time; a line over 16 KiB has several.
        if self.timestamps
            && stream != LogStream::Terminal
            && let Some((timestamp, content)) = split_timestamp(&rest)
        {
            if part.bytes.is_empty() && !part.is_continued {
                part.timestamp = Some(timestamp);
            }
            rest = content;
        }
        let mut lines = Vec::new();
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let content = rest.split_to(end + 1).slice(..end);
            part.append(stream, &content, &mut lines);
            lines.push(part.take(stream, true));
        }
        part.append(stream, &rest, &mut lines);
        lines
    }

    /// Gives what has no line end.
    pub(super) fn finish(&mut self) -> Vec<LogLine> {
        [
            (LogStream::Stdout, &mut self.stdout),
            (LogStream::Stderr, &mut self.stderr),
            (LogStream::Terminal, &mut self.terminal),
        ]
        .into_iter()
        .filter(|(_, part)| !part.bytes.is_empty())
        .map(|(stream, part)| part.take(stream, false))
        .collect()
    }
}

impl Part {
    /// Adds bytes, and gives out whole pieces of a line that is too long.
    fn append(&mut self, stream: LogStream, mut bytes: &[u8], lines: &mut Vec<LogLine>) {
        loop {
            let room = MAX_LOG_LINE_BYTES - self.bytes.len();
            if bytes.len() <= room {
                self.bytes.extend_from_slice(bytes);
                return;
            }
            let (now, later) = bytes.split_at(room);
            self.bytes.extend_from_slice(now);
            bytes = later;
            lines.push(self.take(stream, false));
        }
    }

    fn take(&mut self, stream: LogStream, is_complete: bool) -> LogLine {
        let mut bytes = self.bytes.split().freeze();
        if self.has_time_in_bytes
            && !self.is_continued
            && let Some((timestamp, content)) = split_timestamp(&bytes)
        {
            self.timestamp = Some(timestamp);
            bytes = content;
        }
        // A terminal ends its lines with both.
        if is_complete && stream == LogStream::Terminal && bytes.last() == Some(&b'\r') {
            bytes.truncate(bytes.len() - 1);
        }
        let mut line = LogLine::new(stream, bytes);
        line.timestamp.clone_from(&self.timestamp);
        line.is_complete = is_complete;
        self.is_continued = !is_complete;
        if is_complete {
            self.timestamp = None;
        }
        line
    }
}

/// Splits the time off an entry. None where there is none: then the entry is taken as it is.
fn split_timestamp(entry: &Bytes) -> Option<(String, Bytes)> {
    let end = entry
        .iter()
        .take(MAX_TIMESTAMP_BYTES)
        .position(|&byte| byte == b' ')?;
    let text = std::str::from_utf8(&entry[..end]).ok()?;
    let looks_right = text.len() >= 20
        && text.as_bytes()[10] == b'T'
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"-:.TZ+".contains(&byte));
    looks_right.then(|| (text.to_owned(), entry.slice(end + 1..)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(text: &str) -> LogOutput {
        LogOutput::StdOut {
            message: Bytes::copy_from_slice(text.as_bytes()),
        }
    }

    fn err(text: &str) -> LogOutput {
        LogOutput::StdErr {
            message: Bytes::copy_from_slice(text.as_bytes()),
        }
    }

    fn terminal(text: &str) -> LogOutput {
        LogOutput::Console {
            message: Bytes::copy_from_slice(text.as_bytes()),
        }
    }

    /// Stream, time, text and completeness of each line.
    fn lines(timestamps: bool, frames: Vec<LogOutput>) -> Vec<(LogStream, Option<String>, String, bool)> {
        let mut lines = Lines::new(timestamps);
        let mut all: Vec<LogLine> = frames.into_iter().flat_map(|frame| lines.push(frame)).collect();
        all.extend(lines.finish());
        all.into_iter()
            .map(|line| {
                let text = line.text().into_owned();
                (line.stream, line.timestamp, text, line.is_complete)
            })
            .collect()
    }

    #[test]
    fn streams_are_apart_and_in_order() {
        use LogStream::{Stderr, Stdout, Terminal};
        for (frames, expected) in [
            (
                vec![out("a\n"), err("b\n"), out("c\n")],
                vec![(Stdout, "a", true), (Stderr, "b", true), (Stdout, "c", true)],
            ),
            (
                vec![out("a"), err("b\n"), out("c\nd")],
                vec![(Stderr, "b", true), (Stdout, "ac", true), (Stdout, "d", false)],
            ),
            (vec![out("\n\n")], vec![(Stdout, "", true), (Stdout, "", true)]),
            (
                vec![terminal("a\r\nb\n"), terminal("c\r")],
                vec![
                    (Terminal, "a", true),
                    (Terminal, "b", true),
                    (Terminal, "c\r", false),
                ],
            ),
            (vec![out("a\r\n")], vec![(Stdout, "a\r", true)]),
            (vec![], vec![]),
        ] {
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(stream, text, complete)| (stream, None, text.to_owned(), complete))
                .collect();
            assert_eq!(lines(false, frames), expected);
        }
    }

    #[test]
    fn a_long_line_comes_in_pieces_of_the_limit_and_nothing_more_is_kept() {
        let piece = "x".repeat(16 * 1024);
        let mut splitter = Lines::new(false);
        let mut seen = Vec::new();
        for _ in 0..20 {
            seen.extend(splitter.push(out(&piece)));
            assert!(splitter.stdout.bytes.len() <= MAX_LOG_LINE_BYTES);
        }
        seen.extend(splitter.push(out("end\n")));
        assert_eq!(
            seen.iter().map(|line| line.bytes.len()).sum::<usize>(),
            20 * 16 * 1024 + 3
        );
        assert!(seen.iter().all(|line| line.bytes.len() <= MAX_LOG_LINE_BYTES));
        let (last, pieces) = seen.split_last().unwrap();
        assert!(last.is_complete && pieces.iter().all(|piece| !piece.is_complete));
    }

    #[test]
    fn what_a_terminal_printed_comes_in_any_pieces() {
        let time = "2026-11-30T11:00:00.000000001Z";
        let text = format!(
            "{time} out\r\n{time} \r\n{time} {}\r\n",
            "x".repeat(2 * MAX_LOG_LINE_BYTES)
        );
        let whole = lines(true, vec![terminal(&text)]);
        assert_eq!(whole.len(), 5, "two lines, and one of three pieces");
        assert_eq!((whole[0].2.as_str(), whole[1].2.as_str()), ("out", ""));
        assert!(whole.iter().all(|line| line.1.as_deref() == Some(time)));
        let bytes: usize = whole[2..].iter().map(|line| line.2.len()).sum();
        assert_eq!(bytes, 2 * MAX_LOG_LINE_BYTES);
        for length in [1, 7, 31, 4096] {
            let pieces = text.as_bytes().chunks(length);
            let pieces = pieces.map(|piece| terminal(std::str::from_utf8(piece).unwrap()));
            assert_eq!(lines(true, pieces.collect()), whole, "pieces of {length}");
        }
        let mut endless = Lines::new(false);
        for _ in 0..1000 {
            endless.push(terminal(&"y".repeat(4096)));
            assert!(endless.terminal.bytes.len() <= MAX_LOG_LINE_BYTES);
        }
    }

    #[test]
    fn each_piece_of_a_long_line_has_a_time_of_its_own_and_only_the_first_counts() {
        let first = "2026-11-30T11:00:00.000000001Z";
        let second = "2026-11-30T11:00:00.000000002Z";
        let frames = vec![
            out(&format!("{first} aa")),
            out(&format!("{second} bb\n")),
            err(&format!("{second} \n")),
            out("no time at all\n"),
        ];
        assert_eq!(
            lines(true, frames),
            [
                (LogStream::Stdout, Some(first.to_owned()), "aabb".to_owned(), true),
                (LogStream::Stderr, Some(second.to_owned()), String::new(), true),
                (LogStream::Stdout, None, "no time at all".to_owned(), true),
            ]
        );
        // Without being asked for, what looks like a time is text.
        assert_eq!(
            lines(false, vec![out(&format!("{first} aa\n"))])[0].2,
            format!("{first} aa")
        );
    }
}
