//! Image references: which registry, which repository, which tag or digest. Pure.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, ImageProblem, Operation, Result};

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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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

    /// The registry, as in `registry.example:5000`; `docker.io` where none is written.
    pub fn registry(&self) -> &str {
        match self.repository.split_once('/') {
            Some((first, _)) if is_registry(first) => first,
            _ => "docker.io",
        }
    }

    /// The tag, if one is written.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, if one is written.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Says why a text is no reference, and how one looks; None for one that is.
    pub(crate) fn problem_of(text: &str) -> Option<(String, &'static str)> {
        let problem = parse(without_scheme(text)).err()?;
        Some((told(text, problem), FORM))
    }

    /// What a pull asks for: the digest where there is one, else the tag, else `latest`. Without it the engine would
    /// pull every tag (bugs B23).
    pub(crate) fn pull_tag(&self) -> &str {
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
        parse(without_scheme(text)).map_err(|problem| {
            let kind = ErrorKind::Image(ImageProblem::InvalidReference);
            Error::new(kind, Operation::Image, told(text, problem)).with_hint(FORM)
        })
    }
}

/// How a reference looks.
const FORM: &str = "a reference looks like `registry:5000/team/name:tag` or `name@sha256:...`, in lower case";

fn told(text: &str, problem: &str) -> String {
    format!("`{}` is not an image reference: {problem}", text.escape_debug())
}

fn without_scheme(text: &str) -> &str {
    text.strip_prefix("docker://").unwrap_or(text)
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
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if algorithm.is_empty() || !hex_length_fits || !hex.bytes().all(is_hex) {
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
    if repository.len() > 255 {
        return Err("the name is over 255 characters");
    }
    let mut components: Vec<&str> = repository.split('/').collect();
    let has_registry = components.len() > 1 && components.first().is_some_and(|first| is_registry(first));
    if has_registry {
        check_registry(components.remove(0))?;
    }
    for component in components {
        check_component(component)?;
    }
    Ok(())
}

/// Says whether the first part of a name is a registry, and not a folder of Docker Hub.
fn is_registry(first: &str) -> bool {
    first.contains('.') || first.contains(':') || first == "localhost"
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

#[cfg(test)]
#[path = "image_reference_tests.rs"]
mod tests;
