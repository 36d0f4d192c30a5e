//! The table of what is measured. A capability brings its own rows; a row names its goal of the performance table.

use futures::FutureExt;

use super::context::{Context, DockerCli, host_spawn};
use super::creation::{Creation, Until};
use super::memory::MemoryWork;
use super::sample::{Method, Plan, Step};
use super::scratch::What;
use super::transfer::{Side, Transfer, Way};
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
    /// The memory of this process meanwhile.
    Memory(MemoryWork),
    /// The processor time of this process.
    Processor,
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
    /// The same, against the docker CLI where it can do that.
    AgentCli,
    /// `hardened`, with the resident agent; beside the raw calls stands the library under `compat`.
    AgentHardened,
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
/// At most this much longer than the archive call, for what goes in one piece.
const PIECE_GOAL: f64 = 1.25;
/// At most as long as packing, sending and unpacking one after the other.
const TREE_GOAL: f64 = 1.0;
/// At most this part of the time of `docker cp`.
const TREE_CLI_GOAL: Option<f64> = Some(0.85);
const LARGE_UP_GOAL: f64 = 1.10;
const LARGE_DOWN_GOAL: f64 = 1.15;
/// A command of the agent takes at most this part of an exec by raw calls.
const AGENT_GOAL: f64 = 1.0 / 25.0;
/// And at most so much more than a process of this machine.
const SPAWN_GOAL: Option<f64> = Some(2.0);
/// Under `hardened` at most so much more than under `compat`.
const AGENT_HARDENED_GOAL: Option<f64> = Some(1.1);
/// Over several sandboxes at least thirty times the rate of raw calls.
const FLEET_GOAL: f64 = 1.0 / 30.0;
/// Over the channel through the engine at least 0.80 of the raw rate.
const AGENT_STREAM_GOAL: f64 = 1.0 / 0.80;
/// A small file by the agent takes at most this part of an archive call.
const AGENT_FILE_GOAL: f64 = 1.0 / 15.0;
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

const PIECES: Plan = Plan {
    warm_up: 3,
    blocks: 40,
    block_length: 2,
};
const TREES: Plan = Plan {
    warm_up: 1,
    blocks: 15,
    block_length: 1,
};
const LARGE: Plan = Plan {
    warm_up: 1,
    blocks: 10,
    block_length: 1,
};

/// All rows.
pub(in crate::cli) const ROWS: [Row; 33] = [
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
    exec(
        "exec agent true sequential hardened",
        Work::True,
        Preset::AgentHardened,
        BLOCKS,
    ),
    exec(
        "exec agent true 32 in flight over 8",
        Work::TrueOverFleet,
        Preset::Agent,
        BATCHES,
    ),
    exec("exec agent stdout 100 MB", Work::Stdout, Preset::Agent, BATCHES),
    exec(
        "exec agent stdout 100 MB from afar",
        Work::StdoutFromAfar,
        Preset::Agent,
        BATCHES,
    ),
    Row {
        name: "exec agent processor time",
        measured: Measured::Processor,
    },
    create("create agent to ready", Until::Ready, None),
    create("create agent to ready none", Until::Ready, Some("none")),
    create("create agent to removed", Until::Removed, None),
    create("create agent to removed none", Until::Removed, Some("none")),
    agent_copy("upload agent 1 KiB", Way::Up, What::Kibibyte),
    agent_copy("download agent 1 KiB", Way::Down, What::Kibibyte),
    agent_copy("upload agent 64 KiB", Way::Up, What::Small),
    agent_copy("download agent 64 KiB", Way::Down, What::Small),
    Row {
        name: "exec engine output 5 GB under a 1 MiB cap",
        measured: Measured::Memory(MemoryWork::Output),
    },
    // First of all copies: what others have left to the allocator would hide growth.
    copy_memory("upload 256 MiB memory", Way::Up),
    copy_memory("download 256 MiB memory", Way::Down),
    copy("upload 1 KiB", Way::Up, What::Kibibyte),
    copy("download 1 KiB", Way::Down, What::Kibibyte),
    copy("upload 1 MiB", Way::Up, What::Mebibyte),
    copy("download 1 MiB", Way::Down, What::Mebibyte),
    copy("upload 5000 files", Way::Up, What::Tree),
    copy("download 5000 files", Way::Down, What::Tree),
    copy("upload 256 MiB", Way::Up, What::Large),
    copy("download 256 MiB", Way::Down, What::Large),
];

const fn create(name: &'static str, until: Until, network: Option<&'static str>) -> Row {
    let (goal, other_goal) = match (until, network) {
        (Until::Ready, None) => (0.85, None),
        (Until::Ready, Some(_)) => (0.78, None),
        (Until::Removed, None) => (0.92, Some(0.82)),
        (Until::Removed, Some(_)) => (0.82, Some(0.70)),
    };
    Row {
        name,
        measured: Measured::Time(TimeRow {
            work: Work::Create(Creation { until, network }),
            preset: Preset::AgentCli,
            goal,
            other_goal,
            plan: BATCHES,
            amount: Amount::One,
        }),
    }
}

