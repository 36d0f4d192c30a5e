//! The loader from outside: diagnostics, variables, paths, hostile input.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use gym_sandbox::compose::config::{self, Format};
use gym_sandbox::compose::{
    ComposeLoader, Diagnostics, Interpolation, LoadOptions, Loaded, MemoryFiles, OutsidePaths, Severity,
    Source, Strictness, render,
};

fn options() -> LoadOptions {
    LoadOptions::new()
        .with_working_directory("/project")
        .with_project_name("t")
        .with_home("/home/user")
        .with_file(Source::path("compose.yaml"))
}

fn load_files(files: &[(&str, &str)], options: LoadOptions) -> Result<Loaded, Diagnostics> {
    let files = files.iter().fold(MemoryFiles::new(), |files, (path, text)| {
        files.with(format!("/project/{path}"), *text)
    });
    ComposeLoader::with_files(options, files).load()
}

fn load(text: &str) -> Result<Loaded, Diagnostics> {
    load_files(&[("compose.yaml", text)], options())
}

fn lines(diagnostics: &Diagnostics) -> Vec<String> {
    diagnostics.iter().map(ToString::to_string).collect()
}

#[test]
fn all_mistakes_come_at_once_in_file_order_with_their_place() {
    let base =
        "services:\n  web:\n    imag: nginx\n    ports: [\"x:80\"]\n  db:\n    image: ${DB:?which one}\n";
    let over = "services:\n  web:\n    init: maybe\n  cache:\n    depends_on: [nope]\n    image: c\n";
    let options = options().with_file(Source::path("over.yaml"));
    let diagnostics = load_files(&[("compose.yaml", base), ("over.yaml", over)], options).unwrap_err();
    assert_eq!(
        lines(&diagnostics),
        [
            "/project/compose.yaml:3:5: services.web.imag: additional properties 'imag' not allowed",
            "/project/compose.yaml:4:13: services.web.ports.0: invalid hostPort: x",
            "/project/compose.yaml:6:12: services.db.image: error while interpolating services.db.image: required \
             variable DB is missing a value: which one",
            "/project/over.yaml:3:11: services.web.init: failed to cast to expected type: invalid boolean: maybe",
            "/project/over.yaml:5:18: services.cache.depends_on.nope: service \"cache\" depends on undefined service \
             \"nope\"",
        ]
    );
    assert!(
        diagnostics
            .iter()
            .all(|diagnostic| diagnostic.severity == Severity::Error)
    );
    assert_eq!(diagnostics.0[0].hint.as_deref(), Some("did you mean `image`?"));
    let page = render(&diagnostics, |path| {
        path.ends_with("compose.yaml").then(|| base.to_owned())
    });
    assert!(
        page.contains("3 |     imag: nginx\n  |     ^\n  = hint: did you mean `image`?"),
        "{page}"
    );
}

#[test]
fn a_service_with_a_mistake_is_not_blamed_for_what_the_mistake_took() {
    let text = "services:\n  a: {image: 1.10}\n  b: {image: x, volumes: [v:/dd], depends_on: [a]}\nvolumes: {v: {foo: 1}}\n";
    let diagnostics = load_files(
        &[("compose.yaml", text)],
        options().with_strictness(Strictness::Compatible),
    )
    .unwrap_err();
    assert_eq!(
        lines(&diagnostics),
        [
            "/project/compose.yaml:2:7: services.a.image: must be a string",
            "/project/compose.yaml:4:15: volumes.v.foo: additional properties 'foo' not allowed",
        ]
    );
}

