//! What a measurement looks like, as JSON and as a table. Pure.

use serde::Serialize;

use crate::cli::output::table;

use super::Machine;
use super::rows::Row;
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
    ours: Timing,
    raw: Timing,
    other: Option<Other>,
    ratio: f64,
    ci: (f64, f64),
    goal: f64,
    /// Runs of each method.
    n: usize,
    verdict: Verdict,
}

/// The times of one method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Timing {
    median_s: f64,
    p95_s: f64,
}

/// Another method of the same row.
#[derive(Debug, Serialize)]
struct Other {
    name: &'static str,
    #[serde(flatten)]
    timing: Timing,
    ratio: f64,
    ci: (f64, f64),
    goal: f64,
    verdict: Verdict,
}

impl Timing {
    fn of(samples: &Samples) -> Option<Self> {
        let all = samples.all();
        Some(Self {
            median_s: median(&all)?,
            p95_s: percentile(&all, 95)?,
        })
    }
}

impl RowReport {
    /// Judges a row. None where there are no samples of ours and raw.
    pub(in crate::cli) fn new(row: &Row, methods: &[Method<'_>], samples: &[Samples]) -> Option<Self> {
        let (ours, raw) = (samples.first()?, samples.get(1)?);
        let ratio = Ratio::of_pairs(&ours.pairs(raw))?;
        let other = methods.get(2).zip(samples.get(2)).and_then(|(method, other)| {
            let ratio = Ratio::of_pairs(&ours.pairs(other))?;
            Some(Other {
                name: method.name,
                timing: Timing::of(other)?,
                ratio: ratio.median,
                ci: ratio.interval,
                goal: row.other_goal,
                verdict: ratio.verdict(row.other_goal),
            })
        });
        Some(Self {
            name: row.name,
            ours: Timing::of(ours)?,
            raw: Timing::of(raw)?,
            other,
            ratio: ratio.median,
            ci: ratio.interval,
            goal: row.goal,
            n: ours.all().len(),
            verdict: ratio.verdict(row.goal),
        })
    }

    /// Says whether a goal is certainly missed.
    pub(in crate::cli) fn is_miss(&self) -> bool {
        self.verdict == Verdict::Miss
            || self
                .other
                .as_ref()
                .is_some_and(|other| other.verdict == Verdict::Miss)
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
        for row in &self.rows {
            rows.push(line(
                row,
                "raw",
                row.raw,
                (row.ratio, row.ci),
                row.goal,
                row.verdict,
            ));
            if let Some(other) = &row.other {
                rows.push(line(
                    row,
                    other.name,
                    other.timing,
                    (other.ratio, other.ci),
                    other.goal,
                    other.verdict,
                ));
            }
        }
        format!(
            "machine: {}\nengine: {}\n\n{}",
            self.machine,
            self.engine,
            table(&rows)
        )
    }
}

fn line(
    row: &RowReport,
    against: &str,
    theirs: Timing,
    (ratio, (low, high)): (f64, (f64, f64)),
    goal: f64,
    verdict: Verdict,
) -> Vec<String> {
    let milliseconds = |seconds: f64| format!("{:.2} ms", seconds * 1000.0);
    vec![
        row.name.to_owned(),
        against.to_owned(),
        milliseconds(row.ours.median_s),
        milliseconds(row.ours.p95_s),
        milliseconds(theirs.median_s),
        milliseconds(theirs.p95_s),
        format!("{ratio:.3}"),
        format!("{low:.3}-{high:.3}"),
        format!("<= {goal:.2}"),
        row.n.to_string(),
        verdict.as_str().to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::rows::ROWS;
    use super::*;

    fn report() -> BenchReport {
        let methods: Vec<Method<'_>> = ["ours", "raw", "docker CLI"]
            .map(|name| Method {
                name,
                once: Box::new(|| Box::pin(async { Ok(()) })),
            })
            .into();
        let samples = [0.050, 0.048, 0.064].map(|seconds| Samples {
            blocks: vec![vec![seconds; 2]; 3],
        });
        BenchReport {
            machine: Machine::this(),
            engine: "e".to_owned(),
            rows: vec![RowReport::new(&ROWS[0], &methods, &samples).unwrap()],
        }
    }

    #[test]
    fn json_has_the_documented_fields() {
        let value = serde_json::to_value(report()).unwrap();
        let keys = |value: &serde_json::Value| -> Vec<String> {
            value.as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(keys(&value), ["machine", "engine", "rows"]);
        let row = &value["rows"][0];
        assert_eq!(
            keys(row),
            [
                "name", "ours", "raw", "other", "ratio", "ci", "goal", "n", "verdict"
            ]
        );
        assert_eq!(row["name"], "exec engine true");
        assert_eq!(row["n"], 6);
        assert_eq!(row["verdict"], "pass");
        assert_eq!(row["other"]["name"], "docker CLI");
        assert_eq!(row["other"]["verdict"], "pass");
    }

    #[test]
    fn the_table_has_a_line_for_each_comparison() {
        let text = report().text();
        let lines: Vec<&str> = text.lines().skip(3).collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(
            lines[1].starts_with("exec engine true  raw         50.00 ms"),
            "{text}"
        );
        assert!(
            lines[1].contains("1.042  1.042-1.042    <= 1.08  6  pass"),
            "{text}"
        );
    }
}
