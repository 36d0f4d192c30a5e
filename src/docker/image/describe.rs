//! What the engine knows of an image, and whether it is one for a platform.

use bollard::models::ImageInspect;

use crate::error::{Error, ErrorKind, ImageProblem, Operation, Result};
use crate::spec::ImageDetail;

use super::super::DockerProvider;
use super::super::failure::{EngineFailure, QUICK, call};
use super::ImageReference;

impl DockerProvider {
    /// None: the engine does not have it. An image for another platform than the one asked for is an error.
    pub(super) async fn describe_image(
        &self,
        image: &ImageReference,
        platform: Option<&str>,
    ) -> Result<Option<ImageDetail>> {
        let client = &self.engine().await?.client;
        let inspected = match call(QUICK, client.inspect_image(&image.to_string())).await {
            Ok(inspected) => inspected,
            Err(failure) if failure.is_status(404) => return Ok(None),
            Err(failure) => return Err(not_described(image, failure)),
        };
        let detail = detail_of(inspected);
        match platform {
            Some(wanted) if !fits(wanted, &detail.platform) => Err(Error::new(
                ErrorKind::Image(ImageProblem::Platform),
                Operation::Image,
                format!("`{image}` is one for `{}`, not for `{wanted}`", detail.platform),
            )
            .with_hint("leave out `platform`, or pull the image for it with the policy `always`")),
            _ => Ok(Some(detail)),
        }
    }

    pub(super) async fn image_present(&self, image: &ImageReference) -> Result<bool> {
        let client = &self.engine().await?.client;
        match call(QUICK, client.inspect_image(&image.to_string())).await {
            Ok(_) => Ok(true),
            Err(failure) if failure.is_status(404) => Ok(false),
            Err(failure) => Err(not_described(image, failure)),
        }
    }
}

fn not_described(image: &ImageReference, failure: EngineFailure) -> Error {
    failure.into_error(
        Operation::Image,
        format!("the engine did not describe `{image}`"),
        ErrorKind::Image(ImageProblem::Other),
    )
}

pub(in crate::docker) fn detail_of(inspected: ImageInspect) -> ImageDetail {
    let config = inspected.config.unwrap_or_default();
    let parts = [inspected.os, inspected.architecture, inspected.variant];
    let platform: Vec<String> = parts
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect();
    let mut detail = ImageDetail::new(inspected.id.unwrap_or_default());
    detail.references = inspected.repo_tags.unwrap_or_default();
    detail.digests = inspected.repo_digests.unwrap_or_default();
    detail.platform = platform.join("/");
    detail.size_bytes = inspected
        .size
        .and_then(|size| u64::try_from(size).ok())
        .unwrap_or_default();
    detail.created = inspected.created;
    detail.labels = config.labels.unwrap_or_default().into_iter().collect();
    detail.entrypoint = config.entrypoint.unwrap_or_default();
    detail.command = config.cmd.unwrap_or_default();
    detail.user = config.user.filter(|user| !user.is_empty());
    detail.workdir = config.working_dir.filter(|workdir| !workdir.is_empty());
    detail
}

/// Says whether an image for one platform is one for another. What is not named fits anything, and an architecture may
/// be named alone.
pub(super) fn fits(wanted: &str, have: &str) -> bool {
    let (wanted, have) = (Platform::parse(wanted), Platform::parse(have));
    let same = |one: &Option<String>, other: &Option<String>| match (one, other) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    };
    same(&wanted.os, &have.os)
        && same(&wanted.architecture, &have.architecture)
        && same(&wanted.variant, &have.variant)
}

struct Platform {
    os: Option<String>,
    architecture: Option<String>,
    variant: Option<String>,
}

impl Platform {
    fn parse(text: &str) -> Self {
        let text = text.to_lowercase();
        let mut parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
        let systems = ["linux", "windows", "darwin", "freebsd"];
        let os = (parts.first().is_some_and(|first| systems.contains(first)) || parts.len() > 2)
            .then(|| parts.remove(0).to_owned());
        let (architecture, variant) = match (parts.first().copied(), parts.get(1).copied()) {
            (Some("x86_64" | "x86-64" | "amd64"), variant) => (Some("amd64"), variant.filter(|v| *v != "v1")),
            // What is not named is the eighth.
            (Some("aarch64" | "arm64"), variant) => (Some("arm64"), variant.filter(|v| *v != "v8")),
            (Some("armhf"), _) => (Some("arm"), Some("v7")),
            (Some("i386" | "i686"), variant) => (Some("386"), variant),
            other => other,
        };
        Self {
            os,
            architecture: architecture.map(str::to_owned),
            variant: variant.map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b23_platforms_are_compared_as_the_engine_means_them() {
        for (wanted, have, fit) in [
            ("linux/amd64", "linux/amd64", true),
            ("linux", "linux/amd64", true),
            ("amd64", "linux/amd64", true),
            ("x86_64", "linux/amd64", true),
            ("linux/arm64/v8", "linux/arm64", true),
            ("linux/aarch64", "linux/arm64/v8", true),
            ("linux/arm/v7", "linux/arm/v6", false),
            ("linux/arm64", "linux/amd64", false),
            ("windows/amd64", "linux/amd64", false),
            ("linux/amd64", "", true),
        ] {
            assert_eq!(fits(wanted, have), fit, "{wanted} {have}");
        }
    }
}
