//! What a sandbox does with its limits stays in it, is reported as what it was, and the next command works (B08 and the
//! other resources). The OOM kills of a command and of the main process are in `tests/exec/memory.rs`.

use std::time::Duration;

use gym_sandbox::provider::InspectProvider;
use gym_sandbox::{
    ErrorKind, ExecErrorType, ExecOptions, OutputCap, Resource, SandboxHandle, SandboxProvider,
    SandboxResources, SandboxStatus, UploadOptions, UploadSource,
};
use serde_json::json;

use crate::common::{DEBIAN, DockerTest, busybox, docker};
use crate::{run, stdout};

const PIDS: &str = "cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max";
/// The shell that throws it starts one process and nothing more, so that it is there until it is killed.
const BOMB: &str = "b() { b | b & }; (b) & while :; do :; done";

/// A sandbox for a bomb. Never anywhere without a limit of processes.
async fn shelter(test: &DockerTest, exec_path: &str) -> SandboxHandle {
    let spec = busybox()
        .with_resources(SandboxResources::default().with_memory_mib(256).with_cpu(0.5))
        .with_provider_option("pids_limit", 64)
        .with_provider_option("exec_path", exec_path);
    let handle = test.provider.create(&spec).await.unwrap();
    let limit = stdout(test, &handle, PIDS).await;
    assert_eq!(limit.trim(), "64", "no bomb without a limit");
    handle
}

