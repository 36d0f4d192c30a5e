use super::*;

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
        ("EOF", ImageProblem::Offline),
        ("unexpected EOF", ImageProblem::Offline),
        ("Get \"http://r:5000/v2/\": EOF", ImageProblem::Offline),
        (
            "read tcp 127.0.0.1:1->127.0.0.1:2: read: connection reset by peer",
            ImageProblem::Offline,
        ),
        (
            "Head \"https://r/v2/a/manifests/1\": context deadline exceeded",
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
    for text in ["something new", "geofence: no", "the geof: x"] {
        assert_eq!(problem_of(text), None, "{text}");
    }
}
