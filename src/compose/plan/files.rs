//! Secrets and configs: files that a service reads.

use std::collections::BTreeMap;

use super::service::Subject;
use super::{FileStep, Notes, Planner, service_path};
use crate::compose::model::{FileMode, FileMount, MountType, SecretValue};
use crate::compose::path::YamlPath;
use crate::compose::pathtext;
use crate::spec::FileOwner;
use crate::spec::container::{ContainerSpec, MountSpec};

/// Readable by everybody in the container, as docker compose has it.
const DEFAULT_MODE: u32 = 0o444;

/// Where a secret or config comes from.
enum Origin<'a> {
    File(&'a str),
    Value(SecretValue),
    /// A variable that is not set.
    Unset(&'a str),
    /// The loader refuses what is none of these.
    Nowhere,
}

/// A secret or config of a service.
struct Placed<'a> {
    path: YamlPath,
    mount: &'a FileMount,
    target: String,
    origin: Origin<'a>,
}

/// Files that are put into the containers, for everything that is not a file of this machine.
pub(super) fn steps(planner: &Planner<'_>, subject: &Subject<'_>, notes: &mut Notes) -> Vec<FileStep> {
    let mut steps = Vec::new();
    let all = placed(planner, subject);
    check_targets(&all, notes);
    for placed in all {
        let content = match &placed.origin {
            Origin::Value(value) => value.clone(),
            Origin::Unset(variable) => {
                let message = format!(
                    "the variable `{variable}` that holds `{}` is not set",
                    placed.mount.source
                );
                notes.error(placed.path, message, Some("give it with the project's variables"));
                continue;
            }
            Origin::File(_) | Origin::Nowhere => continue,
        };
        if let Some(tmpfs) = hiding_tmpfs(subject, &placed.target) {
            let message = format!(
                "`{}` would never be seen: a tmpfs is mounted over it at `{tmpfs}`",
                placed.mount.source
            );
            let hint = "place it elsewhere with `target`, or take it from a `file`, which is mounted";
            notes.error(placed.path, message, Some(hint));
            continue;
        }
        if subject.service.read_only {
            let message = format!(
                "`{}` cannot be put into a read-only root file system",
                placed.mount.source
            );
            let hint = "take it from a `file`, which is mounted";
            notes.error(placed.path, message, Some(hint));
            continue;
        }
        steps.push(FileStep {
            owner: owner(&placed, notes),
            target: placed.target,
            content,
            mode: mode(placed.mount.mode),
        });
    }
    if let Some(given) = planner.options.service_specs.get(subject.name) {
        for (target, text) in given.files() {
            steps.push(FileStep {
                target: target.to_owned(),
                content: SecretValue::new(text),
                mode: 0o644,
                owner: super::shared::numeric_owner(&subject.service.user),
            });
        }
    }
    steps
}

/// Mounts the secrets and configs that are files of this machine, as docker compose does.
pub(super) fn mount(
    planner: &Planner<'_>,
    subject: &Subject<'_>,
    spec: &mut ContainerSpec,
    notes: &mut Notes,
) {
    for placed in placed(planner, subject) {
        let Origin::File(file) = placed.origin else {
            continue;
        };
        let has_owner =
            !placed.mount.uid.is_empty() || !placed.mount.gid.is_empty() || placed.mount.mode.is_some();
        if has_owner {
            let message = "owner and mode of a mounted file are those of the file";
            notes.warning(placed.path, message);
        }
        spec.mounts.push(MountSpec::bind(file, placed.target).read_only());
    }
}

