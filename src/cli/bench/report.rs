//! What a measurement looks like, as JSON and as a table. Pure.

use serde::Serialize;

use crate::cli::output::table;

use super::Machine;
use super::memory::{Expected, GOAL_BYTES, Reading};
use super::processor::{self, Spent};
use super::rows::{Amount, TimeRow};
use super::sample::{Method, Samples};
use super::stats::{Ratio, Verdict, median, percentile};

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct BenchReport {
    /// On what machine.
    pub(in crate::cli) machine: Machine,
    /// On what engine.
    pub(in crate::cli) engine: String,
    /// The rows.
    pub(in crate::cli) rows: Vec<RowReport>,
}

/// One row.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct RowReport {
    name: &'static str,
    ours: Value,
    raw: Value,
    other: Option<Other>,
    /// Of times. None where the goal is about something else.
    ratio: Option<f64>,
    ci: Option<(f64, f64)>,
    goal: f64,
    /// Runs of each method.
    n: usize,
    verdict: Verdict,
}

/// What was measured of one method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
enum Value {
    Timing(Timing),
    Reading(Reading),
    Spent(Spent),
}

/// The times of one method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[expect(
    clippy::struct_field_names,
    reason = "the unit is part of a field's name in the report"
)]
struct Timing {
    median_s: f64,
    p95_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    execs_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mb_per_s: Option<f64>,
}

/// Another method of the same row.
#[derive(Debug, Serialize)]
struct Other {
    name: &'static str,
    #[serde(flatten)]
    timing: Timing,
    ratio: f64,
    ci: (f64, f64),
    /// None where it is only shown.
    goal: Option<f64>,
    verdict: Option<Verdict>,
}

impl Timing {
    fn of(samples: &Samples, amount: Amount) -> Option<Self> {
        let all = samples.all();
        let median_s = median(&all)?;
        let (execs_per_s, mb_per_s) = match amount {
            Amount::One => (None, None),
            Amount::Execs(count) => (Some(f64::from(count) / median_s), None),
            Amount::Bytes(bytes) => (None, Some(megabytes(bytes) / median_s)),
        };
        Some(Self {
            median_s,
            p95_s: percentile(&all, 95)?,
            execs_per_s,
            mb_per_s,
        })
    }

    fn median_text(&self) -> String {
        let median = milliseconds(self.median_s);
        match (self.execs_per_s, self.mb_per_s) {
            (Some(rate), _) => format!("{median} ({rate:.1}/s)"),
            (_, Some(rate)) => format!("{median} ({rate:.0} MB/s)"),
            (None, None) => median,
        }
    }
}

