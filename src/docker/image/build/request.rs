//! From a build to the query of the engine's call, and what is refused. Pure, and tested as a table.

use serde_json::{Value, json};

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::BuildSpec;

use super::super::super::PROVIDER;
use super::super::ImageReference;
use super::dockerfile::Found;

/// Why something is refused.
const REASON: &str =
    "it needs BuildKit, and images are built by the engine's classic builder, which every engine has";

/// Refuses what can't be built or is wrong, before anything is read or sent.
pub(super) fn check(spec: &BuildSpec) -> Result<()> {
    let options = &spec.buildkit;
    let refused = [
        ("secrets", options.secrets.first()),
        ("ssh", options.ssh.first()),
        ("additional_contexts", options.additional_contexts.keys().next()),
        ("cache_to", options.cache_to.first()),
        ("entitlements", options.entitlements.first()),
        ("platforms", options.more_platforms.first()),
    ];
    for (option, first) in refused {
        if let Some(first) = first {
            let what = format!("the build option `{option}` (`{}`)", first.escape_debug());
            return Err(needs_buildkit(&what));
        }
    }
    for tag in &spec.tags {
        let reference: ImageReference = tag.parse()?;
        if reference.digest().is_some() {
            return Err(Error::invalid(
                Operation::Build,
                format!("the name `{tag}` has a digest, which is not known before the build"),
            ));
        }
    }
    let is_bad = |name: &str| name.is_empty() || name.contains(['=', '\0']);
    if let Some(name) = spec.args.keys().find(|name| is_bad(name)) {
        return Err(Error::invalid(
            Operation::Build,
            format!("`{}` is no name of a build argument", name.escape_debug()),
        ));
    }
    if let Some(network) = spec.network.as_deref().filter(|network| is_of_others(network)) {
        return Err(Error::invalid(
            Operation::Build,
            format!(
                "the network `{}` can't be the host's or another container's",
                network.escape_debug()
            ),
        ));
    }
    Ok(())
}

/// Whether a network mode shares somebody else's network. No policy allows that for a build.
fn is_of_others(network: &str) -> bool {
    network == "host" || network.starts_with("container:") || network.starts_with("ns:")
}

/// Refuses what a Dockerfile needs.
pub(super) fn check_dockerfile(found: &[Found]) -> Result<()> {
    match found.first() {
        Some(found) => Err(needs_buildkit(&format!(
            "line {} of the Dockerfile: {}",
            found.line, found.what
        ))),
        None => Ok(()),
    }
}

fn needs_buildkit(what: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        Operation::Build,
        format!("provider `{PROVIDER}` does not support {what}: {REASON}"),
    )
    .with_hint("leave it out, or build the image with another tool and use it by its name")
}

/// What the client has no option for, or not the right one.
pub(super) fn query(spec: &BuildSpec) -> String {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    pairs.extend(spec.tags.iter().map(|tag| ("t", tag.clone())));
    pairs.extend(spec.extra_hosts.iter().map(|host| ("extrahosts", host.clone())));
    if !spec.args.is_empty() {
        pairs.push(("buildargs", json!(spec.args).to_string()));
    }
    if !spec.labels.is_empty() {
        pairs.push(("labels", json!(spec.labels).to_string()));
    }
    if !spec.cache_from.is_empty() {
        pairs.push(("cachefrom", json!(spec.cache_from).to_string()));
    }
    if let Some(bytes) = spec.shm_size_bytes {
        pairs.push(("shmsize", bytes.to_string()));
    }
    if !spec.ulimits.is_empty() {
        let limits = spec
            .ulimits
            .iter()
            .map(|limit| json!({"Name": limit.name, "Soft": limit.soft, "Hard": limit.hard}));
        pairs.push(("ulimits", Value::Array(limits.collect()).to_string()));
    }
    let encoded: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{name}={}", percent_encoded(value)))
        .collect();
    encoded.join("&")
}

