//! Tables for the YAML reader.

use std::fmt::Write as _;

use super::*;

fn read(text: &str) -> (Vec<Document>, Vec<String>) {
    let mut sink = Sink::default();
    let documents = parse(text, 1, &mut Budget::default(), &mut sink);
    let (errors, _) = sink.finish(&[]);
    (
        documents,
        errors
            .iter()
            .map(|error| format!("{}:{} {}", error.line, error.column, error.message))
            .collect(),
    )
}

fn shown(text: &str) -> String {
    let (documents, errors) = read(text);
    assert!(errors.is_empty(), "{text}: {errors:?}");
    documents[0].root.to_text()
}

#[test]
fn merge_keys_take_the_first_and_explicit_keys_win() {
    assert_eq!(
        shown("a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 9}\n")
            .split("c:")
            .nth(1)
            .unwrap(),
        "map[x:9 y:1 z:2]]"
    );
    assert_eq!(
        shown("a: &a {m: {p: 1}}\nc: {<<: *a, m: {q: 2}}\n")
            .split("c:")
            .nth(1)
            .unwrap(),
        "map[m:map[q:2]]]"
    );
    assert_eq!(shown("a: {<<: {x: 1}}\n"), "map[a:map[x:1]]");
    assert_eq!(shown("a: {\"<<\": {x: 1}}\n"), "map[a:map[<<:map[x:1]]]");
}

#[test]
fn mistakes_have_positions() {
    for (text, expected) in [
        ("a: 1\na: 2\n", "2:1 mapping key \"a\" already defined at line 1"),
        (
            "s: {a: 1, a: 2}\n",
            "1:11 mapping key \"a\" already defined at line 1",
        ),
        ("s: {1: x}\n", "1:5 non-string key in s: 1"),
        ("true: x\n", "1:1 non-string key at top level: true"),
        (
            "a: {<<: 3}\n",
            "1:9 map merge requires map or sequence of maps as the value",
        ),
        (
            "a: {<<: [3]}\n",
            "1:10 map merge requires map or sequence of maps as the value",
        ),
        (
            "a: &a [*a]\n",
            "1:7 values are nested deeper than 200 levels, or an anchor contains itself",
        ),
    ] {
        let (_, errors) = read(text);
        assert_eq!(errors, [expected], "{text}");
    }
    assert!(
        read("a: *nope\n").1[0].contains("not valid YAML"),
        "{:?}",
        read("a: *nope\n").1
    );
    assert!(read("a:\n\tb: 1\n").1[0].contains("not valid YAML"));
}

#[test]
fn resets_and_overrides_are_noted_with_their_path() {
    let (documents, errors) =
        read("s: {a: !reset null, b: !override [1], c: [!reset 1, 2], d: !override 010}\n");
    assert!(errors.is_empty());
    assert_eq!(documents[0].root.to_text(), "map[s:map[b:[1] c:[2] d:010]]");
    let resets: Vec<_> = documents[0].resets.iter().map(ToString::to_string).collect();
    assert_eq!(resets, ["s.a", "s.b", "s.d"]);
    let (documents, _) = read("s: {!!merge <<: {a: 1}, b: {\"<<\": c}}\n");
    assert_eq!(documents[0].root.to_text(), "map[s:map[a:1 b:map[<<:c]]]");
    let (documents, _) = read("x: &x {c: !reset null}\ns: {<<: *x}\n");
    assert_eq!(documents[0].resets.last().unwrap().to_string(), "s.c");
}

#[test]
fn alias_bombs_end_quickly() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..100 {
        let previous = format!("*a{}", level - 1);
        let items = [previous.as_str(); 10].join(", ");
        writeln!(text, "a{level}: &a{level} [{items}]").unwrap();
    }
    let (_, errors) = read(&text);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].contains("excessive aliasing"), "{errors:?}");
}

#[test]
fn deep_nesting_ends_in_an_error() {
    for text in [
        "[".repeat(100_000),
        "{a: ".repeat(100_000),
        "- ".repeat(100_000),
        (0..5_000).fold(String::new(), |text, depth| text + &" ".repeat(depth) + "a:\n"),
    ] {
        assert_eq!(read(&text).1.len(), 1);
    }
}

#[test]
fn documents_come_one_by_one() {
    assert_eq!(read("a: 1\n---\nb: 2\n").0.len(), 2);
    assert_eq!(read("# only a comment\n").0.len(), 0);
    assert_eq!(read("").0.len(), 0);
    assert_eq!(read("{\"a\": [1, \"x\"]}").0[0].root.to_text(), "map[a:[1 x]]");
}
