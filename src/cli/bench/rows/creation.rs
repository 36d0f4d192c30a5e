//! Rows of creation, and their goals.

use super::super::creation::{Creation, Until};
use super::super::work::Work;
use super::{Amount, BATCHES, Measured, Preset, Row, TimeRow};

pub(super) const fn create(name: &'static str, until: Until, network: Option<&'static str>) -> Row {
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
