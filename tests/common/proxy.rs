//! A proxy before the real engine that cuts, holds or refuses connections at chosen moments.
#![allow(dead_code, reason = "every test program uses another part of it")]

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// What is done to a connection whose request matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The request reaches the engine, which works on it; the client's side is closed at once.
    AfterRequest,
    /// The engine has answered; the answer is thrown away and the client's side closed.
    AfterAnswer,
    /// The request does not reach the engine; the client gets no answer.
    Hold,
    /// The request reaches the engine; the client gets no answer.
    HoldAnswer,
    /// The request reaches the engine when [`Proxy::release`] is called.
    UntilReleased,
    /// The client is told at once that its stream is there, and the request reaches the engine when [`Proxy::release`] is
    /// called: as an engine does that is slow to start what it was asked to start.
    StreamFirst,
    /// The client's side is closed when the engine has sent this, which is passed on.
    AtOutput(&'static str),
    /// The request does not reach the engine; the client is told that this can't be done.
    Refuse,
    /// The request does not reach the engine; the client gets this status and message.
    Answer(u16, &'static str),
    /// The engine can't be reached any more, as after [`Proxy::go_down`].
    GoDown,
}

/// Its address is a `DOCKER_HOST`. Dropping it ends its connections.
pub(crate) struct Proxy {
    address: String,
    state: Arc<State>,
    server: JoinHandle<()>,
}

/// Whether it is down, and how often it has gone down: one that was short is not missed by anybody.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Outage {
    now: bool,
    times: usize,
}

