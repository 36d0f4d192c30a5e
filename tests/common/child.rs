//! This test program, run again as another process that plays a part: it is told lines, and says lines that begin with
//! `client-WORD`.
#![allow(dead_code, reason = "every test program uses another part of it")]

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// How long it may take for anything that is waited for, several calls of a busy engine among it.
const LIMIT: Duration = Duration::from_secs(180);

/// A running one. It is killed when dropped.
pub(crate) struct Player {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

/// What it is given so that it runs only this test, which plays the part.
pub(crate) fn arguments(test: &str) -> [&str; 4] {
    [test, "--exact", "--nocapture", "--test-threads=1"]
}

/// This program with only this test.
pub(crate) fn command(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments(test));
    command
}

impl Player {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
        }
    }

    /// The rest of the next line that begins with this word.
    pub(crate) async fn says(&mut self, word: &str) -> String {
        let found = async {
            while let Some(line) = self.output.next_line().await.unwrap() {
                // The test harness begins a line of its own.
                if let Some((_, rest)) = line.split_once(&format!("client-{word}")) {
                    return rest.trim().to_owned();
                }
            }
            panic!("the client ended before it said `{word}`");
        };
        tokio::time::timeout(LIMIT, found)
            .await
            .unwrap_or_else(|_| panic!("the client did not say `{word}` in {LIMIT:?}"))
    }

    pub(crate) async fn tell(&mut self, line: &str) {
        self.input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Waits for its end.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        tokio::time::timeout(LIMIT, self.child.wait())
            .await
            .unwrap()
            .unwrap()
    }
}
