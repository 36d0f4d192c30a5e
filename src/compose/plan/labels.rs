//! Labels as docker compose writes them, so that `docker compose ls`, `ps` and `down` see the project, and names.

use std::collections::BTreeMap;

use super::{HookStep, Planner, ProjectLifetime};
use crate::compose::model::{Encode, Service, Style};

pub(crate) const PROJECT: &str = "com.docker.compose.project";
pub(crate) const SERVICE: &str = "com.docker.compose.service";
pub(crate) const ONE_OFF: &str = "com.docker.compose.oneoff";
const NUMBER: &str = "com.docker.compose.container-number";
const CONFIG_HASH: &str = "com.docker.compose.config-hash";
const CONFIG_FILES: &str = "com.docker.compose.project.config_files";
const WORKING_DIR: &str = "com.docker.compose.project.working_dir";
const DEPENDS_ON: &str = "com.docker.compose.depends_on";
const NETWORK: &str = "com.docker.compose.network";
const VOLUME: &str = "com.docker.compose.volume";
const VERSION: &str = "com.docker.compose.version";

/// The project, as the library's own label (contract D17).
const OWN_PROJECT: &str = "gym-sandbox.project";

/// The library's own mark of what is kept on purpose.
const KEPT: &str = "gym-sandbox.kept";

/// The commands before a stop, as JSON, for who takes the project down by its name.
pub(crate) const PRE_STOP: &str = "gym-sandbox.pre-stop";

/// The mark of a service that is asked to end by a signal of its file's, for who takes the project down by its name: the
/// engine tells it from the image's own no more.
pub(crate) const STOP_SIGNAL: &str = "gym-sandbox.stop-signal";

/// The version that labels name: docker compose's whose answers the loader gives.
const AS_VERSION: &str = "2.40.3";

impl Planner<'_> {
    /// The name of a container.
    pub(super) fn container_name(&self, service: &str, number: u32) -> String {
        format!("{}-{service}-{number}", self.project.name)
    }

    pub(super) fn container_labels(
        &self,
        name: &str,
        service: &Service,
        number: u32,
        pre_stop: &[HookStep],
    ) -> BTreeMap<String, String> {
        let mut labels = service.labels.clone();
        let dependencies: Vec<String> = service
            .depends_on
            .iter()
            .map(|(other, dependency)| format!("{other}:{}:{}", dependency.condition, dependency.restart))
            .collect();
        let files: Vec<String> = self
            .options
            .config_files
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        let own = [
            (PROJECT, self.project.name.clone()),
            (SERVICE, name.to_owned()),
            (NUMBER, number.to_string()),
            (ONE_OFF, "False".to_owned()),
            (CONFIG_HASH, hash(&service.encode(Style::Json).to_string())),
            (CONFIG_FILES, files.join(",")),
            (WORKING_DIR, self.project.directory.display().to_string()),
            (DEPENDS_ON, dependencies.join(",")),
            (VERSION, AS_VERSION.to_owned()),
            (OWN_PROJECT, self.project.name.clone()),
        ];
        labels.extend(own.map(|(key, value)| (key.to_owned(), value)));
        if let Some(hooks) = Some(pre_stop).filter(|hooks| !hooks.is_empty()) {
            // Text and lists of it, which JSON can always hold.
            let hooks = serde_json::to_string(hooks).unwrap_or_default();
            labels.insert(PRE_STOP.to_owned(), hooks);
        }
        if !service.stop_signal.is_empty() {
            labels.insert(STOP_SIGNAL.to_owned(), service.stop_signal.clone());
        }
        self.keep(labels)
    }

    pub(super) fn network_labels(
        &self,
        key: &str,
        labels: &BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        self.shared_labels(NETWORK, key, labels)
    }

    pub(super) fn volume_labels(
        &self,
        key: &str,
        labels: &BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        self.shared_labels(VOLUME, key, labels)
    }

    /// Labels of a container that fills a volume: part of the project, but none of its services.
    pub(super) fn helper_labels(&self) -> BTreeMap<String, String> {
        self.keep(BTreeMap::from([
            (PROJECT.to_owned(), self.project.name.clone()),
            (ONE_OFF.to_owned(), "True".to_owned()),
            (OWN_PROJECT.to_owned(), self.project.name.clone()),
        ]))
    }

    /// Marks what outlives its process, so that no sweep takes it for left behind.
    fn keep(&self, mut labels: BTreeMap<String, String>) -> BTreeMap<String, String> {
        if self.options.lifetime == ProjectLifetime::UntilDown {
            labels.insert(KEPT.to_owned(), "1".to_owned());
        }
        labels
    }

    fn shared_labels(
        &self,
        kind: &str,
        key: &str,
        labels: &BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        let mut labels = labels.clone();
        let own = [
            (PROJECT, self.project.name.as_str()),
            (kind, key),
            (VERSION, AS_VERSION),
            (OWN_PROJECT, self.project.name.as_str()),
        ];
        labels.extend(own.map(|(key, value)| (key.to_owned(), value.to_owned())));
        self.keep(labels)
    }
}

/// A hash that is the same on every machine and in every release (FNV-1a, 64 bits).
pub(super) fn hash(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
