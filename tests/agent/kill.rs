//! Kills in all kinds of sandboxes: nothing of a command survives its timeout, whatever it started, and the next command
//! runs. Five of each kind, and a hundred with `GYM_SANDBOX_LONG=1`.

use std::time::{Duration, Instant};

use futures::future::join_all;
use gym_sandbox::docker::ExecPathPolicy;
use gym_sandbox::{
    Command, DownloadOptions, DownloadTarget, ExecOptions, ExecPath, SandboxProvider, SandboxSpec,
    UploadOptions, UploadSource,
};

use super::{Kept, LIMIT, common, docker};

/// What a command leaves to be killed, and how many processes that are at least.
const TREES: [(&str, u32); 5] = [
    // Without the environment's marker, in a session of its own, ignoring SIGHUP, and orphaned.
    (
        "@env -i @setsid @sleep 999 & (NOHUP @sleep 998) & (@sleep 997 &) ; @sleep 996",
        4,
    ),
    // As many as the limit lets be: a shell ends where it can't fork, and leaves them.
    ("(while :; do @sleep 993 & done); exec @sleep 995", 50),
    // They do not stop to fork.
    ("b() { while :; do b & done; }; b & exec @sleep 995", 1),
    ("BOMB", 1),
    // None of them lives long enough to be seen: each leaves another one and ends.
    ("c() { (c) & }; c; c; c; c; exec @sleep 994", 1),
];

/// No tree may have more processes; they are in a container, and it must not be the machine that stops them.
const PIDS: i64 = 128;

/// Where a shell is, for images that have one and for one that has none.
#[derive(Clone, Copy)]
struct Tools {
    shell: &'static [&'static str],
    /// What stands before the name of each program.
    prefix: &'static str,
    /// What starts a program that SIGHUP does not end, in a shell of its own where there is no such program.
    nohup: &'static str,
    /// What forks whatever happens. A shell ends when it can't.
    bomb: &'static str,
}

const OF_THE_IMAGE: Tools = Tools {
    shell: &["sh", "-c"],
    prefix: "",
    nohup: "trap '' HUP;",
    bomb: "(b() { b | b & }; b; b); exec @sleep 992",
};
const OF_DEBIAN: Tools = Tools {
    nohup: "nohup",
    bomb: "exec python3 -c 'import os
while True:
    try:
        os.fork()
    except OSError:
        pass'",
    ..OF_THE_IMAGE
};
const UPLOADED: Tools = Tools {
    shell: &["/given/busybox", "sh", "-c"],
    prefix: "/given/busybox ",
    ..OF_THE_IMAGE
};

fn runs() -> usize {
    if common::long_tests_are_wanted() { 100 } else { 5 }
}

/// What the engine says is in the sandbox.
async fn processes(sandbox: &Kept) -> Vec<String> {
    let client = common::client().await.unwrap();
    let top = client
        .top_processes(&sandbox.raw().container_id, None)
        .await
        .unwrap();
    let rows = top.processes.unwrap();
    rows.into_iter().map(|columns| columns.join(" ")).collect()
}

