//! A provider in memory for unit tests of programs that use the crate: no engine, no processes, answers and failures
//! as the test says. Feature `testing`. Knows the provider traits and the specs; knows no backend.

mod connected;
mod provider;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::error::{Error, Operation};
use crate::provider::Reaper;
use crate::spec::{
    Command, ExecOptions, ExecPath, ExecResult, ExecTimeout, SandboxId, SandboxSpec, StartProblem,
};

/// A provider in memory.
///
/// Sandboxes are made, removed and asked for their status as real ones. Files that are uploaded can be downloaded.
/// Commands are not run: each is answered by the first rule that has an answer, and by a start failure (127) where none
/// has, so that a forgotten rule shows. Every command is remembered. Sandboxes that are dropped without a stop are removed
/// in the background, and [`aclose`](crate::SandboxProvider::aclose) waits for that.
///
/// ```
/// use gym_sandbox::testing::MemoryProvider;
/// use gym_sandbox::{AsyncSandbox, Error, ErrorKind, Operation, SandboxSpec};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> gym_sandbox::Result<()> {
/// let provider = MemoryProvider::new();
/// provider.answer("make test", MemoryProvider::printed(1, "2 failed\n", ""));
/// provider.fail_next(Operation::Create, Error::new(ErrorKind::Unavailable, Operation::Create, "no engine today"));
///
/// let sandbox = AsyncSandbox::new(provider.clone()).with_spec(SandboxSpec::new("any"));
/// assert!(sandbox.start().await.unwrap_err().is_retryable());
/// sandbox.start().await?;
/// assert_eq!(sandbox.exec("make test").await?.return_code, 1);
/// sandbox.stop().await?;
/// assert_eq!(provider.commands().len(), 1);
/// assert_eq!(provider.living(), 0);
/// # Ok(())
/// # }
/// ```
pub struct MemoryProvider {
    state: Mutex<State>,
    /// Sandboxes and projects that were dropped without a stop.
    reaper: Reaper,
}

/// A command that a [`MemoryProvider`] was asked to run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SeenCommand {
    /// In which sandbox.
    pub sandbox_id: SandboxId,
    /// What.
    pub command: Command,
    /// Where; none where the call does not say.
    pub cwd: Option<String>,
    /// The variables of the call. Their values are not shown in debug texts of options, but are here: this is a test.
    pub env: BTreeMap<String, String>,
    /// As whom; none where the call does not say.
    pub user: Option<String>,
    /// For how long.
    pub timeout: ExecTimeout,
}

impl SeenCommand {
    fn new(sandbox_id: SandboxId, options: &ExecOptions) -> Self {
        Self {
            sandbox_id,
            command: options.command.clone(),
            cwd: options.cwd.clone(),
            env: options.env.clone(),
            user: options.user.as_ref().map(|user| user.as_str().to_owned()),
            timeout: options.timeout,
        }
    }

    /// The line, or the arguments with spaces between them.
    pub fn text(&self) -> String {
        match &self.command {
            Command::Shell(line) => line.clone(),
            Command::Argv(argv) => argv.join(" "),
        }
    }
}

type Rule = Arc<dyn Fn(&SeenCommand) -> Option<ExecResult> + Send + Sync>;

/// What one call does instead of what it should.
enum Injected {
    Failure(Error),
    /// It never ends by itself.
    Hanging,
}

#[derive(Default)]
struct State {
    sandboxes: BTreeMap<SandboxId, Made>,
    rules: Vec<Rule>,
    /// Parts of commands that never end.
    endless: Vec<String>,
    injected: Vec<(Operation, VecDeque<Injected>)>,
    commands: Vec<SeenCommand>,
    count: u64,
}

/// A sandbox in memory.
struct Made {
    spec: SandboxSpec,
    files: BTreeMap<String, Bytes>,
    address: IpAddr,
    /// The names that it was told.
    hosts: BTreeMap<String, IpAddr>,
}

