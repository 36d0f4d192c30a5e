//! Large files, whose content the engine writes and whose names the agent gives: that nobody can tell, and that no part
//! stays.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

use bollard::query_parameters::EventsOptionsBuilder;
use futures::StreamExt;
use gym_sandbox::{ErrorKind, PathProblem, SandboxSpec};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::files::{Both, Side};
use super::{LIMIT, common};

const SIZE: u64 = 3 << 20;

/// Everything in a directory, hidden names, too.
const LIST: &str = "cd /d; ls -A | tr '\\n' ' '";

/// Sends a large file until that is seen to start a program of the engine, or none. An agent that is slow on a busy
/// machine is not waited for, and the engine knows its last events only.
async fn until_seen(both: &Both, side: &Side<'_>, with_program: bool) {
    let client = common::client().await.unwrap();
    let filters = HashMap::from([
        ("container", vec![both.near.raw().container_id.clone()]),
        ("event", vec!["exec_create".to_owned()]),
    ]);
    let now = || {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        format!("{:.9}", since_1970.unwrap().as_secs_f64())
    };
    let deadline = Instant::now() + LIMIT;
    loop {
        let before = now();
        side.send("/d/file", tokio::io::repeat(b'x').take(SIZE), SIZE)
            .await
            .unwrap();
        let options = EventsOptionsBuilder::new()
            .since(&before)
            .until(&now())
            .filters(&filters);
        let seen = client
            .events(Some(options.build()))
            .map(Result::unwrap)
            .count()
            .await;
        if (seen > 0) == with_program {
            return;
        }
        assert!(Instant::now() < deadline, "programs started: {seen}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_file_replaces_the_same_by_both_ways() {
    let Some(both) = Both::new(common::busybox()).await else {
        return;
    };
    let mut seen = Vec::new();
    for side in both.sides() {
        both.near
            .line("rm -rf /d; mkdir -p /d/dir; echo old >/d/file; ln -s file /d/link; ln -s dir /d/to-dir; ln -s none /d/loose")
            .await;
        for name in ["new", "file", "link", "to-dir", "loose", "dir", "deep/er/new"] {
            let path = format!("/d/{name}");
            // More content than was announced.
            let sent = side.send(&path, tokio::io::repeat(b'x'), SIZE).await;
            assert_eq!(sent, Err(ErrorKind::Path(changed_or_directory(name))), "{name}");
            let sent = side.send(&path, tokio::io::repeat(b'x').take(SIZE), SIZE).await;
            let look = format!("stat -c '%F %a %u %g %s' /d/{name}; find /d -name '.gym*'");
            seen.push(format!("{name}: {sent:?} {}", both.near.line(&look).await));
        }
        seen.push(both.near.line("cd /d; find . | sort; cat file | wc -c").await);
    }
    let (near, far) = seen.split_at(seen.len() / 2);
    assert_eq!(near, far);
    both.close().await;
}

fn changed_or_directory(name: &str) -> PathProblem {
    if name == "dir" {
        PathProblem::IsADirectory
    } else {
        PathProblem::Changed
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_program_is_started_for_a_large_file() {
    let Some(both) = Both::new(common::busybox()).await else {
        return;
    };
    let [near, far] = both.sides();
    until_seen(&both, &near, false).await;
    until_seen(&both, &far, true).await;
    both.close().await;
}

/// What an agent without rights can't, the engine's programs do.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_file_goes_where_only_root_may_write() {
    let Some(both) = Both::new(SandboxSpec::new("gym-sandbox/user:test")).await else {
        return;
    };
    let mut seen = Vec::new();
    for side in both.sides() {
        for path in ["/root/made/file", "/etc/file", "/tmp/file"] {
            let sent = side.send(path, tokio::io::repeat(b'x').take(SIZE), SIZE).await;
            let again = side.send(path, tokio::io::repeat(b'y').take(SIZE), SIZE).await;
            let look = format!("stat -c '%a %u %g %s' {path} 2>&1; ls -A /etc /tmp | grep '^.gym'; true");
            seen.push(format!(
                "{path}: {sent:?} {again:?} {}",
                both.near.line(&look).await
            ));
        }
    }
    let (near, far) = seen.split_at(seen.len() / 2);
    assert_eq!(near, far);
    both.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_upload_that_is_cut_leaves_the_target_and_nothing_beside_it() {
    let Some(both) = Both::new(common::busybox()).await else {
        return;
    };
    let [near, _] = both.sides();
    both.near.line("mkdir /d; echo old >/d/file").await;
    for (given, announced) in [(SIZE, SIZE + 1), (SIZE + 1, SIZE)] {
        let sent = near
            .send("/d/file", tokio::io::repeat(b'x').take(given), announced)
            .await;
        assert_eq!(sent, Err(ErrorKind::Path(PathProblem::Changed)));
        nothing_beside_it(&both).await;
    }
    let (reader, mut writer) = tokio::io::duplex(1 << 16);
    {
        let sending = near.send("/d/file", reader, SIZE);
        let half = vec![b'x'; 1 << 20];
        tokio::select! {
            sent = sending => panic!("{sent:?}"),
            written = writer.write_all(&half) => written.unwrap(),
        }
    }
    nothing_beside_it(&both).await;
    assert_eq!(both.near.line("cat /d/file").await, "old\n");
    both.close().await;
}

async fn nothing_beside_it(both: &Both) {
    let deadline = Instant::now() + LIMIT;
    while both.near.line(LIST).await != "file " {
        assert!(Instant::now() < deadline, "a part is left");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
