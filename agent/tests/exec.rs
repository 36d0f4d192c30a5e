//! Commands, their surroundings and their ends.

mod common;

use common::{
    Agent, Client, Finished, KILL_WAIT_MS, is_root, request, shell, with_enough_time, write_program,
};
use gym_sandbox_agent::FINGERPRINT;
use gym_sandbox_agent::protocol::{
    AgentMessage, ClientMessage, ExecRequest, ExitCause, Fingerprint, SignalTarget, StartStage, Stream,
};

fn agent() -> (Agent, Client) {
    let (agent, mut client) = Agent::init(&[]);
    client.greet();
    (agent, client)
}

#[test]
fn the_hello_tells_who_answers() {
    let (agent, mut client) = Agent::init(&["--ttl-ms", "60000", "--lease-ms", "50000"]);
    let hello = client.greet();
    let hex = Fingerprint::hex(hello.fingerprint);
    assert_eq!(hex, FINGERPRINT);
    assert_eq!(hello.pid, agent.pid());
    assert!(hello.has_subreaper && hello.has_proc && hello.has_pidfd && hello.has_close_range);
    assert_eq!(hello.lease_ms, 50_000);
    assert!((1..=60_000).contains(&hello.time_left_ms));
}

#[test]
fn a_command_has_its_output_and_code() {
    let (_agent, mut client) = agent();
    let finished = client.sh("echo out; echo err >&2; exit 7");
    assert_eq!(
        (finished.text().as_str(), finished.stderr.as_slice()),
        ("out\n", &b"err\n"[..])
    );
    assert_eq!(finished.code(), 7);
    assert_eq!(finished.order.first(), Some(&"started"));
    assert_eq!(finished.order.last(), Some(&"gone"));
    assert_eq!(finished.exit.expect("exited").cause, ExitCause::Itself);
}

#[test]
fn a_signal_is_no_code() {
    let (_agent, mut client) = agent();
    let exit = client.sh("kill -9 $$").exit.expect("exited");
    assert_eq!((exit.code, exit.signal), (None, Some(9)));
}

#[test]
fn the_environment_is_overlaid_and_marked() {
    let (_agent, mut client) = agent();
    let mut request = request(&["/usr/bin/env"]);
    request.env = vec![b"ADDED=a=b".to_vec(), b"LANG".to_vec()];
    request.id = b"mark".to_vec();
    let text = client.run(request).text();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines.contains(&"ADDED=a=b") && lines.contains(&"GYM_SANDBOX_EXEC=mark"),
        "{lines:?}"
    );
    assert!(lines.iter().any(|line| line.starts_with("PATH=")));
    assert!(lines.iter().any(|line| line.starts_with("HOME=/")));
    assert!(!lines.iter().any(|line| line.starts_with("LANG=")));
}

#[test]
fn only_three_descriptors_are_open() {
    let (_agent, mut client) = agent();
    // A command beside it, with pipes that must not be seen.
    let other = client.begin(ExecRequest {
        has_input: true,
        ..request(&["cat"])
    });
    let mut beside = Finished::default();
    client.follow(other, &mut beside, |finished| finished.pid > 0);
    // `ls` itself opens the directory as 3.
    assert_eq!(
        client.run(request(&["ls", "/proc/self/fd"])).text(),
        "0\n1\n2\n3\n"
    );
    client.send(other, &ClientMessage::InputEnd);
    client.follow(other, &mut beside, |finished| finished.is_gone);
}

#[test]
fn a_command_leads_a_session_and_handles_signals_as_usual() {
    let (_agent, mut client) = agent();
    let finished = client.run(request(&["cat", "/proc/self/stat"]));
    let pid = finished.pid.to_string();
    let text = finished.text();
    let fields: Vec<&str> = text.split(' ').collect();
    assert_eq!(
        (fields[0], fields[4], fields[5]),
        (pid.as_str(), pid.as_str(), pid.as_str())
    );
    let signals = |status: &[u8]| -> Vec<String> {
        let status = String::from_utf8_lossy(status);
        let lines = status
            .lines()
            .filter(|line| line.starts_with("Sig") && !line.starts_with("SigQ"));
        // HUP, INT and QUIT are ignored by what is run in the background of a shell, as this test may be.
        let lines = lines.map(|line| match line.strip_prefix("SigIgn:\t") {
            Some(ignored) => {
                let ignored = u64::from_str_radix(ignored, 16).expect("hexadecimal");
                format!("SigIgn:\t{:016x}", ignored & !0x7)
            }
            None => line.to_owned(),
        });
        lines.collect()
    };
    let ours = std::process::Command::new("cat")
        .arg("/proc/self/status")
        .output()
        .expect("ran");
    assert_eq!(
        signals(&client.run(request(&["cat", "/proc/self/status"])).stdout),
        signals(&ours.stdout)
    );
}

