//! What `compose` refuses before any engine is asked, and what it does where it cannot tell what it did.

use std::fs;

use crate::compose_project::{TEXT, folder};
use crate::example::left_of_run;
use crate::support::{Call, engine_or_skip};

/// `compose` with an engine that can't be reached: these calls must not get that far.
async fn nowhere(folder: &tempfile::TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut call =
        Call::new(&[&["compose"], arguments].concat()).env("DOCKER_HOST", "unix:///nonexistent/engine.sock");
    call.command.current_dir(folder.path());
    call.answer().await.text()
}

#[tokio::test]
async fn files_that_cannot_be_used_have_one_exit_code_in_every_command() {
    let commands: [(&str, &[&str]); 4] = [
        ("config", &[]),
        ("plan", &[]),
        ("up", &[]),
        ("run", &["main", "--", "true"]),
    ];
    for (file, text, said) in [
        ("missing.yaml", None, "missing.yaml"),
        ("bad.yaml", Some("services: [\n"), "bad.yaml"),
        ("wrong.yaml", Some("services: {main: {imag: x}}\n"), "imag"),
        ("binary.yaml", Some("\u{0}\u{1}"), "binary.yaml"),
        (".", None, ""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        if let Some(text) = text {
            std::fs::write(folder.path().join(file), text).unwrap();
        }
        for (command, more) in commands {
            let (code, stdout, stderr) = nowhere(&folder, &[&[command, "-f", file], more].concat()).await;
            assert_eq!(
                (code, stdout.as_str()),
                (Some(2), ""),
                "{command} {file}: {stderr}"
            );
            assert!(stderr.contains(said), "{command} {file}: {stderr}");
        }
    }
    // No file at all, and a standard input that can't be read.
    let empty = tempfile::tempdir().unwrap();
    for (command, more) in commands {
        let (code, _, stderr) = nowhere(&empty, &[&[command], more].concat()).await;
        assert_eq!(code, Some(2), "{command}: {stderr}");
        let mut call = Call::new(&[&["compose", command, "-f", "-"], more].concat());
        let folder = std::fs::File::open(empty.path()).unwrap();
        call.command.stdin(folder);
        let output = call.command.output().await.unwrap();
        assert_eq!(output.status.code(), Some(2), "{command} -f -: {output:?}");
    }
}

#[tokio::test]
async fn a_service_that_the_files_do_not_define_is_refused_before_anything_is_made() {
    let folder = folder(&format!("{TEXT}  debug: {{image: 'x', profiles: [tools]}}\n"));
    let (code, stdout, stderr) = nowhere(&folder, &["run", "mian", "--", "true"]).await;
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
    assert!(
        stderr.contains("there is no service `mian`; there are db, main"),
        "{stderr}"
    );
    let (code, _, stderr) = nowhere(&folder, &["run", "debug", "--", "true"]).await;
    assert_eq!(code, Some(2), "{stderr}");
    assert!(
        stderr.contains("it is in the profiles tools") && stderr.contains("--profile"),
        "{stderr}"
    );
}

#[tokio::test]
async fn what_is_no_network_is_not_shared() {
    let folder = folder(TEXT);
    for network in ["none", "host", "bridge", "container:x", ""] {
        for command in [&["plan"][..], &["up"], &["run", "main", "--", "true"]] {
            let option = ["--shared-network", network];
            let arguments = [&command[..1], &option, &command[1..]].concat();
            let (code, stdout, stderr) = nowhere(&folder, &arguments).await;
            assert_eq!((code, stdout.as_str()), (Some(2), ""), "{arguments:?}: {stderr}");
            assert!(
                stderr.contains(&format!("`{network}` can't be the shared network")),
                "{arguments:?}: {stderr}"
            );
        }
    }
}

#[tokio::test]
async fn d12_what_is_no_image_and_files_that_are_not_there_are_refused_all_at_once() {
    let folder = folder(
        "
services:
  main:
    image: A B
    secrets: [token, {source: token, target: again}]
    configs: [settings]
  other:
    image: 'gym-sandbox/busybox:test'
    secrets: [token, here]
  Built: {build: {context: ., tags: ['no tag']}}
secrets:
  token: {file: ./nowhere/token}
  here: {file: ./compose.yaml}
  unused: {file: ./nowhere/unused}
configs: {settings: {file: ./settings}}
",
    );
    let path = |name: &str| {
        folder
            .path()
            .canonicalize()
            .unwrap()
            .join(name)
            .display()
            .to_string()
    };
    let expected = [
        "services.main.image: `A B` is not an image reference".to_owned(),
        "services.Built.image: `p-Built` is not an image reference: the name holds upper-case letters (give the \
         service an `image`"
            .to_owned(),
        "services.Built.build.tags.0: `no tag` is not an image reference".to_owned(),
        format!("services.main.secrets.0: the file `{}` of secret `token` does not exist", path("nowhere/token")),
        "services.main.secrets.1: the file".to_owned(),
        format!("services.main.configs.0: the file `{}` of config `settings` does not exist", path("settings")),
        "services.other.secrets.0: the file".to_owned(),
    ];
    let commands: [(&str, &[&str]); 3] = [("plan", &[]), ("up", &[]), ("run", &["main", "--", "true"])];
    for (command, more) in commands {
        let arguments = [&[command, "-p", "p"], more].concat();
        let (code, stdout, stderr) = nowhere(&folder, &arguments).await;
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{command}: {stderr}");
        for part in &expected {
            assert!(stderr.contains(part), "{command}: {part}: {stderr}");
        }
        assert_eq!(
            stderr.matches("services.").count(),
            expected.len(),
            "{command}: {stderr}"
        );
    }
}

#[tokio::test]
async fn a_missing_file_is_named_once() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["config", "plan", "up"] {
        let (code, _, stderr) = nowhere(&folder, &[command, "-f", "missing.yaml"]).await;
        assert_eq!(code, Some(2), "{command}: {stderr}");
        assert_eq!(stderr.matches("missing.yaml").count(), 1, "{command}: {stderr}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_project_that_can_t_be_told_of_is_taken_down() {
    let docker = engine_or_skip!();
    let folder = folder(TEXT);
    for options in [&["-d"][..], &["-d", "--json"], &["--json"]] {
        let mut call = Call::new(&[&["compose", "up"], options].concat());
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        call.command
            .current_dir(folder.path())
            .arg("-p")
            .arg(&call.run)
            .stdout(full);
        let run = call.run.clone();
        let answer = call.answer().await;
        assert_eq!(answer.code, Some(1), "{options:?}: {:?}", answer.text());
        let said = answer.stderr();
        assert!(
            said.contains("the output could not be written\n  caused by: No space left on device"),
            "{options:?}: {said}"
        );
        let left = left_of_run(&docker, &run).await;
        assert!(left.is_empty(), "{options:?}: {left:?}");
    }
}
