//! Commands in a service's container after its start and before its stop. Each has a bound of time, and an error names it.

use std::time::Duration;

use crate::compose::plan::{HookStep, PRE_STOP, USUAL_GRACE};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{SandboxHandle, SandboxProvider};
use crate::spec::container::ContainerDetail;
use crate::spec::{ExecOptions, ExecResult};

use super::failure::{kind_of, last_part};

/// How long a hook after a start may take. The start's own limit of time counts as well.
const AFTER_START: Duration = Duration::from_secs(300);

/// What its turn and its kill may take beyond a hook's own time.
const BEYOND: Duration = Duration::from_secs(30);

/// The most characters of a hook's command that are shown.
const MOST_SHOWN: usize = 200;

/// How long a hook may take.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// Itself: then it is killed.
    limit: Duration,
    /// Its turn and its kill on top: then it is waited for no more.
    beyond: Duration,
}

impl Bounds {
    fn new(limit: Duration) -> Self {
        Self {
            limit,
            beyond: BEYOND,
        }
    }
}

/// Where hooks are run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hooks<'a> {
    pub(super) provider: &'a dyn SandboxProvider,
    pub(super) handle: &'a SandboxHandle,
    pub(super) service: &'a str,
}

impl Hooks<'_> {
    /// Runs the hooks after a start, one after the other. The first that fails is an error.
    pub(super) async fn after_start(&self, hooks: &[HookStep], tell: impl Fn(String)) -> Result<()> {
        for hook in hooks {
            let name = name_of("post_start", hook);
            tell(name.clone());
            let bounds = Bounds::new(AFTER_START);
            self.run(Operation::ComposeUp, &name, hook, bounds).await?;
        }
        Ok(())
    }

    /// Runs the hooks before a stop, each for as long as it may take. One that fails keeps nothing from going, and is
    /// told. Where a hook, or something else, has ended the service, the rest has nothing to run in.
    pub(super) async fn before_stop(
        &self,
        hooks: &[HookStep],
        limit: Duration,
        tell: impl Fn(String),
    ) -> Vec<Error> {
        let bounds = Bounds::new(limit);
        self.before_stop_within(hooks, bounds, tell).await
    }

    async fn before_stop_within(
        &self,
        hooks: &[HookStep],
        bounds: Bounds,
        tell: impl Fn(String),
    ) -> Vec<Error> {
        let mut failed = Vec::new();
        for hook in hooks {
            let name = name_of("pre_stop", hook);
            tell(name.clone());
            match self.run(Operation::ComposeDown, &name, hook, bounds).await {
                Ok(()) => {}
                Err(error) if matches!(error.kind(), ErrorKind::Sandbox(_)) => break,
                Err(error) => failed.push(error),
            }
        }
        failed
    }

    async fn run(&self, operation: Operation, name: &str, hook: &HookStep, bounds: Bounds) -> Result<()> {
        let Bounds { limit, beyond } = bounds;
        let mut options = ExecOptions::new(hook.command.clone()).with_timeout(limit);
        if let Some(user) = &hook.user {
            options = options.with_user(user.as_str());
        }
        options.cwd.clone_from(&hook.working_dir);
        for (name, value) in hook.environment.iter() {
            options = options.with_env(name, value.unwrap_or_default());
        }
        let failed = |kind, what: &str| {
            let kind = match (operation, kind) {
                // What becomes of the service is what the caller of a stop asks for.
                (Operation::ComposeDown, ErrorKind::NotReady | ErrorKind::Timeout) => ErrorKind::Hook,
                _ => kind,
            };
            Error::new(
                kind,
                operation,
                format!("the {name} of service `{}` {what}", self.service),
            )
        };
        // Without a limit of its own it could wait for its turn among the provider's commands for ever.
        let ran = tokio::time::timeout(
            limit.saturating_add(beyond),
            self.provider.exec(self.handle, options),
        )
        .await;
        let Ok(ran) = ran else {
            let what = "could not be run in time: too many other commands run on this provider";
            return Err(failed(ErrorKind::Timeout, what));
        };
        match ran {
            Ok(result) if result.is_success() => Ok(()),
            Ok(result) => Err(failed(kind_of(&result), &what_became(&result, limit))),
            Err(error) => Err(failed(ErrorKind::NotReady, "could not be run").with_source(error)),
        }
    }
}

fn what_became(result: &ExecResult, limit: Duration) -> String {
    match (kind_of(result), &result.message) {
        (ErrorKind::Timeout, _) => format!("did not end within {limit:?} and was killed"),
        (_, Some(why)) if result.error_type.is_some() => format!("could not be run: {why}"),
        _ => {
            let printed = result.stderr().unwrap_or_default();
            let printed = last_part(printed.trim_end());
            let code = result.return_code;
            if printed.is_empty() {
                format!("ended with {code}, and said nothing on standard error")
            } else {
                format!("ended with {code}: {printed}")
            }
        }
    }
}

