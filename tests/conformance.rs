//! The public conformance suite over every provider of the crate, and over providers with a fault, on which it must
//! fail. Each case is a test with a name of its own: `docker::exec::exit_codes_are_exact`.

#![expect(clippy::print_stderr, reason = "what is left is told after the tests")]

#[path = "common/broken.rs"]
mod broken;
mod common;
#[path = "../examples/custom_provider/metered.rs"]
#[allow(dead_code, reason = "the example uses all of it")]
mod metered;
#[path = "common/rooted.rs"]
mod rooted;
#[path = "common/wrapped.rs"]
mod wrapped;

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use gym_sandbox::conformance::{self, Case, Context, Failure, Skip, Survey};
use gym_sandbox::docker::{DockerConfig, DockerProvider, ExecPathPolicy};
use gym_sandbox::local::{LocalConfig, LocalProvider};
use gym_sandbox::testing::MemoryProvider;
use gym_sandbox::{SandboxProvider, SandboxSpec};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::Runtime;

use broken::{Broken, Fault};
use metered::Metered;
use rooted::Rooted;

/// How many cases run at once. They wait for the engine most of the time.
const AT_ONCE: usize = 4;

/// The faults, each with a case that must find it.
const FAULTS: [(Fault, &str, &str); 3] = [
    (Fault::DropsStderr, "drops_stderr", "output::streams_are_apart"),
    (
        Fault::LosesTheExitCode,
        "loses_the_exit_code",
        "exec::exit_codes_are_exact",
    ),
    (
        Fault::IgnoresCwd,
        "ignores_cwd",
        "exec::the_directory_of_the_call_is_used",
    ),
];

/// The themes about commands: all that a fault in a command can show in. The long run takes every theme.
const COMMAND_THEMES: [&str; 5] = ["exec", "environment", "output", "start_failures", "spawn"];

/// Where the cases run.
#[derive(Clone, Copy)]
struct Subject {
    name: &'static str,
    backend: Backend,
    image: Option<&'static str>,
    server: Option<&'static str>,
    /// What is left out, with the reason.
    exemptions: &'static [(&'static str, &'static str)],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Backend {
    Docker(ExecPathPolicy),
    Local,
    Custom,
    Memory,
}

const BUSYBOX: Subject = Subject {
    name: "docker",
    backend: Backend::Docker(ExecPathPolicy::Engine),
    image: Some(common::BUSYBOX),
    server: Some("httpd -f -p {port}"),
    exemptions: &[],
};
const AGENT: Subject = Subject {
    name: "docker-agent",
    backend: Backend::Docker(ExecPathPolicy::Agent),
    exemptions: &[("shared_storage", NO_AGENT)],
    ..BUSYBOX
};
const AGENT_DEBIAN: Subject = Subject {
    name: "docker-agent-debian",
    backend: Backend::Docker(ExecPathPolicy::Agent),
    exemptions: &[("shared_storage", NO_AGENT)],
    ..DEBIAN
};
const DEBIAN: Subject = Subject {
    name: "docker-debian",
    backend: Backend::Docker(ExecPathPolicy::Engine),
    image: Some(common::DEBIAN),
    server: Some("python3 -m http.server {port}"),
    exemptions: &[],
};
/// Without an image, and so without the cases about images and main processes; without a second user, for the local
/// provider refuses every user.
const LOCAL: Subject = Subject {
    name: "local",
    backend: Backend::Local,
    image: None,
    server: None,
    exemptions: &[
        ("inspect::limits_are_shown", NO_LIMITS),
        ("inspect::an_ended_main_process_is_described", NO_MAIN_PROCESS),
    ],
};

/// The provider of `examples/custom_provider`, over the local one. It offers one capability.
const CUSTOM: Subject = Subject {
    name: "custom",
    backend: Backend::Custom,
    ..LOCAL
};

