//! What services share: networks, volumes, and the containers that fill volumes.

use std::collections::{BTreeMap, BTreeSet};

use super::{HelperStep, NetworkStep, Notes, Plan, Planner, VolumeSource, VolumeStep, text};
use crate::compose::model::{MountType, Network, Service};
use crate::compose::path::YamlPath;
use crate::spec::FileOwner;
use crate::spec::container::{
    ContainerSpec, IpPool, MountKind, MountSpec, NetworkAttachment, NetworkSpec, VolumeSpec,
};

pub(super) fn networks(planner: &Planner<'_>, notes: &mut Notes) -> Vec<NetworkStep> {
    let project = planner.project;
    let used = |key: &str| {
        project
            .services
            .values()
            .any(|service| service.networks.contains_key(key))
    };
    let mut steps = Vec::new();
    for (key, network) in project.networks.iter().filter(|(key, _)| used(key)) {
        reserved_labels(&network.labels, &YamlPath::of_keys(["networks", key]), notes);
        let step = match planner.bridge_of(network) {
            Some(bridge) => NetworkStep {
                key: key.clone(),
                external: true,
                is_shared: true,
                spec: NetworkSpec::new(bridge),
            },
            None => NetworkStep {
                key: key.clone(),
                external: network.external,
                is_shared: false,
                spec: network_spec(planner, key, network),
            },
        };
        // Several may be the same one, which is looked for once.
        if !steps
            .iter()
            .any(|known: &NetworkStep| known.external && known.spec.name == step.spec.name)
        {
            steps.push(step);
        }
    }
    steps
}

fn network_spec(planner: &Planner<'_>, key: &str, network: &Network) -> NetworkSpec {
    let mut spec = NetworkSpec::new(&network.name);
    if network.external {
        return spec;
    }
    spec.driver = text(&network.driver);
    spec.driver_options.clone_from(&network.driver_opts);
    spec.internal = network.internal;
    spec.attachable = network.attachable;
    spec.enable_ipv4 = network.enable_ipv4;
    spec.enable_ipv6 = network.enable_ipv6;
    spec.ipam_driver = text(&network.ipam.driver);
    spec.ipam_options.clone_from(&network.ipam.options);
    spec.pools = network
        .ipam
        .config
        .iter()
        .map(|pool| IpPool {
            subnet: text(&pool.subnet),
            ip_range: text(&pool.ip_range),
            gateway: text(&pool.gateway),
            auxiliary_addresses: pool.aux_addresses.clone(),
        })
        .collect();
    spec.subnets = planner.options.subnets;
    let containers = planner.project.services.values();
    let containers: i64 = containers
        .filter(|service| service.networks.contains_key(key))
        .map(|service| service.replicas().max(0))
        .sum();
    spec.containers = u32::try_from(containers).unwrap_or(u32::MAX);
    spec.labels = planner.network_labels(key, &network.labels);
    spec
}

pub(super) fn volumes(planner: &Planner<'_>, notes: &mut Notes) -> Vec<VolumeStep> {
    let project = planner.project;
    let mut steps = Vec::new();
    for (key, volume) in &project.volumes {
        if !project.services.values().any(|service| service.uses_volume(key)) {
            continue;
        }
        reserved_labels(&volume.labels, &YamlPath::of_keys(["volumes", key]), notes);
        let mut spec = VolumeSpec::new(&volume.name);
        if !volume.external {
            spec.driver = text(&volume.driver);
            spec.driver_options.clone_from(&volume.driver_opts);
            spec.labels = planner.volume_labels(key, &volume.labels);
        }
        steps.push(VolumeStep {
            key: key.clone(),
            external: volume.external,
            spec,
        });
    }
    // A bind mount whose content the caller gives is a volume.
    for source in planner.seeded_binds() {
        let key = Planner::seed_key(&source);
        let mut spec = VolumeSpec::new(planner.seed_name(&source));
        spec.labels = planner.volume_labels(&key, &BTreeMap::new());
        steps.push(VolumeStep {
            key,
            external: false,
            spec,
        });
    }
    steps
}

impl Planner<'_> {
    /// The sources of bind mounts in whose place the caller gives files.
    fn seeded_binds(&self) -> BTreeSet<String> {
        let mounts = self
            .project
            .services
            .values()
            .flat_map(|service| &service.volumes);
        mounts
            .filter(|mount| mount.kind == MountType::Bind && self.is_seeded(&mount.source))
            .map(|mount| mount.source.clone())
            .collect()
    }

    /// Whether the caller gives the content of a bind mount: by its path as the project resolved it, or relative to the
    /// project's folder.
    pub(super) fn is_seeded(&self, source: &str) -> bool {
        self.source_key(source).is_some()
    }

    pub(super) fn source_key(&self, source: &str) -> Option<&String> {
        let keys = self.options.volume_sources.keys();
        keys.into_iter().find(|key| self.is_at(key, source))
    }

    /// What the caller fills a bind mount with.
    pub(super) fn volume_source(&self, source: &str) -> Option<&VolumeSource> {
        self.options.volume_sources.get(self.source_key(source)?)
    }

    /// The folder of the shared storage that the caller names for a bind mount.
    pub(super) fn shared_folder(&self, source: &str) -> Option<&String> {
        let folders = &self.options.shared_folders;
        let found = folders.iter().find(|(key, _)| self.is_at(key, source));
        found.map(|(_, folder)| folder)
    }

    /// Whether a path of the caller, perhaps relative to the project's folder, is the source of a bind mount.
    pub(super) fn is_at(&self, key: &str, source: &str) -> bool {
        let joined: std::path::PathBuf = self.project.directory.join(key).components().collect();
        std::path::Path::new(source) == joined
    }

    /// The name of the volume that stands for a bind mount.
    pub(super) fn seed_name(&self, source: &str) -> String {
        format!("{}_{}", self.project.name, Self::seed_key(source))
    }

    pub(super) fn seed_key(source: &str) -> String {
        format!("seed-{}", super::labels::hash(source))
    }
}

