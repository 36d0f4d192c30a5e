//! The ways in which the agent is started and reached, and the ways in which it ends.

mod common;

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{
    Agent, Client, Finished, LIMIT, connect, is_root, lives, program, shell, unique_name, wait_until,
    with_enough_time,
};
use gym_sandbox_agent::protocol::{AgentMessage, ClientMessage};

fn end_of(child: &mut Child) -> i32 {
    let mut code = None;
    wait_until("it ends", || {
        code = child.try_wait().expect("asked");
        code.is_some()
    });
    code.and_then(|code| code.code()).unwrap_or(-1)
}

fn kill(pid: u32, signal: &str) {
    assert!(
        Command::new("kill")
            .args([signal, &pid.to_string()])
            .status()
            .expect("ran")
            .success()
    );
}

#[test]
fn the_first_connect_starts_an_agent_and_later_ones_find_it() {
    let name = unique_name();
    let (mut first, mut client) = connect(&name, &[]);
    let hello = client.greet();
    assert_ne!(hello.pid, first.id());
    assert_eq!(client.sh("echo $BASE").text(), "1\n");
    let (mut second, mut other) = connect(&name, &["--no-start"]);
    assert_eq!(other.greet().pid, hello.pid);
    // The agent has none of the streams that it was started with.
    drop(client);
    assert_eq!(end_of(&mut first), 0);
    assert_eq!(other.sh("exit 3").code(), 3);
    // A connect that is killed ends its client, nobody else.
    let (mut third, mut lost) = connect(&name, &[]);
    lost.greet();
    third.kill().expect("killed");
    third.wait().expect("ended");
    assert_eq!(lost.try_next(), None);
    assert_eq!(other.sh("exit 3").code(), 3);
    kill(hello.pid, "-TERM");
    assert_eq!(other.try_next(), None);
    assert_eq!(end_of(&mut second), 1);
}

#[test]
fn many_first_connects_share_one_agent() {
    let name = unique_name();
    let mut clients: Vec<_> = (0..8).map(|_| connect(&name, &[])).collect();
    let pids: Vec<u32> = clients.iter_mut().map(|(_, client)| client.greet().pid).collect();
    assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
    kill(pids[0], "-TERM");
    for (child, _) in &mut clients {
        end_of(child);
    }
}

#[test]
fn without_an_agent_there_is_a_reason() {
    let output = Command::new(program())
        .args(["connect", "--no-start", "--name", &unique_name()])
        .stdin(Stdio::null())
        .output()
        .expect("ran");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no agent"));
}

/// It would end in the middle of its work, and a sandbox with it whose main process it is.
#[test]
fn with_too_little_stack_an_agent_does_not_begin() {
    let limited = |mode: &str| {
        Command::new("sh")
            .args([
                "-c",
                "ulimit -s 64 && exec \"$0\" \"$1\" --name \"$2\" </dev/null",
            ])
            .arg(program())
            .args([mode, &unique_name()])
            .output()
            .expect("ran")
    };
    for (mode, code) in [("init", 1), ("serve", 1), ("connect", 2)] {
        let output = limited(mode);
        assert_eq!(output.status.code(), Some(code), "{mode}: {output:?}");
        assert!(output.stdout.is_empty(), "{mode}: {output:?}");
        let told = String::from_utf8_lossy(&output.stderr);
        // The agent of a `connect` has no streams; that there is none is told.
        let expected = if mode == "connect" {
            "does not start"
        } else {
            "the limit of the stack is too low: 65536 bytes"
        };
        assert!(told.contains(expected), "{mode}: {told}");
    }
}

#[test]
fn other_users_and_other_sandboxes_are_not_let_in() {
    if !is_root() {
        return;
    }
    let (agent, mut client) = Agent::init(&[]);
    client.greet();
    // The program is in a folder that others may not enter.
    let copy = std::env::temp_dir().join(unique_name());
    let program_bytes = fs::read(program()).expect("read");
    common::write_program(&copy, &program_bytes);
    let copy_path = copy.to_str().expect("text");
    let attempts: [&[&str]; 2] = [
        &["setpriv", "--reuid", "4321", "--clear-groups"],
        &["unshare", "--pid", "--fork", "--mount-proc"],
    ];
    for attempt in attempts {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let mut command = Command::new(attempt[0]);
        command
            .args(&attempt[1..])
            .args([copy_path, "connect", "--no-start", "--name", &agent.name]);
        command
            .stdin(OwnedFd::from(theirs.try_clone().expect("cloned")))
            .stdout(OwnedFd::from(theirs));
        let mut child = command.spawn().expect("started");
        drop(command);
        assert_eq!(Client::new(ours).try_next(), None, "{attempt:?}");
        assert_ne!(end_of(&mut child), 0);
    }
    fs::remove_file(copy).expect("removed");
    assert_eq!(client.sh("exit 3").code(), 3);
}

