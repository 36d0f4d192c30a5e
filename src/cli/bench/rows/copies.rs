//! Rows of copies, and their goals.

use super::super::memory::MemoryWork;
use super::super::sample::Plan;
use super::super::scratch::What;
use super::super::transfer::{Transfer, Way};
use super::super::work::Work;
use super::{Amount, Measured, Preset, QUICK_BLOCKS, Row, TimeRow};

/// At most this much longer than the archive call, for what goes in one piece.
const PIECE_GOAL: f64 = 1.25;
/// At most as long as packing, sending and unpacking one after the other.
const TREE_GOAL: f64 = 1.0;
/// At most this part of the time of `docker cp`.
const TREE_CLI_GOAL: Option<f64> = Some(0.85);
const LARGE_UP_GOAL: f64 = 1.10;
const LARGE_DOWN_GOAL: f64 = 1.15;
/// A small file by the agent takes at most this part of an archive call.
const AGENT_FILE_GOAL: f64 = 1.0 / 15.0;

const PIECES: Plan = Plan {
    warm_up: 3,
    blocks: 40,
    quick_blocks: QUICK_BLOCKS,
    block_length: 2,
};
const TREES: Plan = Plan {
    warm_up: 1,
    blocks: 15,
    quick_blocks: QUICK_BLOCKS,
    block_length: 1,
};
const LARGE: Plan = Plan {
    warm_up: 1,
    blocks: 10,
    quick_blocks: QUICK_BLOCKS,
    block_length: 1,
};

/// By the agent, or with its help.
pub(super) const fn agent_copy(name: &'static str, way: Way, what: What) -> Row {
    let mut row = timed(way, what);
    row.preset = Preset::Agent;
    row.other_goal = None;
    if matches!(what, What::Kibibyte | What::Small) {
        row.goal = AGENT_FILE_GOAL;
    }
    Row {
        name,
        measured: Measured::Time(row),
    }
}

pub(super) const fn copy(name: &'static str, way: Way, what: What) -> Row {
    Row {
        name,
        measured: Measured::Time(timed(way, what)),
    }
}

const fn timed(way: Way, what: What) -> TimeRow {
    let (goal, other_goal, plan, amount) = match (what, way) {
        (What::Kibibyte | What::Small | What::Mebibyte, _) => (PIECE_GOAL, None, PIECES, Amount::One),
        (What::Tree, Way::Up) => (TREE_GOAL, TREE_CLI_GOAL, TREES, Amount::One),
        (What::Tree, Way::Down) => (TREE_GOAL, None, TREES, Amount::One),
        (What::Large, Way::Up) => (LARGE_UP_GOAL, None, LARGE, Amount::Bytes(what.bytes())),
        (What::Large, Way::Down) => (LARGE_DOWN_GOAL, None, LARGE, Amount::Bytes(what.bytes())),
    };
    TimeRow {
        work: Work::Copy(Transfer { way, what }),
        preset: Preset::Compat,
        goal,
        other_goal,
        plan,
        amount,
    }
}

pub(super) const fn copy_memory(name: &'static str, way: Way) -> Row {
    let what = What::Large;
    Row {
        name,
        measured: Measured::Memory(MemoryWork::Copy(Transfer { way, what })),
    }
}