/// The error of hooks before a stop whose container can't be had. None where it is gone: then there is nothing to stop.
pub(super) fn not_had(service: &str, error: Error) -> Option<Error> {
    (error.kind() != ErrorKind::NotFound).then(|| {
        let text = format!("the pre_stop hooks of service `{service}` could not be run");
        Error::new(ErrorKind::Hook, Operation::ComposeDown, text).with_source(error)
    })
}

/// How a hook is called in a message: its key and its command.
fn name_of(key: &str, hook: &HookStep) -> String {
    let is_plain = |word: &str| {
        !word.is_empty()
            && word
                .chars()
                .all(|c| c.is_alphanumeric() || "-_./:=,+@%".contains(c))
    };
    let words = hook.command.iter().map(|word| {
        if is_plain(word) {
            word.clone()
        } else {
            format!("'{}'", word.escape_debug())
        }
    });
    let line = words.collect::<Vec<_>>().join(" ");
    let mut shown: String = line.chars().take(MOST_SHOWN).collect();
    if shown.len() < line.len() {
        shown.push_str("..");
    }
    format!("{key} hook `{shown}`")
}

/// How long a hook before a stop may take: as long as the service gets to end by itself. Who gets no time at all, or
/// does not say, still gets the usual time for this: a hook that is killed at once is none.
pub(super) fn time_before_stop(grace: Option<Duration>) -> Duration {
    grace.filter(|grace| !grace.is_zero()).unwrap_or(USUAL_GRACE)
}

/// The hooks before a stop that a container's labels name. Labels may be anybody's: what cannot be read is none.
pub(super) fn noted(container: &ContainerDetail) -> Vec<HookStep> {
    let Some(label) = container.labels.get(PRE_STOP) else {
        return Vec::new();
    };
    serde_json::from_str(label).unwrap_or_else(|error| {
        tracing::warn!(container = container.name, %error, "the hooks before its stop cannot be read");
        Vec::new()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::tests::scripted::{Call, DEADLINE, Scripted, Step};
    use crate::spec::SandboxId;
    use crate::spec::container::EnvironmentSpec;

    #[test]
    fn a_hook_is_called_by_its_key_and_its_command_as_it_would_be_typed() {
        let hook = |command: &[&str]| HookStep {
            command: command.iter().map(|&word| word.to_owned()).collect(),
            user: None,
            working_dir: None,
            environment: EnvironmentSpec::default(),
        };
        let name = |command: &[&str]| name_of("pre_stop", &hook(command));
        assert_eq!(name(&["sh", "-c", "sleep 9"]), "pre_stop hook `sh -c 'sleep 9'`");
        assert_eq!(name(&["/bin/stop", ""]), "pre_stop hook `/bin/stop ''`");
        assert!(name(&["sh", "-c", &"x y ".repeat(100)]).ends_with("..`"));
    }

    #[test]
    fn a_hook_before_a_stop_has_the_time_that_the_service_has() {
        let seconds = Duration::from_secs;
        assert_eq!(time_before_stop(Some(seconds(3))), seconds(3));
        assert_eq!(time_before_stop(None), seconds(10));
        assert_eq!(time_before_stop(Some(Duration::ZERO)), seconds(10));
    }

    #[tokio::test]
    async fn a_hook_that_never_gets_its_turn_is_told_so_in_time() {
        let provider = Scripted::new();
        let (waits, _gate) = Step::blocked();
        provider.script(Operation::Exec, [waits]);
        let handle = SandboxHandle::new(SandboxId::new("a-1").unwrap(), "scripted");
        let hooks = Hooks {
            provider: &*provider,
            handle: &handle,
            service: "a",
        };
        let commands = ["first", "second"].map(|word| HookStep {
            command: vec![word.to_owned()],
            user: None,
            working_dir: None,
            environment: EnvironmentSpec::default(),
        });
        let bounds = Bounds {
            limit: Duration::from_millis(10),
            beyond: Duration::from_millis(10),
        };
        let stopped = hooks.before_stop_within(&commands, bounds, |_| {});
        let failed = tokio::time::timeout(DEADLINE, stopped).await.unwrap();
        let [error] = &failed[..] else {
            panic!("{failed:?}");
        };
        assert_eq!(error.kind(), ErrorKind::Hook);
        let said = error.to_string();
        assert!(
            said.contains("pre_stop hook `first` of service `a`") && said.contains("too many other commands"),
            "{said}"
        );
        // The next one had its turn.
        assert_eq!(provider.count(|call| matches!(call, Call::Exec(_))), 2);
    }
}
