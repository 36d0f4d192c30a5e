//! What a project is called.

use crate::compose::plan::ImageNames;

/// What a project is called on the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProjectName {
    /// `compose-` and 32 hex digits, new for every object: copies of one project run side by side.
    #[default]
    Unique,
    /// This name.
    Given(String),
    /// As docker compose names it: `COMPOSE_PROJECT_NAME`, the file's `name`, the folder's name.
    OfFiles,
}

impl ProjectName {
    /// Under a name that is used once, images are named so that the next copy finds them.
    pub(super) fn image_names(&self, asked: ImageNames) -> ImageNames {
        match self {
            Self::Unique => ImageNames::Shared,
            Self::Given(_) | Self::OfFiles => asked,
        }
    }
}

impl From<&str> for ProjectName {
    fn from(name: &str) -> Self {
        Self::Given(name.to_owned())
    }
}

impl From<String> for ProjectName {
    fn from(name: String) -> Self {
        Self::Given(name)
    }
}

pub(super) fn unique_name() -> String {
    format!("compose-{}", uuid::Uuid::new_v4().simple())
}