impl RowReport {
    /// Judges a row of times. None where there are no samples of ours and raw.
    pub(in crate::cli) fn of_times(
        name: &'static str,
        row: &TimeRow,
        methods: &[Method<'_>],
        samples: &[Samples],
    ) -> Option<Self> {
        let (ours, raw) = (samples.first()?, samples.get(1)?);
        let ratio = Ratio::of_pairs(&ours.pairs(raw))?;
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
        Some(Self {
            name,
            ours: Value::Timing(Timing::of(ours, row.amount)?),
            raw: Value::Timing(Timing::of(raw, row.amount)?),
            other,
            ratio: Some(ratio.median),
            ci: Some(ratio.interval),
            goal: row.goal,
            n: ours.all().len(),
            verdict: ratio.verdict(row.goal),
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
            name,
            ours: Value::Reading(ours),
            raw: Value::Reading(raw),
            other: None,
            ratio: None,
            ci: None,
            goal: as_f64(GOAL_BYTES),
            n: 1,
            verdict: ours.verdict(expected),
        }
    }

    /// Judges the processor time of a command; that of the raw calls is only shown.
    pub(in crate::cli) fn of_processor(name: &'static str, ours: Spent, raw: Spent) -> Self {
        Self {
            name,
            ours: Value::Spent(ours),
            raw: Value::Spent(raw),
            other: None,
            ratio: None,
            ci: None,
            goal: processor::GOAL_S,
            n: 1,
            verdict: ours.verdict(),
        }
    }

    /// Says whether a goal is certainly missed.
    pub(in crate::cli) fn is_miss(&self) -> bool {
        let other = self.other.as_ref().and_then(|other| other.verdict);
        [Some(self.verdict), other].contains(&Some(Verdict::Miss))
    }

    fn lines(&self) -> Vec<Vec<String>> {
        let verdict = self.verdict.as_str();
        let n = self.n.to_string();
        let line = |cells: [&str; 10]| {
            let mut line = vec![self.name.to_owned()];
            line.extend(cells.map(str::to_owned));
            line
        };
        match (self.ours, self.raw) {
            (Value::Timing(ours), Value::Timing(raw)) => {
                let against = |name: &str, theirs: Timing, ratio: Option<f64>, ci, goal, verdict: &str| {
                    line([
                        name,
                        &ours.median_text(),
                        &milliseconds(ours.p95_s),
                        &theirs.median_text(),
                        &milliseconds(theirs.p95_s),
                        &told(ratio, |ratio| format!("{ratio:.3}")),
                        &told(ci, |(low, high)| format!("{low:.3}-{high:.3}")),
                        &told(goal, |goal| format!("<= {goal:.2}")),
                        &n,
                        verdict,
                    ])
                };
                let mut lines = vec![against("raw", raw, self.ratio, self.ci, Some(self.goal), verdict)];
                lines.extend(self.other.as_ref().map(|other| {
                    let verdict = other.verdict.map_or("shown", Verdict::as_str);
                    let (ratio, ci) = (Some(other.ratio), Some(other.ci));
                    against(other.name, other.timing, ratio, ci, other.goal, verdict)
                }));
                lines
            }
            (Value::Reading(ours), Value::Reading(raw)) => vec![line([
                "raw",
                &reading(&ours),
                "-",
                &reading(&raw),
                "-",
                "-",
                "-",
                &format!("<= {} MiB", GOAL_BYTES >> 20),
                &n,
                verdict,
            ])],
            (Value::Spent(ours), Value::Spent(raw)) => vec![line([
                "raw",
                &told(ours.cpu_s, milliseconds),
                "-",
                &told(raw.cpu_s, milliseconds),
                "-",
                "-",
                "-",
                &format!("<= {}", milliseconds(processor::GOAL_S)),
                &n,
                verdict,
            ])],
            // Both are made by the same constructor.
            _ => Vec::new(),
        }
    }
}

impl BenchReport {
    /// The table for a person: a line for each comparison.
    pub(in crate::cli) fn text(&self) -> String {
        let mut rows = vec![
            [
                "row",
                "against",
                "ours",
                "p95",
                "theirs",
                "p95",
                "ratio",
                "95 % interval",
                "goal",
                "n",
                "verdict",
            ]
            .map(str::to_owned)
            .to_vec(),
        ];
        rows.extend(self.rows.iter().flat_map(RowReport::lines));
        format!(
            "machine: {}\nengine: {}\n\n{}",
            self.machine,
            self.engine,
            table(&rows)
        )
    }
}

fn told<T>(fact: Option<T>, tell: impl FnOnce(T) -> String) -> String {
    fact.map_or_else(|| "-".to_owned(), tell)
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1000.0)
}

fn reading(reading: &Reading) -> String {
    let growth = reading.growth_bytes.map_or_else(
        || "unknown growth".to_owned(),
        |growth| format!("+{:.1} MiB", as_f64(growth) / f64::from(1 << 20)),
    );
    let exit = reading
        .return_code
        .map_or_else(String::new, |code| format!(", exit {code}"));
    format!(
        "{growth}, {} bytes{exit}, {:.1} s",
        reading.output_bytes, reading.duration_s
    )
}

fn megabytes(bytes: u64) -> f64 {
    as_f64(bytes) / 1e6
}

/// Sizes here are far below where an `f64` begins to skip numbers.
#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
fn as_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