/// The provider in memory, where nothing runs.
const MEMORY: Subject = Subject {
    name: "memory",
    backend: Backend::Memory,
    exemptions: &[
        ("create::a_created_sandbox_runs", NOTHING_RUNS),
        ("create::sandboxes_are_apart", NOTHING_RUNS),
        ("create::the_specs_environment_is_set", NOTHING_RUNS),
        ("create::the_specs_working_directory_is_made", NOTHING_RUNS),
        ("exec", NOTHING_RUNS),
        ("environment", NOTHING_RUNS),
        ("output", NOTHING_RUNS),
        ("stdin", NOTHING_RUNS),
        ("start_failures", NOTHING_RUNS),
        (
            "timeout::a_timeout_is_125_and_keeps_what_was_printed",
            NOTHING_RUNS,
        ),
        ("timeout::a_timeout_kills_the_commands_processes", NOTHING_RUNS),
        ("timeout::a_command_in_time_is_ordinary", NOTHING_RUNS),
        ("files", NOTHING_RUNS),
        ("lifecycle::closing_ends_running_commands", NOTHING_RUNS),
        ("inspect::an_ended_main_process_is_described", NO_MAIN_PROCESS),
        ("facade::a_whole_life", NOTHING_RUNS),
        ("connect::who_connects_uses_the_same_sandbox", NOTHING_RUNS),
        ("connect::the_id_is_enough", NOTHING_RUNS),
        ("connect::a_descriptor_holds_no_secret", NOTHING_RUNS),
        ("network::names_can_be_set_and_set_again", NOTHING_RUNS),
        (
            "network::what_can_not_be_named_or_reached_is_refused",
            NOTHING_RUNS,
        ),
    ],
    ..LOCAL
};

const NOTHING_RUNS: &str =
    "the provider in memory runs nothing: the test answers commands, and the case looks with one";
const NO_AGENT: &str =
    "a sandbox that sees the engine's machine has no resident agent, and here none is made without one";
const NO_MAIN_PROCESS: &str = "a sandbox of this provider has no main process";
const NO_LIMITS: &str = "processes of this machine have no limits: the local provider warns instead (O2)";

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let mut trials = trials(BUSYBOX);
    trials.extend(self::trials(AGENT));
    trials.extend(self::trials(LOCAL));
    trials.extend(self::trials(CUSTOM));
    trials.extend(self::trials(MEMORY));
    if common::long_tests_are_wanted() {
        trials.extend(self::trials(DEBIAN));
        trials.extend(self::trials(AGENT_DEBIAN));
    }
    trials.extend(FAULTS.map(|(fault, name, case)| broken_trial(fault, name, case)));
    trials.push(unbroken_trial());
    let listed_only = arguments.list;
    let conclusion = libtest_mimic::run(&arguments, trials);
    let nothing_is_left = listed_only || nothing_is_left();
    let _not_made = std::fs::remove_dir(shared_folder());
    if listed_only || !nothing_is_left || conclusion.has_failed() {
        return if listed_only {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    ExitCode::SUCCESS
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().expect("a runtime can be made"))
}

/// A folder of this machine, where the engine is, too: storage that sandboxes share.
fn shared_folder() -> &'static std::path::Path {
    static FOLDER: OnceLock<std::path::PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| tempfile::tempdir().expect("a folder can be made").keep())
}

/// The providers of this process, one for each way to run commands, reached once.
fn docker(path: ExecPathPolicy) -> Result<Arc<DockerProvider>, String> {
    static ENGINE: OnceLock<Result<Arc<DockerProvider>, String>> = OnceLock::new();
    static AGENT: OnceLock<Result<Arc<DockerProvider>, String>> = OnceLock::new();
    let provider = if path == ExecPathPolicy::Engine {
        &ENGINE
    } else {
        &AGENT
    };
    provider
        .get_or_init(|| {
            let mut config = DockerConfig::default();
            config.exec.exec_path = path;
            config.shared_storage.host_path = shared_folder().to_str().map(str::to_owned);
            config
                .default_metadata
                .insert(common::TEST_LABEL.to_owned(), common::run_label().to_owned());
            let connected = runtime().block_on(DockerProvider::connect(config));
            connected
                .map(Arc::new)
                .map_err(|error| format!("no engine answers: {}", error.report()))
        })
        .clone()
}