fn percent_encoded(text: &str) -> String {
    use std::fmt::Write;
    text.bytes()
        .fold(String::with_capacity(text.len()), |mut encoded, byte| {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                encoded.push(char::from(byte));
            } else {
                // Writing to a string can't fail.
                let _ok = write!(encoded, "%{byte:02X}");
            }
            encoded
        })
}

#[cfg(test)]
mod tests {
    use crate::spec::BuildUlimit;

    use super::*;

    #[test]
    fn what_needs_buildkit_is_refused_by_name_with_the_reason() {
        type Change = fn(&mut BuildSpec);
        let cases: [(Change, &str); 6] = [
            (
                |spec| spec.buildkit.secrets.push("token".into()),
                "`secrets` (`token`)",
            ),
            (|spec| spec.buildkit.ssh.push("default".into()), "`ssh`"),
            (
                |spec| {
                    spec.buildkit
                        .additional_contexts
                        .insert("lib".into(), "../lib".into());
                },
                "`additional_contexts` (`lib`)",
            ),
            (|spec| spec.buildkit.cache_to.push("x".into()), "`cache_to`"),
            (
                |spec| spec.buildkit.entitlements.push("network.host".into()),
                "`entitlements`",
            ),
            (
                |spec| spec.buildkit.more_platforms.push("linux/arm64".into()),
                "`platforms`",
            ),
        ];
        for (change, part) in cases {
            let mut spec = BuildSpec::new("x");
            change(&mut spec);
            let error = check(&spec).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(
                error.to_string().contains(part) && error.to_string().contains("BuildKit"),
                "{error}"
            );
        }
        let found = [Found {
            line: 7,
            what: "`RUN --mount`".to_owned(),
        }];
        let error = check_dockerfile(&found).unwrap_err();
        assert!(
            error.to_string().contains("line 7") && error.to_string().contains("`RUN --mount`"),
            "{error}"
        );
    }

    #[test]
    fn what_is_wrong_is_refused_by_name() {
        for (spec, part) in [
            (BuildSpec::new("x").with_tag("A:1"), "A:1"),
            (
                BuildSpec::new("x").with_tag(format!("a@sha256:{}", "0".repeat(64))),
                "digest",
            ),
            (BuildSpec::new("x").with_arg("a=b", "c"), "a=b"),
            (BuildSpec::new("x").with_network("host"), "`host`"),
            (BuildSpec::new("x").with_network("container:y"), "`container:y`"),
            (
                BuildSpec::new("x").with_network("ns:/proc/1/ns/net"),
                "`ns:/proc/1/ns/net`",
            ),
        ] {
            let error = check(&spec).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn the_query_holds_what_the_client_can_not_say() {
        let mut spec = BuildSpec::new("x")
            .with_tag("a:1")
            .with_tag("b")
            .with_arg("N", "v w&")
            .with_label("l", "m");
        spec.args.insert("UNSET".to_owned(), None);
        spec.extra_hosts = vec!["h:1.2.3.4".to_owned(), "i:::1".to_owned()];
        spec.shm_size_bytes = Some(1 << 33);
        spec.ulimits = vec![BuildUlimit {
            name: "nofile".to_owned(),
            soft: 1,
            hard: 2,
        }];
        assert_eq!(
            query(&spec),
            "t=a%3A1&t=b&extrahosts=h%3A1.2.3.4&extrahosts=i%3A%3A%3A1\
             &buildargs=%7B%22N%22%3A%22v%20w%26%22%2C%22UNSET%22%3Anull%7D&labels=%7B%22l%22%3A%22m%22%7D\
             &shmsize=8589934592&ulimits=%5B%7B%22Name%22%3A%22nofile%22%2C%22Soft%22%3A1%2C%22Hard%22%3A2%7D%5D"
        );
        assert_eq!(query(&BuildSpec::new("x")), "");
    }
}