fn placed<'a>(planner: &Planner<'a>, subject: &Subject<'a>) -> Vec<Placed<'a>> {
    let mut all = Vec::new();
    for (index, mount) in subject.service.secrets.iter().enumerate() {
        let Some(secret) = planner.project.secrets.get(&mount.source) else {
            continue;
        };
        let origin = if !secret.file.is_empty() {
            Origin::File(&secret.file)
        } else if !secret.environment.is_empty() {
            match &secret.value {
                Some(value) => Origin::Value(value.clone()),
                None => Origin::Unset(&secret.environment),
            }
        } else {
            Origin::Nowhere
        };
        all.push(Placed {
            path: service_path(subject.name, "secrets").index(index),
            mount,
            target: target(mount, "/run/secrets/"),
            origin,
        });
    }
    for (index, mount) in subject.service.configs.iter().enumerate() {
        let Some(config) = planner.project.configs.get(&mount.source) else {
            continue;
        };
        let origin = if !config.file.is_empty() {
            Origin::File(&config.file)
        } else if !config.environment.is_empty() {
            match &config.value {
                Some(value) => Origin::Value(value.clone()),
                None => Origin::Unset(&config.environment),
            }
        } else {
            Origin::Value(SecretValue::new(&config.content))
        };
        all.push(Placed {
            path: service_path(subject.name, "configs").index(index),
            mount,
            target: target(mount, "/"),
            origin,
        });
    }
    all
}

/// Refuses targets that can't be files, and all but the first of several files with one target: it would be by chance which
/// of them is seen.
fn check_targets(all: &[Placed<'_>], notes: &mut Notes) {
    let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
    for placed in all {
        let (source, target) = (&placed.mount.source, placed.target.as_str());
        if target == "/" || target.contains('\0') {
            let message = format!("`{source}` cannot be placed at `{}`", target.escape_debug());
            notes.error(placed.path.clone(), message, None);
        } else if let Some(other) = taken.insert(target, source) {
            let message = format!("`{source}` and `{other}` would both be placed at `{target}`");
            notes.error(
                placed.path.clone(),
                message,
                Some("give them targets of their own"),
            );
        }
    }
}

/// The tmpfs that a file would be under, which is put in before anything is mounted: docker compose loses it silently.
fn hiding_tmpfs(subject: &Subject<'_>, target: &str) -> Option<String> {
    let service = subject.service;
    let of_tmpfs = service.tmpfs.iter().map(|entry| {
        let (path, _options) = entry.split_once(':').unwrap_or((entry, ""));
        (path, true)
    });
    let of_volumes = service
        .volumes
        .iter()
        .map(|mount| (mount.target.as_str(), mount.kind == MountType::Tmpfs));
    let above = of_tmpfs.chain(of_volumes).filter(|(path, _)| {
        let rest = target.strip_prefix(path.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.starts_with('/'))
    });
    // The deepest one is what the file would be in.
    let deepest = above.max_by_key(|(path, _)| path.trim_end_matches('/').len());
    deepest.and_then(|(path, is_tmpfs)| is_tmpfs.then(|| path.to_owned()))
}

fn target(mount: &FileMount, folder: &str) -> String {
    let target = match mount.target.as_str() {
        "" => format!("{folder}{}", mount.source),
        absolute if absolute.starts_with('/') => absolute.to_owned(),
        relative => format!("{folder}{relative}"),
    };
    // As the engine does it.
    pathtext::clean(&target)
}

fn mode(mode: Option<FileMode>) -> u32 {
    mode.and_then(|mode| u32::try_from(mode.bits()).ok())
        .map_or(DEFAULT_MODE, |bits| bits & 0o7777)
}

fn owner(placed: &Placed<'_>, notes: &mut Notes) -> Option<FileOwner> {
    let number = |text: &str| {
        if text.is_empty() {
            return Some(0);
        }
        text.parse::<u32>().ok()
    };
    let mount = placed.mount;
    if mount.uid.is_empty() && mount.gid.is_empty() {
        return Some(FileOwner { uid: 0, gid: 0 });
    }
    let owner = number(&mount.uid).zip(number(&mount.gid));
    if owner.is_none() {
        notes.error(placed.path.clone(), "`uid` and `gid` must be numbers", None);
    }
    owner.map(|(uid, gid)| FileOwner { uid, gid })
}
