//! Trees that do not want to die.

mod common;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Agent, Client, Finished, KILL_WAIT_MS, is_root, request, shell, wait_until};
use gym_sandbox_agent::protocol::{AgentMessage, ClientMessage, ExecRequest, ExitCause, Stream};

/// How often a tree of each kind is killed; `GYM_SANDBOX_LONG` asks for the full number.
fn runs() -> usize {
    if std::env::var_os("GYM_SANDBOX_LONG").is_some() {
        100
    } else {
        10
    }
}

/// The pids of all processes that carry this marker.
fn marked(marker: &[u8]) -> Vec<i32> {
    let entry = [b"GYM_SANDBOX_EXEC=", marker].concat();
    let processes = fs::read_dir("/proc").expect("read").flatten();
    let pids = processes.filter_map(|found| found.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|line| line == entry)
    })
    .collect()
}

/// An agent whose end is the end of all that a failed test has left, where such can be made.
fn contained() -> (Agent, Client) {
    let (agent, mut client) = if is_root() {
        Agent::first_process(&[])
    } else {
        Agent::init(&[])
    };
    client.greet();
    (agent, client)
}

fn kill_after(client: &mut Client, request: ExecRequest, is_ready: impl Fn(&Finished) -> bool) -> Finished {
    let marker = request.id.clone();
    let channel = client.begin(request);
    let mut finished = Finished::default();
    client.follow(channel, &mut finished, is_ready);
    client.send(channel, &ClientMessage::Kill(KILL_WAIT_MS));
    client.follow(channel, &mut finished, |finished| {
        finished.killed.is_some() && finished.is_gone
    });
    assert_eq!(marked(&marker), Vec::<i32>::new(), "{finished:?}");
    let (_, survivors, is_unsure) = finished.killed.clone().expect("told");
    assert!(survivors.is_empty() && !is_unsure, "{finished:?}");
    finished
}

/// How many processes have this among their arguments.
fn with_argument(argument: &str) -> usize {
    let processes = fs::read_dir("/proc").expect("read").flatten();
    let lines = processes.filter_map(|found| fs::read(found.path().join("cmdline")).ok());
    lines
        .filter(|line| {
            line.split(|byte| *byte == 0)
                .any(|part| part == argument.as_bytes())
        })
        .count()
}

#[test]
fn children_that_left_everything_are_killed() {
    let (_agent, mut client) = contained();
    for run in 0..runs() {
        // Own session, parent gone, no marker, no pipe of the command: only descent tells.
        let time = format!("{}.{run}", 100_000 + std::process::id());
        let line = format!(
            "(setsid env -i /bin/sh -c 'exec </dev/null >/dev/null 2>&1; /bin/sleep {time} & /bin/sleep {time}' &); echo ready; sleep 1000"
        );
        let marker = format!("left-{run}");
        let channel = client.begin(ExecRequest {
            id: marker.into(),
            ..shell(&line)
        });
        wait_until("both have left", || with_argument(&time) == 2);
        client.send(channel, &ClientMessage::Kill(KILL_WAIT_MS));
        let mut finished = Finished::default();
        client.follow(channel, &mut finished, |finished| finished.is_gone);
        assert_eq!(with_argument(&time), 0);
        assert_eq!(finished.exit.expect("exited").cause, ExitCause::Request);
        let (killed, survivors, is_unsure) = finished.killed.clone().expect("told");
        assert!(killed >= 3 && survivors.is_empty() && !is_unsure, "{finished:?}");
    }
    assert_eq!(client.sh("exit 5").code(), 5);
}

#[test]
fn processes_that_fork_and_exit_in_a_loop_are_killed() {
    let (_agent, mut client) = contained();
    // Each one starts the next in the background, in a new session, and ends.
    let line = "f() { setsid /bin/sh -c \"$LOOP\" & exit; }; f";
    for _ in 0..runs() {
        let mut request = shell(&format!(
            "for i in 1 2 3; do ({line}) & done; sleep 0.1; echo ready; sleep 1000"
        ));
        request.env = vec![[b"LOOP=", line.as_bytes()].concat()];
        kill_after(&mut client, request, |finished| finished.text() == "ready\n");
    }
    assert_eq!(client.sh("exit 5").code(), 5);
}

/// How many processes the bomb may become.
const BOMB: usize = 200;

