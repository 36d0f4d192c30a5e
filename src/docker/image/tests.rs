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

#[test]
fn d12_texts_of_failed_pulls_are_told_apart() {
    for (text, problem) in [
        (
            "toomanyrequests: You have reached your pull rate limit",
            ImageProblem::RateLimited,
        ),
        (
            "pull access denied for nope, repository does not exist or may require 'docker login': denied",
            ImageProblem::NotFound,
        ),
        (
            "manifest for a:b not found: manifest unknown: manifest unknown",
            ImageProblem::NotFound,
        ),
        ("No such image: nope:1", ImageProblem::NotFound),
        (
            "Get \"https://r/v2/\": unauthorized: authentication required",
            ImageProblem::Auth,
        ),
        (
            "Get \"http://r:5000/v2/a/manifests/1\": no basic auth credentials",
            ImageProblem::Auth,
        ),
        (
            "Get \"https://r/v2/\": dial tcp: lookup r on 10.0.0.1:53: no such host",
            ImageProblem::Offline,
        ),
        (
            "Get \"https://r/v2/\": dial tcp 127.0.0.1:5000: connect: connection refused",
            ImageProblem::Offline,
        ),
        (
            "no matching manifest for linux/arm64 in the manifest list entries",
            ImageProblem::Platform,
        ),
        (
            "image with reference bb:1 was found but does not match the specified platform: wanted linux/arm64, actual: linux/amd64",
            ImageProblem::Platform,
        ),
    ] {
        assert_eq!(problem_of(text), Some(problem), "{text}");
    }
    assert_eq!(problem_of("something new"), None);
}