type Made = Result<Arc<Rooted>, String>;

static LOCAL_PROVIDER: OnceLock<Made> = OnceLock::new();
static CUSTOM_PROVIDER: OnceLock<Made> = OnceLock::new();

/// A provider on this machine, with folders for what the cases say of `/tmp`.
fn rooted(wrap: fn(LocalProvider) -> Arc<dyn SandboxProvider>) -> Made {
    let rooted = Rooted::new(|folder| {
        let config = LocalConfig::default()
            .with_shell("/bin/sh")
            .with_file_root(folder);
        Ok(wrap(LocalProvider::new(config)?))
    });
    rooted.map(Arc::new).map_err(|error| error.report().to_string())
}

fn provider(backend: Backend) -> Result<Arc<dyn SandboxProvider>, String> {
    let made = match backend {
        Backend::Docker(path) => return docker(path).map(|provider| provider as Arc<dyn SandboxProvider>),
        Backend::Memory => return Ok(MemoryProvider::new()),
        Backend::Local => LOCAL_PROVIDER.get_or_init(|| rooted(|local| Arc::new(local))),
        Backend::Custom => {
            CUSTOM_PROVIDER.get_or_init(|| rooted(|local| Arc::new(Metered::new(Arc::new(local)))))
        }
    };
    made.clone().map(|provider| provider as Arc<dyn SandboxProvider>)
}

fn context(subject: Subject, provider: Arc<dyn SandboxProvider>) -> Context {
    let spec = subject.image.map_or_else(SandboxSpec::default, SandboxSpec::new);
    // A case of twenty commands takes that long over a busy engine.
    let mut context = Context::new(provider, spec).with_deadline(Duration::from_secs(900));
    for (case, reason) in subject.exemptions {
        context = context.with_exemption(case, reason);
    }
    if let Some(server) = subject.server {
        context = context.with_server(server);
    }
    if !matches!(subject.backend, Backend::Docker(_)) {
        return context;
    }
    let survey: Survey = Arc::new(|key, value| {
        async move {
            let found = common::containers_with(&key, &value).await;
            found.map_err(|error| Failure::new(format!("the survey failed: {error}")))
        }
        .boxed()
    });
    context.with_user("nobody", 65534).with_survey(survey)
}

fn trials(subject: Subject) -> Vec<Trial> {
    let cases = conformance::cases();
    for (exempt, _) in subject.exemptions {
        let known = |case: &Case| case.to_string() == *exempt || case.theme() == *exempt;
        assert!(cases.iter().any(known), "there is no case or theme `{exempt}`");
    }
    cases
        .into_iter()
        .map(|case| Trial::ignorable_test(format!("{}::{case}", subject.name), move || run(case, subject)))
        .collect()
}

/// Runs a case, or says why not. Without an engine that is a failure where one is required.
fn run(case: Case, subject: Subject) -> Result<Completion, Failed> {
    let provider = match provider(subject.backend) {
        Ok(provider) => provider,
        Err(reason) if common::engine_is_required() => return Err(reason.into()),
        Err(reason) => return Ok(Completion::ignored_with(reason)),
    };
    let context = context(subject, provider);
    match case.skip(&context) {
        // Only what the provider honestly lacks may be skipped. On an engine nothing but that.
        Some(skip @ (Skip::Lacks(_) | Skip::Exempt(_))) => Ok(Completion::ignored_with(skip)),
        Some(skip) if matches!(subject.backend, Backend::Docker(_)) && common::engine_is_required() => {
            Err(format!("skipped, {skip}").into())
        }
        Some(skip) => Ok(Completion::ignored_with(skip)),
        None => match runtime().block_on(case.run(&context)) {
            Ok(()) => Ok(Completion::Completed),
            Err(failure) => Err(failure.to_string().into()),
        },
    }
}

