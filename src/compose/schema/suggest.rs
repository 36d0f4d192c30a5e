//! Guesses which key an author meant.

use super::Object;

/// Finds a known key that differs from `key` by little.
pub(super) fn nearest(key: &str, object: &Object) -> Option<&'static str> {
    object
        .keys
        .iter()
        .map(|(name, _)| (distance(key, name), *name))
        .filter(|(distance, _)| *distance <= 2)
        .min()
        .map(|(_, name)| name)
}

/// Counts the edits between two short names; names of different length class are far apart.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().take(40).collect(), right.chars().collect());
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.iter().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, r) in right.iter().enumerate() {
            let cost = corner + usize::from(l != r);
            corner = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(corner + 1);
        }
    }
    row[right.len()]
}