#[test]
fn a_fork_bomb_under_a_limit_is_killed() {
    if !is_root() {
        return;
    }
    // In a namespace of its own, whose end is the end of all in it, whatever goes wrong.
    let (_agent, mut client) = contained();
    for run in 0..runs() {
        // A shell that tries again when a fork fails, as bash does: others would soon all have given up.
        // Goes off only where the limit is seen to hold. Root is above such limits: a user of its own for each.
        let line = format!(
            "[ \"$(prlimit --pid $$ --nproc --output HARD --noheadings | tr -d ' ')\" = {BOMB} ] && [ $(id -u) -gt 0 ] || exit 9
             bomb() {{ while :; do bomb & done; }}; bomb"
        );
        let limit = format!("--nproc={BOMB}:{BOMB}");
        let mut request = request(&["prlimit", &limit, "/bin/bash", "-c", &line]);
        request.user = format!("{}:5", 70_000 + run).into_bytes();
        let marker = request.id.clone();
        let channel = client.begin(request);
        client.send(channel, &ClientMessage::Detach);
        wait_until("the bomb has gone off", || marked(&marker).len() > BOMB / 2);
        let before = Instant::now();
        client.send(channel, &ClientMessage::Kill(KILL_WAIT_MS));
        loop {
            match client.next().1 {
                AgentMessage::Killed {
                    killed,
                    survivors,
                    is_unsure,
                    ..
                } => {
                    println!("killed {killed} in {:?}", before.elapsed());
                    assert!(survivors.is_empty() && !is_unsure);
                    break;
                }
                AgentMessage::Gone => panic!("gone before it was told"),
                AgentMessage::Exited(exit) => assert_ne!(exit.code, Some(9), "no limit"),
                _ => {}
            }
        }
        assert_eq!(marked(&marker), Vec::<i32>::new());
        while client.next().1 != AgentMessage::Gone {}
    }
    assert_eq!(client.sh("exit 5").code(), 5);
}

#[test]
fn a_command_that_kills_its_runner_has_no_code() {
    if !is_root() {
        return;
    }
    let (_agent, mut client) = contained();
    for _ in 0..runs() {
        let finished = client.sh("setsid sleep 1000 & kill -9 $PPID; sleep 1000");
        let exit = finished.exit.expect("told");
        assert_eq!((exit.code, exit.signal), (None, None), "{finished:?}");
        // What it has left is found by its marker, and killed.
        let list = client.run(request(&["ps", "-e", "-o", "args="])).text();
        assert!(!list.contains("sleep 1000"), "{list}");
    }
}

#[test]
fn a_command_that_stops_its_runner_can_be_killed() {
    let (_agent, mut client) = contained();
    // Stopped, it could tell neither start nor end.
    assert_eq!(client.sh("kill -STOP $PPID; exit 8").code(), 8);
    let line = "kill -STOP $PPID; echo ready; sleep 1000";
    kill_after(&mut client, shell(line), |finished| finished.text() == "ready\n");
}

#[test]
fn a_command_that_kills_everything_leaves_the_agent() {
    if !is_root() {
        return;
    }
    let (_agent, mut client) = contained();
    let finished = client.sh("sleep 1000 & kill -9 -1; exit 6");
    // The runner is among what it killed, and the shell spares only itself.
    assert!(
        finished.exit.is_some_and(|exit| exit.code.is_none()),
        "{finished:?}"
    );
    assert_eq!(client.sh("exit 5").code(), 5);
}

#[test]
fn a_kill_of_an_ended_command_kills_its_background() {
    let (_agent, mut client) = contained();
    let request = shell("sleep 1000 & exit 4");
    let finished = kill_after(&mut client, request, |finished| finished.exit.is_some());
    assert_eq!((finished.code(), finished.killed.expect("told").0), (4, 1));
}

#[test]
fn a_kill_of_a_command_that_has_only_output_left_is_answered_at_once() {
    let (agent, mut client) = Agent::init(&[]);
    client.greet();
    // What it has printed waits for its client, and the command with it.
    let channel = client.begin(ExecRequest {
        stdout_credit: 0,
        ..shell("echo waits; exit 4")
    });
    let mut finished = Finished::default();
    client.follow(channel, &mut finished, |finished| finished.exit.is_some());
    let pid = agent.pid();
    wait_until("its runner has ended", || {
        fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).is_ok_and(|list| list.is_empty())
    });
    client.send(channel, &ClientMessage::Kill(KILL_WAIT_MS));
    client.follow(channel, &mut finished, |finished| finished.killed.is_some());
    assert_eq!(finished.killed, Some((0, Vec::new(), false)));
    client.send(channel, &ClientMessage::Credit(Stream::Stdout, u32::MAX));
    client.follow(channel, &mut finished, |finished| finished.is_gone);
    assert_eq!((finished.text().as_str(), finished.code()), ("waits\n", 4));
}

