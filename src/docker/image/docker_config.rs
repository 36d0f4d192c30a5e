//! The credentials in the docker command's `config.json`: which entry or helper is for a registry. Pure.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::spec::RegistryCredentials;

/// The name that Docker Hub's credentials are kept under.
pub(super) const HUB_SERVER: &str = "https://index.docker.io/v1/";

/// The part of the file that is about registries.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct DockerConfigFile {
    auths: Option<BTreeMap<String, Option<AuthEntry>>>,
    #[serde(rename = "credsStore")]
    creds_store: Option<String>,
    #[serde(rename = "credHelpers")]
    cred_helpers: Option<BTreeMap<String, Option<String>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AuthEntry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
}

/// Where the credentials for a registry are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// In the file.
    File(RegistryCredentials),
    /// The program `docker-credential-NAME` has them under this server.
    Helper { name: String, server: String },
    /// Nowhere.
    Nowhere,
}

/// The name under which the docker command keeps the credentials of a registry.
pub(super) fn server_of(registry: &str) -> &str {
    if matches!(registry, "docker.io" | "index.docker.io" | "registry-1.docker.io") {
        HUB_SERVER
    } else {
        registry
    }
}

impl DockerConfigFile {
    /// Reads the file. The text of an error names no value of it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| {
            format!(
                "it is not the JSON of a docker configuration (line {}, column {})",
                error.line(),
                error.column()
            )
        })
    }

    /// Says where the credentials for a registry are, in the docker command's order: the registry's own helper, the
    /// store, the file.
    pub(super) fn source(&self, registry: &str) -> Source {
        let server = server_of(registry);
        let own = self.cred_helpers.as_ref().and_then(|all| {
            let helper = all.get(server).or_else(|| all.get(registry));
            helper.and_then(Option::as_ref)
        });
        let helper = own.or(self.creds_store.as_ref()).filter(|name| !name.is_empty());
        if let Some(name) = helper {
            return Source::Helper {
                name: name.clone(),
                server: server.to_owned(),
            };
        }
        let entry = self.auths.as_ref().and_then(|all| {
            let of_host = || all.iter().find(|(key, _)| host_of(key) == host_of(server));
            all.get(server).or_else(|| of_host().map(|(_, entry)| entry))
        });
        entry
            .and_then(Option::as_ref)
            .and_then(AuthEntry::credentials)
            .map_or(Source::Nowhere, Source::File)
    }
}

impl AuthEntry {
    fn credentials(&self) -> Option<RegistryCredentials> {
        let non_empty = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        if let Some(token) = non_empty(&self.identitytoken) {
            return Some(RegistryCredentials::identity_token(token));
        }
        if let (Some(username), Some(password)) = (non_empty(&self.username), non_empty(&self.password)) {
            return Some(RegistryCredentials::password(username, password));
        }
        let decoded = decode_base64(self.auth.as_deref()?)?;
        let decoded = String::from_utf8(decoded).ok()?;
        let (username, password) = decoded.split_once(':')?;
        Some(RegistryCredentials::password(
            username,
            password.trim_end_matches('\0'),
        ))
    }
}

/// `https://registry.example/v2/` is the host `registry.example`.
fn host_of(server: &str) -> &str {
    let rest = server
        .strip_prefix("https://")
        .or_else(|| server.strip_prefix("http://"))
        .unwrap_or(server);
    rest.split('/').next().unwrap_or(rest)
}

/// Standard base64 with or without padding.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut bits, mut held) = (0_u32, 0_u32);
    for byte in text.trim().trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xff_ffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xff) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(username: &str, password: &str) -> Source {
        Source::File(RegistryCredentials::password(username, password))
    }

    #[test]
    fn d12_an_entry_is_found_by_its_server_and_by_its_host() {
        let file = DockerConfigFile::parse(
            r#"{
                "auths": {
                    "registry.example:5000": {"auth": "dXNlcjpwYTpzcw=="},
                    "https://other.example/v2/": {"username": "u", "password": "p"},
                    "https://index.docker.io/v1/": {"auth": "aHViOnNlY3JldA"},
                    "token.example": {"auth": "eDp5", "identitytoken": "t"},
                    "empty.example": {},
                    "broken.example": {"auth": "!!"}
                },
                "HttpHeaders": {"a": "b"}
            }"#,
        )
        .unwrap();
        for (registry, source) in [
            ("registry.example:5000", password("user", "pa:ss")),
            ("other.example", password("u", "p")),
            ("docker.io", password("hub", "secret")),
            (
                "token.example",
                Source::File(RegistryCredentials::identity_token("t")),
            ),
            ("empty.example", Source::Nowhere),
            ("broken.example", Source::Nowhere),
            ("unknown.example", Source::Nowhere),
            ("registry.example", Source::Nowhere),
        ] {
            assert_eq!(file.source(registry), source, "{registry}");
        }
    }

    #[test]
    fn d12_a_helper_of_the_registry_comes_before_the_store_and_the_store_before_the_file() {
        let file = DockerConfigFile::parse(
            r#"{
                "auths": {"a.example": {"auth": "dTpw"}},
                "credsStore": "store",
                "credHelpers": {"b.example": "own", "c.example": ""}
            }"#,
        )
        .unwrap();
        let helper = |name: &str, server: &str| Source::Helper {
            name: name.to_owned(),
            server: server.to_owned(),
        };
        assert_eq!(file.source("a.example"), helper("store", "a.example"));
        assert_eq!(file.source("b.example"), helper("own", "b.example"));
        assert_eq!(file.source("docker.io"), helper("store", HUB_SERVER));
    }

    #[test]
    fn null_is_as_good_as_nothing() {
        for text in [
            r#"{"auths": null, "credsStore": null, "credHelpers": null}"#,
            r#"{"auths": {"a.example": null}, "credHelpers": {"a.example": null}}"#,
            r#"{"auths": {"a.example": {"auth": null, "username": null}}}"#,
            "{}",
        ] {
            let file = DockerConfigFile::parse(text).unwrap();
            assert_eq!(file.source("a.example"), Source::Nowhere, "{text}");
        }
    }

    #[test]
    fn a_broken_file_is_an_error_without_its_text() {
        let Err(error) = DockerConfigFile::parse("{\"auths\": secret") else {
            panic!("it was read");
        };
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn base64_is_read_with_both_alphabets() {
        assert_eq!(decode_base64("_-8="), Some(vec![0xff, 0xef]));
        assert_eq!(decode_base64("/+8"), Some(vec![0xff, 0xef]));
        assert_eq!(decode_base64("a b"), None);
        assert_eq!(decode_base64(""), Some(Vec::new()));
    }
}
