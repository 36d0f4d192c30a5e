//! The functions of the fuzz targets, and the laws of merging and of variables, on generated input.

use proptest::prelude::*;

#[path = "../fuzz/fuzz_targets/compose_functions.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets include the file, too")]
mod compose_functions;
#[path = "compose_properties/merge_laws.rs"]
mod merge_laws;
#[path = "compose_properties/variable_laws.rs"]
mod variable_laws;

/// Pieces a Compose file is made of, right and wrong ones.
const PIECES: &[&str] = &[
    "services:",
    "  a:",
    "  b: {",
    "}",
    "    image: x",
    "    image: ${SET:-",
    "y}",
    "    ports: [\"",
    "80:80",
    "\"]",
    "    <<: *a",
    "  x: &a",
    "    command: ",
    "[a, b]",
    "!reset null",
    "!override ",
    "    extends: b",
    "    environment:",
    "      - A=",
    "      A: 1",
    "networks: {n: }",
    "volumes:",
    "include: [",
    "over.yaml",
    "]",
    "    depends_on: [a]",
    "    healthcheck: {test: x, interval: 1m}",
    "---",
    "name: ",
    "2024-01-01",
    "1e3",
    "0o17",
    "\t",
    "  ",
    "\"",
    "'",
    "$",
    "$$",
    "|-",
    "- ",
    "? ",
    ": ",
    "# c",
    "    build: .",
    "    volumes: [\"a:/b:ro\"]",
    "    mem_limit: 1.5g",
    "    deploy: {resources: {limits: {cpus: '1'}}}",
    "    secrets: [s]",
    "\u{feff}",
    "é",
    "====",
];

fn text() -> impl Strategy<Value = String> {
    let piece = (proptest::sample::select(PIECES), any::<bool>());
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| {
        pieces
            .into_iter()
            .fold(String::new(), |text, (piece, ends_line)| {
                text + piece + if ends_line { "\n" } else { "" }
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn loading_never_panics(text in text()) {
        compose_functions::load(&text);
    }

    #[test]
    fn loading_any_characters_never_panics(text in "\\PC{0,80}") {
        compose_functions::load(&text);
        compose_functions::env_file(&text);
    }

    #[test]
    fn merging_never_panics(base in text(), over in text()) {
        compose_functions::merge(&format!("{base}\n====\n{over}"));
    }

    #[test]
    fn reading_variables_never_panics(text in text()) {
        compose_functions::env_file(&text);
    }
}
