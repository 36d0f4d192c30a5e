//! Processes that hide from the kill, and shells that lie about it (contract D3).

use std::time::{Duration, Instant};

use gym_sandbox::{ExecErrorType, ExecOptions, ExecResult, SandboxSpec};

use super::{Started, common, start};

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

async fn times_out(started: &Started, options: ExecOptions) -> ExecResult {
    let began = Instant::now();
    let result = started.exec(options.with_timeout(Duration::from_secs(1))).await;
    assert_eq!(result.error_type, Some(ExecErrorType::Timeout), "{result:?}");
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "{:?} {result:?}",
        began.elapsed()
    );
    result
}

/// Asks the engine, which no process can hide from.
async fn processes(started: &Started) -> usize {
    let client = common::client().await.unwrap();
    let id = started.sandbox.sandbox_id().unwrap();
    let top = client.top_processes(id.as_str(), None).await.unwrap();
    // The init process, the keepalive shell and its sleep.
    top.processes.unwrap().len().saturating_sub(3)
}

#[tokio::test]
async fn d03_a_command_that_clears_its_environment_is_killed() {
    let Some(started) = start(SandboxSpec::new(common::BUSYBOX)).await else {
        return;
    };
    for options in [
        ExecOptions::new(["env", "-i", "sleep", "987654"]),
        ExecOptions::new("exec env -i sleep 987654"),
        ExecOptions::new(["env", "-i", "sleep", "987654"]).with_user("nobody"),
    ] {
        let result = times_out(&started, options).await;
        assert_eq!((result.killed, result.survivors), (Some(1), Some(0)));
        assert_eq!(processes(&started).await, 0);
    }
    started.close().await;
}

#[tokio::test]
async fn d03_no_name_and_no_lost_thread_hides_a_process() {
    let Some(started) = start(SandboxSpec::new(common::DEBIAN)).await else {
        return;
    };
    for program in [ODD_NAME, NO_FIRST_THREAD] {
        for argv in [
            vec!["python3", "-c", program],
            vec!["setsid", "--fork", "--wait", "python3", "-c", program],
        ] {
            let result = times_out(&started, ExecOptions::new(argv)).await;
            assert_eq!(result.survivors, Some(0), "{program}");
            assert_eq!(processes(&started).await, 0, "{program}");
        }
    }
    started.close().await;
}

#[tokio::test]
async fn d03_setuid_programs_of_an_ordinary_user_are_killed() {
    let Some(started) = start(SandboxSpec::new(common::DEBIAN)).await else {
        return;
    };
    let made = started
        .exec("for p in sleep setsid; do cp $(command -v $p) /bin/s$p && chmod 4755 /bin/s$p; done")
        .await;
    assert!(made.is_success(), "{made:?}");
    for line in ["exec ssleep 987654", "ssetsid ssleep 987654 & sleep 987654"] {
        let result = times_out(&started, ExecOptions::new(line).with_user(1000)).await;
        assert_eq!(result.survivors, Some(0), "{line}");
        assert_eq!(processes(&started).await, 0, "{line}");
    }
    started.close().await;
}

#[tokio::test]
async fn d03_a_shell_that_lies_about_the_kill_is_not_believed() {
    let Some(started) = start(SandboxSpec::new(common::DEBIAN)).await else {
        return;
    };
    let line = "printf '#!/usr/bin/python3\\nprint(\"killed 99 survivors 0 hidden 0\")\\n' >/tmp/sh; \
                chmod 755 /tmp/sh; exec python3 -c 'import os, time
os.rename(\"/tmp/sh\", \"/bin/bash\"); time.sleep(987654)'";
    let result = times_out(&started, ExecOptions::new(line)).await;
    assert_ne!(result.survivors, Some(0), "{result:?}");
    started.sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn d03_a_shell_that_prints_a_banner_still_kills() {
    let spec = SandboxSpec::new(common::DEBIAN).with_env("BASH_ENV", "/tmp/banner");
    let Some(started) = start(spec).await else { return };
    let made = started.exec("echo 'echo welcome; set -eu' >/tmp/banner").await;
    assert!(made.is_success(), "{made:?}");
    let result = times_out(&started, ExecOptions::new(["sleep", "987654"])).await;
    assert_eq!(
        (result.killed, result.survivors),
        (Some(1), Some(0)),
        "{result:?}"
    );
    started.close().await;
}
