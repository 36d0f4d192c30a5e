//! One row of the report: what was measured, and what it says about the goal. Pure.

use serde::Serialize;

use super::super::latency::{self, Echo};
use super::super::memory::{Each, Expected, GOAL_BYTES, Reading};
use super::super::processor::{self, Spent};
use super::super::rows::{Amount, TimeRow};
use super::super::sample::{Method, Samples};
use super::super::stats::{Interval, Ratio, Verdict, median, percentile};

/// What `raw` is unless a row says otherwise.
const RAW: &str = "raw";

/// One row.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct RowReport {
    pub(super) name: &'static str,
    /// None where nothing could be measured; `note` says why.
    pub(super) ours: Option<Value>,
    /// What ours is held against. None where that is not there, or nothing is.
    pub(super) raw: Option<Value>,
    /// What `raw` is.
    pub(super) baseline: String,
    pub(super) other: Option<Other>,
    /// Of times. None where the goal is about something else.
    pub(super) ratio: Option<f64>,
    pub(super) ci: Option<(f64, f64)>,
    /// None where the row is only shown.
    pub(super) goal: Option<f64>,
    /// Runs of each method.
    pub(super) n: usize,
    /// None where the row is only shown.
    pub(super) verdict: Option<Verdict>,
    /// What a reader has to know about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

/// What was measured of one method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Value {
    Timing(Timing),
    Reading(Reading),
    Spent(Spent),
    Echo(Timing),
    Each(Each),
}

/// The times of one method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[expect(
    clippy::struct_field_names,
    reason = "the unit is part of a field's name in the report"
)]
pub(super) struct Timing {
    pub(super) median_s: f64,
    pub(super) p95_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) execs_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mb_per_s: Option<f64>,
}

/// Another method of the same row.
#[derive(Debug, Serialize)]
pub(super) struct Other {
    pub(super) name: &'static str,
    #[serde(flatten)]
    pub(super) timing: Timing,
    pub(super) ratio: f64,
    pub(super) ci: (f64, f64),
    /// None where it is only shown.
    pub(super) goal: Option<f64>,
    pub(super) verdict: Option<Verdict>,
}

/// Two methods that took turns, and what is asked of them.
#[derive(Debug)]
pub(in crate::cli) struct Comparison<'a> {
    pub(in crate::cli) ours: &'a Samples,
    /// None where there is nothing to compare with.
    pub(in crate::cli) theirs: Option<&'a Samples>,
    /// What theirs is.
    pub(in crate::cli) baseline: String,
    pub(in crate::cli) goal: f64,
    pub(in crate::cli) amount: Amount,
}

impl Timing {
    fn of(samples: &Samples, amount: Amount) -> Option<Self> {
        let all = samples.all();
        let median_s = median(&all)?;
        let (execs_per_s, mb_per_s) = match amount {
            Amount::One => (None, None),
            Amount::Execs(count) => (Some(f64::from(count) / median_s), None),
            Amount::Bytes(bytes) => (None, Some(super::lines::megabytes(bytes) / median_s)),
        };
        Some(Self {
            median_s,
            p95_s: percentile(&all, 95)?,
            execs_per_s,
            mb_per_s,
        })
    }
}

impl RowReport {
    /// One of which nothing is known yet.
    fn empty(name: &'static str) -> Self {
        Self {
            name,
            ours: None,
            raw: None,
            baseline: RAW.to_owned(),
            other: None,
            ratio: None,
            ci: None,
            goal: None,
            n: 0,
            verdict: None,
            note: None,
        }
    }

    /// One that could not be measured here.
    pub(in crate::cli) fn not_measured(name: &'static str, goal: f64, why: &str) -> Self {
        Self {
            goal: Some(goal),
            verdict: Some(Verdict::Unresolved),
            ..Self::empty(name)
        }
        .with_note(why.to_owned())
    }

    /// Says something about it.
    pub(in crate::cli) fn with_note(mut self, note: String) -> Self {
        self.note = Some(match self.note {
            Some(before) => format!("{before}; {note}"),
            None => note,
        });
        self
    }