#[test]
fn limits_and_umask_are_those_of_the_agent() {
    let (_agent, mut client) = agent();
    let ours = std::process::Command::new("/bin/sh")
        .args(["-c", "umask; ulimit -n; ulimit -Hn"])
        .output();
    assert_eq!(
        client.sh("umask; ulimit -n; ulimit -Hn").stdout,
        ours.expect("ran").stdout
    );
}

#[test]
fn a_command_is_rather_killed_than_the_agent() {
    let (_agent, mut client) = agent();
    let own: i32 = std::fs::read_to_string("/proc/self/oom_score_adj")
        .expect("read")
        .trim()
        .parse()
        .expect("a number");
    let theirs: i32 = client
        .sh("cat /proc/self/oom_score_adj")
        .text()
        .trim()
        .parse()
        .expect("a number");
    assert!(theirs > own || own == 1000, "{theirs} {own}");
}

#[test]
fn failures_to_start_say_what_and_why() {
    let (_agent, mut client) = agent();
    let folder = std::env::temp_dir().join(common::unique_name());
    std::fs::create_dir(&folder).expect("made");
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        write_program(&path, bytes);
        path.to_str().expect("text").to_owned()
    };
    let garbage = file("garbage", b"\x01\x02\x03");
    let orphan = file("orphan", b"#!/no/such/interpreter\n");
    let plain = file("plain", b"#!/bin/sh\n");
    std::fs::set_permissions(&plain, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("set");
    let long = "x".repeat(200_000);
    let in_folder = |cwd: &str| ExecRequest {
        cwd: cwd.into(),
        ..request(&["true"])
    };
    let as_user = |user: &str| ExecRequest {
        user: user.into(),
        ..request(&["true"])
    };
    let table = [
        (
            request(&["no-such-program"]),
            StartStage::NotFound,
            2,
            "no-such-program",
        ),
        (request(&["/no/such"]), StartStage::NotFound, 2, "/no/such"),
        (request(&[""]), StartStage::NotFound, 2, ""),
        (request(&["/tmp"]), StartStage::NotExecutable, 13, "/tmp"),
        (request(&[&plain]), StartStage::NotExecutable, 13, &plain),
        (request(&[&garbage]), StartStage::BadFormat, 8, &garbage),
        (request(&[&orphan]), StartStage::BadFormat, 2, &orphan),
        (request(&["true", &long]), StartStage::TooLong, 7, "true"),
        (request(&["true", "a\0b"]), StartStage::Request, 22, "true"),
        (request(&[]), StartStage::Request, 22, ""),
        (in_folder("/no/such"), StartStage::Cwd, 2, "/no/such"),
        (in_folder("tmp"), StartStage::Cwd, 22, "tmp"),
        (in_folder("/etc/passwd"), StartStage::Cwd, 20, "/etc/passwd"),
        (as_user("no-such-user"), StartStage::User, 22, "no-such-user"),
        (
            as_user("0:no-such-group"),
            StartStage::User,
            22,
            "0:no-such-group",
        ),
    ];
    for (request, stage, errno, subject) in table {
        let finished = client.run(request);
        assert_eq!(finished.failure, Some((stage, errno, subject.to_owned())));
        assert!(finished.stdout.is_empty() && finished.stderr.is_empty());
    }
    assert_eq!(client.sh("no-such-program").code(), 127);
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_user_has_its_ids_groups_and_home() {
    if !is_root() {
        return;
    }
    let (_agent, mut client) = agent();
    let mut request =
        shell("id -u; id -g; echo $HOME; echo more >/dev/stdout; grep -E 'CapEff|CapPrm' /proc/self/status");
    request.user = b"1234:77".to_vec();
    let finished = client.run(request);
    assert_eq!(
        finished.text(),
        "1234\n77\n/\nmore\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
    );
    assert_eq!(finished.code(), 0);
}

#[test]
fn input_is_given_and_ends() {
    let (_agent, mut client) = agent();
    let channel = client.begin(ExecRequest {
        has_input: true,
        ..request(&["wc", "-c"])
    });
    for _ in 0..4 {
        client.send(channel, &ClientMessage::Input(vec![b'x'; 50_000]));
    }
    client.send(channel, &ClientMessage::InputEnd);
    let mut finished = Finished::default();
    client.follow(channel, &mut finished, |finished| finished.is_gone);
    assert_eq!(finished.text().trim(), "200000");
    // Without input there is its end at once.
    assert_eq!(client.run(request(&["wc", "-c"])).text().trim(), "0");
}

#[test]
fn a_closed_input_is_told() {
    let (_agent, mut client) = agent();
    let channel = client.begin(ExecRequest {
        has_input: true,
        ..shell("exec <&-; sleep 100")
    });
    let mut finished = Finished::default();
    client.follow(channel, &mut finished, |finished| {
        finished.order.contains(&"closed")
    });
    client.send(channel, &ClientMessage::Kill(KILL_WAIT_MS));
    client.follow(channel, &mut finished, |finished| finished.is_gone);
}

#[test]
fn credit_of_one_stream_stops_no_other() {
    let (_agent, mut client) = agent();
    let mut request = shell("head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero");
    request.stdout_credit = 1000;
    let slow = client.begin(request);
    let mut finished = Finished::default();
    client.follow(slow, &mut finished, |finished| {
        finished.stderr.len() == 300_000 && finished.stdout.len() == 1000
    });
    // Nor another command.
    let other = client.begin(shell("head -c 300000 /dev/zero"));
    let mut neighbour = Finished::default();
    client.follow(other, &mut neighbour, |finished| {
        finished.is_gone || finished.stdout.len() == 300_000
    });
    assert_eq!(neighbour.stdout.len(), 300_000);
    while !neighbour.is_gone {
        let (from, message) = client.next();
        assert!(
            from == other
                || matches!(
                    message,
                    AgentMessage::StreamEnd {
                        stream: Stream::Stderr,
                        ..
                    }
                ),
            "{message:?}"
        );
        neighbour.is_gone = matches!(message, AgentMessage::Gone);
    }
    client.send(slow, &ClientMessage::Credit(Stream::Stdout, u32::MAX));
    client.follow(slow, &mut finished, |finished| finished.is_gone);
    assert_eq!(finished.stdout.len(), 300_000);
}

#[test]
fn a_background_child_holds_nothing_up() {
    let (_agent, mut client) = agent();
    let go = std::env::temp_dir().join(common::unique_name());
    let channel = client.begin(shell(&format!(
        "(until [ -e {} ]; do sleep 0.01; done; echo late; sleep 1000) & echo early; exit 3",
        go.display()
    )));
    let mut finished = Finished::default();
    client.follow(channel, &mut finished, |finished| finished.drained.len() == 2);
    assert_eq!((finished.text().as_str(), finished.code()), ("early\n", 3));
    assert!(finished.ended.is_empty());
    std::fs::write(&go, "").expect("written");
    client.follow(channel, &mut finished, |finished| {
        finished.text() == "early\nlate\n"
    });
    std::fs::remove_file(go).expect("removed");
    client.send(channel, &ClientMessage::Detach);
    client.send(channel, &ClientMessage::Kill(KILL_WAIT_MS));
    client.follow(channel, &mut finished, |finished| finished.is_gone);
    assert_eq!(finished.ended.len(), 2);
    assert_eq!(finished.exit.expect("exited").cause, ExitCause::Itself);
}

#[test]
fn detached_output_is_read_and_counted() {
    let (_agent, mut client) = agent();
    let mut request = shell("head -c 1000000 /dev/zero");
    request.stdout_credit = 10;
    let channel = client.begin(request);
    client.send(channel, &ClientMessage::Detach);
    loop {
        match client.next() {
            (
                _,
                AgentMessage::StreamEnd {
                    stream: Stream::Stdout,
                    total_bytes,
                },
            ) => {
                assert_eq!(total_bytes, 1_000_000);
                break;
            }
            (_, AgentMessage::Gone) => panic!("no end"),
            _ => {}
        }
    }
}

#[test]
fn a_timeout_kills_the_tree_and_says_so() {
    let (_agent, mut client) = agent();
    let begun = std::env::temp_dir().join(common::unique_name());
    with_enough_time(|timeout_ms| {
        // The file is there when the child is, and what was printed before it.
        let mut request = shell(&format!(
            "echo before; setsid sleep 1000 & echo >{}; sleep 1000",
            begun.display()
        ));
        request.timeout_ms = timeout_ms.into();
        let finished = client.run(request);
        let exit = finished.exit.expect("exited");
        assert_eq!((exit.signal, exit.cause), (Some(9), ExitCause::Timeout));
        let (killed, survivors, is_unsure) = finished.killed.clone().expect("told");
        assert!(survivors.is_empty() && !is_unsure, "{finished:?}");
        let was_begun = begun.exists();
        if was_begun {
            assert_eq!(finished.text(), "before\n");
            assert!(killed >= 2, "{finished:?}");
        }
        was_begun
    });
    std::fs::remove_file(begun).expect("removed");
}

#[test]
fn signals_reach_their_targets() {
    let (_agent, mut client) = agent();
    for target in [SignalTarget::Process, SignalTarget::Group, SignalTarget::Tree] {
        let channel = client.begin(shell(
            "trap 'exit 42' TERM; echo ready; while :; do sleep 0.01; done",
        ));
        let mut finished = Finished::default();
        client.follow(channel, &mut finished, |finished| finished.text() == "ready\n");
        client.send(channel, &ClientMessage::Signal(15, target));
        client.follow(channel, &mut finished, |finished| finished.is_gone);
        assert_eq!(finished.code(), 42);
    }
}

#[test]
fn the_shell_and_programs_are_found_by_the_path_of_the_command() {
    let (_agent, mut client) = agent();
    let mut without = request(&["true"]);
    without.env = vec![b"PATH=/nowhere:relative".to_vec()];
    assert_eq!(
        client.run(without).failure.expect("failed").0,
        StartStage::NotFound
    );
}
