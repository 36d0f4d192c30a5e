//! Copies into and out of the sandbox of a `run`.

use std::fs;

use crate::support::{Call, engine_or_skip, expected};

#[tokio::test]
async fn a_file_goes_in_and_another_comes_out() {
    let _docker = engine_or_skip!();
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("in.bin"), folder.path().join("made/out.bin"));
    fs::write(&source, b"a\0\xff\n").unwrap();
    let answer = Call::run(&[
        "--upload",
        &format!("{}:/deep/in.bin", source.display()),
        "--download",
        &format!("/tmp/out.bin:{}", target.display()),
        "--shell",
        "cat /deep/in.bin /deep/in.bin > /tmp/out.bin",
    ])
    .clean_answer()
    .await;
    assert_eq!(answer.text(), expected(0, "", ""));
    assert_eq!(fs::read(target).unwrap(), b"a\0\xff\na\0\xff\n");
}

#[tokio::test]
async fn a_directory_goes_in_as_its_content_and_comes_out_again() {
    let _docker = engine_or_skip!();
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("project"), folder.path().join("copy"));
    fs::create_dir_all(source.join("sub")).unwrap();
    fs::write(source.join("sub/file"), "x").unwrap();
    let answer = Call::run(&[
        "--workdir",
        "/work",
        "--upload",
        &format!("{}:/work", source.display()),
        "--download",
        &format!("/work:{}", target.display()),
        "--shell",
        "cat sub/file; echo made > made",
    ])
    .clean_answer()
    .await;
    assert_eq!(answer.text(), expected(0, "x", ""));
    assert_eq!(fs::read_to_string(target.join("sub/file")).unwrap(), "x");
    assert_eq!(fs::read_to_string(target.join("made")).unwrap(), "made\n");
}

#[tokio::test]
async fn a_download_happens_also_when_the_command_failed_or_ran_out_of_time() {
    let _docker = engine_or_skip!();
    for (line, timeout, code) in [
        ("echo report > /tmp/report; exit 9", "120s", 9),
        ("echo report > /tmp/report; sleep 600", "10s", 124),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("report");
        let download = format!("/tmp/report:{}", target.display());
        let answer = Call::run(&["--timeout", timeout, "--download", &download, "--shell", line])
            .clean_answer()
            .await;
        assert_eq!(answer.code, Some(code), "{:?}", answer.text());
        assert_eq!(fs::read_to_string(target).unwrap(), "report\n");
    }
}

#[tokio::test]
async fn a_failed_download_never_hides_the_command_s_code() {
    let _docker = engine_or_skip!();
    let folder = tempfile::tempdir().unwrap();
    let download = format!("/nonexistent:{}", folder.path().join("x").display());
    for (line, code) in [("exit 9", 9), ("exit 0", 125)] {
        let answer = Call::run(&["--download", &download, "--shell", line])
            .clean_answer()
            .await;
        let (answered, stdout, stderr) = answer.text();
        assert_eq!((answered, stdout.as_str()), (Some(code), ""), "{stderr}");
        assert!(stderr.starts_with("error: download `gym-sandbox-"), "{stderr}");
    }
}