async fn a_fork_bomb_leaves_a_sandbox_that_works(exec_path: &str) {
    let Some(test) = docker().await else { return };
    let handle = shelter(&test, exec_path).await;
    let mut limit = Duration::from_secs(3);
    let result = loop {
        let bomb = ExecOptions::new(BOMB).with_timeout(limit);
        let result = test.provider.exec(&handle, bomb).await.unwrap();
        let said = result.stderr().unwrap_or_default();
        let was_started =
            result.killed.is_some() || said.contains("not known") || said.contains("did not say");
        // A busy engine may not have thrown it in its time.
        if was_started || limit > Duration::from_secs(40) {
            break result;
        }
        limit *= 4;
    };
    assert_eq!(
        (result.return_code, result.error_type),
        (125, Some(ExecErrorType::Timeout)),
        "{result:?}"
    );
    assert_eq!(result.survivors, Some(0), "{result:?}");
    assert_eq!(
        test.provider.status(&handle).await.unwrap(),
        SandboxStatus::Running
    );
    let left = stdout(&test, &handle, "ls -d /proc/[0-9]* | wc -l").await;
    assert!(
        left.trim().parse::<u32>().is_ok_and(|count| count < 10),
        "{left} processes are left"
    );
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_d27_a_fork_bomb_is_killed_by_its_timeout_and_the_next_command_works() {
    a_fork_bomb_leaves_a_sandbox_that_works("agent").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_d27_a_fork_bomb_over_the_engine_is_killed_by_its_timeout_and_the_next_command_works() {
    a_fork_bomb_leaves_a_sandbox_that_works("engine").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d27_a_fork_bomb_over_the_engine_stays_in_its_sandbox_and_is_removed_with_it() {
    let Some(test) = docker().await else { return };
    let handle = shelter(&test, "engine").await;
    let bomb = ExecOptions::new(BOMB).with_timeout(Duration::from_secs(600));
    let (provider, of_bomb) = (test.provider.clone(), handle.clone());
    let bomb = tokio::spawn(async move { provider.exec(&of_bomb, bomb).await });
    let beside = test.provider.create(&busybox()).await.unwrap();
    assert_eq!(stdout(&test, &beside, "echo works").await, "works\n");
    assert!(!bomb.is_finished(), "the bomb is still at it");
    test.provider.close(&beside).await.unwrap();
    test.provider.close(&handle).await.unwrap();
    let result = bomb.await.unwrap().unwrap();
    assert_eq!(
        (result.return_code, result.error_type),
        (125, Some(ExecErrorType::Sandbox)),
        "{result:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn d27_without_processes_to_give_a_command_says_so_and_the_sandbox_lives() {
    let Some(test) = docker().await else { return };
    let spec = busybox().with_provider_option("pids_limit", 24);
    let handle = test.provider.create(&spec).await.unwrap();
    let line = "i=0; while [ $i -lt 60 ]; do sleep 30 & i=$((i+1)); done; wait";
    let result = test
        .provider
        .exec(
            &handle,
            ExecOptions::new(line).with_timeout(Duration::from_secs(60)),
        )
        .await
        .unwrap();
    // The shell itself fails to fork.
    assert_ne!(result.return_code, 0, "{result:?}");
    let said = result
        .stderr()
        .or_else(|| result.partial_stderr())
        .unwrap_or_default()
        .to_lowercase();
    assert!(said.contains("fork") || said.contains("resource"), "{result:?}");
    assert_eq!(
        test.provider.status(&handle).await.unwrap(),
        SandboxStatus::Running
    );
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d27_a_full_memory_file_system_is_an_ordinary_failure() {
    let Some(test) = docker().await else { return };
    let spec = busybox()
        .with_resources(SandboxResources::default().with_memory_mib(64))
        .with_provider_option("tmpfs", json!({"/small": "size=2m"}));
    let handle = test.provider.create(&spec).await.unwrap();
    let full = run(&test, &handle, "dd if=/dev/zero of=/small/f bs=1M count=8").await;
    assert_eq!((full.return_code, full.error_type), (1, None), "{full:?}");
    assert!(
        full.stderr().unwrap_or_default().contains("No space left"),
        "{full:?}"
    );
    assert_eq!(
        stdout(&test, &handle, "rm /small/f; echo x > /small/f; cat /small/f").await,
        "x\n"
    );
    test.provider.close(&handle).await.unwrap();
}

/// The program that takes the upload ends in the middle of it, and its engine resets the connection.
#[tokio::test(flavor = "multi_thread")]
async fn d27_an_upload_into_a_full_memory_file_system_is_told_as_that() {
    let Some(test) = docker().await else { return };
    for exec_path in ["auto", "engine"] {
        let spec = busybox()
            .with_provider_option("exec_path", exec_path)
            .with_provider_option("tmpfs", json!({"/small": "size=1m"}));
        let handle = test.provider.create(&spec).await.unwrap();
        let files = test.provider.as_files().unwrap();
        let upload = async |bytes: usize| {
            let source = UploadSource::Bytes(vec![b'x'; bytes].into());
            let options = UploadOptions::default();
            files.upload(&handle, source, "/small/f", &options).await
        };
        for bytes in [2 << 20, 16 << 20] {
            let uploading = tokio::time::timeout(Duration::from_secs(180), upload(bytes));
            let error = uploading.await.expect("it ends").unwrap_err();
            assert_eq!(
                error.kind(),
                ErrorKind::ResourceExhausted(Resource::Disk),
                "{exec_path}: {}",
                error.report()
            );
        }
        assert_eq!(stdout(&test, &handle, "ls -A /small").await, "", "{exec_path}");
        upload(100).await.unwrap();
        test.provider.close(&handle).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d27_memory_that_fills_the_sandbox_kills_in_the_sandbox_only() {
    let Some(test) = docker().await else { return };
    let spec = gym_sandbox::SandboxSpec::new(DEBIAN)
        .with_resources(SandboxResources::default().with_memory_mib(64))
        .with_provider_option("shm_size", "512m");
    let handle = test.provider.create(&spec).await.unwrap();
    // The file is memory of the sandbox and stays when its writer is killed: no later command has memory to run with, and
    // says why.
    for line in [
        "dd if=/dev/zero of=/dev/shm/f bs=1M count=300",
        "cat /dev/zero | head -c 50000000 | tail | wc -c",
    ] {
        let result = run(&test, &handle, line).await;
        assert!(
            !result.is_success() && result.error_type.is_none(),
            "{line}: {result:?}"
        );
        assert!(
            result.hint.as_deref().is_some_and(|hint| hint.contains("OOM")),
            "{line}: {result:?}"
        );
        assert_eq!(
            test.provider.status(&handle).await.unwrap(),
            SandboxStatus::Running
        );
    }
    let beside = test.provider.create(&busybox()).await.unwrap();
    assert_eq!(stdout(&test, &beside, "echo works").await, "works\n");
    test.provider.close(&beside).await.unwrap();
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d27_d32_a_flood_of_logs_and_output_stays_bounded() {
    let Some(test) = docker().await else { return };
    // The main process floods the log of the engine, which the preset caps; a command floods its output, of which little
    // is kept.
    let spec = busybox()
        .with_provider_option("preset", "hardened")
        .with_provider_option("exec_path", "engine")
        .with_entrypoint([
            "sh",
            "-c",
            "yes 0123456789012345678901234567890123456789012345678901234567890 | head -c 60000000; echo done; exec sleep 1000",
        ]);
    let handle = test.provider.create(&spec).await.unwrap();
    let flood = ExecOptions::new("yes | head -c 500000000")
        .with_output_cap(OutputCap::Bytes(1 << 20))
        .with_timeout(Duration::from_secs(900));
    let result = test.provider.exec(&handle, flood).await.unwrap();
    assert!(
        result.is_success(),
        "{:?} {:?}",
        result.return_code,
        result.error_type
    );
    assert_eq!(result.bytes().stdout, 500_000_000);
    assert!(result.truncated().stdout);
    let mut last = Vec::new();
    for _ in 0..1800 {
        last = test.provider.inspect(&handle).await.unwrap().last_log_lines;
        if last.last().is_some_and(|line| line.contains("done")) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(last.last().is_some_and(|line| line.contains("done")), "{last:?}");
    let host = crate::inspect(&handle).await;
    if let Some(path) = host.log_path.filter(|path| std::path::Path::new(path).exists()) {
        let kept: u64 = std::fs::read_dir(std::path::Path::new(&path).parent().unwrap())
            .unwrap()
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name().to_string_lossy().contains("json.log"))
            .map(|entry| entry.metadata().map_or(0, |data| data.len()))
            .sum();
        assert!(kept > 0 && kept < 25_000_000, "{kept} bytes of logs");
    } else {
        eprintln!("skipped: the engine's logs are not on this machine");
    }
    assert_eq!(stdout(&test, &handle, "echo works").await, "works\n");
    test.provider.close(&handle).await.unwrap();
}