#[test]
fn traps_are_warnings_errors_or_both_as_asked() {
    let text = "services:\n  a:\n    image: x\n    command: echo a && echo b\n    mem_limit: 1.5e9\n    volumes:\n      \
                - v:/d\n      - /s:/t:bogus\n      - {type: tmpfs, target: /u, tmpfs: {mode: 1777}}\n    \
                environment: {HIDDEN: }\n    env_file: a.env\n    healthcheck: {interval: -5s}\n    \
                ports: [{target: 80, published: 80}, \"80:80\"]\n    init: yes\n    hostname: $NOPE\n";
    let files = [("compose.yaml", text), ("a.env", "HIDDEN=x\n")];
    let with = |strictness| load_files(&files, options().with_strictness(strictness));
    let compatible = with(Strictness::Compatible).expect("docker compose accepts it");
    let words = [
        "the command is cut here: `&& echo b` is dropped",
        "1500000000",
        "a volume name of one letter",
        "the mount option `bogus` is unknown",
        "the mode 1777 is decimal",
        "the duration -5s is below zero",
        "published twice",
        "HIDDEN has no value here",
        "\"yes\" for boolean",
        "the \"NOPE\" variable is not set",
    ];
    let warnings = compatible.warnings.to_string();
    // The float prints as Go prints it.
    let found = words
        .iter()
        .filter(|word| warnings.contains(**word) || warnings.contains("1.5e+09"))
        .count();
    assert_eq!(found, words.len(), "{warnings}");
    let careful = lines(&with(Strictness::Careful).unwrap_err());
    assert_eq!(careful.len(), 3, "{careful:?}");
    let strict = lines(&with(Strictness::Strict).unwrap_err());
    assert_eq!(strict.len(), 8, "{strict:?}");
}

#[test]
fn the_process_environment_is_not_seen() {
    let text = "services: {a: {image: \"x${PATH:-none}\", environment: [PATH]}}";
    let loaded = load(text).unwrap();
    assert_eq!(loaded.project.services["a"].image, "xnone");
    assert_eq!(loaded.project.services["a"].environment["PATH"], None);
}

#[test]
fn reading_outside_of_the_project_is_refused_unless_allowed() {
    let files = [
        (
            "compose.yaml",
            "services: {a: {image: x, env_file: ../secret.env, extends: {file: ../o.yaml, service: o}}}\n",
        ),
        (
            "inc.yaml",
            "include: [../o.yaml, /etc/passwd]\nservices: {a: {image: x, label_file: ../secret.env}}\n",
        ),
        ("../secret.env", "S=1\n"),
        ("../o.yaml", "services: {o: {image: o}}\n"),
    ];
    let with = |name: &str, outside| {
        let mut options = options().with_outside_paths(outside);
        options.files = vec![Source::path(name)];
        let tree = files.iter().fold(MemoryFiles::new(), |tree, (path, text)| {
            tree.with(
                path.strip_prefix("../")
                    .map_or(format!("/project/{path}"), |path| format!("/{path}")),
                *text,
            )
        });
        ComposeLoader::with_files(options, tree).load()
    };
    let refused = with("compose.yaml", OutsidePaths::Refuse)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("/o.yaml is outside of the project"), "{refused}");
    let refused = with("inc.yaml", OutsidePaths::Refuse).unwrap_err().to_string();
    assert!(
        refused.contains("/o.yaml is outside") && refused.contains("/etc/passwd is outside"),
        "{refused}"
    );
    let loaded = with("compose.yaml", OutsidePaths::Allow).unwrap();
    assert_eq!(
        loaded.project.services["a"].environment["S"].as_deref(),
        Some("1")
    );
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_does_not_lead_out_of_the_project() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(folder.path().join("secret.env"), "S=1\n").unwrap();
    std::fs::write(
        project.join("compose.yaml"),
        "services: {a: {image: x, env_file: link.env}}\n",
    )
    .unwrap();
    std::os::unix::fs::symlink("../secret.env", project.join("link.env")).unwrap();
    let options = LoadOptions::new()
        .with_working_directory(&project)
        .with_project_name("t")
        .with_file(Source::path("compose.yaml"));
    let refused = ComposeLoader::new(options.clone())
        .load()
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("link.env is outside of the project"),
        "{refused}"
    );
    assert!(
        ComposeLoader::new(options.with_outside_paths(OutsidePaths::Allow))
            .load()
            .is_ok()
    );
}

#[test]
fn default_files_and_variables_of_compose_are_used() {
    let files = MemoryFiles::new()
        .with(
            "/project/compose.yml",
            "services: {a: {image: new}, p: {image: p, profiles: [q]}}\n",
        )
        .with("/project/docker-compose.yml", "services: {a: {image: old}}\n")
        .with("/project/compose.override.yaml", "services: {a: {hostname: h}}\n")
        .with(
            "/project/.env",
            "COMPOSE_PROFILES=q\nCOMPOSE_PROJECT_NAME=named\n",
        );
    let options = LoadOptions::new().with_working_directory("/project/sub");
    let loaded = ComposeLoader::with_files(options, files).load().unwrap();
    let service = &loaded.project.services["a"];
    assert_eq!((service.image.as_str(), service.hostname.as_str()), ("new", "h"));
    assert_eq!(loaded.project.name, "named");
    assert!(loaded.project.services.contains_key("p"));
    let nothing = ComposeLoader::with_files(
        LoadOptions::new().with_working_directory("/x"),
        MemoryFiles::new(),
    )
    .load();
    assert!(
        nothing
            .unwrap_err()
            .to_string()
            .contains("no configuration file provided")
    );
}

