//! Mounts of a container. What docker compose sends as binds, mounts and tmpfs goes the same way (engine-facts section 3);
//! memory always as the host configuration's tmpfs, which takes every option and can be shared by `volumes_from` (S12, S20).

use std::collections::{BTreeSet, HashMap};

use bollard::models::{
    HostConfig, Mount, MountBindOptions, MountBindOptionsPropagationEnum as Propagation, MountImageOptions,
    MountType, MountVolumeOptions,
};

use crate::error::Result;
use crate::spec::container::{ContainerSpec, MountKind, MountSpec};

use super::super::connect::ApiVersion;
use super::{Needs, invalid, map_of, non_empty};

pub(super) fn apply(spec: &ContainerSpec, host: &mut HostConfig, needs: &mut Needs) -> Result<()> {
    let (mut binds, mut mounts, mut tmpfs) = (Vec::new(), Vec::new(), HashMap::new());
    let mut targets = BTreeSet::new();
    for mount in &spec.mounts {
        // The engine refuses two mounts on one target only if both are of one kind.
        if !targets.insert(checked_target(mount)?) {
            return Err(invalid(format!(
                "two mounts have the target `{}`",
                mount.target.escape_debug()
            )));
        }
        match &mount.kind {
            MountKind::Tmpfs {
                size_bytes,
                mode,
                options,
            } => {
                tmpfs.insert(
                    mount.target.clone(),
                    tmpfs_options(mount.read_only, *size_bytes, *mode, options),
                );
            }
            MountKind::Image { source, subpath } => {
                needs.require(ApiVersion::new(1, 48), "a mount of an image");
                mounts.push(Mount {
                    typ: Some(MountType::IMAGE),
                    source: Some(source.clone()),
                    image_options: subpath.clone().map(|subpath| MountImageOptions {
                        subpath: Some(subpath),
                    }),
                    ..base(mount)
                });
            }
            MountKind::Bind { .. } => bind(mount, &mut binds, &mut mounts, needs)?,
            MountKind::Volume { .. } => volume(mount, &mut binds, &mut mounts, needs)?,
        }
    }
    host.binds = non_empty(binds);
    host.mounts = non_empty(mounts);
    host.tmpfs = (!tmpfs.is_empty()).then_some(tmpfs);
    Ok(())
}

/// Volumes that no sandbox may name.
const LIBRARY_VOLUMES: [&str; 2] = ["gym-sandbox-agent-", "gym-sandbox-lease-"];

/// Folders of a sandbox that are the library's.
const LIBRARY_FOLDERS: [&str; 2] = [".gym-sandbox", ".gym-sandbox-socket"];

/// Whether a path of a sandbox is in a folder of the library's own.
pub(in crate::docker) fn is_librarys(path: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    parts.next().is_some_and(|first| LIBRARY_FOLDERS.contains(&first))
}

/// The target without what does not change it.
fn checked_target(mount: &MountSpec) -> Result<String> {
    let target = &mount.target;
    let parts: Vec<&str> = target
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let is_clean = target.starts_with('/') && !parts.is_empty() && !parts.contains(&"..");
    if !is_clean || target.contains(['\0', ':']) {
        return Err(invalid(format!(
            "the mount target `{}` is not an absolute path below `/` without `..` and `:`",
            target.escape_debug()
        )));
    }
    if is_librarys(target) {
        return Err(invalid(format!(
            "the mount target `{}` is in a folder of the library's own",
            target.escape_debug()
        )));
    }
    Ok(parts.join("/"))
}

fn base(mount: &MountSpec) -> Mount {
    Mount {
        target: Some(mount.target.clone()),
        read_only: mount.read_only.then_some(true),
        ..Mount::default()
    }
}

fn tmpfs_options(read_only: bool, size: Option<u64>, mode: Option<u32>, others: &[String]) -> String {
    let mut options = Vec::new();
    if read_only {
        options.push("ro".to_owned());
    }
    options.extend(size.map(|size| format!("size={size}")));
    // Octal: the engine hands the text to the kernel.
    options.extend(mode.map(|mode| format!("mode={mode:o}")));
    options.extend(others.iter().cloned());
    options.join(",")
}

