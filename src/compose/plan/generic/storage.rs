//! Volumes as folders of the provider's shared storage (contract 4.7): `PROJECT/VOLUME` for the project's own, and folders
//! that are there already where the caller names them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{BEYOND_START, GenericService, Refusals, SeedStep, StorageStep, VolumeFolder};
use crate::compose::model::{Mount, MountType};
use crate::compose::path::YamlPath;
use crate::compose::plan::Planner;
use crate::compose::plan::shared::numeric_owner;
use crate::provider::{Capability, SandboxProvider, SharedAccess, SharedStorageProvider};
use crate::spec::SandboxSpec;

/// Where the helper has all of the storage.
pub(crate) const HELPER_ROOT: &str = "/tmp/compose-volumes";

/// Where a sandbox that copies has the volume.
pub(crate) const SEED_TARGET: &str = "/tmp/compose-seed";

/// What is mounted.
enum Folder {
    /// One of the project's own.
    Own(VolumeFolder),
    /// One that is there, as the caller says.
    Given(String),
}

/// Adds the folders to the sandboxes of the services, and says what has to be made before.
pub(super) fn plan(
    planner: &Planner<'_>,
    provider: &dyn SandboxProvider,
    services: &mut [GenericService],
    timeout: Duration,
    refusals: &mut Refusals,
) -> Option<StorageStep> {
    let mut volumes: BTreeMap<String, VolumeFolder> = BTreeMap::new();
    let mut seeds = Vec::new();
    let mut image = planner.options.volume_init_image.clone();
    unused(planner, refusals);
    for planned in services {
        let service = &planner.project.services[&planned.name];
        let mounts = Mounts {
            planner,
            service: &planned.name,
        };
        if service.volumes.is_empty() {
            continue;
        }
        let Some(storage) = provider.as_shared_storage() else {
            let path = mounts.path();
            let message = format!(
                "provider `{}` does not support {}",
                provider.name(),
                Capability::SharedStorage
            );
            refusals.unsupported(path, message, None);
            continue;
        };
        match storage.shared_volume_metadata() {
            Ok(metadata) => planned.spec = planned.spec.clone().with_default_metadata(&metadata),
            Err(error) => refusals.error(mounts.path(), &error),
        }
        let without = planned.spec.clone();
        for (index, mount) in service.volumes.iter().enumerate() {
            let path = mounts.path().index(index);
            let Some(folder) = mounts.folder(mount, &path, refusals) else {
                continue;
            };
            let place = match &folder {
                Folder::Own(volume) => format!("{}/{}", planner.project.name, volume.name),
                Folder::Given(folder) => folder.clone(),
            };
            let access = if mount.read_only {
                SharedAccess::ReadOnly
            } else {
                SharedAccess::ReadWrite
            };
            match storage.shared_volume_options(Some(&place), &mount.target, access) {
                Ok(options) => planned.spec = planned.spec.clone().with_added_provider_options(options),
                Err(error) => refusals.error(path, &error),
            }
            let Folder::Own(mut volume) = folder else { continue };
            image.get_or_insert_with(|| planner.image_of(&planned.name, service));
            if volume.source.is_some() && volume.owner.is_none() {
                volume.owner = numeric_owner(&service.user);
            }
            let copies = mount.kind == MountType::Volume
                && mount.volume.as_ref().is_none_or(|options| !options.nocopy)
                && volume.source.is_none();
            if copies
                && let Ok(options) =
                    storage.shared_volume_options(Some(&place), SEED_TARGET, SharedAccess::ReadWrite)
            {
                seeds.push(SeedStep {
                    service: planned.name.clone(),
                    volume: volume.key.clone(),
                    spec: without_ports(without.clone()).with_added_provider_options(options),
                    folder: mount.target.clone(),
                });
            }
            volumes.entry(volume.name.clone()).or_insert(volume);
        }
    }
    let image = image.filter(|_| !volumes.is_empty())?;
    Some(StorageStep {
        helper: helper(provider.as_shared_storage()?, image, timeout)?,
        volumes: volumes.into_values().collect(),
        seeds,
    })
}

/// The sandbox with all of the storage. What is wrong with the storage was told with the first volume.
fn helper(storage: &dyn SharedStorageProvider, image: String, timeout: Duration) -> Option<SandboxSpec> {
    let options = storage
        .shared_volume_options(None, HELPER_ROOT, SharedAccess::ReadWrite)
        .ok()?;
    let metadata = storage.shared_volume_metadata().ok()?;
    Some(
        SandboxSpec::new(image)
            .with_ttl(timeout + BEYOND_START)
            .with_added_provider_options(options)
            .with_default_metadata(&metadata),
    )
}

