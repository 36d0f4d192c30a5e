//! The public conformance suite over every provider of the crate, and over providers with a fault, on which it must
//! fail. Each case is a test with a name of its own: `docker::exec::exit_codes_are_exact`.

#![expect(clippy::print_stderr, reason = "what is left is told after the tests")]

#[path = "common/broken.rs"]
mod broken;
mod common;

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use futures::{FutureExt, StreamExt};
use gym_sandbox::conformance::{self, Case, Context, Failure, Skip, Survey};
use gym_sandbox::docker::{DockerConfig, DockerProvider, ExecPathPolicy};
use gym_sandbox::{SandboxProvider, SandboxSpec};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::Runtime;

use broken::{Broken, Fault};

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
    path: ExecPathPolicy,
    image: &'static str,
    server: &'static str,
}

const BUSYBOX: Subject = Subject {
    name: "docker",
    path: ExecPathPolicy::Engine,
    image: common::BUSYBOX,
    server: "httpd -f -p {port}",
};
const AGENT: Subject = Subject {
    name: "docker-agent",
    path: ExecPathPolicy::Agent,
    ..BUSYBOX
};
const AGENT_DEBIAN: Subject = Subject {
    name: "docker-agent-debian",
    path: ExecPathPolicy::Agent,
    ..DEBIAN
};
const DEBIAN: Subject = Subject {
    name: "docker-debian",
    path: ExecPathPolicy::Engine,
    image: common::DEBIAN,
    server: "python3 -m http.server {port}",
};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let mut trials = trials(BUSYBOX);
    trials.extend(self::trials(AGENT));
    if common::long_tests_are_wanted() {
        trials.extend(self::trials(DEBIAN));
        trials.extend(self::trials(AGENT_DEBIAN));
    }
    trials.extend(FAULTS.map(|(fault, name, case)| broken_trial(fault, name, case)));
    trials.push(unbroken_trial());
    let listed_only = arguments.list;
    let conclusion = libtest_mimic::run(&arguments, trials);
    if listed_only || !nothing_is_left() || conclusion.has_failed() {
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

fn context(subject: Subject, provider: Arc<dyn SandboxProvider>) -> Context {
    let survey: Survey = Arc::new(|key, value| {
        async move {
            let found = common::containers_with(&key, &value).await;
            found.map_err(|error| Failure::new(format!("the survey failed: {error}")))
        }
        .boxed()
    });
    Context::new(provider, SandboxSpec::new(subject.image))
        .with_user("nobody", 65534)
        .with_server(subject.server)
        .with_survey(survey)
}

fn trials(subject: Subject) -> Vec<Trial> {
    conformance::cases()
        .into_iter()
        .map(|case| Trial::ignorable_test(format!("{}::{case}", subject.name), move || run(case, subject)))
        .collect()
}

/// Runs a case, or says why not. Without an engine that is a failure where one is required.
fn run(case: Case, subject: Subject) -> Result<Completion, Failed> {
    let provider = match docker(subject.path) {
        Ok(provider) => provider,
        Err(reason) if common::engine_is_required() => return Err(reason.into()),
        Err(reason) => return Ok(Completion::ignored_with(reason)),
    };
    let context = context(subject, provider);
    match case.skip(&context) {
        // Only what the provider honestly lacks may be skipped.
        Some(skip @ Skip::Lacks(_)) => Ok(Completion::ignored_with(skip)),
        Some(skip) if common::engine_is_required() => Err(format!("skipped, {skip}").into()),
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

/// Closes the provider, twice, and looks whether anything of this process is left.
fn nothing_is_left() -> bool {
    let mut closed = Ok(());
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
