//! The table of what is measured. A capability brings its own rows; a row names its goal of the performance table.

use futures::FutureExt;

use super::context::{Context, DockerCli, host_spawn};
use super::sample::{Method, Plan};
use super::work::{IN_FLIGHT, STDOUT_BYTES, Work};

/// One line of the table.
#[derive(Debug)]
pub(in crate::cli) struct Row {
    /// What is measured, and on which path.
    pub(in crate::cli) name: &'static str,
    pub(in crate::cli) measured: Measured,
}

/// What a row looks at.
#[derive(Debug)]
pub(in crate::cli) enum Measured {
    /// Time, against that of others.
    Time(TimeRow),
    /// The memory of this process while it reads a very long output. Takes minutes.
    Memory,
}

/// A row that compares times.
#[derive(Debug)]
pub(in crate::cli) struct TimeRow {
    work: Work,
    preset: Preset,
    /// The largest ratio to the raw calls that is good enough.
    pub(in crate::cli) goal: f64,
    /// The same to the other method. None where that is only shown.
    pub(in crate::cli) other_goal: Option<f64>,
    /// How much is measured for a verdict.
    pub(in crate::cli) plan: Plan,
    /// What is done in one run.
    pub(in crate::cli) amount: Amount,
}

/// The preset of the sandbox in which a row is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Preset {
    /// Beside the raw calls stands the docker CLI.
    Compat,
    /// Beside the raw calls stands the library under `compat`.
    Hardened,
    /// `compat`, with the resident agent; beside the raw calls stands a process of this machine.
    Agent,
}

/// How much is done in one run, for its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Amount {
    /// One thing: its time says all.
    One,
    /// So many commands.
    Execs(u32),
    /// So many bytes.
    Bytes(u64),
}

/// At most this much longer than the raw calls.
const EXEC_GOAL: f64 = 1.08;
/// At most this part of the docker CLI's time.
const CLI_GOAL: Option<f64> = Some(0.80);
/// A command of the agent takes at most this part of an exec by raw calls.
const AGENT_GOAL: f64 = 1.0 / 25.0;
/// And at most so much more than a process of this machine.
const SPAWN_GOAL: Option<f64> = Some(2.0);
/// By the local socket at least three times the raw rate, as a ratio of times.
const AGENT_STDOUT_GOAL: f64 = 1.0 / 3.0;
/// At least 0.95 of the raw rate, as a ratio of times.
const STDOUT_GOAL: f64 = 1.0 / 0.95;

const SEQUENTIAL: Plan = Plan {
    warm_up: 5,
    blocks: 60,
    block_length: 5,
};
/// A preset only stands beside the row that is judged: half of it is enough.
const BESIDE: Plan = Plan {
    blocks: 30,
    ..SEQUENTIAL
};
/// Long enough turns that what one leaves behind in caches does not count.
const BLOCKS: Plan = Plan {
    warm_up: 5,
    blocks: 12,
    block_length: 50,
};
const BATCHES: Plan = Plan {
    warm_up: 1,
    blocks: 20,
    block_length: 1,
};

/// All rows.
pub(in crate::cli) const ROWS: [Row; 11] = [
    exec(
        "exec engine true sequential",
        Work::True,
        Preset::Compat,
        SEQUENTIAL,
    ),
    exec(
        "exec engine true sequential hardened",
        Work::True,
        Preset::Hardened,
        BESIDE,
    ),
    exec(
        "exec engine true timeout",
        Work::TrueWithTimeout,
        Preset::Compat,
        SEQUENTIAL,
    ),
    exec(
        "exec engine true timeout hardened",
        Work::TrueWithTimeout,
        Preset::Hardened,
        BESIDE,
    ),
    exec(
        "exec engine true 32 in flight",
        Work::TrueInFlight,
        Preset::Compat,
        BATCHES,
    ),
    exec(
        "exec engine true 32 in flight hardened",
        Work::TrueInFlight,
        Preset::Hardened,
        BATCHES,
    ),
    exec("exec engine stdout 100 MB", Work::Stdout, Preset::Compat, BATCHES),
    exec(
        "exec engine stdout 100 MB hardened",
        Work::Stdout,
        Preset::Hardened,
        BATCHES,
    ),
    exec("exec agent true sequential", Work::True, Preset::Agent, BLOCKS),
    exec("exec agent stdout 100 MB", Work::Stdout, Preset::Agent, BATCHES),
    Row {
        name: "exec engine output 5 GB under a 1 MiB cap",
        measured: Measured::Memory,
    },
];

const fn exec(name: &'static str, work: Work, preset: Preset, plan: Plan) -> Row {
    let is_agent = matches!(preset, Preset::Agent);
    let (goal, amount) = match work {
        Work::True if is_agent => (AGENT_GOAL, Amount::One),
        Work::Stdout if is_agent => (AGENT_STDOUT_GOAL, Amount::Bytes(STDOUT_BYTES)),
        Work::True | Work::TrueWithTimeout => (EXEC_GOAL, Amount::One),
        Work::TrueInFlight => (EXEC_GOAL, Amount::Execs(IN_FLIGHT)),
        Work::Stdout => (STDOUT_GOAL, Amount::Bytes(STDOUT_BYTES)),
    };
    let other_goal = match (preset, work) {
        (Preset::Compat, Work::True | Work::TrueWithTimeout | Work::TrueInFlight) => CLI_GOAL,
        (Preset::Agent, Work::True) => SPAWN_GOAL,
        (Preset::Hardened | Preset::Agent, _) | (Preset::Compat, Work::Stdout) => None,
    };
    Row {
        name,
        measured: Measured::Time(TimeRow {
            work,
            preset,
            goal,
            other_goal,
            plan,
            amount,
        }),
    }
}

impl Row {
    /// Says whether it takes so long that it is measured only when asked for.
    pub(in crate::cli) fn is_long(&self) -> bool {
        matches!(self.measured, Measured::Memory)
    }
}

impl TimeRow {
    /// Ours, raw, and any other method, in this order.
    pub(in crate::cli) fn methods<'a>(&'a self, context: &'a Context<'a>) -> Vec<Method<'a>> {
        let target = match self.preset {
            Preset::Compat => &context.compat,
            Preset::Hardened => &context.hardened,
            Preset::Agent => &context.agent,
        };
        let mut methods = vec![
            Method {
                name: "ours",
                once: Box::new(|| self.work.ours(target).boxed()),
            },
            Method {
                name: "raw",
                once: Box::new(|| self.work.raw(context, target).boxed()),
            },
        ];
        match self.preset {
            Preset::Compat if context.cli == DockerCli::Installed => methods.push(Method {
                name: "docker CLI",
                once: Box::new(|| self.work.docker_cli(context, target).boxed()),
            }),
            Preset::Compat => {}
            Preset::Agent if self.work == Work::True => methods.push(Method {
                name: "host spawn",
                once: Box::new(|| host_spawn(&["true"]).boxed()),
            }),
            Preset::Agent => {}
            Preset::Hardened => methods.push(Method {
                name: "compat",
                once: Box::new(|| self.work.ours(&context.compat).boxed()),
            }),
        }
        methods
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exec_row_that_compares_times_has_its_hardened_row_right_after_it() {
        let names: Vec<&str> = ROWS
            .iter()
            .filter(|row| !row.is_long() && row.name.starts_with("exec engine"))
            .map(|row| row.name)
            .collect();
        for pair in names.chunks(2) {
            assert_eq!(pair[1], format!("{} hardened", pair[0]));
        }
    }
}
