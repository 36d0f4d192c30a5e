use super::*;

fn buildkit(text: &str) -> Vec<String> {
    scan(text, &BTreeMap::new())
        .buildkit
        .into_iter()
        .map(|found| format!("{} {}", found.line, found.what))
        .collect()
}

#[test]
fn what_needs_buildkit_is_found_with_its_line() {
    for (text, found) in [
        (
            "# syntax=example.org/front/end:1\nFROM a",
            "1 `# syntax=example.org/front/end:1`",
        ),
        (
            "# syntax=evil.example/docker/dockerfile:1\nFROM a",
            "1 `# syntax=evil.example/docker/dockerfile:1`",
        ),
        ("# syntax=dockerfile\nFROM a", "1 `# syntax=dockerfile`"),
        ("# syntax=\nFROM a", "1 `# syntax=`"),
        (
            "# syntax=docker/dockerfile:1\nFROM a\nRUN --mount=type=cache,target=/c make",
            "3 `RUN --mount`",
        ),
        (
            "FROM a\nONBUILD RUN --mount=type=cache,target=/c make",
            "2 `RUN --mount`",
        ),
        (
            "FROM a\nARG TARGETARCH",
            "2 `ARG TARGETARCH` without a value (it can be given as a build argument)",
        ),
        ("FROM a\nRUN --mount=type=cache,target=/c make", "2 `RUN --mount`"),
        ("FROM a\nrun --network=none true", "2 `RUN --network`"),
        ("FROM a\n\nCOPY --chmod=755 a b", "3 `COPY --chmod`"),
        ("FROM a\nCOPY --from=x --link a b", "2 `COPY --link`"),
        ("FROM a\nADD --checksum=sha256:1 http://a b", "2 `ADD --checksum`"),
        ("FROM a\nADD https://example.org/r.git /r", "2 `ADD` from git"),
        ("FROM a\nRUN <<EOF\nmake\nEOF", "2 a here-document in `RUN`"),
        (
            "FROM a\nRUN cat <<-'EOF' > x\nmake\nEOF",
            "2 a here-document in `RUN`",
        ),
        ("FROM a\nCOPY <<EOF /x\nmake\nEOF", "2 a here-document in `COPY`"),
        ("FROM --platform=$BUILDPLATFORM a", "1 `$BUILDPLATFORM`"),
        (
            "FROM a\nRUN a \\\n # no\n && b\nRUN \\\n --mount=type=secret c",
            "5 `RUN --mount`",
        ),
    ] {
        assert_eq!(buildkit(text), [found], "{text:?}");
    }
}

#[test]
fn what_only_looks_like_it_is_not_found() {
    for text in [
        "FROM a\n# syntax=example.org/front/end:1",
        "# syntax=docker/dockerfile:1\nFROM a",
        "#syntax = docker/dockerfile\nFROM a",
        "\u{feff}# syntax=docker.io/docker/dockerfile:1.4-labs\nFROM a",
        "# syntax=docker/dockerfile-upstream:master\nFROM a",
        "FROM a\nARG TARGETARCH=amd64",
        "# a comment\n# syntax=x\nFROM a",
        "FROM a\nRUN cat <<< text",
        "FROM a\nRUN echo $((1 << 2))",
        "FROM a\nRUN sh -c \"cat <<EOF\"",
        "FROM a\nRUN make --mount=x",
        "FROM --platform=linux/amd64 a",
        "FROM a\nCOPY --from=b --chown=1:1 a b",
        "FROM a\nADD https://example.org/a.tar /a",
    ] {
        assert_eq!(buildkit(text), Vec::<String>::new(), "{text:?}");
    }
}

#[test]
fn base_images_are_told_where_their_arguments_are_known() {
    let given = BTreeMap::from([
        ("TAG".to_owned(), Some("2".to_owned())),
        ("UNSET".to_owned(), None),
    ]);
    for (text, bases) in [
        (
            "FROM a AS one\nFROM one\nFROM reg:5000/b:1",
            vec!["a", "reg:5000/b:1"],
        ),
        ("ARG TAG=1\nFROM a:$TAG", vec!["a:2"]),
        ("ARG BASE=\"b\"\nARG NAME=${BASE}:x\nFROM ${NAME}", vec!["b:x"]),
        ("FROM ${NONE:-c}", vec!["c"]),
        ("ARG UNSET\nFROM a:${UNSET}", vec![]),
        ("FROM scratch", vec![]),
        ("# escape=`\nFROM `\n a", vec!["a"]),
        ("\u{feff}FROM a", vec!["a"]),
        ("FROM a\nFROM a", vec!["a"]),
    ] {
        assert_eq!(scan(text, &given).bases, bases, "{text:?}");
    }
}

#[test]
fn what_buildkit_sets_may_be_given() {
    let given = BTreeMap::from([
        ("TARGETARCH".to_owned(), Some("amd64".to_owned())),
        ("BUILDPLATFORM".to_owned(), Some("linux/amd64".to_owned())),
    ]);
    let text = "FROM --platform=$BUILDPLATFORM a\nARG TARGETARCH\n";
    assert_eq!(scan(text, &given).buildkit, []);
}

#[test]
fn no_dockerfile_takes_long_or_much_memory() {
    use std::fmt::Write;
    let mut doubling = "ARG A0=xxxxxxxx\n".to_owned();
    for number in 1..100 {
        let last = number - 1;
        writeln!(doubling, "ARG A{number}=$A{last}$A{last}").unwrap();
    }
    doubling.push_str("FROM $A99");
    assert_eq!(scan(&doubling, &BTreeMap::new()).bases, Vec::<String>::new());

    let mut many = String::new();
    for number in 0..200_000 {
        writeln!(many, "FROM a{number} AS b{number}").unwrap();
    }
    assert_eq!(scan(&many, &BTreeMap::new()).bases.len(), MOST_BASES);
}
