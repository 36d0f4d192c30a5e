//! `pty` and `shell` in a real pseudo-terminal of this machine: keys, sizes, codes, and the terminal as it was before.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use tokio::process::{Child, Command};

use crate::support::{BUSYBOX, Call, DEADLINE, assert_nothing_left, ended, engine_or_skip, until};

/// A pseudo-terminal with the command in it.
struct Local {
    keyboard: File,
    terminal: File,
    output: mpsc::Receiver<Vec<u8>>,
    parser: vt100::Parser,
    before: Termios,
    child: Child,
    run: String,
}

impl Local {
    fn start(arguments: &[&str], rows: u16, cols: u16) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let terminal = OpenOptions::new()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap();
        set_size(&ours, rows, cols);
        let before = tcgetattr(&terminal).unwrap();
        let call = Call::new(arguments);
        let run = call.run.clone();
        // The terminal must be the command's own, so that it is told of a new size.
        let mut command = Command::new("setsid");
        command
            .args(["--ctty", "--wait", env!("CARGO_BIN_EXE_gym-sandbox")])
            .args(arguments)
            .env("GYM_SANDBOX_RUN", &run)
            .env("TERM", "xterm")
            .env_remove("RUST_LOG")
            .stdin(Stdio::from(OwnedFd::from(terminal.try_clone().unwrap())))
            .stdout(Stdio::from(OwnedFd::from(terminal.try_clone().unwrap())))
            .stderr(Stdio::from(OwnedFd::from(terminal.try_clone().unwrap())))
            .kill_on_drop(true);
        let child = command.spawn().unwrap();
        let keyboard = File::from(ours);
        let mut reader = keyboard.try_clone().unwrap();
        let (sender, output) = mpsc::channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count) = reader.read(&mut buffer) {
                if count == 0 || sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            keyboard,
            terminal,
            output,
            parser: vt100::Parser::new(side(rows), side(cols), 0),
            before,
            child,
            run,
        }
    }

    fn keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    fn resize(&mut self, rows: u16, cols: u16) {
        set_size(&self.keyboard, rows, cols);
        self.parser.screen_mut().set_size(side(rows), side(cols));
    }

    /// Draws until the screen holds a text.
    fn shows(&mut self, text: &str) {
        let deadline = Instant::now() + DEADLINE;
        while !self.parser.screen().contents().contains(text) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.output.recv_timeout(left) else {
                panic!("`{text}` is not shown: {}", self.parser.screen().contents());
            };
            self.parser.process(&bytes);
        }
    }

    /// Sends a signal to the command.
    async fn signal(&mut self, signal: &str) {
        // `setsid --wait` is this process's child, the command is its only one.
        let parent = self.child.id().unwrap();
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
        let target = children
            .split_whitespace()
            .next()
            .map_or(parent.to_string(), str::to_owned);
        let sent = Command::new("kill")
            .args(["-s", signal, &target])
            .status()
            .await
            .unwrap();
        assert!(sent.success());
    }

    /// Waits for the end. The terminal is as it was, and nothing is left.
    async fn code(self) -> Option<i32> {
        let run = self.run.clone();
        let code = self.exit_code().await;
        assert_nothing_left(&run).await;
        code
    }

    /// The same while there may be something left.
    async fn exit_code(mut self) -> Option<i32> {
        let code = ended(&mut self.child).await.code();
        let after = tcgetattr(&self.terminal).unwrap();
        assert_eq!(after.local_modes, self.before.local_modes);
        assert_eq!(after.input_modes, self.before.input_modes);
        assert_eq!(after.output_modes, self.before.output_modes);
        code
    }
}

fn side(side: u16) -> NonZeroU16 {
    NonZeroU16::new(side).unwrap()
}