const fn agent_copy(name: &'static str, way: Way, what: What) -> Row {
    Row {
        name,
        measured: Measured::Time(TimeRow {
            work: Work::Copy(Transfer { way, what }),
            preset: Preset::Agent,
            goal: AGENT_FILE_GOAL,
            other_goal: None,
            plan: PIECES,
            amount: Amount::One,
        }),
    }
}

const fn copy(name: &'static str, way: Way, what: What) -> Row {
    let (goal, other_goal, plan, amount) = match (what, way) {
        (What::Kibibyte | What::Small | What::Mebibyte, _) => (PIECE_GOAL, None, PIECES, Amount::One),
        (What::Tree, Way::Up) => (TREE_GOAL, TREE_CLI_GOAL, TREES, Amount::One),
        (What::Tree, Way::Down) => (TREE_GOAL, None, TREES, Amount::One),
        (What::Large, Way::Up) => (LARGE_UP_GOAL, None, LARGE, Amount::Bytes(what.bytes())),
        (What::Large, Way::Down) => (LARGE_DOWN_GOAL, None, LARGE, Amount::Bytes(what.bytes())),
    };
    Row {
        name,
        measured: Measured::Time(TimeRow {
            work: Work::Copy(Transfer { way, what }),
            preset: Preset::Compat,
            goal,
            other_goal,
            plan,
            amount,
        }),
    }
}

const fn copy_memory(name: &'static str, way: Way) -> Row {
    let what = What::Large;
    Row {
        name,
        measured: Measured::Memory(MemoryWork::Copy(Transfer { way, what })),
    }
}

const fn exec(name: &'static str, work: Work, preset: Preset, plan: Plan) -> Row {
    let is_agent = matches!(preset, Preset::Agent | Preset::AgentHardened);
    let (goal, amount) = match work {
        Work::True if is_agent => (AGENT_GOAL, Amount::One),
        Work::Stdout if is_agent => (AGENT_STDOUT_GOAL, Amount::Bytes(STDOUT_BYTES)),
        Work::True | Work::TrueWithTimeout => (EXEC_GOAL, Amount::One),
        Work::TrueInFlight => (EXEC_GOAL, Amount::Execs(IN_FLIGHT)),
        Work::Stdout => (STDOUT_GOAL, Amount::Bytes(STDOUT_BYTES)),
        Work::TrueOverFleet => (FLEET_GOAL, Amount::Execs(IN_FLIGHT)),
        Work::StdoutFromAfar => (AGENT_STREAM_GOAL, Amount::Bytes(STDOUT_BYTES)),
        Work::Copy(_) | Work::Create(_) => panic!("these rows have functions of their own"),
    };
    let other_goal = match (preset, work) {
        (Preset::Compat, Work::True | Work::TrueWithTimeout | Work::TrueInFlight) => CLI_GOAL,
        (Preset::Agent, Work::True) => SPAWN_GOAL,
        (Preset::AgentHardened, Work::True) => AGENT_HARDENED_GOAL,
        _ => None,
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
        matches!(self.measured, Measured::Memory(MemoryWork::Output))
    }
}

impl TimeRow {
    /// Ours, raw, and any other method, in this order.
    pub(in crate::cli) fn methods<'a>(&'a self, context: &'a Context<'a>) -> Vec<Method<'a>> {
        let target = match self.preset {
            Preset::Compat => &context.compat,
            Preset::Hardened => &context.hardened,
            Preset::Agent | Preset::AgentCli => &context.agent,
            Preset::AgentHardened => &context.agent_hardened,
        };
        let ready = |side: Side| {
            let step: Step<'a> = Box::new(move || self.work.ready(context, target, side).boxed());
            self.work.needs_ready().then_some(step)
        };
        let mut methods = vec![
            Method {
                name: "ours",
                ready: ready(Side::Ours),
                once: Box::new(|| self.work.ours(context, target).boxed()),
            },
            Method {
                name: "raw",
                ready: ready(Side::Raw),
                once: Box::new(|| self.work.raw(context, target).boxed()),
            },
        ];
        match self.preset {
            Preset::Compat | Preset::AgentCli if context.cli == DockerCli::Installed => {
                methods.push(Method {
                    name: "docker CLI",
                    ready: ready(Side::Cli),
                    once: Box::new(|| self.work.docker_cli(context, target).boxed()),
                });
            }
            Preset::Agent if self.work == Work::True => methods.push(Method {
                name: "host spawn",
                ready: None,
                once: Box::new(|| host_spawn(&["true"]).boxed()),
            }),
            Preset::AgentHardened => methods.push(Method {
                name: "compat",
                ready: None,
                once: Box::new(|| self.work.ours(context, &context.agent).boxed()),
            }),
            Preset::Compat | Preset::Agent | Preset::AgentCli => {}
            Preset::Hardened => methods.push(Method {
                name: "compat",
                ready: None,
                once: Box::new(|| self.work.ours(context, &context.compat).boxed()),
            }),
        }
        methods
    }
}

#[cfg(test)]
mod tests;