#[test]
fn secrets_from_variables_are_known_but_never_shown() {
    let text = "services: {a: {image: x, secrets: [s], configs: [c]}}\nsecrets: {s: {environment: TOKEN}}\n\
                configs: {c: {environment: TOKEN}}\n";
    let options = options().with_variable("TOKEN", "hunter2");
    let loaded = load_files(&[("compose.yaml", text)], options.clone()).unwrap();
    assert_eq!(
        loaded.project.secrets["s"]
            .value
            .as_ref()
            .map(gym_sandbox::compose::model::SecretValue::expose),
        Some("hunter2")
    );
    let shown = format!("{:?}", loaded.project.secrets)
        + &config::to_json(&loaded.project)
        + &config::to_yaml(&loaded.project);
    assert!(!shown.contains("hunter2"));
    let files = MemoryFiles::new().with("/project/compose.yaml", text);
    let kept = ComposeLoader::with_files(options.with_interpolation(Interpolation::Keep), files);
    assert!(
        !config::render(&kept, Format::Json)
            .unwrap()
            .text
            .contains("hunter2")
    );
}

#[test]
fn config_lists_services_by_dependency_and_images() {
    let text =
        "services:\n  a: {image: x, depends_on: [c]}\n  b: {build: .}\n  c: {image: y, depends_on: [b]}\n";
    let loader = ComposeLoader::with_files(options(), MemoryFiles::new().with("/project/compose.yaml", text));
    assert_eq!(config::services(&loader).unwrap().text, "b\nc\na\n");
    assert_eq!(config::images(&loader).unwrap().text, "x\nt-b\ny\n");
}

#[test]
fn extensions_are_kept() {
    let text = "x-top: {a: [1, 2.5, true, null, t]}\nservices: {a: {image: x, x-sandbox: {hosts: [h]}}}\n";
    let loaded = load(text).unwrap();
    assert!(loaded.project.extensions.contains_key("x-top"));
    assert!(loaded.project.services["a"].extensions.contains_key("x-sandbox"));
    assert!(config::to_yaml(&loaded.project).contains("x-sandbox"));
    // docker compose's JSON leaves those of services out.
    assert!(!config::to_json(&loaded.project).contains("x-sandbox"));
}

/// Runs a hostile case: it must end in an error, soon.
fn refused_soon(name: &str, files: &[(&str, &str)]) -> String {
    let start = Instant::now();
    let error = load_files(files, options()).expect_err(name).to_string();
    // Seconds of work at most; a build for debugging on a busy machine takes many times that. Without its bounds a case
    // would take days.
    assert!(
        start.elapsed() < Duration::from_secs(1000),
        "{name} took {:?}",
        start.elapsed()
    );
    assert!(error.len() < 1_000_000, "{name} says too much");
    error
}

