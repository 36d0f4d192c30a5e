use super::*;

const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

#[test]
fn b23_references_are_cut_at_the_right_places() {
    let digest = format!("sha256:{HEX}");
    for (text, repository, tag, with_digest, pulled) in [
        ("busybox".to_owned(), "busybox", None, false, "latest"),
        ("docker://busybox:1".to_owned(), "busybox", Some("1"), false, "1"),
        (
            "reg.example:5000/a/b".to_owned(),
            "reg.example:5000/a/b",
            None,
            false,
            "latest",
        ),
        (
            "reg.example:5000/a/b:1.2".to_owned(),
            "reg.example:5000/a/b",
            Some("1.2"),
            false,
            "1.2",
        ),
        ("localhost/a".to_owned(), "localhost/a", None, false, "latest"),
        (
            "a__b/c-----d.e".to_owned(),
            "a__b/c-----d.e",
            None,
            false,
            "latest",
        ),
        (format!("a/b@{digest}"), "a/b", None, true, digest.as_str()),
        (
            format!("a/b:1.2@{digest}"),
            "a/b",
            Some("1.2"),
            true,
            digest.as_str(),
        ),
    ] {
        let parsed: ImageReference = text.parse().unwrap();
        assert_eq!(parsed.repository(), repository, "{text}");
        assert_eq!(parsed.tag(), tag, "{text}");
        assert_eq!(parsed.digest().is_some(), with_digest, "{text}");
        assert_eq!(parsed.pull_tag(), pulled, "{text}");
        assert_eq!(parsed.to_string(), text.trim_start_matches("docker://"));
    }
}

#[test]
fn b23_what_is_no_reference_is_refused_here() {
    for text in [
        "",
        " ",
        "a b",
        "A/B",
        "a/B:x",
        "a:",
        "a:-x",
        "a@",
        "a@sha256:12",
        "a//b",
        "/a",
        "a/",
        "a..b",
        "a___b",
        "-a",
        "reg:port/a",
        "a:b:c",
        "a\n",
        "a@sha256:zz",
        "docker://",
    ] {
        let error = text.parse::<ImageReference>().unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::Image(ImageProblem::InvalidReference),
            "{text:?}"
        );
    }
}
