//! A pager and an editor driven by keys, with the screen compared.

use std::num::NonZeroU16;

use gym_sandbox::{SandboxPtySession, SandboxPtySpec};

use crate::{LIMIT, Subject, on_both_paths, within};

on_both_paths!(
    a_pager_shows_its_pages,
    an_editor_shows_what_is_typed_and_saves_it
);

/// A screen that is drawn by a session.
struct Screen<'a> {
    session: &'a SandboxPtySession,
    parser: vt100::Parser,
}

impl<'a> Screen<'a> {
    fn new(session: &'a SandboxPtySession, rows: u16, cols: u16) -> Self {
        Self {
            session,
            parser: vt100::Parser::new(side(rows), side(cols), 0),
        }
    }

    fn rows(&self) -> Vec<String> {
        let (_, cols) = self.parser.screen().size();
        let rows = self.parser.screen().rows(0, cols.get());
        // Who clears a line by blanks has blanks in it.
        rows.map(|row| row.trim_end().to_owned()).collect()
    }

    /// Types, and draws until the screen is as expected.
    async fn after(&mut self, keys: &str, is_right: impl Fn(&[String]) -> bool) {
        self.session.write(keys.as_bytes()).await.unwrap();
        let deadline = tokio::time::Instant::now() + LIMIT;
        while !is_right(&self.rows()) {
            let chunk = tokio::time::timeout_at(deadline, self.session.read()).await;
            let Ok(chunk) = chunk else {
                panic!("after {keys:?} the screen is {:#?}", self.rows());
            };
            let chunk = chunk.unwrap();
            assert!(!chunk.is_empty(), "it ended after {keys:?}: {:#?}", self.rows());
            self.parser.process(&chunk);
        }
    }
}

fn side(side: u16) -> NonZeroU16 {
    NonZeroU16::new(side).unwrap()
}

async fn a_pager_shows_its_pages(subject: &Subject) {
    subject.line("seq 1 200 >/tmp/numbers").await;
    let spec = SandboxPtySpec::new(["less", "/tmp/numbers"]).with_size(11, 40);
    let session = subject.create(spec).await;
    let mut screen = Screen::new(&session, 11, 40);
    let page =
        |first: usize| move |rows: &[String]| (0..10).all(|row| rows[row] == (first + row).to_string());
    screen.after("", page(1)).await;
    screen.after(" ", page(11)).await;
    screen.after("j", page(12)).await;
    screen
        .after("G", |rows| {
            rows.iter().any(|row| row == "200") && rows[10].contains("END")
        })
        .await;
    screen.after("g", page(1)).await;
    session.write(b"q").await.unwrap();
    session.close().await.unwrap();
}

async fn an_editor_shows_what_is_typed_and_saves_it(subject: &Subject) {
    let spec = SandboxPtySpec::new(["vi", "/tmp/edited"]).with_size(12, 50);
    let session = subject.create(spec).await;
    let mut screen = Screen::new(&session, 12, 50);
    screen
        .after("", |rows| rows[..11].iter().skip(1).all(|row| row == "~"))
        .await;
    screen
        .after("ifirst line\rsecond line\x1b", |rows| {
            rows[0] == "first line" && rows[1] == "second line" && rows[2] == "~"
        })
        .await;
    screen
        .after("1GOabove\x1b", |rows| {
            rows[..3] == ["above", "first line", "second line"]
        })
        .await;
    screen
        .after("Gdd", |rows| rows[..3] == ["above", "first line", "~"])
        .await;
    session.write(b":wq\r").await.unwrap();
    while !within(session.read()).await.unwrap().is_empty() {}
    assert_eq!(within(session.wait_exit()).await.unwrap(), 0);
    assert_eq!(subject.line("cat /tmp/edited").await, "above\nfirst line\n");
}
