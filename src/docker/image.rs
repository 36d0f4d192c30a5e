//! Image references, and getting an image into the engine's store.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bollard::query_parameters::CreateImageOptionsBuilder;
use futures::StreamExt;
use serde::Deserialize;

use crate::error::{Error, ErrorKind, ImageProblem, Operation, Result};

use super::DockerProvider;
use super::failure::EngineFailure;
use super::lanes::Lane;

/// When an image is pulled (contract D12).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PullPolicy {
    /// When the engine does not have it.
    #[default]
    Missing,
    /// Before every create.
    Always,
    /// Never: a missing image is an error at once.
    Never,
}

/// A parsed image reference: a repository with an optional registry, tag and digest.
///
/// ```
/// use gym_sandbox::docker::ImageReference;
/// # fn main() -> gym_sandbox::Result<()> {
/// let image: ImageReference = "registry.example:5000/team/tool:1.2".parse()?;
/// assert_eq!(image.repository(), "registry.example:5000/team/tool");
/// assert_eq!(image.tag(), Some("1.2"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageReference {
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

impl ImageReference {
    /// The registry and path, without tag and digest.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag, if one is written.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, if one is written.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// What a pull asks for: the digest where there is one, else the tag, else `latest`. Without it the engine would
    /// pull every tag (bugs B23).
    fn pull_tag(&self) -> &str {
        self.digest.as_deref().or(self.tag.as_deref()).unwrap_or("latest")
    }
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

impl FromStr for ImageReference {
    type Err = Error;

    /// Parses a reference; a leading `docker://` is cut off (contract C2).
    fn from_str(text: &str) -> Result<Self> {
        let reference = text.strip_prefix("docker://").unwrap_or(text);
        parse(reference).map_err(|problem| {
            Error::new(
                ErrorKind::Image(ImageProblem::InvalidReference),
                Operation::Image,
                format!("`{}` is not an image reference: {problem}", text.escape_debug()),
            )
            .with_hint(
                "a reference looks like `registry:5000/team/name:tag` or `name@sha256:...`, in lower case",
            )
        })
    }
}

fn parse(reference: &str) -> Result<ImageReference, &'static str> {
    if reference.is_empty() {
        return Err("it is empty");
    }
    if reference.len() > 4096 {
        return Err("it is too long");
    }
    let (rest, digest) = match reference.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (reference, None),
    };
    if let Some(digest) = digest {
        check_digest(digest)?;
    }
    // A colon before the last slash belongs to a registry's port.
    let name_start = rest.rfind('/').map_or(0, |slash| slash + 1);
    let (repository, tag) = match rest[name_start..].find(':') {
        Some(colon) => (&rest[..name_start + colon], Some(&rest[name_start + colon + 1..])),
        None => (rest, None),
    };
    if let Some(tag) = tag {
        check_tag(tag)?;
    }
    check_repository(repository)?;
    Ok(ImageReference {
        repository: repository.to_owned(),
        tag: tag.map(str::to_owned),
        digest: digest.map(str::to_owned),
    })
}

fn check_digest(digest: &str) -> Result<(), &'static str> {
    let Some((algorithm, hex)) = digest.split_once(':') else {
        return Err("the digest has no algorithm");
    };
    let hex_length_fits = match algorithm {
        "sha256" => hex.len() == 64,
        "sha512" => hex.len() == 128,
        _ => hex.len() >= 32,
    };
    if algorithm.is_empty() || !hex_length_fits || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err("the digest is not one");
    }
    Ok(())
}

fn check_tag(tag: &str) -> Result<(), &'static str> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let valid = tag.len() <= 128
        && tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|byte| word(byte) || byte == b'.' || byte == b'-');
    if valid { Ok(()) } else { Err("the tag is not one") }
}

fn check_repository(repository: &str) -> Result<(), &'static str> {
    let mut components: Vec<&str> = repository.split('/').collect();
    let has_registry = components.len() > 1
        && components.first().is_some_and(|first| {
            first.contains('.') || first.contains(':') || *first == "localhost" || first.starts_with('[')
        });
    if has_registry {
        check_registry(components.remove(0))?;
    }
    for component in components {
        check_component(component)?;
    }
    Ok(())
}

fn check_registry(registry: &str) -> Result<(), &'static str> {
    let (host, port) = match registry.rfind(':') {
        Some(colon) if !registry[colon..].contains(']') => (&registry[..colon], Some(&registry[colon + 1..])),
        _ => (registry, None),
    };
    let host_fits = !host.is_empty()
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-[]:".contains(&byte));
    let port_fits =
        port.is_none_or(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    if host_fits && port_fits {
        Ok(())
    } else {
        Err("the registry is not a host with an optional port")
    }
}

