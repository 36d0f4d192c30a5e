//! `cp`: files and directories both ways, what is refused, and who sees how far it is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use tokio::process::Command;

use crate::kept::{create, exec, remove};
use crate::support::{Call, DEADLINE, engine_or_skip, expected};

async fn cp(arguments: &[&str]) -> (Option<i32>, String, String) {
    Call::new(&[&["cp"], arguments].concat()).answer().await.text()
}

#[tokio::test]
async fn a_file_goes_in_and_comes_out_without_a_word() {
    let _docker = engine_or_skip!();
    let kept = create(&["--workdir", "/work"]).await;
    let folder = tempfile::tempdir().unwrap();
    let (source, back) = (folder.path().join("in.bin"), folder.path().join("made/out.bin"));
    fs::write(&source, b"a\0\xff\n").unwrap();
    let (source, back) = (source.to_str().unwrap(), back.to_str().unwrap());
    let inside = |path: &str| format!("{}:{path}", kept.id);

    assert_eq!(cp(&[source, &inside("deep/")]).await, expected(0, "", ""));
    assert_eq!(
        cp(&[&inside("/work/deep/in.bin"), back]).await,
        expected(0, "", "")
    );
    assert_eq!(fs::read(back).unwrap(), b"a\0\xff\n");

    let marked = ["--owner", "12:34", "--mode", "4750", source, &inside("/marked")];
    assert_eq!(cp(&marked).await, expected(0, "", ""));
    assert_eq!(
        exec(&kept.id, &["--", "stat", "-c", "%u:%g %a", "/marked"]).await,
        expected(0, "12:34 4750\n", "")
    );

    let answer = Call::new(&["cp", "--json", source, &inside("/again")])
        .answer()
        .await;
    assert_eq!((answer.code, answer.stderr().as_str()), (Some(0), ""));
    assert_eq!(
        (&answer.json()["bytes"], &answer.json()["entries"]),
        (&4.into(), &1.into())
    );
    remove(&kept).await;
}

#[tokio::test]
async fn standard_input_and_output_are_ends_too() {
    let _docker = engine_or_skip!();
    let kept = create(&[]).await;
    let inside = format!("{}:/work/file", kept.id);
    let sent = Call::new(&["cp", "-", &inside]).input(b"x\0y");
    assert_eq!(sent.answer().await.text(), expected(0, "", ""));
    let answer = Call::new(&["cp", &inside, "-"]).answer().await;
    assert_eq!((answer.code, answer.stderr().as_str()), (Some(0), ""));
    assert_eq!(answer.stdout, b"x\0y");
    remove(&kept).await;
}

#[tokio::test]
async fn a_directory_goes_in_as_its_content_and_comes_out_again() {
    let _docker = engine_or_skip!();
    let kept = create(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let (source, back) = (folder.path().join("project"), folder.path().join("back"));
    fs::create_dir_all(source.join("sub/empty")).unwrap();
    fs::write(source.join("sub/tool"), "x").unwrap();
    fs::set_permissions(source.join("sub/tool"), fs::Permissions::from_mode(0o750)).unwrap();
    std::os::unix::fs::symlink("sub/tool", source.join("link")).unwrap();
    let inside = format!("{}:/work", kept.id);

    assert_eq!(
        cp(&[source.to_str().unwrap(), &inside]).await,
        expected(0, "", "")
    );
    assert_eq!(cp(&[&inside, back.to_str().unwrap()]).await, expected(0, "", ""));
    assert_eq!(fs::read_to_string(back.join("link")).unwrap(), "x");
    assert_eq!(
        fs::read_link(back.join("link")).unwrap().to_str(),
        Some("sub/tool")
    );
    let mode = fs::metadata(back.join("sub/tool")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o750);
    assert!(back.join("sub/empty").is_dir());
    remove(&kept).await;
}

#[tokio::test]
async fn what_can_t_be_copied_is_1_and_leaves_nothing() {
    let _docker = engine_or_skip!();
    let kept = create(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let local = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(local("file"), "x").unwrap();
    let inside = |path: &str| format!("{}:{path}", kept.id);
    for (from, to, named) in [
        (local("missing"), inside("/x"), "missing"),
        (inside("/missing"), local("new/out"), "/missing"),
        (local("file"), inside("/etc"), "/etc"),
        (inside("/etc/passwd/"), local("new/out"), "/etc/passwd"),
        (local("file"), "gym-sandbox-00:/x".to_owned(), "gym-sandbox-00"),
    ] {
        let (code, stdout, stderr) = cp(&[&from, &to]).await;
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{from} {to}: {stderr}");
        assert!(
            stderr.starts_with("error: ") && stderr.contains(named),
            "{from} {to}: {stderr}"
        );
    }
    assert!(!fs::exists(local("new")).unwrap());
    remove(&kept).await;
}

/// Gives the command a terminal for all its streams. None, with a word about it, where no program for that is here.
async fn on_a_terminal(arguments: &[&str]) -> Option<String> {
    let words = [&[env!("CARGO_BIN_EXE_gym-sandbox"), "cp"], arguments].concat();
    let line: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let script = Command::new("script")
        .args(["-q", "-e", "-c", &line.join(" "), "/dev/null"])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    match tokio::time::timeout(DEADLINE, script).await.expect("it ends") {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{text}");
            Some(text)
        }
        Err(error) => {
            eprintln!("skipped, there is no `script` to make a terminal: {error}");
            None
        }
    }
}

#[tokio::test]
async fn progress_is_shown_on_a_terminal_and_nowhere_else() {
    let _docker = engine_or_skip!();
    let kept = create(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large");
    fs::File::create(&large).unwrap().set_len(3 << 20).unwrap();
    let (large, inside) = (large.to_str().unwrap(), format!("{}:/large", kept.id));
    assert_eq!(cp(&[large, &inside]).await, expected(0, "", ""));
    if let Some(shown) = on_a_terminal(&[large, &inside]).await {
        assert!(shown.contains(" of 3072 KiB ("), "{shown:?}");
        assert!(
            shown.ends_with("\r\u{1b}[K"),
            "the line is cleared at the end: {shown:?}"
        );
    }
    remove(&kept).await;
}