fn set_size(terminal: &impl std::os::fd::AsFd, rows: u16, cols: u16) {
    let size = Winsize {
        ws_row: rows,
        ws_col: cols,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(terminal, size).unwrap();
}

#[tokio::test]
async fn a_shell_has_the_size_of_this_terminal_and_its_code() {
    let _docker = engine_or_skip!();
    for path in ["engine", "agent"] {
        let arguments = ["shell", "--image", BUSYBOX, "--exec-path", path];
        let mut local = Local::start(&arguments, 17, 61);
        local.shows("#");
        local.keys("stty size\r");
        local.shows("17 61");
        local.resize(21, 71);
        // The size is passed on when the signal has come; the shell is asked until it is there.
        let deadline = Instant::now() + DEADLINE;
        while !local.parser.screen().contents().contains("21 71") {
            assert!(Instant::now() < deadline, "the new size is not seen");
            local.keys("clear; stty size\r");
            while let Ok(bytes) = local.output.recv_timeout(Duration::from_millis(300)) {
                local.parser.process(&bytes);
            }
        }
        // This process gets no signal by a key: the program does. It says itself that it runs: between a word of the shell
        // and the program behind it the key would come while the terminal is nobody's, and signal no one.
        local.keys("sh -c 'echo be\"\"gun; exec sleep 300'\r");
        local.shows("begun");
        local.keys("\x03");
        local.keys("echo $((100 + 30)); exit 7\r");
        local.shows("130");
        assert_eq!(local.code().await, Some(7), "{path}");
    }
}

#[tokio::test]
async fn an_editor_is_driven_through_a_sandbox_that_stays() {
    let _docker = engine_or_skip!();
    let created = Call::new(&["create", "--image", BUSYBOX]);
    let run = created.run.clone();
    let id = created.answer().await.stdout().trim().to_owned();
    let mut local = Local::start(&["pty", &id, "--", "vi", "/tmp/edited"], 12, 50);
    local.shows("~");
    local.keys("ihello from here\x1b");
    local.shows("hello from here");
    local.keys(":wq\r");
    assert_eq!(local.code().await, Some(0));
    let answer = Call::new(&["exec", &id, "--", "cat", "/tmp/edited"])
        .answer()
        .await;
    assert_eq!(answer.stdout(), "hello from here\n");
    // Without a terminal the input is a file, and its end that of a terminal's.
    let answer = Call::new(&["pty", &id, "--", "cat"])
        .input(b"from a file\n")
        .answer()
        .await;
    assert_eq!(answer.code, Some(0));
    assert!(
        answer.stdout().ends_with("from a file\r\n"),
        "{:?}",
        answer.text()
    );
    Call::new(&["rm", &id]).answer().await;
    assert_nothing_left(&run).await;
}

#[tokio::test]
async fn a_signal_restores_the_terminal_and_removes_the_sandbox() {
    let _docker = engine_or_skip!();
    for (signal, code) in [("TERM", 143), ("HUP", 129), ("QUIT", 131)] {
        let mut local = Local::start(&["shell", "--image", BUSYBOX], 24, 80);
        local.shows("#");
        assert_ne!(
            tcgetattr(&local.terminal).unwrap().local_modes,
            local.before.local_modes
        );
        local.signal(signal).await;
        assert_eq!(local.code().await, Some(code), "{signal}");
    }
}

/// Less than anybody waits for a program that is to be killed.
const AT_ONCE: Duration = Duration::from_secs(10);

/// Nobody knows when a paused sandbox goes on: a terminal in it is left at once, and its program is killed by then.
#[tokio::test]
async fn b25_a_signal_ends_a_terminal_in_a_paused_sandbox_at_once() {
    let docker = engine_or_skip!();
    for path in ["engine", "agent"] {
        let created = Call::new(&["create", "--image", BUSYBOX]);
        let run = created.run.clone();
        let id = created.answer().await.stdout().trim().to_owned();
        let program = ["--", "sh", "-c", "echo begun; exec sleep 4949"];
        let arguments = [&["pty", &id, "--exec-path", path], &program[..]].concat();
        // Who waits for the program does so each time, for 15 s and more; a busy machine is late now and then.
        let mut took = Vec::new();
        while took.last().is_none_or(|took| *took >= AT_ONCE) {
            assert!(took.len() < 4, "{path}: {took:?}");
            let mut local = Local::start(&arguments, 24, 80);
            local.shows("begun");
            docker.pause_container(&id).await.unwrap();
            let began = Instant::now();
            local.signal("TERM").await;
            let code = local.exit_code().await;
            took.push(began.elapsed());
            docker.unpause_container(&id).await.unwrap();
            assert_eq!(code, Some(143), "{path}");
        }
        if path == "agent" {
            let look = ["exec", &id, "--", "sh", "-c", "ps | grep '[s]leep 4949'; true"];
            until("the program is killed", async || {
                let answer = Call::new(&look).answer().await;
                answer.stdout().is_empty().then_some(())
            })
            .await;
        }
        Call::new(&["rm", &id]).answer().await;
        assert_nothing_left(&run).await;
    }
}