fn without_ports(spec: SandboxSpec) -> SandboxSpec {
    // No port at all is never refused.
    spec.clone().with_ports([]).unwrap_or(spec)
}

/// Folders that the caller names and nobody mounts are a mistake of the caller.
fn unused(planner: &Planner<'_>, refusals: &mut Refusals) {
    let mounts = || {
        planner
            .project
            .services
            .values()
            .flat_map(|service| &service.volumes)
    };
    for key in planner.options.shared_folders.keys() {
        let is_mounted = mounts().any(|mount| match mount.kind {
            MountType::Bind => planner.is_at(key, &mount.source),
            _ => mount.source == *key,
        });
        if !is_mounted {
            let path = YamlPath::of_keys(["volumes", key]);
            refusals.invalid(
                path,
                "is given a folder of the shared storage, but no active service mounts it",
            );
        }
    }
}

struct Mounts<'a> {
    planner: &'a Planner<'a>,
    service: &'a str,
}

impl Mounts<'_> {
    fn path(&self) -> YamlPath {
        super::super::service_path(self.service, "volumes")
    }

    fn folder(&self, mount: &Mount, path: &YamlPath, refusals: &mut Refusals) -> Option<Folder> {
        if !matches!(mount.kind, MountType::Bind | MountType::Volume) {
            let message = format!(
                "`{}` is not supported here: only `bind` and `volume` are",
                mount.kind
            );
            refusals.unsupported(path.key("type"), message, None);
            return None;
        }
        if mount.source.is_empty() {
            refusals.invalid(path.clone(), "a volume without a name is not supported here");
            return None;
        }
        if !mount.target.starts_with('/') {
            refusals.invalid(path.key("target"), "is no absolute path");
            return None;
        }
        if !mount.consistency.is_empty() {
            refusals.unsupported(path.key("consistency"), "is not supported here", None);
        }
        match mount.kind {
            MountType::Bind => self.bind(mount, path, refusals),
            _ => self.volume(mount, path, refusals),
        }
    }

    fn bind(&self, mount: &Mount, path: &YamlPath, refusals: &mut Refusals) -> Option<Folder> {
        if let Some(options) = &mount.bind {
            for (key, value) in [
                ("selinux", &options.selinux),
                ("propagation", &options.propagation),
                ("recursive", &options.recursive),
            ] {
                if !value.is_empty() {
                    refusals.unsupported(path.key("bind").key(key), "is not supported here", None);
                }
            }
        }
        if let Some(folder) = self.planner.shared_folder(&mount.source) {
            return Some(Folder::Given(folder.clone()));
        }
        let Some(source) = self.planner.volume_source(&mount.source) else {
            refusals.unsupported(
                path.key("source"),
                "sandboxes of this provider see no folder of this machine",
                Some("give its content with `with_volume_source`, or name a folder of the shared storage with `with_shared_folder`"),
            );
            return None;
        };
        Some(Folder::Own(VolumeFolder {
            name: Planner::seed_key(&mount.source),
            key: mount.source.clone(),
            service: self.service.to_owned(),
            source: source.path.clone(),
            owner: source.owner,
        }))
    }

    fn volume(&self, mount: &Mount, path: &YamlPath, refusals: &mut Refusals) -> Option<Folder> {
        if let Some(options) = &mount.volume {
            for (key, is_given) in [
                ("labels", !options.labels.is_empty()),
                ("subpath", !options.subpath.is_empty()),
            ] {
                if is_given {
                    refusals.unsupported(path.key("volume").key(key), "is not supported here", None);
                }
            }
        }
        let options = self.planner.options;
        if let Some(folder) = options.shared_folders.get(&mount.source) {
            return Some(Folder::Given(folder.clone()));
        }
        let declared = self.planner.project.volumes.get(&mount.source);
        if declared.is_some_and(|volume| volume.external) {
            refusals.unsupported(
                YamlPath::of_keys(["volumes", &mount.source]),
                "is external, and no folder of the shared storage is named for it",
                Some("name one with `with_shared_folder`"),
            );
            return None;
        }
        let source = options.volume_sources.get(&mount.source);
        Some(Folder::Own(VolumeFolder {
            name: mount.source.clone(),
            key: mount.source.clone(),
            service: self.service.to_owned(),
            source: source.and_then(|source| source.path.clone()),
            owner: source.and_then(|source| source.owner),
        }))
    }
}