#[test]
fn hostile_files_end_in_an_error() {
    let mut bomb = String::from("x-0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..100 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        let _ = writeln!(bomb, "x-{level}: &a{level} [{items}]");
    }
    bomb += "services: {a: {image: x, x-b: *a99}}\n";
    assert!(refused_soon("alias bomb", &[("compose.yaml", &bomb)]).contains("excessive aliasing"));

    let large = format!(
        "services: {{a: {{image: x}}}}\nx-a: \"{}\"\n",
        "a".repeat(10_000_000)
    );
    assert!(refused_soon("10 MB", &[("compose.yaml", &large)]).contains("larger than"));
    let many = format!(
        "services: {{a: {{image: x}}}}\nx-a: [{}]\n",
        "1,".repeat(1_500_000)
    );
    assert!(refused_soon("many values", &[("compose.yaml", &many)]).contains("too many values"));
    for deep in [
        "[".repeat(1_000_000),
        "{a: ".repeat(500_000),
        "- ".repeat(500_000),
    ] {
        refused_soon("deep nesting", &[("compose.yaml", &deep)]);
    }
    let chain: String = (1..3_000).fold(String::from("x-0: &a0 {a: 1}\n"), |text, level| {
        text + &format!("x-{level}: &a{level} {{a: *a{}}}\n", level - 1)
    });
    refused_soon("deep aliases", &[("compose.yaml", &chain)]);
    refused_soon("anchor in itself", &[("compose.yaml", "services: &s {a: *s}\n")]);

    let ports = "services:\n".to_owned()
        + &(0..200).fold(String::new(), |text, index| {
            text + &format!("  s{index}: {{image: x, ports: [\"1-65535\"]}}\n")
        });
    assert!(refused_soon("port ranges", &[("compose.yaml", &ports)]).contains("too many ports"));
    let documents = "a: 1\n---\n".repeat(50_000);
    refused_soon("many documents", &[("compose.yaml", &documents)]);
    let wrong: String = (0..50_000).fold(String::from("services:\n"), |text, index| {
        text + &format!("  s{index}: {{bad: 1}}\n")
    });
    refused_soon("many mistakes", &[("compose.yaml", &wrong)]);
}

#[test]
fn cycles_end_in_an_error() {
    let extends = refused_soon(
        "extends",
        &[("compose.yaml", "services: {a: {extends: b}, b: {extends: a}}\n")],
    );
    assert!(extends.contains("circular reference"), "{extends}");
    let files = [
        (
            "compose.yaml",
            "services: {a: {extends: {file: o.yaml, service: o}}}\n",
        ),
        (
            "o.yaml",
            "services: {o: {extends: {file: compose.yaml, service: a}}}\n",
        ),
    ];
    assert!(refused_soon("extends over files", &files).contains("circular reference"));
    let include = refused_soon(
        "include",
        &[
            ("compose.yaml", "include: [o.yaml]\n"),
            ("o.yaml", "include: [compose.yaml]\n"),
        ],
    );
    assert!(include.contains("include cycle detected"), "{include}");
    let depends = refused_soon(
        "depends_on",
        &[(
            "compose.yaml",
            "services: {a: {image: x, depends_on: [b]}, b: {image: x, depends_on: [a]}}\n",
        )],
    );
    assert!(
        depends.contains("dependency cycle detected: a -> b -> a"),
        "{depends}"
    );

    let wide: String = (0..2_000).rev().fold(String::from("services:\n"), |text, index| {
        text + &format!("  s{}: {{extends: s{index}, hostname: h{index}}}\n", index + 1)
    });
    refused_soon(
        "a long chain",
        &[("compose.yaml", &(wide + "  s0: {image: x}\n"))],
    );
    let values = (0..5_000).fold(String::new(), |text, index| text + &format!("V{index}: 1, "));
    let copies = (0..5_000).fold(
        format!("services:\n  base: {{image: x, environment: {{{values}}}}}\n"),
        |text, index| text + &format!("  s{index}: {{extends: base}}\n"),
    );
    assert!(refused_soon("many copies", &[("compose.yaml", &copies)]).contains("copies too many values"));
}

#[test]
fn includes_in_a_star_end_in_an_error() {
    // Each level includes the next twice: without a bound this doubles.
    let mut files: Vec<(String, String)> = Vec::new();
    for level in 0..40 {
        let name = if level == 0 {
            "compose.yaml".to_owned()
        } else {
            format!("l{level}.yaml")
        };
        let next = level + 1;
        files.push((
            name,
            format!("include: [l{next}.yaml, l{next}.yaml]\nservices: {{s{level}: {{image: x}}}}\n"),
        ));
    }
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    refused_soon("a star of includes", &files);
}

#[test]
fn files_that_are_no_files_are_refused() {
    assert!(
        load_files(&[("compose.yaml/x", "")], options())
            .unwrap_err()
            .to_string()
            .contains("is a folder")
    );
    assert!(
        load_files(&[("other", "")], options())
            .unwrap_err()
            .to_string()
            .contains("not found")
    );
    let binary = MemoryFiles::new().with("/project/compose.yaml", vec![0xff, 0xfe, 0x00]);
    assert!(
        ComposeLoader::with_files(options(), binary)
            .load()
            .unwrap_err()
            .to_string()
            .contains("not UTF-8")
    );
}
