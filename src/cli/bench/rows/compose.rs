//! Rows of Compose projects that run, and their goals.

use super::super::project::Project;
use super::super::sample::Plan;
use super::super::work::Work;
use super::{Amount, Measured, Preset, Row, TimeRow};

const UP_GOAL: f64 = 1.15;
/// At most this part of docker compose's time, with a health check of 500 ms.
const UP_COMPOSE_GOAL: Option<f64> = Some(0.55);
const DOWN_GOAL: f64 = 1.1;
const COPIES_GOAL: f64 = 1.15;

const PROJECTS: Plan = Plan {
    warm_up: 1,
    blocks: 15,
    quick_blocks: 2,
    block_length: 1,
};
const COPIES: Plan = Plan {
    warm_up: 0,
    blocks: 5,
    quick_blocks: 2,
    block_length: 1,
};

pub(super) const fn project(name: &'static str, project: Project) -> Row {
    let (goal, other_goal) = match project {
        Project::Up => (UP_GOAL, UP_COMPOSE_GOAL),
        Project::Down => (DOWN_GOAL, None),
    };
    row(name, Work::Project(project), goal, other_goal, PROJECTS)
}

pub(super) const fn copies(name: &'static str) -> Row {
    row(name, Work::Copies, COPIES_GOAL, None, COPIES)
}

const fn row(name: &'static str, work: Work, goal: f64, other_goal: Option<f64>, plan: Plan) -> Row {
    Row {
        name,
        measured: Measured::Time(TimeRow {
            work,
            preset: Preset::Project,
            goal,
            other_goal,
            plan,
            amount: Amount::One,
        }),
    }
}