struct State {
    socket: PathBuf,
    rules: Mutex<Vec<(&'static str, Cut)>>,
    requests: Mutex<Vec<String>>,
    turned_away: watch::Sender<Vec<String>>,
    outage: watch::Sender<Outage>,
    released: watch::Sender<bool>,
    /// The last bytes that were passed on from the engine to any client.
    passed: watch::Sender<Vec<u8>>,
    /// How many connections have a request for something to be made, or one that is not read yet.
    making: watch::Sender<usize>,
}

/// How much of what was passed on is kept.
const PASSED_BYTES: usize = 64 * 1024;

/// How an engine says that the stream of an exec is there.
const STREAM: &[u8] = b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n\
    Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n";

/// Counts one connection of [`State::making`].
struct Making(watch::Sender<usize>);

impl Making {
    fn new(counter: &watch::Sender<usize>) -> Self {
        counter.send_modify(|count| *count += 1);
        Self(counter.clone())
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl Proxy {
    /// None where the engine has no local socket.
    pub(crate) async fn start() -> Option<Self> {
        let socket = match std::env::var("DOCKER_HOST") {
            Ok(host) => PathBuf::from(host.strip_prefix("unix://")?),
            Err(_) => PathBuf::from("/var/run/docker.sock"),
        };
        if !socket.exists() {
            return None;
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = format!("tcp://{}", listener.local_addr().expect("it is bound"));
        let state = Arc::new(State {
            socket,
            rules: Mutex::default(),
            requests: Mutex::default(),
            turned_away: watch::Sender::default(),
            outage: watch::Sender::default(),
            released: watch::Sender::default(),
            passed: watch::Sender::default(),
            making: watch::Sender::default(),
        });
        let serving = Arc::clone(&state);
        let server = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let state = Arc::clone(&serving);
                let making = Making::new(&state.making);
                connections.spawn(async move {
                    let mut outage = state.outage.subscribe();
                    let before = *outage.borrow();
                    if before.now {
                        turn_away(client, &state).await;
                        return;
                    }
                    tokio::select! {
                        // A connection that breaks is what these tests are about.
                        _ended = serve(client, &state, making) => {}
                        _down = outage.wait_for(|outage| outage.times != before.times) => {}
                    }
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Some(Self {
            address,
            state,
            server,
        })
    }

    pub(crate) fn address(&self) -> String {
        self.address.clone()
    }

    /// Does this to the next connection whose request line holds `request`.
    pub(crate) fn cut(&self, request: &'static str, cut: Cut) {
        self.state
            .rules
            .lock()
            .expect("no holder panics")
            .push((request, cut));
    }

    /// Cuts every connection and refuses new ones.
    pub(crate) fn go_down(&self) {
        self.state.go_down();
    }

    /// Lets through what was held until now.
    pub(crate) fn release(&self) {
        self.state.released.send_replace(true);
    }

    /// Takes connections again.
    pub(crate) fn come_up(&self) {
        self.state.outage.send_modify(|outage| outage.now = false);
    }

    /// Waits until this many execs have been looked at since it went down last.
    pub(crate) async fn until_execs_are_sought(&self, number: usize) {
        let is_look = |line: &&String| line.contains("/exec/") && line.contains("/json ");
        let execs = |lines: &Vec<String>| lines.iter().filter(is_look).collect::<HashSet<_>>().len();
        let mut turned_away = self.state.turned_away.subscribe();
        let _its_sender_lives = turned_away.wait_for(|lines| execs(lines) >= number).await;
    }

    /// Waits until this text from the engine was passed on, whole, to some client.
    pub(crate) async fn until_passed(&self, text: &str) {
        let mut passed = self.state.passed.subscribe();
        let has_text = |bytes: &Vec<u8>| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        let _its_sender_lives = passed.wait_for(has_text).await;
    }

    /// Waits until the engine is at nothing any more that a client, who may be dead by now, has asked it to make.
    pub(crate) async fn until_made(&self) {
        // When this one is answered all earlier connections are taken.
        let mut last = TcpStream::connect(self.address.trim_start_matches("tcp://"))
            .await
            .expect("it listens");
        last.write_all(b"GET /_ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .await
            .expect("it reads");
        let mut answer = Vec::new();
        last.read_to_end(&mut answer).await.expect("it answers");
        let mut making = self.state.making.subscribe();
        let _its_sender_lives = making.wait_for(|&count| count == 0).await;
    }

    /// The lines of all requests that have come.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.state.requests.lock().expect("no holder panics").clone()
    }

    /// How many requests with this in their line have come.
    pub(crate) fn requests(&self, part: &str) -> usize {
        let requests = self.state.requests.lock().expect("no holder panics");
        requests.iter().filter(|request| request.contains(part)).count()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl State {
    fn go_down(&self) {
        self.turned_away.send_modify(Vec::clear);
        self.outage.send_modify(|outage| {
            outage.now = true;
            outage.times += 1;
        });
    }

    fn note_passed(&self, bytes: &[u8]) {
        self.passed.send_modify(|passed| {
            passed.extend_from_slice(bytes);
            passed.drain(..passed.len().saturating_sub(PASSED_BYTES));
        });
    }

    fn rule_for(&self, request: &str) -> Option<Cut> {
        let mut rules = self.rules.lock().expect("no holder panics");
        let found = rules.iter().position(|(part, _)| request.contains(part))?;
        Some(rules.remove(found).1)
    }
}

/// A connection that is made while the engine can't be reached.
async fn turn_away(mut client: TcpStream, state: &State) {
    let mut request = Vec::new();
    while !request.contains(&b'\n') {
        match client.read_buf(&mut request).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    let text = String::from_utf8_lossy(&request);
    let line = text.lines().next().unwrap_or_default().to_owned();
    state.turned_away.send_modify(|lines| lines.push(line));
}

/// One connection: the client makes a new one for every request.
async fn serve(mut client: TcpStream, state: &Arc<State>, making: Making) -> io::Result<()> {
    let mut request = Vec::new();
    let head = loop {
        if client.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
        if let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") {
            break String::from_utf8_lossy(&request[..end]).into_owned();
        }
    };
    let line = head.lines().next().unwrap_or_default().to_owned();
    state
        .requests
        .lock()
        .expect("no holder panics")
        .push(line.clone());
    let _until_it_ends = (line.starts_with("POST ") && line.contains("/create")).then_some(making);
    let cut = state.rule_for(&line);
    match cut {
        Some(Cut::GoDown) => {
            state.go_down();
            return Ok(());
        }
        Some(Cut::Hold) => std::future::pending().await,
        Some(Cut::Refuse) => return refuse(&mut client, 501, "refused by the test").await,
        Some(Cut::Answer(status, message)) => return refuse(&mut client, status, message).await,
        _ => {}
    }
    if cut.is_some() {
        let body: usize = head
            .lines()
            .find_map(|line| {
                line.to_lowercase()
                    .strip_prefix("content-length:")?
                    .trim()
                    .parse()
                    .ok()
            })
            .unwrap_or(0);
        while request.len() < head.len() + 4 + body {
            if client.read_buf(&mut request).await? == 0 {
                return Ok(());
            }
        }
    }
    if cut == Some(Cut::StreamFirst) {
        client.write_all(STREAM).await?;
    }
    if matches!(cut, Some(Cut::UntilReleased | Cut::StreamFirst)) {
        let mut released = state.released.subscribe();
        let _never_closed = released.wait_for(|released| *released).await;
    }
    let mut engine = UnixStream::connect(&state.socket).await?;
    engine.write_all(&request).await?;
    if cut == Some(Cut::StreamFirst) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(engine.read_u8().await?);
        }
    }
    match cut {
        Some(Cut::AfterRequest) => {
            // The engine finds its side open until it has answered.
            tokio::spawn(async move {
                let mut answer = Vec::new();
                let _answered = engine.read_buf(&mut answer).await;
            });
            Ok(())
        }
        Some(Cut::AfterAnswer) => {
            engine.read_buf(&mut request).await?;
            Ok(())
        }
        Some(Cut::HoldAnswer) => std::future::pending().await,
        Some(Cut::AtOutput(marker)) => pass(&mut client, &mut engine, Some(marker), state).await,
        _ => pass(&mut client, &mut engine, None, state).await,
    }
}

/// Answers as an engine that can't do what is asked, and takes what else the client sends.
async fn refuse(client: &mut TcpStream, status: u16, message: &str) -> io::Result<()> {
    let body = format!(r#"{{"message": "{message}"}}"#);
    let head = format!(
        "HTTP/1.1 {status} Refused\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    client.write_all(format!("{head}{body}").as_bytes()).await?;
    client.shutdown().await?;
    tokio::io::copy(client, &mut tokio::io::sink()).await.map(drop)
}

/// Passes bytes on in both directions until the engine ends, or has sent the marker.
async fn pass(
    client: &mut TcpStream,
    engine: &mut UnixStream,
    marker: Option<&str>,
    state: &State,
) -> io::Result<()> {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_engine, mut to_engine) = engine.split();
    let forward = async {
        if tokio::io::copy(&mut from_client, &mut to_engine).await.is_err() {
            return;
        }
        // The end of what the client sends is not the end of the connection. A client that is gone altogether is
        // noticed when something is written to it, or when the engine ends.
        let _closed = to_engine.shutdown().await;
        std::future::pending::<()>().await;
    };
    let backward = async {
        let mut sent = Vec::new();
        loop {
            let start = sent.len();
            if from_engine.read_buf(&mut sent).await? == 0 {
                return to_client.shutdown().await;
            }
            to_client.write_all(&sent[start..]).await?;
            state.note_passed(&sent[start..]);
            match marker {
                Some(marker)
                    if sent
                        .windows(marker.len())
                        .any(|window| window == marker.as_bytes()) =>
                {
                    return Ok(());
                }
                Some(_) => {}
                None => sent.clear(),
            }
        }
    };
    tokio::select! {
        () = forward => Ok(()),
        ended = backward => ended,
    }
}
