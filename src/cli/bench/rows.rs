//! The table of what is measured. A capability brings its own rows; a row names its goal of the performance table.

mod compose;
mod copies;
mod creation;
mod exec;
mod methods;

use super::compose_config::Files;
use super::creation::Until;
use super::memory::MemoryWork;
use super::project::Project;
use super::sample::Plan;
use super::scratch::What;
use super::transfer::Way;
use super::work::Work;

use compose::{copies, project};
use copies::{agent_copy, copy, copy_memory};
use creation::create;
use exec::exec;

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
    /// The processor time of this process, with so many commands in flight.
    Processor(u32),
    /// Round trips of many terminals.
    Terminals,
    /// The memory of this process for sandboxes that do nothing.
    Idle,
    /// Many sandboxes asked for at the same time.
    Queue,
    /// Compose files, loaded and printed.
    ComposeConfig(Files),
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
    /// No sandbox, but Compose projects; beside the raw calls stands docker compose.
    Project,
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

/// Turns of a measurement with a few samples.
const QUICK_BLOCKS: usize = 6;

const SEQUENTIAL: Plan = Plan {
    warm_up: 5,
    blocks: 60,
    quick_blocks: QUICK_BLOCKS,
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
    quick_blocks: QUICK_BLOCKS,
    block_length: 50,
};
const BATCHES: Plan = Plan {
    warm_up: 1,
    blocks: 20,
    quick_blocks: QUICK_BLOCKS,
    block_length: 1,
};

/// All rows.
pub(in crate::cli) const ROWS: [Row; 43] = [
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
        measured: Measured::Processor(1),
    },
    Row {
        name: "exec agent processor time 32 in flight over 8",
        measured: Measured::Processor(32),
    },
    Row {
        name: "terminals 64 open agent",
        measured: Measured::Terminals,
    },
    Row {
        name: "memory per idle sandbox",
        measured: Measured::Idle,
    },
    create("create agent to ready", Until::Ready, None),
    create("create agent to ready none", Until::Ready, Some("none")),
    create("create agent to removed", Until::Removed, None),
    create("create agent to removed none", Until::Removed, Some("none")),
    Row {
        name: "create 32 queued at once",
        measured: Measured::Queue,
    },
    agent_copy("upload agent 1 KiB", Way::Up, What::Kibibyte),
    agent_copy("download agent 1 KiB", Way::Down, What::Kibibyte),
    agent_copy("upload agent 64 KiB", Way::Up, What::Small),
    agent_copy("download agent 64 KiB", Way::Down, What::Small),
    agent_copy("upload agent 256 MiB", Way::Up, What::Large),
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
    Row {
        name: "compose config corpus",
        measured: Measured::ComposeConfig(Files::Corpus),
    },
    Row {
        name: "compose config 200 services",
        measured: Measured::ComposeConfig(Files::Large),
    },
    project("compose up", Project::Up),
    project("compose down", Project::Down),
    copies("compose 64 copies"),
];

impl Row {
    /// Says whether it takes so long that it is measured only when asked for.
    pub(in crate::cli) fn is_long(&self) -> bool {
        match &self.measured {
            Measured::Memory(MemoryWork::Output) | Measured::Queue => true,
            Measured::Time(row) => row.work == Work::Copies,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
