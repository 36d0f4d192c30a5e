//! The order of calls, and what they are given, over the provider in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gym_sandbox::compose::{AsyncSandboxCompose, Source};
use gym_sandbox::testing::MemoryProvider;
use gym_sandbox::{Error, ErrorKind, ExecTimeout, Operation, SandboxProvider};

use crate::plain::Plain;

/// Tells what takes its seconds from what takes ten minutes, or for ever.
const BOUNDED: Duration = Duration::from_secs(120);

/// Programs that hold this word run until their sandbox is removed.
const SERVER: &str = "serve";

/// A provider whose sandboxes do what a project's own commands ask for.
fn memory() -> Arc<MemoryProvider> {
    let provider = MemoryProvider::new();
    provider.run_endlessly(SERVER);
    provider.answer_with(|seen| {
        let gym_sandbox::Command::Argv(argv) = &seen.command else {
            return None;
        };
        let is_script = argv.first().is_some_and(|program| program == "sh");
        let failing = argv.last().is_some_and(|word| word == "fail");
        let looks_at_output = argv.get(2).is_some_and(|script| script.contains("tail -c"));
        // Only what fails ends at once.
        let looks_for_end = argv.last().is_some_and(|word| word.ends_with("/exit"));
        match (is_script, failing) {
            _ if looks_for_end => Some(MemoryProvider::printed(1, "", "")),
            _ if looks_at_output => Some(MemoryProvider::printed(0, "the last words\n", "")),
            (true, true) => Some(MemoryProvider::printed(3, "", "")),
            (true, false) => Some(MemoryProvider::printed(0, "", "")),
            _ => None,
        }
    });
    provider
}

fn project(provider: &Arc<MemoryProvider>, yaml: &str) -> AsyncSandboxCompose {
    over(Arc::clone(provider) as Arc<dyn SandboxProvider>, yaml)
}

fn over(provider: Arc<dyn SandboxProvider>, yaml: &str) -> AsyncSandboxCompose {
    AsyncSandboxCompose::owning(provider)
        .with_source(Source::text("compose.yaml", yaml))
        .with_project_name("p")
}

const TWO: &str = "
services:
  web: {image: iw, command: serve web, user: '7', working_dir: /w, environment: {URL: 'http://db:1'}, depends_on: [db], x-sandbox: {resolve_environment: [URL]}}
  db: {image: id, command: serve db, networks: {default: {aliases: [store]}}, healthcheck: {test: [CMD, check], timeout: 7s}}
";

#[tokio::test]
async fn m6_m10_sandboxes_are_made_in_order_told_names_and_closed_in_reverse_and_the_provider_last() {
    let memory = memory();
    memory.answer("check", MemoryProvider::printed(0, "", ""));
    let plain = Plain::new(Arc::clone(&memory) as Arc<dyn SandboxProvider>);
    let project = over(Arc::clone(&plain) as Arc<dyn SandboxProvider>, TWO);
    project.start().await.unwrap();
    assert_eq!(plain.notes(), ["create memory-1 id", "create memory-2 iw"]);
    let id = project.service("web").unwrap().sandbox_id().unwrap();
    let hosts: Vec<String> = memory
        .hosts(&id)
        .unwrap()
        .iter()
        .map(|(name, address)| format!("{name}={address}"))
        .collect();
    assert_eq!(hosts, ["db=10.0.0.1", "store=10.0.0.1", "web=10.0.0.2"]);
    let commands = memory.commands();
    let program = commands
        .iter()
        .find(|seen| seen.text().ends_with("serve web"))
        .unwrap();
    assert_eq!(
        (program.user.as_deref(), program.cwd.as_deref()),
        (Some("7"), Some("/w"))
    );
    assert_eq!(program.timeout, ExecTimeout::Never);
    assert_eq!(program.env["URL"], "http://10.0.0.1:1");
    let check = commands.iter().find(|seen| seen.text() == "check").unwrap();
    assert_eq!(check.timeout, ExecTimeout::After(Duration::from_secs(7)));
    // The check was seen to pass before the other program was started: it did not wait for it, but its own start did.
    project.stop().await.unwrap();
    assert_eq!(plain.notes()[2..], ["close memory-2", "close memory-1", "aclose"]);
    assert_eq!(memory.living(), 0);
    project.stop().await.unwrap();
    assert_eq!(project.start().await.unwrap_err().kind(), ErrorKind::Stopped);
}

