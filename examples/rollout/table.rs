//! The table of judgements.

use crate::common_table::table;
use crate::judge::Judgement;

/// A line for each candidate.
pub(crate) fn of(judgements: &[Judgement]) -> String {
    let head = ["candidate", "reward", "exit", "duration", "what happened"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(judgements.iter().map(row));
    table(&rows)
}

fn row(judgement: &Judgement) -> Vec<String> {
    let mut story = judgement.story.clone();
    if !judgement.is_right() {
        story = format!("WRONG, {:.1} is expected: {story}", judgement.expected);
    }
    vec![
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
