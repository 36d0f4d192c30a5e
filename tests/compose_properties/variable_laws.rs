//! What holds for every text in which variables are replaced.

use gym_sandbox::compose::{ComposeLoader, LoadOptions, MemoryFiles, Source};
use proptest::prelude::*;
use serde_json::json;

/// Replaces the variables of a text.
fn interpolated(text: &str, variables: &[(String, String)]) -> Result<String, String> {
    let file = json!({"services": {"a": {"image": "x", "labels": {"text": text}}}}).to_string();
    let options = LoadOptions::new()
        .with_working_directory("/project")
        .with_project_name("laws")
        .with_file(Source::text("compose.yaml", file))
        .with_variables(variables.iter().cloned());
    match ComposeLoader::with_files(options, MemoryFiles::new()).load() {
        Ok(loaded) => Ok(loaded.project.services["a"].labels["text"].clone()),
        Err(diagnostics) => Err(diagnostics.to_string()),
    }
}

fn set(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn text_without_variables_stays(text in "[^\\p{C}$]{0,40}") {
        prop_assert_eq!(interpolated(&text, &[]), Ok(text));
    }

    #[test]
    fn a_doubled_dollar_is_one(text in "([^\\p{C}]|\\$\\{?){0,20}") {
        prop_assert_eq!(interpolated(&text.replace('$', "$$"), &[]), Ok(text));
    }

    #[test]
    fn operators_choose_by_whether_a_variable_is_set_and_empty(
        value in proptest::option::of("[^\\p{C}]{0,8}"), word in "[a-z0-9 :/.+?-]{0,8}",
    ) {
        let variables: Vec<_> = value.iter().map(|value| set("A", value)).collect();
        let with = |operator: &str| interpolated(&format!("<${{A{operator}{word}}}>"), &variables);
        let around = |text: &str| Ok(format!("<{text}>"));
        let given = value.as_deref().unwrap_or_default();
        prop_assert_eq!(with("-"), around(value.as_deref().unwrap_or(&word)));
        prop_assert_eq!(with(":-"), around(if given.is_empty() { &word } else { given }));
        prop_assert_eq!(with("+"), around(if value.is_some() { &word } else { "" }));
        prop_assert_eq!(with(":+"), around(if given.is_empty() { "" } else { &word }));
        for (operator, is_refused) in [("?", value.is_none()), (":?", given.is_empty())] {
            match with(operator) {
                Err(error) => prop_assert!(is_refused && error.contains("variable A"), "{}", error),
                text => prop_assert_eq!(text, around(if is_refused { "refused" } else { given })),
            }
        }
        prop_assert_eq!(interpolated("<$A>", &variables), around(given));
        prop_assert_eq!(interpolated("<${A}>", &variables), around(given));
    }

    #[test]
    fn the_outermost_variable_that_is_set_wins(depth in 1_usize..20, known in proptest::option::of(0_usize..20)) {
        let inner = (0..depth).rev().fold(String::from("end"), |inner, level| format!("${{V{level}:-{inner}}}"));
        let known = known.filter(|level| *level < depth);
        let variables: Vec<_> = known.iter().map(|level| set(&format!("V{level}"), "$V0 ${V1}")).collect();
        let expected = if known.is_some() { "$V0 ${V1}" } else { "end" };
        prop_assert_eq!(interpolated(&inner, &variables), Ok(expected.to_owned()));
    }

    #[test]
    fn pieces_are_replaced_each_for_itself(pieces in proptest::collection::vec(proptest::sample::select(TEXTS), 0..8)) {
        let variables = [set("A", "1$$"), set("EMPTY", "")];
        let each: Result<String, String> = pieces.iter().map(|piece| interpolated(piece, &variables)).collect();
        prop_assert_eq!(interpolated(&pieces.concat(), &variables), each);
    }
}

/// Pieces of text that end where they end, whatever follows.
const TEXTS: &[&str] = &[
    "${A}",
    "${EMPTY:-d}",
    "${EMPTY-d}",
    "${NONE:-${A}}",
    "${A:+x}",
    "${NONE+x}",
    "$$",
    "$$A",
    "{",
    "}",
    "A",
    " ",
    "=",
    "é",
];