#[tokio::test]
async fn m7_failures_count_an_interval_apart_and_not_in_the_start_period() {
    let yaml = |check: &str| {
        format!("services: {{a: {{image: i, command: serve, healthcheck: {{test: [CMD, check], {check}}}}}}}")
    };
    for (check, milliseconds) in [
        ("interval: 200ms, retries: 4", 600),
        ("interval: 200ms, retries: 3, start_period: 700ms", 1100),
        // Three without a word.
        ("interval: 300ms", 600),
        ("interval: 600s, retries: 1", 0),
    ] {
        let memory = memory();
        memory.answer("check", MemoryProvider::printed(7, "no luck\n", ""));
        let project = project(&memory, &yaml(check));
        let began = Instant::now();
        let error = project.start().await.unwrap_err();
        let took = began.elapsed();
        let story = error.report().to_string();
        assert_eq!(error.kind(), ErrorKind::NotReady, "{story}");
        assert!(
            story.contains("unhealthy") && story.contains("the last words"),
            "{story}"
        );
        assert!(
            story.contains("its health check ended with 7 and said:\nno luck"),
            "{story}"
        );
        assert!(took >= Duration::from_millis(milliseconds), "{check}: {took:?}");
        assert!(took < BOUNDED, "{check}: {took:?}");
        assert_eq!(memory.living(), 0);
    }
    // A pass in the start period counts at once, however many have failed before it.
    let memory = memory();
    let probes = AtomicUsize::new(0);
    memory.answer_with(move |seen| {
        let passes = probes.fetch_add(1, Ordering::Relaxed) > 5;
        (seen.text() == "check").then(|| MemoryProvider::printed(i32::from(!passes), "", ""))
    });
    let project = project(
        &memory,
        &yaml("interval: 600s, retries: 1, start_period: 600s, start_interval: 2s"),
    );
    let began = Instant::now();
    project.start().await.unwrap();
    assert!(began.elapsed() < BOUNDED, "{:?}", began.elapsed());
    project.stop().await.unwrap();
}

#[tokio::test]
async fn m7_a_failed_one_shot_is_the_first_error_with_its_code_and_last_words() {
    let memory = memory();
    let yaml = "
services:
  seed: {image: i, command: [seed, fail]}
  web: {image: i, command: serve, depends_on: {seed: {condition: service_completed_successfully}}}
";
    let project = project(&memory, yaml);
    let error = project.start().await.unwrap_err();
    let story = error.report().to_string();
    for part in ["`seed`", "exited with 3", "the last words"] {
        assert!(story.contains(part), "{part}: {story}");
    }
    assert_eq!(memory.living(), 0);
    assert!(
        !memory
            .commands()
            .iter()
            .any(|seen| seen.text().ends_with("serve"))
    );
}

#[tokio::test]
async fn m6_m10_a_create_or_a_step_that_fails_leaves_nothing_and_stays_the_first_error() {
    for operation in [Operation::Create, Operation::Network, Operation::Exec] {
        let memory = memory();
        memory.answer("check", MemoryProvider::printed(0, "", ""));
        memory.fail_next(
            operation,
            Error::new(ErrorKind::Unavailable, operation, "not today"),
        );
        let project = project(&memory, TWO);
        let error = project.start().await.unwrap_err();
        assert!(
            error.report().to_string().contains("not today"),
            "{}",
            error.report()
        );
        assert_eq!(memory.living(), 0, "{operation:?}");
    }
}

#[tokio::test]
async fn m10_a_stop_that_fails_tries_everything_and_can_be_repeated() {
    let memory = memory();
    memory.answer("check", MemoryProvider::printed(0, "", ""));
    let project = project(&memory, TWO);
    project.start().await.unwrap();
    memory.fail_next(
        Operation::Close,
        Error::new(ErrorKind::Unavailable, Operation::Close, "busy"),
    );
    let error = project.stop().await.unwrap_err();
    assert!(error.report().to_string().contains("busy"), "{}", error.report());
    assert_eq!(memory.living(), 1, "the other one was removed");
    project.stop().await.unwrap();
    assert_eq!(memory.living(), 0);
}

#[tokio::test]
async fn m10_hooks_are_the_services_own_and_run_once_however_often_it_is_stopped() {
    let memory = memory();
    for hook in ["hello", "bye"] {
        memory.answer(hook, MemoryProvider::printed(0, "", ""));
    }
    let yaml = "
services:
  a: {image: i, command: serve, user: '7', working_dir: /w, post_start: [{command: [hello]}], pre_stop: [{command: [bye], user: '8', working_dir: /x}]}
  b: {image: i, command: serve, pre_stop: [{command: [bye]}]}
";
    let seen = |word: &str| -> Vec<_> {
        let commands = memory.commands().into_iter();
        commands
            .filter(|seen| seen.text() == word)
            .map(|seen| (seen.user, seen.cwd))
            .collect()
    };
    let of = |user: &str, cwd: &str| (Some(user.to_owned()), Some(cwd.to_owned()));
    let project = project(&memory, yaml);
    project.start().await.unwrap();
    assert_eq!(seen("hello"), [of("7", "/w")]);
    assert_eq!(seen("bye"), []);
    memory.fail_next(
        Operation::Close,
        Error::new(ErrorKind::Unavailable, Operation::Close, "busy"),
    );
    project.stop().await.unwrap_err();
    assert_eq!(seen("bye"), [(None, None), of("8", "/x")]);
    project.stop().await.unwrap();
    assert_eq!(seen("bye").len(), 2);
    assert_eq!(memory.living(), 0);
}

