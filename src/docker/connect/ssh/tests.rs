//! The tunnel with a stand-in for `ssh`: a shell script that takes the same arguments.

use std::time::Instant;

use super::*;
use crate::docker::executable::write_script;

const DEADLINE: Duration = Duration::from_secs(60);

fn target() -> SshAddress {
    SshAddress {
        user: Some("me".to_owned()),
        host: "[fd00::7]".to_owned(),
        port: Some(2222),
        socket: "/var/run/docker.sock".to_owned(),
    }
}

fn script(folder: &TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("ssh");
    write_script(&path, text);
    path
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < end, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn lives(pid: &str) -> bool {
    // A zombie has no command line any more.
    std::fs::read(format!("/proc/{}/cmdline", pid.trim())).is_ok_and(|line| !line.is_empty())
}

#[test]
fn the_arguments_name_the_machine_last_and_after_the_options() {
    let arguments: Vec<String> = arguments(&target(), Path::new("/tmp/x/engine.sock"))
        .into_iter()
        .map(|argument| argument.into_string().unwrap())
        .collect();
    let end = arguments.iter().position(|argument| argument == "--").unwrap();
    assert_eq!(
        arguments[end + 1..],
        ["fd00::7", "echo gym-sandbox-forwarding; exec cat >/dev/null"]
    );
    assert_eq!(
        arguments[end - 6..end],
        [
            "-L",
            "/tmp/x/engine.sock:/var/run/docker.sock",
            "-p",
            "2222",
            "-l",
            "me"
        ]
    );
    assert!(arguments.contains(&"BatchMode=yes".to_owned()));
}

#[tokio::test]
async fn ssh_lives_as_long_as_the_tunnel() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let program = script(
        &folder,
        &format!(
            "echo $$ > {}; echo a banner; echo noise >&2; echo gym-sandbox-forwarding; exec cat",
            pid.display()
        ),
    );
    let tunnel = Tunnel::open_with(&program, &target(), DEADLINE).await.unwrap();
    let ssh = std::fs::read_to_string(&pid).unwrap();
    let directory = tunnel.socket().parent().unwrap().to_owned();
    // While the script becomes `cat` it has no command line for a moment.
    until("a running ssh", || lives(&ssh)).await;
    assert!(directory.is_dir());
    drop(tunnel);
    until("the end of ssh", || !lives(&ssh)).await;
    until("the end of the folder", || !directory.exists()).await;
}

#[tokio::test]
async fn a_broken_connection_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    let program = script(
        &folder,
        &format!(
            "echo x >> {0}; echo gym-sandbox-forwarding; test $(wc -l < {0}) -ge 2 && exec cat",
            starts.display()
        ),
    );
    let tunnel = Tunnel::open_with(&program, &target(), DEADLINE).await.unwrap();
    until("a second start", || {
        std::fs::read_to_string(&starts).unwrap().lines().count() == 2
    })
    .await;
    drop(tunnel);
}

#[tokio::test]
async fn the_reason_is_the_last_line_that_ssh_printed() {
    let folder = tempfile::tempdir().unwrap();
    let program = script(
        &folder,
        "echo Warning: new key >&2; echo 'me@e: Permission denied (publickey).' >&2; exit 255",
    );
    let failure = Tunnel::open_with(&program, &target(), DEADLINE)
        .await
        .err()
        .unwrap();
    assert_eq!(failure.reason, "ssh: me@e: Permission denied (publickey).");
    assert!(failure.hint.is_some());

    let program = script(&folder, "exit 3");
    let failure = Tunnel::open_with(&program, &target(), DEADLINE)
        .await
        .err()
        .unwrap();
    assert!(failure.reason.contains("exit status: 3"), "{}", failure.reason);

    let failure = Tunnel::open_with(Path::new("/nowhere/ssh"), &target(), DEADLINE)
        .await
        .err()
        .unwrap();
    assert_eq!(failure.reason, "the program `ssh` is not installed");
}

#[tokio::test]
async fn an_ssh_that_hangs_is_ended_at_the_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let program = script(&folder, &format!("echo $$ > {}; exec cat", pid.display()));
    // A busy machine may not have begun with it in the first of these times.
    let mut deadline = Duration::from_millis(500);
    let ssh = loop {
        let failure = Tunnel::open_with(&program, &target(), deadline)
            .await
            .err()
            .unwrap();
        assert_eq!(failure.reason, format!("ssh did not connect in {deadline:?}"));
        let ssh = std::fs::read_to_string(&pid).unwrap_or_default();
        if ssh.ends_with('\n') {
            break ssh;
        }
        deadline *= 2;
        assert!(deadline < DEADLINE, "ssh is not started");
    };
    until("the end of ssh", || !lives(&ssh)).await;
}

#[tokio::test]
async fn much_output_before_the_line_does_not_block() {
    let folder = tempfile::tempdir().unwrap();
    let program = script(
        &folder,
        "head -c 60000 /dev/zero | tr '\\0' x >&2; echo >&2; echo gym-sandbox-forwarding; exec cat",
    );
    let tunnel = Tunnel::open_with(&program, &target(), DEADLINE).await;
    assert!(tunnel.is_ok(), "{:?}", tunnel.err());
}
