//! What a measurement looks like, as JSON and as a table. Pure.

mod lines;
mod row;

use serde::Serialize;

use crate::cli::output::table;

use super::Machine;

pub(in crate::cli) use row::{Comparison, RowReport};

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct BenchReport {
    /// On what machine.
    pub(in crate::cli) machine: Machine,
    /// On what engine.
    pub(in crate::cli) engine: String,
    /// The rows.
    pub(in crate::cli) rows: Vec<RowReport>,
    /// False where a signal or an error ended the measurement before all rows were there.
    pub(in crate::cli) complete: bool,
}

impl BenchReport {
    /// The table for a person: a line for each comparison, and what there is to say about rows below it.
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
        let notes: String = self.rows.iter().filter_map(RowReport::note_line).collect();
        let end = if self.complete {
            ""
        } else {
            "\nnot all rows were measured\n"
        };
        format!(
            "machine: {}\nengine: {}\n\n{}{}{notes}{end}",
            self.machine,
            self.engine,
            table(&rows),
            if notes.is_empty() { "" } else { "\n" },
        )
    }
}

#[cfg(test)]
mod tests;
