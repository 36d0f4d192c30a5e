//! `docs/contract-coverage.md` names only tests that exist, and every test that carries a number of the contract.

#![expect(clippy::unwrap_used, reason = "a file that can't be read fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The numbers of a row, and the tests that it names.
type Table = BTreeMap<String, BTreeSet<String>>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Reads the rows: number, what, tests, difference.
fn table(markdown: &str) -> Table {
    let mut table = Table::new();
    for line in markdown.lines() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let [number, _, tests, _] = cells.as_slice() else {
            continue;
        };
        if number_of(&number.to_lowercase()).is_none() {
            continue;
        }
        let names = quoted(tests)
            .filter(|name| !name.starts_with('.'))
            .map(str::to_owned)
            .collect();
        assert!(
            table.insert((*number).to_owned(), names).is_none(),
            "{number} has two rows"
        );
    }
    table
}

/// `l07` is L7; anything else is none.
fn number_of(word: &str) -> Option<String> {
    let mut characters = word.chars();
    let letter = characters.next().filter(char::is_ascii_lowercase)?;
    let digits = characters.as_str();
    let number: u32 = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| digits.parse().ok())??;
    Some(format!("{}{number}", letter.to_ascii_uppercase()))
}

/// The numbers that the name of a test begins with: `c01_c02_the_image` is C1 and C2.
fn numbers_of(test: &str) -> Vec<String> {
    test.split('_').map_while(number_of).collect()
}

/// The names of all functions below a folder, and of the conformance cases as `theme::case`.
fn functions() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut folders: Vec<PathBuf> = ["src", "tests", "examples"]
        .map(|folder| root().join(folder))
        .into();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            let theme = path
                .parent()
                .is_some_and(|folder| folder.ends_with("src/conformance"))
                .then(|| path.file_stem().unwrap().to_str().unwrap().to_owned());
            for line in source.lines().map(str::trim_start) {
                let Some((before, after)) = line.split_once("fn ") else {
                    continue;
                };
                if !before.is_empty() && !before.ends_with(' ') {
                    continue;
                }
                let name: String = after
                    .chars()
                    .take_while(|character| character.is_alphanumeric() || *character == '_')
                    .collect();
                match &theme {
                    Some(theme) if before.starts_with("pub async") => {
                        names.insert(format!("{theme}::{name}"))
                    }
                    _ => names.insert(name),
                };
            }
        }
    }
    names
}

#[test]
fn every_named_test_exists() {
    let functions = functions();
    let table = table(&std::fs::read_to_string(root().join("docs/contract-coverage.md")).unwrap());
    assert!(table.len() > 50, "the table was not read: {table:?}");
    let missing: Vec<String> = table
        .iter()
        .flat_map(|(number, tests)| tests.iter().map(move |test| (number, test)))
        .filter(|(_, test)| !functions.contains(*test))
        .map(|(number, test)| format!("{number}: {test}"))
        .collect();
    assert!(
        missing.is_empty(),
        "these tests do not exist:\n{}",
        missing.join("\n")
    );
}

/// Puts a name into the row of a number, or into a new row at the end, whose text is left to a person.
fn with_test(markdown: &str, number: &str, test: &str) -> String {
    let mut lines: Vec<String> = markdown.lines().map(str::to_owned).collect();
    let start = format!("| {number} |");
    match lines.iter_mut().find(|line| line.starts_with(&start)) {
        Some(line) => {
            let mut cells: Vec<String> = line.split('|').map(str::to_owned).collect();
            let names = cells[3].trim();
            cells[3] = if names.is_empty() {
                format!(" `{test}` ")
            } else {
                format!(" {names}, `{test}` ")
            };
            *line = cells.join("|");
        }
        None => lines.push(format!("| {number} |  | `{test}` |  |")),
    }
    lines.join("\n") + "\n"
}

#[test]
fn every_numbered_test_is_named() {
    let file = root().join("docs/contract-coverage.md");
    let mut markdown = std::fs::read_to_string(&file).unwrap();
    let table = table(&markdown);
    let absent: Vec<(String, String)> = functions()
        .iter()
        .flat_map(|test| {
            numbers_of(test)
                .into_iter()
                .map(move |number| (number, test.clone()))
        })
        .filter(|(number, test)| !table.get(number).is_some_and(|tests| tests.contains(test)))
        .collect();
    if std::env::var_os("UPDATE_COVERAGE").is_some() {
        for (number, test) in &absent {
            markdown = with_test(&markdown, number, test);
        }
        std::fs::write(&file, markdown).unwrap();
        return;
    }
    let absent: Vec<String> = absent
        .iter()
        .map(|(number, test)| format!("{number}: {test}"))
        .collect();
    assert!(
        absent.is_empty(),
        "docs/contract-coverage.md does not name these (UPDATE_COVERAGE=1 adds them):\n{}",
        absent.join("\n")
    );
}

#[test]
fn a_missing_name_is_put_into_its_row() {
    let before = "| L7 | x | `a` | y |\n";
    assert_eq!(with_test(before, "L7", "b"), "| L7 | x | `a`, `b` | y |\n");
    assert_eq!(
        with_test(before, "L8", "b"),
        "| L7 | x | `a` | y |\n| L8 |  | `b` |  |\n"
    );
}

#[test]
fn a_table_is_read() {
    let read = table(
        "# A `b`\n| number | what | tests | difference |\n|---|---|---|---|\n| L7 | x | `a_b`, `c::d` | `e` |\n",
    );
    assert_eq!(
        read,
        Table::from([(
            "L7".to_owned(),
            BTreeSet::from(["a_b".to_owned(), "c::d".to_owned()])
        )])
    );
}

#[test]
fn numbers_are_read_from_names() {
    assert_eq!(numbers_of("l07_cancelled_start"), ["L7"]);
    assert_eq!(numbers_of("c01_c02_the_image"), ["C1", "C2"]);
    assert_eq!(numbers_of("d36_x"), ["D36"]);
    assert!(numbers_of("a_case_that_fails").is_empty());
    assert!(numbers_of("the_d36").is_empty());
}
