//! Rows of commands, and their goals.

use super::super::sample::Plan;
use super::super::work::{IN_FLIGHT, STDOUT_BYTES, Work};
use super::{Amount, Measured, Preset, Row, TimeRow};

/// At most this much longer than the raw calls.
const EXEC_GOAL: f64 = 1.08;
/// At most this part of the docker CLI's time.
const CLI_GOAL: Option<f64> = Some(0.80);
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
/// By the local socket at least three times the raw rate, as a ratio of times.
const AGENT_STDOUT_GOAL: f64 = 1.0 / 3.0;
/// At least 0.95 of the raw rate, as a ratio of times.
const STDOUT_GOAL: f64 = 1.0 / 0.95;

pub(super) const fn exec(name: &'static str, work: Work, preset: Preset, plan: Plan) -> Row {
    let is_agent = matches!(preset, Preset::Agent | Preset::AgentHardened);
    let (goal, amount) = match work {
        Work::True if is_agent => (AGENT_GOAL, Amount::One),
        Work::Stdout if is_agent => (AGENT_STDOUT_GOAL, Amount::Bytes(STDOUT_BYTES)),
        Work::True | Work::TrueWithTimeout => (EXEC_GOAL, Amount::One),
        Work::TrueInFlight => (EXEC_GOAL, Amount::Execs(IN_FLIGHT)),
        Work::Stdout => (STDOUT_GOAL, Amount::Bytes(STDOUT_BYTES)),
        Work::TrueOverFleet => (FLEET_GOAL, Amount::Execs(IN_FLIGHT)),
        Work::StdoutFromAfar => (AGENT_STREAM_GOAL, Amount::Bytes(STDOUT_BYTES)),
        Work::Copy(_) | Work::Create(_) | Work::Project(_) | Work::Copies => {
            panic!("these rows have functions of their own")
        }
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