#[tokio::test]
async fn m10_hooks_before_a_stop_run_once_and_one_that_fails_is_told_when_everything_is_gone() {
    let memory = memory();
    memory.answer("flush", MemoryProvider::printed(7, "", "cannot\n"));
    let project = project(
        &memory,
        "services: {a: {image: i, command: serve, pre_stop: [{command: [flush, all]}]}}",
    );
    project.start().await.unwrap();
    let busy = Error::new(ErrorKind::Unavailable, Operation::Close, "busy");
    memory.fail_next(Operation::Close, busy);
    let error = project.stop().await.unwrap_err();
    // What is left comes first.
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error.report());
    let hook = &error.cleanup_errors()[0];
    assert_eq!(hook.kind(), ErrorKind::Hook);
    let message = hook.to_string();
    assert!(
        message.contains("pre_stop hook `flush all` of service `a` ended with 7: cannot"),
        "{message}"
    );
    project.stop().await.unwrap();
    let hooks = memory.commands();
    let hooks = hooks.iter().filter(|seen| seen.text() == "flush all");
    let limits: Vec<_> = hooks.map(|seen| seen.timeout).collect();
    assert_eq!(limits, [ExecTimeout::After(Duration::from_secs(10))]);
    assert_eq!(memory.living(), 0);
}

#[tokio::test]
async fn m10_a_project_that_is_dropped_is_removed_in_the_background() {
    let memory = memory();
    memory.answer("check", MemoryProvider::printed(0, "", ""));
    let project = project(&memory, TWO);
    project.start().await.unwrap();
    drop(project);
    let deadline = Instant::now() + BOUNDED;
    while memory.living() > 0 {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn m2_m3_m4_what_is_wrong_is_told_before_anything_is_made() {
    let memory = memory();
    let shared = || Arc::clone(&memory) as Arc<dyn SandboxProvider>;
    for zero in [
        AsyncSandboxCompose::new(shared()).with_timeout(Duration::ZERO),
        AsyncSandboxCompose::new(shared()).with_poll_interval(Duration::ZERO),
    ] {
        assert_eq!(zero.unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    assert_eq!(
        AsyncSandboxCompose::new(shared()).timeout(),
        Duration::from_secs(1200)
    );
    for (yaml, kind, part) in [
        (
            "services: {a: {image: i}}",
            ErrorKind::InvalidArgument,
            "services.a.command",
        ),
        (
            "services: {a: {image: i, command: c, privileged: true}}",
            ErrorKind::Unsupported,
            "services.a.privileged",
        ),
        (
            "services: {a: {image: i, command: c, volumes: ['./d:/d']}}",
            ErrorKind::Unsupported,
            "shared storage",
        ),
        ("services: [", ErrorKind::InvalidArgument, "compose.yaml"),
        ("services: {}", ErrorKind::InvalidArgument, "services"),
    ] {
        let project = project(&memory, yaml);
        let error = project.start().await.unwrap_err();
        let story = error.report().to_string();
        assert_eq!(error.kind(), kind, "{yaml}: {story}");
        assert!(story.contains(part), "{yaml}: {story}");
        // It may be tried again.
        assert_eq!(project.start().await.unwrap_err().kind(), kind);
    }
    assert_eq!(memory.commands().len(), 0);
    assert_eq!(memory.living(), 0);
}

#[tokio::test]
async fn m1_variables_short_forms_and_several_files_are_read_as_on_every_provider() {
    let memory = memory();
    let project = project(
        &memory,
        "services: {a: {image: '${IMAGE}', command: 'serve $${LITERAL}', environment: [A=1]}}",
    )
    .with_variable("IMAGE", "from-the-caller")
    .with_source(Source::text("more.yaml", "services: {a: {ports: ['8080:80']}}"));
    project.start().await.unwrap();
    let sandbox = project.service("a").unwrap();
    let detail = sandbox.inspect().await.unwrap();
    assert_eq!(detail.image.as_deref(), Some("from-the-caller"));
    assert!(sandbox.endpoint(80).await.is_ok());
    assert!(
        memory
            .commands()
            .iter()
            .any(|seen| seen.text().ends_with("serve ${LITERAL}"))
    );
    project.stop().await.unwrap();
}