/// Waits until only the agent is left. Its runner of the command ends a moment after the report.
async fn until_at_rest(sandbox: &Kept, what: &str) {
    let deadline = Instant::now() + LIMIT;
    loop {
        let left = processes(sandbox).await;
        if left.len() == 1 {
            return;
        }
        assert!(Instant::now() < deadline, "after {what}: {left:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// One bomb at a time is enough for a machine.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn kills_all(spec: SandboxSpec, tools: Tools) {
    let _alone = ALONE.lock().await;
    let Some(test) = docker(ExecPathPolicy::Agent).await else {
        return;
    };
    let image = spec.image().unwrap_or_default().to_owned();
    let sandbox = Kept::new(&test, spec.with_provider_option("pids_limit", PIDS)).await;
    if !tools.prefix.is_empty() {
        give_busybox(&test, &sandbox).await;
    }
    let argv = |line: &str| {
        let line = line.replace("BOMB", tools.bomb).replace("NOHUP", tools.nohup);
        let line = line.replace('@', tools.prefix);
        let mut argv: Vec<String> = tools.shell.iter().map(|&part| part.to_owned()).collect();
        argv.push(line);
        argv
    };
    for (tree, least) in TREES {
        for run in 0..runs() {
            let what = format!("{image}, run {run} of `{tree}`");
            let command = Command::Argv(argv(tree));
            let result = sandbox
                .out_of_time(&command, Duration::from_millis(400), least)
                .await;
            assert_eq!(result.survivors, Some(0), "{what}: {result:?}");
            assert!(result.killed >= Some(least), "{what}: {result:?}");
            let next = sandbox.exec(ExecOptions::new(argv("echo on"))).await;
            assert_eq!(next.stdout().as_deref(), Some("on\n"), "{what}: {next:?}");
            assert_eq!(next.exec_path, ExecPath::Agent, "{what}");
            // The engine is asked now and then: it takes much longer than a run.
            if run % 5 == 4 {
                until_at_rest(&sandbox, &what).await;
            }
        }
    }
    sandbox.close().await;
}

/// Puts a shell beside an image that has none.
async fn give_busybox(test: &common::DockerTest, sandbox: &Kept) {
    let source = Kept::new(test, common::busybox()).await;
    let folder = tempfile::tempdir().unwrap();
    let local = folder.path().join("busybox");
    let files = test.provider.as_files().unwrap();
    let target = DownloadTarget::Path(&local);
    files
        .download(
            &source.handle,
            "/bin/busybox",
            target,
            &DownloadOptions::default(),
        )
        .await
        .unwrap();
    source.close().await;
    let upload = UploadOptions::default().with_mode(0o755);
    files
        .upload(
            &sandbox.handle,
            UploadSource::Path(&local),
            "/given/busybox",
            &upload,
        )
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d03_nothing_survives_in_busybox() {
    kills_all(common::busybox(), OF_THE_IMAGE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d03_nothing_survives_in_debian() {
    kills_all(SandboxSpec::new(common::DEBIAN), OF_DEBIAN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d03_nothing_survives_as_an_ordinary_user() {
    let images = [
        ("gym-sandbox/user:test", OF_THE_IMAGE),
        ("gym-sandbox/debian-user:test", OF_DEBIAN),
    ];
    join_all(images.map(|(image, tools)| kills_all(SandboxSpec::new(image), tools))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d03_nothing_survives_in_hardened() {
    let hardened = common::busybox().with_provider_option("preset", "hardened");
    kills_all(hardened, OF_THE_IMAGE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d03_nothing_survives_in_an_image_without_a_shell() {
    kills_all(SandboxSpec::new(common::STATIC), UPLOADED).await;
}

/// All that an image with one program can do: children that outlive their parent and hold its output.
#[tokio::test(flavor = "multi_thread")]
async fn d03_d04_children_of_an_image_without_a_shell() {
    let Some(test) = docker(ExecPathPolicy::Agent).await else {
        return;
    };
    let sandbox = Kept::new(&test, SandboxSpec::new(common::STATIC)).await;
    for _ in 0..runs() {
        let hung = Command::from(["/static", "hold"]);
        let result = sandbox.out_of_time(&hung, Duration::from_millis(100), 1).await;
        assert_eq!(
            (result.killed, result.survivors),
            (Some(1), Some(0)),
            "{result:?}"
        );
    }
    // Long enough for a busy machine to see that they hold it.
    let left = sandbox
        .exec(ExecOptions::new(["/static", "fork", "3", "10"]))
        .await;
    assert!(left.is_success() && left.background_output_open, "{left:?}");
    until_at_rest(&sandbox, "children that ended by themselves").await;
    sandbox.close().await;
}
