//! What is mounted into a container.

use super::service::Subject;
use super::{Notes, Planner, service_path, text};
use crate::compose::model::{BindOptions, Mount, MountType, VolumeOptions};
use crate::spec::container::{ContainerSpec, MountKind, MountSpec};

pub(super) fn apply(
    planner: &Planner<'_>,
    subject: &Subject<'_>,
    spec: &mut ContainerSpec,
    notes: &mut Notes,
) {
    let service = subject.service;
    for (index, mount) in service.volumes.iter().enumerate() {
        let path = service_path(subject.name, "volumes").index(index);
        let kind = match mount.kind {
            MountType::Bind => bind(planner, mount),
            MountType::Volume => volume(planner, mount),
            MountType::Tmpfs => tmpfs(mount),
            MountType::Image => MountKind::Image {
                source: mount.source.clone(),
                subpath: mount.image.as_ref().and_then(|image| text(&image.subpath)),
            },
            MountType::Cluster | MountType::NamedPipe => {
                let message = format!(
                    "a mount of type `{}` is none that a container here can have",
                    mount.kind
                );
                notes.error(path, message, None);
                continue;
            }
        };
        spec.mounts.push(MountSpec {
            target: mount.target.clone(),
            read_only: mount.read_only,
            kind,
        });
    }
    for entry in &service.tmpfs {
        let (target, options) = entry.split_once(':').unwrap_or((entry, ""));
        let options = options.split(',').filter(|option| !option.is_empty());
        spec.mounts.push(MountSpec {
            target: target.to_owned(),
            read_only: false,
            kind: MountKind::Tmpfs {
                size_bytes: None,
                mode: None,
                options: options.map(str::to_owned).collect(),
            },
        });
    }
    for entry in &service.volumes_from {
        let (from, mode) = if let Some(container) = entry.strip_prefix("container:") {
            let (container, mode) = container.split_once(':').unwrap_or((container, ""));
            (container.to_owned(), mode)
        } else {
            let (other, mode) = entry.split_once(':').unwrap_or((entry, ""));
            (
                planner.first_container(subject, "volumes_from", other, notes),
                mode,
            )
        };
        spec.volumes_from.push(match mode {
            "" => from,
            mode => format!("{from}:{mode}"),
        });
    }
}

fn bind(planner: &Planner<'_>, mount: &Mount) -> MountKind {
    if planner.is_seeded(&mount.source) {
        return MountKind::Volume {
            source: Some(planner.seed_name(&mount.source)),
            no_copy: true,
            subpath: None,
            labels: std::collections::BTreeMap::new(),
            selinux: None,
        };
    }
    let none = BindOptions::default();
    let options = mount.bind.as_ref().unwrap_or(&none);
    MountKind::Bind {
        source: mount.source.clone(),
        // Without a block of options docker compose has the engine make what is missing.
        create_host_path: mount.bind.is_none() || options.create_host_path,
        propagation: text(&options.propagation),
        selinux: text(&options.selinux),
        recursive: text(&options.recursive),
    }
}

fn volume(planner: &Planner<'_>, mount: &Mount) -> MountKind {
    let none = VolumeOptions::default();
    let options = mount.volume.as_ref().unwrap_or(&none);
    // A volume that the loader does not know was refused there.
    let source = text(&mount.source).map(|key| {
        let declared = planner.project.volumes.get(&key);
        declared.map_or(key, |declared| declared.name.clone())
    });
    MountKind::Volume {
        source,
        no_copy: options.nocopy,
        subpath: text(&options.subpath),
        labels: options.labels.clone(),
        selinux: None,
    }
}

fn tmpfs(mount: &Mount) -> MountKind {
    let options = mount.tmpfs.as_ref();
    MountKind::Tmpfs {
        size_bytes: options
            .and_then(|options| u64::try_from(options.size.bytes()).ok())
            .filter(|&bytes| bytes > 0),
        mode: options
            .map(|options| options.mode.bits())
            .filter(|&mode| mode > 0),
        options: Vec::new(),
    }
}
