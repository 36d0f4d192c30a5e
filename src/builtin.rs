//! The table of built-in providers: the one place outside a backend that names one.

use std::sync::Arc;

use crate::docker::DockerProvider;
use crate::local::LocalProvider;
use crate::provider::ProviderFactory;

type Factory = fn() -> ProviderFactory;

const BUILTIN: [(&str, Factory); 2] = [
    ("docker", || {
        Arc::new(|settings| Ok(Arc::new(DockerProvider::from_settings(settings)?)))
    }),
    ("local", || {
        Arc::new(|settings| Ok(Arc::new(LocalProvider::from_settings(settings)?)))
    }),
];

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

pub(crate) fn factory(name: &str) -> Option<ProviderFactory> {
    BUILTIN
        .iter()
        .find(|(builtin, _)| *builtin == name)
        .map(|(_, factory)| factory())
}