/// Lower-case letters and digits, joined by single `.`, one or two `_`, or any number of `-`.
fn check_component(component: &str) -> Result<(), &'static str> {
    if component.is_empty() {
        return Err("a part of the name is empty");
    }
    if component.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err("the name holds upper-case letters");
    }
    if component
        .bytes()
        .any(|byte| !(byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte)))
    {
        return Err("the name holds a character that is not allowed");
    }
    let separator = |character: char| "._-".contains(character);
    if component.starts_with(separator) || component.ends_with(separator) {
        return Err("a part of the name starts or ends with a separator");
    }
    let runs = component
        .split(|character: char| !separator(character))
        .filter(|run| !run.is_empty());
    for run in runs {
        let allowed = run == "." || run == "_" || run == "__" || run.bytes().all(|byte| byte == b'-');
        if !allowed {
            return Err("two separators of the name follow each other");
        }
    }
    Ok(())
}

/// Texts of the engine and of registries, and what they mean, in the order they are looked for (contract D12). The
/// engine answers 500 for most of them, so the status says nothing.
const PULL_TEXTS: [(&str, ImageProblem); 22] = [
    ("toomanyrequests", ImageProblem::RateLimited),
    ("rate limit", ImageProblem::RateLimited),
    ("too many requests", ImageProblem::RateLimited),
    ("no matching manifest for", ImageProblem::Platform),
    ("does not match the specified platform", ImageProblem::Platform),
    ("repository does not exist", ImageProblem::NotFound),
    ("manifest unknown", ImageProblem::NotFound),
    ("name unknown", ImageProblem::NotFound),
    ("no such image", ImageProblem::NotFound),
    ("unauthorized", ImageProblem::Auth),
    ("authentication required", ImageProblem::Auth),
    ("no basic auth credentials", ImageProblem::Auth),
    ("access denied", ImageProblem::Auth),
    ("no such host", ImageProblem::Offline),
    ("connection refused", ImageProblem::Offline),
    ("network is unreachable", ImageProblem::Offline),
    ("temporary failure in name resolution", ImageProblem::Offline),
    ("server misbehaving", ImageProblem::Offline),
    ("i/o timeout", ImageProblem::Offline),
    ("timeout exceeded", ImageProblem::Offline),
    ("tls handshake timeout", ImageProblem::Offline),
    ("not found", ImageProblem::NotFound),
];

pub(super) fn problem_of(text: &str) -> Option<ImageProblem> {
    let text = text.to_lowercase();
    PULL_TEXTS
        .iter()
        .find(|(part, _)| text.contains(part))
        .map(|&(_, problem)| problem)
}

/// Makes the error for an image that could not be had.
pub(super) fn image_error(image: &ImageReference, failure: EngineFailure) -> Error {
    let Some(text) = failure.text() else {
        return failure.into_error(
            Operation::Image,
            format!("pulling `{image}` failed"),
            ErrorKind::Internal,
        );
    };
    let problem = problem_of(text).unwrap_or(ImageProblem::Other);
    let (message, hint) = match problem {
        ImageProblem::Auth => (
            "the registry refuses to give",
            "log in to the registry, and check the name",
        ),
        ImageProblem::NotFound => (
            "there is no image",
            "check the name and tag; a private image needs a login",
        ),
        ImageProblem::RateLimited => (
            "the registry's rate limit keeps it from giving",
            "wait, log in, or use a mirror",
        ),
        ImageProblem::Platform => (
            "the platform does not fit that of",
            "leave out `platform`, or pull the image for it with `pull_policy: always`",
        ),
        ImageProblem::Offline => (
            "the registry can't be reached for",
            "check the engine's network, or load the image into the engine and use `pull_policy: never`",
        ),
        _ => ("could not get", "the engine's text below says why"),
    };
    Error::new(
        ErrorKind::Image(problem),
        Operation::Image,
        format!("{message} `{image}`"),
    )
    .with_hint(hint)
    .with_retryable(matches!(
        problem,
        ImageProblem::RateLimited | ImageProblem::Offline
    ))
    .with_source(failure)
}

impl DockerProvider {
    /// Pulls an image. The caller bounds the time.
    ///
    /// Dropping the future ends the pull; the engine keeps the layers it has.
    pub(super) async fn pull_image(&self, image: &ImageReference, platform: Option<&str>) -> Result<()> {
        let engine = self.engine().await?;
        let _slot = self.lanes().slot(Lane::Pull).await?;
        tracing::info!(%image, "pulling");
        let options = CreateImageOptionsBuilder::new()
            .from_image(&image.repository)
            .tag(image.pull_tag())
            .platform(platform.unwrap_or_default())
            .build();
        let mut progress = engine.client.create_image(Some(options), None, None);
        loop {
            // A registry that stalls sends nothing; the whole pull is bounded by the caller.
            match tokio::time::timeout(Duration::from_secs(300), progress.next()).await {
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) => return Err(image_error(image, error.into())),
                Ok(None) => return Ok(()),
                Err(_) => {
                    return Err(image_error(
                        image,
                        EngineFailure::Deadline(Duration::from_secs(300)),
                    ));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
