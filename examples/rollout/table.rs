//! The table of judgements.

use crate::judge::Judgement;

/// A line for each candidate.
pub(crate) fn of(judgements: &[Judgement]) -> String {
    let mut rows = vec![["candidate", "reward", "exit", "duration", "what happened"].map(str::to_owned)];
    rows.extend(judgements.iter().map(row));
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths = [0, 1, 2, 3, 4].map(width);
    let line = |row: &[String; 5]| {
        let cells: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

fn row(judgement: &Judgement) -> [String; 5] {
    let mut story = judgement.story.clone();
    if !judgement.is_right() {
        story = format!("WRONG, {:.1} is expected: {story}", judgement.expected);
    }
    [
        judgement.name.clone(),
        judgement
            .reward
            .as_ref()
            .map_or_else(|_| "none".to_owned(), |reward| format!("{reward:.1}")),
        judgement
            .exit
            .map_or_else(|| "-".to_owned(), |code| code.to_string()),
        format!("{:.1} s", judgement.duration.as_secs_f64()),
        story,
    ]
}
