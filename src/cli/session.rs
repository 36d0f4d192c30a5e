//! One sandbox for the length of one command: started, used, and removed on every way out, signals included.

use gym_sandbox::{AsyncSandbox, Error, ErrorKind, Operation, Result};

use super::interrupt::{Interrupt, Interrupts};
use super::output;

/// What becomes of the sandbox at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Afterwards {
    /// It is removed.
    Remove,
    /// It is left running, unless a signal ended the command early.
    Keep,
}

/// How the work ended.
#[derive(Debug)]
pub(super) enum Outcome<T> {
    /// By itself.
    Ended(T),
    /// By a signal. The sandbox is removed.
    Interrupted(Interrupt),
}

/// Starts the sandbox, does the work, and removes the sandbox.
///
/// A first signal ends the work and removes the sandbox; a second one ends the removal, too, and says what is left.
///
/// # Errors
/// That of the start or the work comes first, with that of the removal attached.
pub(super) async fn with_sandbox<T>(
    sandbox: AsyncSandbox,
    afterwards: Afterwards,
    work: impl AsyncFnOnce(&AsyncSandbox) -> Result<T>,
) -> Result<Outcome<T>> {
    let mut interrupts = Interrupts::listen()?;
    let attempt = async {
        sandbox.start().await?;
        work(&sandbox).await
    };
    let outcome = tokio::select! {
        outcome = attempt => outcome.map(Outcome::Ended),
        interrupt = interrupts.next() => Ok(Outcome::Interrupted(interrupt)),
    };
    if afterwards == Afterwards::Keep && matches!(outcome, Ok(Outcome::Ended(_))) {
        // The facade's drop removes what it started; a sandbox that is kept outlives this process.
        std::mem::forget(sandbox);
        return outcome;
    }
    let id = sandbox.sandbox_id();
    let stopped = tokio::select! {
        stopped = sandbox.stop() => stopped,
        interrupt = interrupts.next() => {
            let id = id.map_or_else(|| "one that was being made".to_owned(), |id| format!("`{id}`"));
            output::note(&format!("interrupted again: the sandbox may be left ({id})"));
            return Ok(Outcome::Interrupted(interrupt));
        }
    };
    match (outcome, stopped) {
        (Err(error), Err(cleanup)) => Err(error.with_cleanup_error(cleanup)),
        (Err(error), Ok(())) | (Ok(_), Err(error)) => Err(error),
        (Ok(outcome), Ok(())) => Ok(outcome),
    }
}

/// Does the work until it ends or a signal ends it; then it is dropped.
///
/// # Errors
/// That of the work.
pub(super) async fn until_interrupted<T>(work: impl Future<Output = Result<T>>) -> Result<Outcome<T>> {
    let mut interrupts = Interrupts::listen()?;
    tokio::select! {
        outcome = work => outcome.map(Outcome::Ended),
        interrupt = interrupts.next() => Ok(Outcome::Interrupted(interrupt)),
    }
}

/// Runs what may block, such as a write to a pipe that nobody reads, without holding the others up.
pub(super) async fn blocking(work: impl FnOnce() -> std::io::Result<()> + Send + 'static) -> Result<()> {
    let failed = |text| Error::new(ErrorKind::Io, Operation::Exec, text);
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(failed("the output could not be written").with_source(error)),
        Err(error) => Err(failed("writing the output did not end").with_source(error)),
    }
}
