//! `compose config`: what it prints where, and what it can see. Needs no engine.

use crate::support::{Call, expected};

/// A folder with these files.
fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

async fn config(folder: &tempfile::TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut call = Call::new(&[&["compose", "config"], arguments].concat()).env("SEEN", "from-the-process");
    call.command.current_dir(folder.path());
    call.answer().await.text()
}

const WEB: &str = "services:\n  web:\n    image: nginx:${SEEN:-none}\n";

#[tokio::test]
async fn the_project_is_data_in_the_form_that_is_asked_for() {
    let folder = project(&[("compose.yaml", WEB)]);
    let yaml = "name: p\nnetworks:\n  default:\n    name: p_default\nservices:\n  web:\n    image: nginx:none\n    networks:\n      default: null\n";
    let (code, stdout, stderr) = config(&folder, &["-p", "p"]).await;
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let parts = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(parts(&stdout), parts(yaml));
    for form in [&["--format", "json"][..], &["--json"]] {
        let (code, stdout, _) = config(&folder, &[&["-p", "p"], form].concat()).await;
        let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(
            (code, &json["services"]["web"]["image"]),
            (Some(0), &"nginx:none".into())
        );
    }
}

#[tokio::test]
async fn variables_of_the_process_are_seen_only_when_passed_on() {
    let folder = project(&[("compose.yaml", WEB), ("one.env", "SEEN=file\n")]);
    for (arguments, seen) in [
        (&[][..], "none"),
        (&["--env", "SEEN"], "from-the-process"),
        (&["--env", "SEEN=given"], "given"),
        (&["--env-from-process"], "from-the-process"),
        (&["--env-from-process", "--env", "SEEN=given"], "given"),
        (&["--env-file", "one.env"], "file"),
        (&["--env-file", "one.env", "--env", "SEEN=given"], "given"),
    ] {
        let answer = config(&folder, &[&["--images"], arguments].concat()).await;
        assert_eq!(
            answer,
            expected(0, &format!("nginx:{seen}\n"), ""),
            "{arguments:?}"
        );
    }
}

#[tokio::test]
async fn services_and_images_are_lists() {
    let text =
        "services:\n  b: {image: b, depends_on: [c]}\n  a: {build: ., profiles: [p]}\n  c: {image: c}\n";
    let folder = project(&[("compose.yaml", text)]);
    let answer = config(&folder, &["--services"]).await;
    assert_eq!(answer, expected(0, "c\nb\n", ""));
    let answer = config(&folder, &["-p", "x", "--images", "--profile", "*"]).await;
    assert_eq!(answer, expected(0, "x-a\nb\nc\n", ""));
    let (code, stdout, _) = config(&folder, &["--services", "--json"]).await;
    assert_eq!((code, stdout.as_str()), (Some(0), "[\n  \"c\",\n  \"b\"\n]\n"));
}

#[tokio::test]
async fn variables_can_stay_as_they_are_written() {
    let folder = project(&[("compose.yaml", WEB)]);
    let (code, stdout, _) = config(&folder, &["-p", "p", "--no-interpolate"]).await;
    assert_eq!(code, Some(0));
    assert!(stdout.contains("image: nginx:${SEEN:-none}"), "{stdout}");
}

#[tokio::test]
async fn files_lie_over_one_another_and_standard_input_is_one() {
    let folder = project(&[
        ("a.yaml", WEB),
        ("sub/b.json", "{\"services\": {\"web\": {\"build\": \".\"}}}"),
    ]);
    let mut call = Call::new(&[
        "compose",
        "config",
        "-f",
        "a.yaml",
        "-f",
        "sub/b.json",
        "-f",
        "-",
        "--json",
    ])
    .input(b"services: {web: {image: \"over:1\"}}");
    call.command.current_dir(folder.path());
    let (code, stdout, stderr) = call.answer().await.text();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["services"]["web"]["image"], "over:1");
    // Relative paths are relative to the folder of the first file.
    let context = json["services"]["web"]["build"]["context"].as_str().unwrap();
    assert!(!context.ends_with("/sub"), "{context}");
}

#[tokio::test]
async fn mistakes_are_shown_with_their_lines_and_nothing_is_data() {
    let folder = project(&[(
        "compose.yaml",
        "services:\n  web:\n    imag: x\n    depends_on: [db]\n",
    )]);
    let (code, stdout, stderr) = config(&folder, &[]).await;
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    for said in [
        "additional properties 'imag' not allowed",
        "compose.yaml:3:5",
        "3 |     imag: x",
        "did you mean `image`?",
        "depends on undefined service \"db\"",
    ] {
        assert!(stderr.contains(said), "{said}: {stderr}");
    }
}

#[tokio::test]
async fn files_outside_are_read_only_when_that_is_allowed() {
    let folder = project(&[
        (
            "p/compose.yaml",
            "services: {web: {extends: {file: ../base.yaml, service: web}}}\n",
        ),
        ("base.yaml", "services: {web: {image: base}}\n"),
    ]);
    let file = ["-f", "p/compose.yaml", "--images"];
    let (code, stdout, stderr) = config(&folder, &file).await;
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert!(stderr.contains("is outside of the project"), "{stderr}");
    let answer = config(&folder, &[&file[..], &["--allow-outside-paths"]].concat()).await;
    assert_eq!(answer, expected(0, "base\n", ""));
}

#[tokio::test]
async fn traps_are_taken_as_strictly_as_asked() {
    let folder = project(&[("compose.yaml", "services: {web: {image: x, command: \"a; b\"}}\n")]);
    for (strictness, code, said) in [
        ("careful", 0, "warning"),
        ("compatible", 0, "warning"),
        ("strict", 2, "error"),
    ] {
        let (got, _, stderr) = config(&folder, &["--strictness", strictness]).await;
        assert_eq!(got, Some(code), "{strictness}: {stderr}");
        assert!(
            stderr.starts_with(said) && stderr.contains("the command is cut here"),
            "{stderr}"
        );
    }
}

#[tokio::test]
async fn wrong_usage_is_2() {
    let folder = project(&[]);
    for arguments in [
        &["--services", "--images"][..],
        &["--format", "xml"],
        &["-f", "-", "-f", "-"],
        &["--env", "=x"],
    ] {
        let (code, stdout, stderr) = config(&folder, arguments).await;
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(!stderr.is_empty());
    }
}
