//! Many commands: nothing may be left behind. Prints what was measured and asserts no time.

mod common;

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Agent, Client, Finished, KILL_WAIT_MS, request, shell, wait_until};
use gym_sandbox_agent::protocol::{AgentMessage, ClientMessage, ExecRequest};

fn long() -> bool {
    std::env::var_os("GYM_SANDBOX_LONG").is_some()
}

fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).expect("read").count()
}

fn memory_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("read");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("there");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn children(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("read")
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[test]
fn many_commands_leave_nothing_and_lose_nothing() {
    let total: u32 = if long() { 10_000 } else { 1_000 };
    let (agent, mut client) = Agent::init(&[]);
    client.greet();
    let pid = agent.pid();
    client.sh("true");
    wait_until("the first runner is reaped", || children(pid).is_empty());
    let (descriptors_before, memory_before) = (descriptors(pid), memory_kib(pid));
    let start = Instant::now();
    // 64 in flight; a seventh of them is killed at some time.
    let mut flying: HashMap<u32, (u32, Finished)> = HashMap::new();
    let mut kills: VecDeque<u32> = VecDeque::new();
    let (mut begun, mut done, mut killed) = (0, 0, 0);
    while done < total {
        while begun < total && flying.len() < 64 {
            let code = begun % 100;
            let line = if begun % 7 == 0 {
                format!("sleep 0.02; exit {code}")
            } else {
                format!("exit {code}")
            };
            let channel = client.begin(shell(&line));
            if begun % 7 == 0 {
                kills.push_back(channel);
            }
            flying.insert(channel, (code, Finished::default()));
            begun += 1;
        }
        if kills.len() > 5
            && let Some(channel) = kills.pop_front()
        {
            client.send(channel, &ClientMessage::Kill(KILL_WAIT_MS));
        }
        let (channel, message) = client.next();
        if matches!(message, AgentMessage::Killed { .. }) {
            continue;
        }
        let (code, finished) = flying.get_mut(&channel).expect("known");
        match message {
            AgentMessage::Exited(exit) => match (exit.code, exit.signal) {
                (Some(found), _) => assert_eq!(u32::from(found), *code),
                (_, Some(signal)) => {
                    assert_eq!(signal, 9);
                    killed += 1;
                }
                lost => panic!("{lost:?}"),
            },
            AgentMessage::Gone => {
                flying.remove(&channel);
                done += 1;
            }
            AgentMessage::StartFailed { .. } => panic!("{finished:?}"),
            _ => {}
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{total} commands, {killed} killed, {:.0} a second",
        f64::from(total) / seconds
    );
    println!("memory {memory_before} -> {} KiB", memory_kib(pid));
    wait_until("all runners are reaped", || children(pid).is_empty());
    wait_until("no descriptor is left", || descriptors(pid) <= descriptors_before);
    assert!(memory_kib(pid) < memory_before + 2048);
}

#[test]
fn what_a_round_trip_costs() {
    let rounds = if long() { 2000 } else { 200 };
    let (agent, mut client) = Agent::init(&[]);
    client.greet();
    println!("memory at rest {} KiB", memory_kib(agent.pid()));
    let (mut pings, mut agent_times, mut host_times) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let start = Instant::now();
        client.send(1, &ClientMessage::Ping(Vec::new()));
        client.next();
        pings.push(start.elapsed());
        let start = Instant::now();
        assert_eq!(client.run(request(&["/bin/true"])).code(), 0);
        agent_times.push(start.elapsed());
        let start = Instant::now();
        let mut command = Command::new("/bin/true");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        assert!(command.output().expect("ran").status.success());
        host_times.push(start.elapsed());
    }
    let (agent_time, host_time) = (median(agent_times), median(host_times));
    println!(
        "ping {:?}, true by the agent {agent_time:?}, by this process {host_time:?}",
        median(pings)
    );
    println!("ratio {:.2}", agent_time.as_secs_f64() / host_time.as_secs_f64());
}

#[test]
fn what_much_output_takes() {
    let total: usize = if long() { 1_000_000_000 } else { 100_000_000 };
    let (agent, mut client) = Agent::init(&[]);
    client.greet();
    let start = Instant::now();
    let count = format!("count={}", total / 1_000_000);
    client.begin(request(&["dd", "if=/dev/zero", "bs=1MB", "status=none", &count]));
    // Straight from the socket, as a client that copies nothing would; all but the headers is output.
    let mut buffer = vec![0; 256 * 1024];
    let mut seen = 0;
    while seen < total {
        match std::io::Read::read(&mut client.stream, &mut buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            count => {
                let count = count.expect("read");
                assert!(count > 0);
                seen += count;
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{:.0} MB/s, memory {} KiB",
        f64::from(u32::try_from(total / 1_000_000).expect("small")) / seconds,
        memory_kib(agent.pid())
    );
}

#[test]
fn a_neighbour_is_hardly_slowed_by_much_output() {
    let (_agent, mut client) = Agent::init(&[]);
    client.greet();
    let loud = client.begin(ExecRequest {
        stdout_credit: u32::MAX,
        ..shell("cat /dev/zero")
    });
    let mut times = Vec::new();
    for _ in 0..50 {
        let start = Instant::now();
        let quiet = client.begin(request(&["/bin/true"]));
        loop {
            let (channel, message) = client.next();
            match message {
                AgentMessage::Output(stream, bytes) if channel == loud => {
                    let credit = u32::try_from(bytes.len()).expect("small");
                    client.send(loud, &ClientMessage::Credit(stream, credit));
                }
                AgentMessage::Gone if channel == quiet => break,
                _ => {}
            }
        }
        times.push(start.elapsed());
    }
    println!("true beside much output {:?}", median(times));
    client.send(loud, &ClientMessage::Kill(KILL_WAIT_MS));
}

/// What a plain process with one pipe of output needs, to compare with.
#[test]
fn what_the_same_output_takes_without_an_agent() {
    let total: usize = 100_000_000;
    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
    let mut command = Command::new("head");
    command
        .args(["-c", &total.to_string(), "/dev/zero"])
        .stdout(OwnedFd::from(theirs));
    let start = Instant::now();
    let mut child = command.spawn().expect("started");
    drop(command);
    let mut buffer = vec![0; 128 * 1024];
    let mut seen = 0;
    loop {
        match std::io::Read::read(&mut ours, &mut buffer).expect("read") {
            0 => break,
            count => seen += count,
        }
    }
    child.wait().expect("ended");
    assert_eq!(seen, total);
    println!("plain socket {:.0} MB/s", 100.0 / start.elapsed().as_secs_f64());
    let _ = Client::new;
}
