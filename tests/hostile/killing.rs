//! Processes that hide from the kill, and shells that lie about it (contract D3).

use std::time::{Duration, Instant};

use gym_sandbox::docker::{DockerConfig, ExecPathPolicy};
use gym_sandbox::{ExecErrorType, ExecOptions, ExecPath, ExecResult, SandboxSpec};

use super::{LIMIT, Started, common, start_both_ways, start_with};

/// A process under a name that looks like the end of its own entry in /proc.
const ODD_NAME: &str = r#"
import ctypes, time
ctypes.CDLL(None).prctl(15, b"x) S 1\ny", 0, 0, 0)
time.sleep(987654)
"#;

/// A process whose first thread ends before the others: it looks like a zombie.
const NO_FIRST_THREAD: &str = r"
import ctypes, threading, time
threading.Thread(target=lambda: time.sleep(987654)).start()
ctypes.CDLL(None).pthread_exit(None)
";

/// Lets a command run out of its time. Where it was not seen to be there before, as on a busy machine, it gets more.
async fn times_out(started: &Started, command: impl Fn() -> ExecOptions + Send + Sync) -> ExecResult {
    let is_there = async || {
        started
            .processes()
            .await
            .iter()
            .any(|line| line.contains("987654"))
    };
    times_out_when(started, command, is_there).await
}

/// The same where something else than the command's number in a command line says that it is there.
async fn times_out_when<F: Future<Output = bool> + Send>(
    started: &Started,
    command: impl Fn() -> ExecOptions + Send + Sync,
    is_there: impl Fn() -> F + Send + Sync,
) -> ExecResult {
    let mut limit = Duration::from_secs(1);
    loop {
        let began = Instant::now();
        let look = async {
            while began.elapsed() < limit {
                if is_there().await {
                    return began.elapsed() < limit;
                }
            }
            false
        };
        let (result, was_there) = tokio::join!(started.exec(command().with_timeout(limit)), look);
        assert_eq!(result.error_type, Some(ExecErrorType::Timeout), "{result:?}");
        assert!(
            began.elapsed() < limit + Duration::from_secs(60),
            "{:?} {result:?}",
            began.elapsed()
        );
        // What a slow look has missed may have left its mark.
        if was_there || is_there().await || limit > LIMIT / 4 {
            return result;
        }
        limit *= 4;
    }
}

#[tokio::test]
async fn d03_a_command_that_clears_its_environment_is_killed() {
    for started in start_both_ways(SandboxSpec::new(common::BUSYBOX)).await {
        clears_its_environment(started).await;
    }
}

async fn clears_its_environment(started: Started) {
    for command in [
        || ExecOptions::new(["env", "-i", "sleep", "987654"]),
        || ExecOptions::new("exec env -i sleep 987654"),
        || ExecOptions::new(["env", "-i", "sleep", "987654"]).with_user("nobody"),
    ] {
        let result = times_out(&started, command).await;
        assert_eq!((result.killed, result.survivors), (Some(1), Some(0)));
        started.until_at_rest().await;
    }
    started.close().await;
}

#[tokio::test]
async fn d03_no_name_and_no_lost_thread_hides_a_process() {
    for started in start_both_ways(SandboxSpec::new(common::DEBIAN)).await {
        hides(started).await;
    }
}

async fn hides(started: Started) {
    for program in [ODD_NAME, NO_FIRST_THREAD] {
        for argv in [
            vec!["python3", "-c", program],
            vec!["setsid", "--fork", "--wait", "python3", "-c", program],
        ] {
            let result = times_out(&started, || ExecOptions::new(argv.clone())).await;
            assert_eq!(result.survivors, Some(0), "{program}");
            started.until_at_rest().await;
        }
    }
    started.close().await;
}

#[tokio::test]
async fn d03_setuid_programs_of_an_ordinary_user_are_killed() {
    for started in start_both_ways(SandboxSpec::new(common::DEBIAN)).await {
        runs_setuid_programs(started).await;
    }
}

async fn runs_setuid_programs(started: Started) {
    let made = started
        .exec("for p in sleep setsid; do cp $(command -v $p) /bin/s$p && chmod 4755 /bin/s$p; done")
        .await;
    assert!(made.is_success(), "{made:?}");
    for line in ["exec ssleep 987654", "ssetsid ssleep 987654 & sleep 987654"] {
        let result = times_out(&started, || ExecOptions::new(line).with_user(1000)).await;
        assert_eq!(result.survivors, Some(0), "{line}");
        started.until_at_rest().await;
    }
    started.close().await;
}

#[tokio::test]
async fn d03_a_shell_that_lies_about_the_kill_is_not_believed() {
    for started in start_both_ways(SandboxSpec::new(common::DEBIAN)).await {
        lies_about_the_kill(started).await;
    }
}

async fn lies_about_the_kill(started: Started) {
    let line = "printf '#!/usr/bin/python3\\nprint(\"killed 99 survivors 0 hidden 0\")\\n' >/tmp/sh; \
                chmod 755 /tmp/sh; exec python3 -c 'import os, time
os.rename(\"/tmp/sh\", \"/bin/bash\"); time.sleep(987654)'";
    // Before that it is the shell that it was.
    let lie = || ExecOptions::new(["grep", "-q", "killed 99", "/bin/bash"]);
    let lies = || async { started.exec(lie()).await.is_success() };
    let result = times_out_when(&started, || ExecOptions::new(line), lies).await;
    match result.exec_path {
        ExecPath::Engine => assert_ne!(result.survivors, Some(0), "{result:?}"),
        // It asks no shell.
        ExecPath::Agent => {
            assert_eq!(
                (result.killed, result.survivors),
                (Some(1), Some(0)),
                "{result:?}"
            );
            started.until_at_rest().await;
        }
        other => panic!("{other:?}"),
    }
    started.sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn d03_a_shell_that_prints_a_banner_still_kills() {
    let spec = SandboxSpec::new(common::DEBIAN).with_env("BASH_ENV", "/tmp/banner");
    let mut config = DockerConfig::default();
    config.exec.exec_path = ExecPathPolicy::Engine;
    let Some(started) = start_with(config, spec).await else {
        return;
    };
    let made = started.exec("echo 'echo welcome; set -eu' >/tmp/banner").await;
    assert!(made.is_success(), "{made:?}");
    let result = times_out(&started, || ExecOptions::new(["sleep", "987654"])).await;
    assert_eq!(
        (result.killed, result.survivors),
        (Some(1), Some(0)),
        "{result:?}"
    );
    started.close().await;
}
