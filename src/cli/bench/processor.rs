//! The processor time that this process spends on a command.

use std::fs;

use futures::future::try_join_all;
use gym_sandbox::{Error, ExecOptions, ExecTimeout, Operation, Result};
use serde::Serialize;

use super::context::{Context, baseline_failed, succeeded};
use super::stats::Verdict;

/// Seconds for each command of the agent, at most.
pub(in crate::cli) const GOAL_S: f64 = 0.000_15;

/// Linux counts in hundredths of a second towards programs, whatever it does within.
const TICKS_PER_S: f64 = 100.0;

/// Enough that a tick more or less does not matter.
const AGENT_EXECS: u32 = 3_000;
const RAW_EXECS: u32 = 200;

/// What one way spent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(in crate::cli) struct Spent {
    /// Processor seconds of this process for each command. None where the system does not tell.
    pub(in crate::cli) cpu_s: Option<f64>,
    pub(in crate::cli) execs: u32,
}

impl Spent {
    fn of(before: Option<f64>, execs: u32) -> Self {
        let spent = before.zip(processor_s()).map(|(before, now)| now - before);
        Self {
            cpu_s: spent.map(|spent| spent / f64::from(execs)),
            execs,
        }
    }

    pub(in crate::cli) fn verdict(&self) -> Verdict {
        match self.cpu_s {
            None => Verdict::Unresolved,
            Some(spent) if spent <= GOAL_S => Verdict::Pass,
            Some(_) => Verdict::Miss,
        }
    }
}

/// Measures the library's commands by the agent, so many in flight over the sandboxes of the fleet, and the bare calls.
/// One in flight shows the worst: both sides go to sleep after each message, and what costs is to wake them.
///
/// # Errors
/// A command failed.
pub(in crate::cli) async fn measure(context: &Context<'_>, in_flight: u32) -> Result<(Spent, Spent)> {
    let share = if context.is_quick { 10 } else { 1 };
    let targets = context.fleet.targets(context.left).await?;
    let each = AGENT_EXECS / share / in_flight;
    let loops = (0..in_flight as usize).map(|index| {
        let sandbox = targets[index % targets.len()].sandbox;
        async move {
            for _ in 0..each {
                let options = ExecOptions::new(["true"]).with_timeout(ExecTimeout::Never);
                let result = sandbox.exec_with(options).await?;
                succeeded(result.is_success(), "the library's exec did not succeed")?;
            }
            Ok::<_, Error>(())
        }
    });
    let before = processor_s();
    try_join_all(loops).await?;
    let ours = Spent::of(before, each * in_flight);
    let execs = RAW_EXECS / share;
    let before = processor_s();
    for _ in 0..execs {
        let ended = context.raw.exec(&context.agent.container, &["true"], 0).await;
        ended.map_err(|error| baseline_failed(Operation::Exec, error))?;
    }
    Ok((ours, Spent::of(before, execs)))
}

fn processor_s() -> Option<f64> {
    ticks(&fs::read_to_string("/proc/self/stat").ok()?).map(|ticks| ticks / TICKS_PER_S)
}

/// User and system time of all threads. The name before them may hold anything.
fn ticks(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(11);
    let mut next = || fields.next()?.parse::<u32>().ok().map(f64::from);
    Some(next()? + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_are_found_behind_any_name() {
        let stat = "7 (a) b) (c) S 1 7 7 0 -1 4194304 100 0 0 0 12 30 0 0 20 0 1 0 5 6 7";
        assert_eq!(ticks(stat), Some(42.0));
        assert_eq!(ticks("7 (a"), None);
    }

    #[test]
    fn time_that_is_not_known_is_no_pass() {
        let spent = |cpu_s| Spent { cpu_s, execs: 1 };
        assert_eq!(spent(Some(GOAL_S)).verdict(), Verdict::Pass);
        assert_eq!(spent(Some(GOAL_S * 1.1)).verdict(), Verdict::Miss);
        assert_eq!(spent(None).verdict(), Verdict::Unresolved);
    }
}