#[test]
fn a_kill_of_what_is_gone_finds_nobody() {
    let (_agent, mut client) = contained();
    client.send(77, &ClientMessage::Kill(100));
    let (channel, message) = client.next();
    assert_eq!(channel, 77);
    assert!(
        matches!(
            message,
            AgentMessage::Killed {
                killed: 0,
                is_unsure: false,
                ..
            }
        ),
        "{message:?}"
    );
}

#[test]
fn what_cannot_be_killed_is_named() {
    if !is_root() {
        return;
    }
    // An agent without the right to signal other users' processes.
    let name = common::unique_name();
    let mut command = Command::new("setpriv");
    command
        .args(["--bounding-set", "-kill", "--inh-caps", "-kill"])
        .arg(common::program());
    command.args(["init", "--bootstrap", "--name", &name]);
    let (_agent, mut client) = Agent::start(command, name);
    let hello = client.greet();
    assert_eq!(hello.effective_capabilities & (1 << 5), 0);
    let channel = client.begin(ExecRequest {
        user: b"4321".to_vec(),
        ..shell("echo ready; exec sleep 1000")
    });
    let mut finished = Finished::default();
    client.follow(channel, &mut finished, |finished| finished.text() == "ready\n");
    let pid = finished.pid;
    let survivors = loop {
        client.send(channel, &ClientMessage::Kill(300));
        client.follow(channel, &mut finished, |finished| finished.killed.is_some());
        let (_, survivors, is_unsure) = finished.killed.take().expect("told");
        // A runner that this machine lets do nothing for more than a second is not believed in, and asked again.
        if !is_unsure {
            break survivors;
        }
    };
    assert_eq!(survivors, [pid]);
    signal_kill(pid);
    client.follow(channel, &mut finished, |finished| finished.is_gone);
}

#[test]
fn commands_die_with_their_client_unless_they_are_to_be_kept() {
    let (agent, mut client) = Agent::init(&[]);
    client.greet();
    let (mut second, ours) = hand_over(&agent);
    second.greet();
    let dies = shell("echo ready; sleep 1000");
    let stays = ExecRequest {
        keep_on_disconnect: true,
        ..shell("echo ready; sleep 1000")
    };
    let ended = shell("sleep 1000 & exit");
    let markers = [dies.id.clone(), stays.id.clone(), ended.id.clone()];
    for request in [dies, stays] {
        let channel = second.begin(request);
        let mut finished = Finished::default();
        second.follow(channel, &mut finished, |finished| finished.text() == "ready\n");
    }
    let channel = second.begin(ended);
    let mut finished = Finished::default();
    second.follow(channel, &mut finished, |finished| finished.exit.is_some());
    // A process that is about to become another program has no marker for a moment.
    let all_stay = || marked(&markers[1]).len() == 2 && marked(&markers[2]).len() == 1;
    wait_until("the shell with its child and the background child", all_stay);
    drop(second);
    ours.join().expect("ended");
    wait_until("the command is killed", || marked(&markers[0]).is_empty());
    std::thread::sleep(Duration::from_millis(50));
    wait_until("the others are still there", all_stay);
    for pid in markers[1..].iter().flat_map(|marker| marked(marker)) {
        signal_kill(pid.cast_unsigned());
    }
    assert_eq!(client.sh("exit 5").code(), 5);
}

fn signal_kill(pid: u32) {
    let status = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(status.expect("ran").success());
}

/// A second client by `connect`, and the thread that waits for that process.
fn hand_over(agent: &Agent) -> (Client, std::thread::JoinHandle<()>) {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
    let name = agent.name.clone();
    let mut command = Command::new(common::program());
    command.args(["connect", "--no-start", "--name", &name]);
    command.stdin(std::os::fd::OwnedFd::from(theirs.try_clone().expect("cloned")));
    command.stdout(std::os::fd::OwnedFd::from(theirs));
    let mut child = command.spawn().expect("started");
    drop(command);
    let waiting = std::thread::spawn(move || {
        assert_eq!(child.wait().expect("ended").code(), Some(0));
    });
    (Client::new(ours), waiting)
}

#[test]
fn no_zombie_is_left() {
    if !is_root() {
        return;
    }
    let (agent, mut client) = Agent::first_process(&[]);
    client.greet();
    for _ in 0..20 {
        // A double fork whose last process outlives the command and its runner.
        assert_eq!(client.sh("(sleep 0.05 >/dev/null 2>&1 &) ; exit 0").code(), 0);
    }
    let pid = agent.pid();
    wait_until("all are reaped", || {
        fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
            .unwrap_or_default()
            .is_empty()
    });
}