/// Adds the containers that fill volumes: with files of the caller, with an owner, with folders that services mount.
pub(super) fn helpers(planner: &Planner<'_>, plan: &mut Plan, notes: &mut Notes) {
    let options = planner.options;
    let mut known = BTreeSet::new();
    for volume in &plan.volumes {
        let users = users_of(planner, &volume.spec.name);
        let bind = planner
            .seeded_binds()
            .into_iter()
            .find(|source| planner.seed_name(source) == volume.spec.name);
        let key = match &bind {
            Some(source) => planner.source_key(source).cloned(),
            None => Some(volume.key.clone()),
        };
        let source = key.as_ref().and_then(|key| options.volume_sources.get(key));
        known.extend(key.clone());
        let folders: BTreeSet<String> = users
            .iter()
            .flat_map(|(_, service)| &service.volumes)
            .filter(|mount| mount.kind == MountType::Volume && mount.source == volume.key)
            .filter_map(|mount| text(&mount.volume.as_ref()?.subpath))
            .collect();
        let Some((first, service)) = users.first().filter(|_| source.is_some() || !folders.is_empty()) else {
            continue;
        };
        let image = options
            .volume_init_image
            .clone()
            .unwrap_or_else(|| planner.image_of(first, service));
        let mut spec = ContainerSpec::new(image);
        spec.platform = text(&service.platform).filter(|_| options.volume_init_image.is_none());
        spec.name = Some(format!(
            "{}-init-{}",
            planner.project.name,
            super::labels::hash(&volume.key)
        ));
        spec.network = NetworkAttachment::None;
        // Never started; an image without any program is refused without it.
        spec.entrypoint = Some(vec!["/".to_owned()]);
        spec.labels = planner.helper_labels();
        spec.mounts.push(no_copy(&volume.spec.name));
        let owner = source
            .and_then(|source| source.owner)
            .or_else(|| numeric_owner(&service.user).filter(|_| source.is_some()));
        plan.helpers.push(HelperStep {
            volume: volume.spec.name.clone(),
            key: bind.unwrap_or_else(|| volume.key.clone()),
            service: (*first).to_owned(),
            spec,
            source: source.and_then(|source| source.path.clone()),
            folders: folders.into_iter().collect(),
            owner,
        });
    }
    for key in options.volume_sources.keys().filter(|key| !known.contains(*key)) {
        notes.error(
            YamlPath::of_keys(["volumes", key]),
            "is given a source, but no active service mounts it",
            Some("sources are named by the key of a volume, or by the source of a bind mount"),
        );
    }
}

/// Where the content of the service's image is to be seen, the service copies it itself.
fn no_copy(volume: &str) -> MountSpec {
    let mut mount = MountSpec::volume(volume, HelperStep::TARGET);
    if let MountKind::Volume { no_copy, .. } = &mut mount.kind {
        *no_copy = true;
    }
    mount
}

fn users_of<'a>(planner: &Planner<'a>, volume: &str) -> Vec<(&'a str, &'a Service)> {
    let project = planner.project;
    let mounts_it = |service: &Service| {
        service.volumes.iter().any(|mount| match mount.kind {
            MountType::Volume => project
                .volumes
                .get(&mount.source)
                .is_some_and(|declared| declared.name == volume),
            MountType::Bind => planner.is_seeded(&mount.source) && planner.seed_name(&mount.source) == volume,
            _ => false,
        })
    };
    project
        .services
        .iter()
        .filter(|(_, service)| mounts_it(service))
        .map(|(name, service)| (name.as_str(), service))
        .collect()
}

/// `1000` and `1000:1000`; names are known inside the image only.
pub(super) fn numeric_owner(user: &str) -> Option<FileOwner> {
    let (uid, gid) = user.split_once(':').unwrap_or((user, user));
    let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
    Some(FileOwner { uid, gid })
}

/// Labels that would pass for the library's own.
pub(super) fn reserved_labels(labels: &BTreeMap<String, String>, path: &YamlPath, notes: &mut Notes) {
    for key in labels.keys().filter(|key| key.starts_with("gym-sandbox")) {
        notes.error(
            path.key("labels").key(key),
            "labels that start with `gym-sandbox` are the library's own",
            None,
        );
    }
}