#[test]
fn the_agent_dials_the_socket_it_was_told_and_dials_again() {
    let path = std::env::temp_dir().join(unique_name());
    let listener = UnixListener::bind(&path).expect("bound");
    let name = unique_name();
    let mut child = Command::new(program())
        .args(["init", "--name", &name, "--socket", path.to_str().expect("text")])
        .stdin(Stdio::null())
        .spawn()
        .expect("started");
    for _ in 0..2 {
        let mut client = Client::new(listener.accept().expect("dialled").0);
        client.greet();
        assert_eq!(client.sh("exit 3").code(), 3);
    }
    drop(listener);
    fs::remove_file(&path).expect("removed");
    // A new socket, of which it has to be told.
    let listener = UnixListener::bind(&path).expect("bound");
    let (mut messenger, _) = connect(&name, &["--no-start", "--socket", path.to_str().expect("text")]);
    assert_eq!(end_of(&mut messenger), 0);
    let mut client = Client::new(listener.accept().expect("dialled").0);
    client.greet();
    assert_eq!(client.sh("exit 3").code(), 3);
    kill(child.id(), "-TERM");
    assert_eq!(end_of(&mut child), 143);
    fs::remove_file(path).expect("removed");
}

#[test]
fn an_entrypoint_has_the_streams_the_signals_and_the_code() {
    let run = |line: &str, options: &[&str]| {
        let name = unique_name();
        let mut command = Command::new(program());
        command
            .args(["init", "--name", &name])
            .args(options)
            .args(["--", "/bin/sh", "-c", line]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        (command.spawn().expect("started"), name)
    };
    let (child, _) = run("echo out; echo err >&2; exit 9", &[]);
    let output = child.wait_with_output().expect("ended");
    assert_eq!(
        (output.status.code(), &output.stdout[..], &output.stderr[..]),
        (Some(9), &b"out\n"[..], &b"err\n"[..])
    );
    let (child, _) = run("kill -9 $$", &[]);
    assert_eq!(child.wait_with_output().expect("ended").status.code(), Some(137));
    let (mut child, name) = run(
        "trap 'exit 44' USR2; echo ready; while :; do sleep 0.01; done",
        &[],
    );
    // The agent listens before it starts its program.
    std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut [0; 6]).expect("read");
    let (mut waiting, mut client) = connect(&name, &["--no-start"]);
    client.greet();
    kill(child.id(), "-USR2");
    assert_eq!(end_of(&mut child), 44);
    end_of(&mut waiting);
    let missing = Command::new(program())
        .args(["init", "--name", &unique_name(), "--", "/no/such"])
        .output()
        .expect("ran");
    assert_eq!(missing.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cannot run `/no/such`"));
}

#[test]
fn a_sandbox_ends_at_its_time() {
    for option in ["--ttl-ms", "--lease-ms", "--idle-ms"] {
        let before = Instant::now();
        let (mut agent, mut client) = Agent::init(&[option, "300"]);
        // On a slow machine it may be over before a word is said.
        client.try_greet();
        while client.try_next().is_some() {}
        assert!(before.elapsed() >= Duration::from_millis(300), "{option}");
        assert_eq!(agent.child.wait().expect("ended").code(), Some(124));
    }
}

#[test]
fn messages_renew_a_lease() {
    with_enough_time(|lease_ms| {
        let lease = Duration::from_millis(lease_ms.into());
        let before = Instant::now();
        let (mut agent, mut client) = Agent::init(&["--lease-ms", &lease_ms.to_string()]);
        let mut is_there = client.try_greet();
        let mut last_heard = before;
        while is_there && before.elapsed() < 2 * lease {
            std::thread::sleep(Duration::from_millis(20));
            let said = Instant::now();
            is_there = client.try_ping();
            if is_there {
                last_heard = said;
            }
        }
        // Also a shorter lease renews the one that holds, and does not take its place.
        let said = Instant::now();
        is_there = is_there && client.try_send(0, &ClientMessage::Lease(50)) && client.try_ping();
        if is_there {
            last_heard = said;
        }
        while client.try_next().is_some() {}
        // Whatever this machine does: never before the lease is over that the last word it heard has renewed.
        assert!(last_heard.elapsed() >= lease, "{:?}", last_heard.elapsed());
        assert_eq!(agent.child.wait().expect("ended").code(), Some(124));
        is_there
    });
}

#[test]
fn work_is_not_idle() {
    with_enough_time(|idle_ms| {
        let (mut agent, mut client) = Agent::init(&["--idle-ms", &idle_ms.to_string()]);
        let begun = std::env::temp_dir().join(unique_name());
        let line = format!("echo >{}; sleep {}", begun.display(), f64::from(idle_ms) * 0.003);
        let mut code = None;
        if client.try_greet() && client.try_send(2, &ClientMessage::Exec(Box::new(shell(&line)))) {
            while let Some((_, message)) = client.try_next() {
                if let AgentMessage::Exited(exit) = message {
                    code = exit.code;
                }
            }
        }
        assert_eq!(agent.child.wait().expect("ended").code(), Some(124));
        let was_begun = fs::remove_file(begun).is_ok();
        if was_begun {
            assert_eq!(code, Some(0), "it ended under the command");
        }
        was_begun
    });
}

#[test]
fn renewals_of_a_lease_are_no_use_of_an_idle_sandbox() {
    let (mut agent, mut client) = Agent::init(&["--idle-ms", "500", "--lease-ms", "600000"]);
    client.try_greet();
    let before = Instant::now();
    while agent.child.try_wait().expect("asked").is_none() {
        assert!(before.elapsed() < LIMIT, "renewals keep it");
        let _ended = !client.try_send(0, &ClientMessage::Lease(600_000));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(agent.child.wait().expect("ended").code(), Some(124));
}

#[test]
fn a_renewal_that_was_sent_while_the_agent_stood_still_counts() {
    with_enough_time(|lease_ms| {
        let lease = Duration::from_millis(lease_ms.into());
        let (mut agent, mut client) = Agent::init(&["--lease-ms", &lease_ms.to_string()]);
        let pid = agent.child.id().to_string();
        let signal = |name: &str| {
            let sent = std::process::Command::new("kill")
                .args(["-s", name, &pid])
                .status();
            assert!(sent.expect("kill runs").success());
        };
        let last_word = Instant::now();
        let is_there = client.try_greet();
        signal("STOP");
        // Had the lease been over before it stood still, it would have ended.
        let stood_still_in_time = is_there && last_word.elapsed() < lease;
        if stood_still_in_time {
            std::thread::sleep(lease * 5 / 3);
            client.send(0, &ClientMessage::Lease(lease_ms.into()));
            client.send(9, &ClientMessage::Ping(b"p".to_vec()));
        }
        signal("CONT");
        if stood_still_in_time {
            assert_eq!(client.next(), (9, AgentMessage::Pong(b"p".to_vec())));
        }
        assert_eq!(client.try_next(), None);
        assert_eq!(agent.child.wait().expect("ended").code(), Some(124));
        stood_still_in_time
    });
}

#[test]
fn the_end_of_an_agent_that_is_no_main_process_ends_its_commands() {
    let (agent, mut client) = Agent::init(&[]);
    client.greet();
    let channel = client.begin(shell("echo ready; sleep 1000"));
    let mut finished = Finished::default();
    client.follow(channel, &mut finished, |finished| finished.text() == "ready\n");
    let command = finished.pid;
    kill(agent.pid(), "-KILL");
    wait_until("the command ends", || !lives(command));
}

#[test]
fn a_client_that_breaks_the_protocol_is_told_and_harms_nobody() {
    let (agent, mut client) = Agent::init(&[]);
    client.greet();
    let breaches: [&[u8]; 4] = [
        // A frame that is too long; flags that there are none of; a kind that there is none of; half a frame.
        &[255, 255, 255, 255, 1, 0, 0, 0, 1, 0, 0, 0],
        &[0, 0, 0, 0, 1, 0, 0, 0, 1, 6, 0, 0],
        &[0, 0, 0, 0, 1, 0, 0, 0, 0x7f, 0, 0, 0],
        &[9, 0, 0, 0, 1, 0],
    ];
    for breach in breaches {
        let (mut child, mut other) = connect(&agent.name, &["--no-start"]);
        other.greet();
        let channel = other.begin(shell("sleep 1000"));
        std::io::Write::write_all(&mut other.stream, breach).expect("sent");
        other.stream.shutdown(std::net::Shutdown::Write).expect("shut");
        let mut was_refused = false;
        while let Some((from, message)) = other.try_next() {
            was_refused |= from == 0 && matches!(message, AgentMessage::Refused(_));
            assert!(from == 0 || from == channel);
        }
        assert_eq!(was_refused, breach.len() == 12);
        assert_eq!(end_of(&mut child), 0);
        assert_eq!(client.sh("exit 3").code(), 3);
    }
    // Not even a hello.
    let (_, mut other) = connect(&agent.name, &["--no-start"]);
    other.send(1, &ClientMessage::Exec(Box::new(shell("exit"))));
    assert!(matches!(other.next(), (0, AgentMessage::Hello(_))));
    assert!(matches!(other.next(), (0, AgentMessage::Refused(_))));
    assert_eq!(other.try_next(), None);
}

#[test]
fn a_client_that_reads_nothing_holds_nobody_up() {
    let (agent, mut client) = Agent::init(&[]);
    client.greet();
    let (_deaf_process, mut deaf) = connect(&agent.name, &["--no-start"]);
    deaf.greet();
    for _ in 0..4 {
        deaf.begin(shell("head -c 100000000 /dev/zero"));
    }
    for _ in 0..50 {
        assert_eq!(client.sh("head -c 100000 /dev/zero").stdout.len(), 100_000);
    }
}

#[test]
fn the_agent_sleeps_when_there_is_nothing_to_do() {
    let (agent, mut client) = Agent::init(&[]);
    client.greet();
    client.sh("true");
    let pid = agent.pid();
    let switches = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("read");
        let line = status
            .lines()
            .find(|line| line.starts_with("voluntary"))
            .expect("there")
            .to_owned();
        line.split_whitespace()
            .last()
            .and_then(|count| count.parse::<u64>().ok())
            .expect("a number")
    };
    // The runner of the command may end later than the command.
    wait_until("it sleeps through", || {
        let before = switches();
        std::thread::sleep(Duration::from_millis(500));
        switches() == before
    });
}