impl MemoryProvider {
    /// Makes one without sandboxes, rules and failures.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            reaper: Reaper::new(),
        })
    }

    /// An ordinary result with this exit code and these outputs.
    pub fn printed(return_code: i32, stdout: &str, stderr: &str) -> ExecResult {
        let captured = |text: &str| crate::spec::CapturedOutput::complete(text.as_bytes().to_vec());
        ExecResult::new(return_code, ExecPath::Host).with_output(captured(stdout), captured(stderr))
    }

    /// Answers every command whose [text](SeenCommand::text) holds this one. Rules are asked in the order in which they
    /// were added.
    pub fn answer(&self, text: impl Into<String>, result: ExecResult) {
        let text = text.into();
        self.answer_with(move |seen| seen.text().contains(&text).then(|| result.clone()));
    }

    /// Answers every command for which the function has an answer.
    pub fn answer_with(&self, rule: impl Fn(&SeenCommand) -> Option<ExecResult> + Send + Sync + 'static) {
        self.state().rules.push(Arc::new(rule));
    }

    /// Lets every command whose [text](SeenCommand::text) holds this one run until it is dropped, as a server does. It
    /// counts before the rules.
    pub fn run_endlessly(&self, text: impl Into<String>) {
        self.state().endless.push(text.into());
    }

    /// Has the next call of an operation fail, before it does anything. Failures of one operation come one after the
    /// other. Operations are [`Create`](Operation::Create), [`Exec`](Operation::Exec), [`Upload`](Operation::Upload),
    /// [`Download`](Operation::Download), [`Status`](Operation::Status), [`Network`](Operation::Network),
    /// [`Serialize`](Operation::Serialize), [`Attach`](Operation::Attach), [`Close`](Operation::Close) and
    /// [`Stop`](Operation::Stop), which is closing the provider.
    pub fn fail_next(&self, operation: Operation, error: Error) {
        self.inject(operation, Injected::Failure(error));
    }

    /// Has the next call of an operation hang until it is dropped.
    pub fn hang_next(&self, operation: Operation) {
        self.inject(operation, Injected::Hanging);
    }

    /// The commands that were asked for, in their order.
    pub fn commands(&self) -> Vec<SeenCommand> {
        self.state().commands.clone()
    }

    /// How many sandboxes there are: made and not removed.
    pub fn living(&self) -> usize {
        self.state().sandboxes.len()
    }

    /// The content of a file of a sandbox; none where the sandbox or the file does not exist.
    pub fn file(&self, sandbox_id: &SandboxId, path: &str) -> Option<Bytes> {
        self.state().sandboxes.get(sandbox_id)?.files.get(path).cloned()
    }

    /// The names of hosts that a sandbox was told, with their addresses; none where it does not exist.
    pub fn hosts(&self, sandbox_id: &SandboxId) -> Option<BTreeMap<String, IpAddr>> {
        Some(self.state().sandboxes.get(sandbox_id)?.hosts.clone())
    }

    /// Puts a file into a sandbox, as a command of it would. Says whether there is such a sandbox.
    pub fn put_file(
        &self,
        sandbox_id: &SandboxId,
        path: impl Into<String>,
        content: impl Into<Bytes>,
    ) -> bool {
        match self.state().sandboxes.get_mut(sandbox_id) {
            Some(made) => {
                made.files.insert(path.into(), content.into());
                true
            }
            None => false,
        }
    }

    fn inject(&self, operation: Operation, injected: Injected) {
        let mut state = self.state();
        match state.injected.iter_mut().find(|(of, _)| *of == operation) {
            Some((_, queue)) => queue.push_back(injected),
            None => state.injected.push((operation, VecDeque::from([injected]))),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one step, so a panic can't have left half of one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_endless(&self, seen: &SeenCommand) -> bool {
        let text = seen.text();
        self.state().endless.iter().any(|part| text.contains(part))
    }

    /// What the rules say of a command. They are asked without the lock: they may use the provider.
    fn answer_to(&self, seen: &SeenCommand) -> ExecResult {
        let rules = self.state().rules.clone();
        rules.iter().find_map(|rule| rule(seen)).unwrap_or_else(|| {
            let text = "no rule of the test answers this command";
            ExecResult::start_failure(StartProblem::NotFound, text, ExecPath::Host)
        })
    }
}

impl fmt::Debug for MemoryProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryProvider")
            .field("living", &self.living())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
