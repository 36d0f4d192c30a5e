//! A small client that waits, and agents to be its other side. Each test program uses a part of it.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part")]

use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use gym_sandbox_agent::BINARY;
use gym_sandbox_agent::protocol::{
    AgentHello, AgentMessage, ClientHello, ClientMessage, Decoder, ExecRequest, Exit, Frame, StartStage,
    Stream,
};

/// How long anything may take before a test fails: a machine that is busy with other work takes many times the usual.
pub const LIMIT: Duration = Duration::from_secs(120);

/// How long a kill may take before it is told what lives on. Shorter than [`LIMIT`], so that it is told.
pub const KILL_WAIT_MS: u32 = 60_000;

/// The agent's program as the library holds it, in a file.
pub fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let path = folder.join(format!("agent-{}", std::process::id()));
        write_program(&path, BINARY.expect("the program is built"));
        path
    })
}

/// Writes a file that is to be run. Another process does: a child that another test starts while this one has the file
/// open for writing has it open, too, until it has become its program, and nobody can run the file until then.
pub fn write_program(path: &Path, bytes: &[u8]) {
    let mut writer = Command::new("/bin/sh")
        .args(["-c", "rm -f \"$0\" && cat >\"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("started");
    let mut input = writer.stdin.take().expect("piped");
    input.write_all(bytes).expect("written");
    drop(input);
    assert!(writer.wait().expect("ended").success());
}

/// A name that no other test uses.
pub fn unique_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "gym-sandbox-test-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// A running agent, killed with the test.
pub struct Agent {
    pub child: Child,
    pub name: String,
}

impl Agent {
    /// Starts a program with a socket as its first client, and returns the other end.
    pub fn start(mut command: Command, name: String) -> (Self, Client) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let input: OwnedFd = theirs.try_clone().expect("cloned").into();
        let output: OwnedFd = theirs.into();
        command.stdin(Stdio::from(input)).stdout(Stdio::from(output));
        let child = command.spawn().expect("started");
        // The command holds the agent's end until it goes.
        drop(command);
        (Self { child, name }, Client::new(ours))
    }

    /// An ordinary process that is served by `init` with these options.
    pub fn init(options: &[&str]) -> (Self, Client) {
        let name = unique_name();
        let mut command = Command::new(program());
        command
            .args(["init", "--bootstrap", "--name", &name])
            .args(options);
        Self::start(command, name)
    }

    /// The same as the first process of a namespace with its own /proc. Needs root.
    pub fn first_process(options: &[&str]) -> (Self, Client) {
        let name = unique_name();
        let mut command = Command::new("unshare");
        command
            .args(["--pid", "--fork", "--kill-child", "--mount-proc"])
            .arg(program());
        command
            .args(["init", "--bootstrap", "--name", &name])
            .args(options);
        Self::start(command, name)
    }

    /// The process id as this test sees it, of the agent and not of what started it.
    pub fn pid(&self) -> u32 {
        let parent = self.child.id();
        let list =
            std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        let comm = std::fs::read_to_string(format!("/proc/{parent}/comm")).unwrap_or_default();
        if comm.trim() == "unshare" {
            return list
                .split_whitespace()
                .next()
                .and_then(|pid| pid.parse().ok())
                .expect("a child");
        }
        parent
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `connect` with these options and a socket for its streams.
pub fn connect(name: &str, options: &[&str]) -> (Child, Client) {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let mut command = Command::new(program());
    command
        .args(["connect", "--name", name])
        .args(options)
        .env("BASE", "1");
    command
        .stdin(OwnedFd::from(theirs.try_clone().expect("cloned")))
        .stdout(OwnedFd::from(theirs));
    let child = command.spawn().expect("started");
    drop(command);
    (child, Client::new(ours))
}

/// Says whether namespaces can be made here.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|found| std::os::unix::fs::MetadataExt::uid(&found) == 0)
}

/// One connection to an agent.
pub struct Client {
    pub stream: UnixStream,
    decoder: Decoder,
    next_channel: u32,
}

/// What came of one command.
#[derive(Debug, Default)]
pub struct Finished {
    pub pid: u32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub exit: Option<Exit>,
    pub failure: Option<(StartStage, i32, String)>,
    pub drained: Vec<Stream>,
    pub ended: Vec<Stream>,
    pub killed: Option<(u32, Vec<u32>, bool)>,
    pub is_gone: bool,
    pub order: Vec<&'static str>,
}

impl Finished {
    pub fn code(&self) -> u8 {
        self.exit
            .and_then(|exit| exit.code)
            .unwrap_or_else(|| panic!("no exit code: {self:?}"))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    fn note(&mut self, message: AgentMessage) {
        let name = match message {
            AgentMessage::Started(pid) => {
                self.pid = pid;
                "started"
            }
            AgentMessage::StartFailed {
                stage,
                errno,
                subject,
            } => {
                self.failure = Some((stage, errno, subject));
                "failed"
            }
            AgentMessage::Output(Stream::Stdout, bytes) => {
                self.stdout.extend(bytes);
                "stdout"
            }
            AgentMessage::Output(Stream::Stderr, bytes) => {
                self.stderr.extend(bytes);
                "stderr"
            }
            AgentMessage::StreamEnd { stream, .. } => {
                self.ended.push(stream);
                "end"
            }
            AgentMessage::Drained(stream) => {
                self.drained.push(stream);
                "drained"
            }
            AgentMessage::Exited(exit) => {
                assert!(self.exit.is_none(), "two exits");
                self.exit = Some(exit);
                "exited"
            }
            AgentMessage::Killed {
                killed,
                survivors,
                is_unsure,
                ..
            } => {
                self.killed = Some((killed, survivors, is_unsure));
                "killed"
            }
            AgentMessage::Gone => {
                self.is_gone = true;
                "gone"
            }
            AgentMessage::InputCredit(_) => "credit",
            AgentMessage::InputClosed => "closed",
            other => panic!("unexpected {other:?}"),
        };
        self.order.push(name);
    }
}

pub fn request(argv: &[&str]) -> ExecRequest {
    ExecRequest {
        id: unique_name().into_bytes(),
        argv: argv.iter().map(|argument| argument.as_bytes().to_vec()).collect(),
        kill_wait_ms: KILL_WAIT_MS,
        stdout_credit: u32::MAX,
        stderr_credit: u32::MAX,
        ..ExecRequest::default()
    }
}

pub fn shell(line: &str) -> ExecRequest {
    request(&["/bin/sh", "-c", line])
}

impl Client {
    pub fn new(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(LIMIT)).expect("set");
        Self {
            stream,
            decoder: Decoder::new(),
            next_channel: 1,
        }
    }

    /// Says hello and hears it.
    pub fn greet(&mut self) -> AgentHello {
        self.send(0, &ClientMessage::Hello(ClientHello::default()));
        match self.next() {
            (0, AgentMessage::Hello(hello)) => hello,
            other => panic!("no hello: {other:?}"),
        }
    }

    pub fn channel(&mut self) -> u32 {
        self.next_channel += 1;
        self.next_channel
    }

    pub fn send(&mut self, channel: u32, message: &ClientMessage) {
        let mut bytes = Vec::new();
        message.append(&mut bytes, channel);
        self.stream.write_all(&bytes).expect("sent");
    }

    /// Sends a message to an agent that may have ended.
    pub fn try_send(&mut self, channel: u32, message: &ClientMessage) -> bool {
        let mut bytes = Vec::new();
        message.append(&mut bytes, channel);
        self.stream.write_all(&bytes).is_ok()
    }

    /// Says hello to an agent that may end at any moment, and says whether it answered.
    pub fn try_greet(&mut self) -> bool {
        self.try_send(0, &ClientMessage::Hello(ClientHello::default()))
            && matches!(self.try_next(), Some((0, AgentMessage::Hello(_))))
    }

    /// Asks an agent that may end at any moment for an answer, and says whether it came.
    pub fn try_ping(&mut self) -> bool {
        self.try_send(9, &ClientMessage::Ping(b"p".to_vec()))
            && self.try_next() == Some((9, AgentMessage::Pong(b"p".to_vec())))
    }

    /// The next message, None at the end of the connection.
    pub fn try_next(&mut self) -> Option<(u32, AgentMessage)> {
        let mut buffer = vec![0; 128 * 1024];
        loop {
            if let Some(frame) = self.decoder.next().expect("well-formed") {
                let Frame { channel, .. } = frame;
                return Some((channel, AgentMessage::decode(frame).expect("well-formed")));
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.decoder.push(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                // A read with a time limit is interrupted when this process was stopped and goes on.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("the agent says nothing: {error}"),
            }
        }
    }

    pub fn next(&mut self) -> (u32, AgentMessage) {
        self.try_next().expect("the connection goes on")
    }

    pub fn begin(&mut self, request: ExecRequest) -> u32 {
        let channel = self.channel();
        self.send(channel, &ClientMessage::Exec(Box::new(request)));
        channel
    }

    /// Takes the messages of one channel until `is_enough`; others must not come.
    pub fn follow(&mut self, channel: u32, finished: &mut Finished, is_enough: impl Fn(&Finished) -> bool) {
        let start = Instant::now();
        while !is_enough(finished) {
            assert!(start.elapsed() < LIMIT, "{finished:?}");
            let (from, message) = self.next();
            assert_eq!(from, channel, "{message:?}");
            finished.note(message);
        }
    }

    /// Runs a command to its very end.
    pub fn run(&mut self, request: ExecRequest) -> Finished {
        let channel = self.begin(request);
        let mut finished = Finished::default();
        self.follow(channel, &mut finished, |finished| {
            finished.is_gone || finished.failure.is_some()
        });
        finished
    }

    pub fn sh(&mut self, line: &str) -> Finished {
        self.run(shell(line))
    }
}

/// Does something with a time in milliseconds that must not be over before it has done its work, with ever longer ones
/// until it was done in time: a machine may stand still for longer than the first.
pub fn with_enough_time(done_in_time: impl FnMut(u32) -> bool) {
    assert!(
        [400, 1_600, 6_400, 25_600].into_iter().any(done_in_time),
        "this machine stands still"
    );
}

/// Says whether a process runs: one that has ended may have nobody who takes it off the table.
pub fn lives(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| !rest.starts_with(" Z"))
    })
}

/// Polls until it is so.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LIMIT, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