fn bind(
    mount: &MountSpec,
    binds: &mut Vec<String>,
    mounts: &mut Vec<Mount>,
    needs: &mut Needs,
) -> Result<()> {
    let MountKind::Bind {
        source,
        create_host_path,
        propagation,
        selinux,
        recursive,
    } = &mount.kind
    else {
        return Ok(());
    };
    if !source.starts_with('/') || source.contains('\0') {
        return Err(invalid(format!(
            "the path `{}` of the host is not absolute",
            source.escape_debug()
        )));
    }
    let recursive = recursive.as_deref().filter(|word| *word != "enabled");
    let propagated = propagation.as_deref().map(propagation_of).transpose()?;
    let label = selinux_label(selinux.as_deref())?;
    if *create_host_path && recursive.is_none() {
        if source.contains(':') {
            return Err(invalid(format!(
                "the path `{}` of the host holds `:`, and can be mounted only where it is not made",
                source.escape_debug()
            )));
        }
        let mut options = vec![if mount.read_only { "ro" } else { "rw" }];
        options.extend(label);
        options.extend(propagation.as_deref());
        binds.push(format!("{source}:{}:{}", mount.target, options.join(",")));
        return Ok(());
    }
    if label.is_some() {
        return Err(invalid(format!(
            "the mount of `{}` can be relabelled only where the path of the host may be made and is mounted recursively",
            source.escape_debug()
        )));
    }
    if *create_host_path {
        needs.require(
            ApiVersion::new(1, 42),
            "making the host path of a mount with `recursive`",
        );
    }
    let newer = ApiVersion::new(1, 44);
    let mut options = MountBindOptions {
        propagation: propagated,
        create_mountpoint: create_host_path.then_some(true),
        ..MountBindOptions::default()
    };
    match recursive {
        None => {}
        Some("disabled") => options.non_recursive = Some(true),
        Some("writable") => {
            needs.require(newer, "a bind that is read-only without what is mounted below it");
            options.read_only_non_recursive = Some(true);
        }
        Some("readonly") => {
            needs.require(
                newer,
                "a bind that is read-only with all that is mounted below it",
            );
            options.read_only_force_recursive = Some(true);
        }
        Some(other) => {
            return Err(invalid(format!(
                "the recursive mode `{}` is none of enabled, disabled, writable and readonly",
                other.escape_debug()
            )));
        }
    }
    mounts.push(Mount {
        typ: Some(MountType::BIND),
        source: Some(source.clone()),
        bind_options: (options != MountBindOptions::default()).then_some(options),
        ..base(mount)
    });
    Ok(())
}

fn volume(
    mount: &MountSpec,
    binds: &mut Vec<String>,
    mounts: &mut Vec<Mount>,
    needs: &mut Needs,
) -> Result<()> {
    let MountKind::Volume {
        source,
        no_copy,
        subpath,
        labels,
        selinux,
    } = &mount.kind
    else {
        return Ok(());
    };
    if let Some(name) = source
        && !is_volume_name(name)
    {
        return Err(invalid(format!(
            "`{}` is not the name of a volume: two or more of letters, digits, `_`, `.` and `-`, a letter or digit first",
            name.escape_debug()
        )));
    }
    if let Some(name) = source
        && LIBRARY_VOLUMES.iter().any(|prefix| name.starts_with(prefix))
    {
        // Who writes to the program that all sandboxes share is in all of them.
        return Err(invalid(format!("the volume `{name}` is the library's own")));
    }
    let label = selinux_label(selinux.as_deref())?;
    if subpath.is_some() {
        needs.require(ApiVersion::new(1, 45), "the folder of a volume as a mount");
    }
    let plain = subpath.is_none() && labels.is_empty();
    match source {
        Some(name) if plain => {
            let mut options = vec![if mount.read_only { "ro" } else { "rw" }];
            options.extend(label);
            options.extend(no_copy.then_some("nocopy"));
            binds.push(format!("{name}:{}:{}", mount.target, options.join(",")));
        }
        _ if label.is_some() => {
            return Err(invalid(
                "only a whole named volume without labels can be relabelled".to_owned(),
            ));
        }
        _ => {
            let options = MountVolumeOptions {
                no_copy: no_copy.then_some(true),
                labels: map_of(labels),
                subpath: subpath.clone(),
                ..MountVolumeOptions::default()
            };
            mounts.push(Mount {
                typ: Some(MountType::VOLUME),
                source: source.clone(),
                volume_options: (options != MountVolumeOptions::default()).then_some(options),
                ..base(mount)
            });
        }
    }
    Ok(())
}

pub(in crate::docker) fn is_volume_name(name: &str) -> bool {
    let mut characters = name.chars();
    name.len() >= 2
        && characters
            .next()
            .is_some_and(|first| first.is_ascii_alphanumeric())
        && characters.all(|rest| rest.is_ascii_alphanumeric() || "_.-".contains(rest))
}

fn selinux_label(word: Option<&str>) -> Result<Option<&str>> {
    match word {
        None | Some("z" | "Z") => Ok(word),
        Some(other) => Err(invalid(format!(
            "the relabelling `{}` is neither `z` nor `Z`",
            other.escape_debug()
        ))),
    }
}

fn propagation_of(word: &str) -> Result<Propagation> {
    match word {
        "private" => Ok(Propagation::PRIVATE),
        "rprivate" => Ok(Propagation::RPRIVATE),
        "shared" => Ok(Propagation::SHARED),
        "rshared" => Ok(Propagation::RSHARED),
        "slave" => Ok(Propagation::SLAVE),
        "rslave" => Ok(Propagation::RSLAVE),
        other => Err(invalid(format!(
            "the propagation `{}` is not known",
            other.escape_debug()
        ))),
    }
}
