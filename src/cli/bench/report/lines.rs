//! A row of the report as lines of the table. Pure.

use super::super::memory::{Each, GOAL_BYTES, Reading};
use super::super::processor;
use super::super::stats::Verdict;
use super::row::{RowReport, Timing, Value};

impl RowReport {
    /// A line for each comparison.
    pub(super) fn lines(&self) -> Vec<Vec<String>> {
        let n = self.n.to_string();
        let line = |cells: [&str; 10]| {
            let mut line = vec![self.name.to_owned()];
            line.extend(cells.map(str::to_owned));
            line
        };
        let short = |ours: &str, theirs: &str, goal: &str| {
            line([
                &self.baseline,
                ours,
                "-",
                theirs,
                "-",
                "-",
                "-",
                goal,
                &n,
                word(self.verdict),
            ])
        };
        match (self.ours, self.raw) {
            (Some(Value::Timing(ours)), raw) => {
                let against = |name: &str, theirs: Option<Timing>, ratio: Option<f64>, ci, goal, verdict| {
                    line([
                        name,
                        &ours.median_text(),
                        &milliseconds(ours.p95_s),
                        &told(theirs, |theirs| theirs.median_text()),
                        &told(theirs, |theirs| milliseconds(theirs.p95_s)),
                        &told(ratio, |ratio| format!("{ratio:.3}")),
                        &told(ci, |(low, high)| format!("{low:.3}-{high:.3}")),
                        &told(goal, |goal| format!("<= {goal:.2}")),
                        &n,
                        word(verdict),
                    ])
                };
                let raw = match raw {
                    Some(Value::Timing(raw)) => Some(raw),
                    _ => None,
                };
                let mut lines = vec![against(
                    &self.baseline,
                    raw,
                    self.ratio,
                    self.ci,
                    self.goal,
                    self.verdict,
                )];
                lines.extend(self.other.as_ref().map(|other| {
                    let (ratio, ci) = (Some(other.ratio), Some(other.ci));
                    against(
                        other.name,
                        Some(other.timing),
                        ratio,
                        ci,
                        other.goal,
                        other.verdict,
                    )
                }));
                lines
            }
            (Some(Value::Reading(ours)), Some(Value::Reading(raw))) => vec![short(
                &reading(&ours),
                &reading(&raw),
                &format!("<= {} MiB", GOAL_BYTES >> 20),
            )],
            (Some(Value::Spent(ours)), Some(Value::Spent(raw))) => vec![short(
                &told(ours.cpu_s, milliseconds),
                &told(raw.cpu_s, milliseconds),
                &format!("<= {}", milliseconds(processor::GOAL_S)),
            )],
            (Some(Value::Echo(ours)), _) => vec![line([
                "-",
                &milliseconds(ours.median_s),
                &milliseconds(ours.p95_s),
                "-",
                "-",
                "-",
                &told(self.ci, |(low, high)| {
                    format!("p95 {}-{}", milliseconds(low), milliseconds(high))
                }),
                &told(self.goal, |goal| format!("p95 <= {}", milliseconds(goal))),
                &n,
                word(self.verdict),
            ])],
            (Some(Value::Each(each)), _) => vec![line([
                "-",
                &each_text(&each),
                "-",
                "-",
                "-",
                "-",
                "-",
                "-",
                &n,
                word(self.verdict),
            ])],
            (None, _) => vec![short("-", "-", &told(self.goal, |goal| format!("<= {goal:.2}")))],
            // Both are made by the same constructor.
            _ => Vec::new(),
        }
    }

    /// What there is to say about it.
    pub(super) fn note_line(&self) -> Option<String> {
        let note = self.note.as_ref()?;
        Some(format!("{}: {note}\n", self.name))
    }
}

impl Timing {
    fn median_text(&self) -> String {
        let median = milliseconds(self.median_s);
        match (self.execs_per_s, self.mb_per_s) {
            (Some(rate), _) => format!("{median} ({rate:.1}/s)"),
            (_, Some(rate)) => format!("{median} ({rate:.0} MB/s)"),
            (None, None) => median,
        }
    }
}

fn word(verdict: Option<Verdict>) -> &'static str {
    verdict.map_or("shown", Verdict::as_str)
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

fn each_text(each: &Each) -> String {
    let bytes = each.bytes_each.map_or_else(
        || "unknown".to_owned(),
        |bytes| format!("{:.1} KiB", as_f64(bytes) / 1024.0),
    );
    format!("{bytes} each of {}", each.count)
}

pub(super) fn megabytes(bytes: u64) -> f64 {
    as_f64(bytes) / 1e6
}

/// Sizes here are far below where an `f64` begins to skip numbers.
#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
pub(super) fn as_f64(number: u64) -> f64 {
    number as f64
}
