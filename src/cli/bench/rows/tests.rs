use super::*;

#[test]
fn every_exec_row_that_compares_times_has_its_hardened_row_right_after_it() {
    let names: Vec<&str> = ROWS
        .iter()
        .filter(|row| row.name.starts_with("exec ") && !row.is_long())
        .filter(|row| !row.is_long() && row.name.starts_with("exec engine"))
        .map(|row| row.name)
        .collect();
    for pair in names.chunks(2) {
        assert_eq!(pair[1], format!("{} hardened", pair[0]));
    }
}