/// Runs the cases over a provider with a fault, and gives the names of those that fail.
fn failing(fault: Fault, cases: Vec<Case>) -> Result<Vec<String>, String> {
    let provider = Broken {
        inner: docker(ExecPathPolicy::Engine)?,
        fault,
    };
    let context = context(BUSYBOX, Arc::new(provider));
    let runs = cases
        .into_iter()
        .filter(|case| case.skip(&context).is_none())
        .map(|case| {
            let context = &context;
            async move { case.run(context).await.err().map(|_| case.to_string()) }
        });
    let failed = runtime().block_on(
        futures::stream::iter(runs)
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>(),
    );
    Ok(failed.into_iter().flatten().collect())
}

/// The suite must fail on a provider with this fault, at least in this case.
fn broken_trial(fault: Fault, name: &str, finder: &'static str) -> Trial {
    Trial::ignorable_test(format!("broken::{name}"), move || {
        let themed = |case: &Case| common::long_tests_are_wanted() || COMMAND_THEMES.contains(&case.theme());
        let failed = match failing(fault, conformance::cases().into_iter().filter(themed).collect()) {
            Ok(failed) => failed,
            Err(reason) if common::engine_is_required() => return Err(reason.into()),
            Err(reason) => return Ok(Completion::ignored_with(reason)),
        };
        if failed.iter().any(|case| case == finder) {
            return Ok(Completion::Completed);
        }
        Err(
            format!("`{finder}` passes over a provider that has the fault {fault:?}; failed: {failed:?}")
                .into(),
        )
    })
}

/// The same wrapper without a fault must pass the same cases: it is the fault that they find.
fn unbroken_trial() -> Trial {
    Trial::ignorable_test("broken::without_a_fault", || {
        let finders = FAULTS.map(|(_, _, case)| case);
        let cases = conformance::cases()
            .into_iter()
            .filter(|case| finders.contains(&case.to_string().as_str()));
        let cases: Vec<Case> = cases.collect();
        if cases.len() != finders.len() {
            return Err(format!("not all of {finders:?} are cases").into());
        }
        match failing(Fault::None, cases) {
            Ok(failed) if failed.is_empty() => Ok(Completion::Completed),
            Ok(failed) => Err(format!("these fail without a fault: {failed:?}").into()),
            Err(reason) if common::engine_is_required() => Err(reason.into()),
            Err(reason) => Ok(Completion::ignored_with(reason)),
        }
    })
}

/// Closes the providers, and looks whether anything of this process is left.
fn nothing_is_left() -> bool {
    let mut closed = Ok(());
    for made in [&LOCAL_PROVIDER, &CUSTOM_PROVIDER] {
        if let Some(Ok(rooted)) = made.get() {
            closed = closed.and(runtime().block_on(rooted.aclose()));
            rooted.remove_folder();
        }
    }
    for path in [ExecPathPolicy::Engine, ExecPathPolicy::Agent] {
        let Ok(provider) = docker(path) else { return true };
        closed = closed.and(runtime().block_on(async {
            provider.aclose().await?;
            provider.aclose().await
        }));
    }
    if let Err(error) = &closed {
        eprintln!("a provider could not be closed: {}", error.report());
    }
    match runtime().block_on(common::remove_leftovers(common::TEST_LABEL, common::run_label())) {
        Ok(left) if left.is_empty() => closed.is_ok(),
        Ok(left) => {
            eprintln!("left on the engine: {}", left.join(", "));
            false
        }
        Err(error) => {
            eprintln!("what is left on the engine is not known: {error}");
            false
        }
    }
}
