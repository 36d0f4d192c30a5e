//! How much memory a transfer takes: a test program of its own, so that nothing else counts. It runs one after the other.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers beside the test fail by a panic, too, and the numbers are worth reading"
)]

mod common;

use gym_sandbox::{
    DownloadOptions, DownloadTarget, SandboxProvider, SandboxSpec, UploadOptions, UploadSource,
};
use tokio::io::AsyncReadExt;

const MIB: u64 = 1 << 20;

/// The most that a transfer may add to this process, whatever its size.
const GROWTH_KIB: u64 = 16 * 1024;

/// A line of /proc/self/status, in KiB.
fn status(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.trim_start_matches(':')
        .split_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

/// Sets the high-water mark of this process back to what it has now.
fn reset_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

fn check(what: &str, before: u64) {
    let growth = status("VmHWM").saturating_sub(before);
    eprintln!("{what}: {growth} KiB of growth");
    assert!(growth <= GROWTH_KIB, "{what} took {growth} KiB");
}

// With so many threads on every machine: each keeps memory of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b15_transfers_take_bounded_memory_both_ways() {
    let Some(test) = common::docker().await else {
        return;
    };
    let size = if common::long_tests_are_wanted() {
        1024 * MIB
    } else {
        256 * MIB
    };
    let handle = test
        .provider
        .create(&SandboxSpec::new(common::BUSYBOX))
        .await
        .unwrap();
    let files = test.provider.as_files().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (local, back) = (folder.path().join("large"), folder.path().join("back"));
    let file = std::fs::File::create(&local).unwrap();
    file.set_len(size).unwrap();
    let up = UploadOptions::default();
    let down = DownloadOptions::default();
    // The first transfer brings in what every one needs.
    files
        .upload(&handle, UploadSource::Bytes("x".into()), "/warm", &up)
        .await
        .unwrap();

    reset_peak();
    let before = status("VmRSS");
    let sent = files
        .upload(&handle, UploadSource::Path(&local), "/tmp/large", &up)
        .await
        .unwrap();
    assert_eq!(sent.bytes, size);
    check("upload of a file", before);

    reset_peak();
    let before = status("VmRSS");
    let taken = files
        .download(&handle, "/tmp/large", DownloadTarget::Path(&back), &down)
        .await
        .unwrap();
    assert_eq!(taken.bytes, size);
    check("download of a file", before);
    assert_eq!(std::fs::metadata(&back).unwrap().len(), size);

    reset_peak();
    let before = status("VmRSS");
    let source = UploadSource::reader(tokio::io::repeat(7).take(size), Some(size));
    files.upload(&handle, source, "/tmp/large", &up).await.unwrap();
    check("upload of a reader", before);

    reset_peak();
    let before = status("VmRSS");
    let mut sink = tokio::io::sink();
    let taken = files
        .download(&handle, "/tmp/large", DownloadTarget::Writer(&mut sink), &down)
        .await
        .unwrap();
    assert_eq!(taken.bytes, size);
    check("download to a writer", before);
    test.provider.close(&handle).await.unwrap();
}
