//! The command: typed arguments, a resolved request, one file a command that runs it, and what is printed.
//! Uses the public API of the library only; data goes to standard output, everything else to standard error.

mod args;
mod bench;
mod cmd;
mod exit;
mod interrupt;
mod logging;
mod output;
mod resolve;
mod session;
mod stream;
mod terminal;
mod units;

use std::process::ExitCode;

use gym_sandbox::{Error, ErrorKind, Operation};

use resolve::Action;

/// Reads the arguments of the process and runs what they say.
pub(crate) fn main() -> ExitCode {
    let args = match args::parse() {
        Ok(args) => args,
        Err(code) => return ExitCode::from(code),
    };
    // Reading files warns of nothing by the log: what there is to say are diagnostics.
    if !args.reads_only() || logging::is_asked_for(args.global.verbose) {
        logging::start(args.global.verbose);
    }
    let code = match resolve::resolve(args) {
        // Reading files needs no runtime, whose threads take longer to start than the whole command.
        Ok(Action::ComposeConfig(request)) => finish(cmd::compose_config::run(*request), exit::FAILURE),
        Ok(action) => run(action),
        Err(error) => {
            output::error(&error);
            exit::USAGE
        }
    };
    ExitCode::from(code)
}

fn run(action: Action) -> u8 {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let error = Error::new(
                ErrorKind::Io,
                Operation::Start,
                "the threads of the command could not be started",
            )
            .with_source(error);
            output::error(&error);
            return exit::FAILURE;
        }
    };
    let code = runtime.block_on(dispatch(action));
    // A thread that still reads standard input, or writes to a full pipe, can't be ended: the process does not wait
    // for it.
    runtime.shutdown_background();
    code
}

async fn dispatch(action: Action) -> u8 {
    let (outcome, failure) = match action {
        Action::Run(request) => (Box::pin(cmd::run::run(*request)).await, exit::SANDBOX),
        Action::Create(request) => (Box::pin(cmd::create::run(*request)).await, exit::FAILURE),
        Action::Exec(request) => (Box::pin(cmd::exec::run(*request)).await, exit::SANDBOX),
        Action::Pty(request) => (Box::pin(cmd::pty::attach(*request)).await, exit::SANDBOX),
        Action::Shell(request) => (Box::pin(cmd::pty::shell(*request)).await, exit::SANDBOX),
        Action::Copy(request) => (Box::pin(cmd::cp::run(*request)).await, exit::FAILURE),
        Action::Pause(request) => (Box::pin(cmd::pause::run(request)).await, exit::FAILURE),
        Action::Logs(request) => (Box::pin(cmd::logs::run(request)).await, exit::FAILURE),
        Action::Stats(request) => (Box::pin(cmd::stats::run(request)).await, exit::FAILURE),
        Action::Remove(request) => (Box::pin(cmd::remove::run(request)).await, exit::FAILURE),
        Action::Prefetch(request) => (Box::pin(cmd::prefetch::run(request)).await, exit::FAILURE),
        Action::ComposeConfig(request) => (cmd::compose_config::run(*request), exit::FAILURE),
        Action::List(request) => (cmd::ps::run(request).await, exit::FAILURE),
        Action::Detail(request) => (cmd::inspect::run(request).await, exit::FAILURE),
        Action::Sweep(request) => (Box::pin(cmd::gc::run(request)).await, exit::FAILURE),
        Action::ComposePlan(request) => (Box::pin(cmd::compose_up::plan(*request)).await, exit::FAILURE),
        Action::ComposeUp(request) => (Box::pin(cmd::compose_up::up(*request)).await, exit::FAILURE),
        Action::ComposeRun(request) => (Box::pin(cmd::compose_up::run(*request)).await, exit::SANDBOX),
        Action::ComposePs(request) => (Box::pin(cmd::compose_look::ps(request)).await, exit::FAILURE),
        Action::ComposeLogs(request) => (Box::pin(cmd::compose_logs::run(request)).await, exit::FAILURE),
        Action::ComposeExec(request) => (Box::pin(cmd::compose_look::exec(*request)).await, exit::SANDBOX),
        Action::ComposeDown(request) => (Box::pin(cmd::compose_look::down(request)).await, exit::FAILURE),
        Action::Doctor(request) => (cmd::doctor::run(request).await, exit::FAILURE),
        Action::Completions(script) => (cmd::completions::run(script).await, exit::FAILURE),
        Action::Bench(request) => (Box::pin(cmd::bench::run(request)).await, exit::FAILURE),
    };
    finish(outcome, failure)
}

/// The exit code of the process, once an error has been printed.
fn finish(outcome: gym_sandbox::Result<u8>, failure: u8) -> u8 {
    match outcome {
        Ok(code) => code,
        Err(error) => {
            output::error(&error);
            if is_usage(&error) { exit::USAGE } else { failure }
        }
    }
}

/// Says whether the caller's own words are at fault. An address of an engine may come from the environment, too.
fn is_usage(error: &Error) -> bool {
    error.kind() == ErrorKind::InvalidArgument && error.operation() != Operation::Connect
}