    /// Judges a row of times. None where there are no samples of ours and raw.
    pub(in crate::cli) fn of_times(
        name: &'static str,
        row: &TimeRow,
        methods: &[Method<'_>],
        samples: &[Samples],
    ) -> Option<Self> {
        let ours = samples.first()?;
        let other = methods.get(2).zip(samples.get(2)).and_then(|(method, other)| {
            let ratio = Ratio::of_pairs(&ours.pairs(other))?;
            Some(Other {
                name: method.name,
                timing: Timing::of(other, row.amount)?,
                ratio: ratio.median,
                ci: ratio.interval,
                goal: row.other_goal,
                verdict: row.other_goal.map(|goal| ratio.verdict(goal)),
            })
        });
        let compared = Self::of_pair(
            name,
            Comparison {
                ours,
                theirs: Some(samples.get(1)?),
                baseline: RAW.to_owned(),
                goal: row.goal,
                amount: row.amount,
            },
        )?;
        Some(Self { other, ..compared })
    }

    /// Judges two methods. None where there are no samples.
    pub(in crate::cli) fn of_pair(name: &'static str, compared: Comparison<'_>) -> Option<Self> {
        let Comparison { ours, goal, .. } = compared;
        let ratio = match compared.theirs {
            Some(theirs) => Some(Ratio::of_pairs(&ours.pairs(theirs))?),
            None => None,
        };
        Some(Self {
            ours: Some(Value::Timing(Timing::of(ours, compared.amount)?)),
            raw: match compared.theirs {
                Some(theirs) => Some(Value::Timing(Timing::of(theirs, compared.amount)?)),
                None => None,
            },
            baseline: compared.baseline,
            ratio: ratio.map(|ratio| ratio.median),
            ci: ratio.map(|ratio| ratio.interval),
            goal: Some(goal),
            n: ours.all().len(),
            verdict: Some(ratio.map_or(Verdict::Unresolved, |ratio| ratio.verdict(goal))),
            ..Self::empty(name)
        })
    }

    /// Judges the memory of a reader; that of the raw calls is only shown.
    pub(in crate::cli) fn of_memory(
        name: &'static str,
        ours: Reading,
        raw: Reading,
        expected: Expected,
    ) -> Self {
        Self {
            ours: Some(Value::Reading(ours)),
            raw: Some(Value::Reading(raw)),
            goal: Some(super::lines::as_f64(GOAL_BYTES)),
            n: 1,
            verdict: Some(ours.verdict(expected)),
            ..Self::empty(name)
        }
    }

    /// Judges the processor time of a command; that of the raw calls is only shown.
    pub(in crate::cli) fn of_processor(name: &'static str, ours: Spent, raw: Spent) -> Self {
        Self {
            ours: Some(Value::Spent(ours)),
            raw: Some(Value::Spent(raw)),
            goal: Some(processor::GOAL_S),
            n: 1,
            verdict: Some(ours.verdict()),
            ..Self::empty(name)
        }
    }

    /// Judges the slow ones of round trips, by the interval of their p95. None without samples.
    pub(in crate::cli) fn of_echo(name: &'static str, echo: &Echo) -> Option<Self> {
        let slow: Vec<f64> = echo
            .ours
            .blocks
            .iter()
            .filter_map(|round| percentile(round, 95))
            .collect();
        let interval = Interval::of(&slow)?;
        Some(Self {
            ours: Some(Value::Echo(Timing::of(&echo.ours, Amount::One)?)),
            ci: Some((interval.low, interval.high)),
            goal: Some(latency::GOAL_S),
            n: echo.ours.all().len(),
            verdict: Some(interval.verdict(latency::GOAL_S)),
            ..Self::empty(name)
        })
    }

    /// Shows the memory that this process needs for each of several things.
    pub(in crate::cli) fn of_each(name: &'static str, each: Each) -> Self {
        Self {
            ours: Some(Value::Each(each)),
            n: 1,
            ..Self::empty(name)
        }
    }

    /// Says whether a goal is certainly missed.
    pub(in crate::cli) fn is_miss(&self) -> bool {
        let other = self.other.as_ref().and_then(|other| other.verdict);
        [self.verdict, other].contains(&Some(Verdict::Miss))
    }
}
