//! Volume strings (contract C15, D11) and the fields of `--mount`.

use std::collections::BTreeMap;

use crate::spec::container::{MountKind, MountSpec};

use super::builder::LocalBase;
use super::values::{size, switch};

const PROPAGATIONS: [&str; 6] = ["private", "rprivate", "shared", "rshared", "slave", "rslave"];

/// Reads `SOURCE:TARGET[:OPTIONS]`, or `TARGET` for a volume of the sandbox's own.
pub(super) fn volume(text: &str, base: &LocalBase) -> Result<MountSpec, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (source, target, options) = match parts[..] {
        [target] => (None, target, ""),
        [source, target] => (Some(source), target, ""),
        [source, target, options] => (Some(source), target, options),
        _ => return Err(format!("`{text}` is not SOURCE:TARGET[:OPTIONS]")),
    };
    let host_path = source.and_then(|source| host_path(source, base)).transpose()?;
    let is_bind = host_path.is_some();
    let mut read_only = None;
    let (mut selinux, mut no_copy, mut propagation) = (None, false, None);
    for option in options.split(',').filter(|option| !option.is_empty()) {
        let twice = match option {
            "ro" | "rw" => read_only.replace(option == "ro").is_some(),
            "z" | "Z" => selinux.replace(option.to_owned()).is_some(),
            "nocopy" if !is_bind => std::mem::replace(&mut no_copy, true),
            word if PROPAGATIONS.contains(&word) && is_bind => propagation.replace(word.to_owned()).is_some(),
            other => {
                let kind = if is_bind { "a path of the host" } else { "a volume" };
                return Err(format!("`{other}` is no option of {kind} in `{text}`"));
            }
        };
        if twice {
            return Err(format!("`{text}` says the same thing twice"));
        }
    }
    let kind = match host_path {
        Some(source) => MountKind::Bind {
            source,
            create_host_path: true,
            propagation,
            selinux,
            recursive: None,
        },
        None => MountKind::Volume {
            source: source.map(str::to_owned),
            no_copy,
            subpath: None,
            labels: BTreeMap::new(),
            selinux,
        },
    };
    Ok(MountSpec {
        target: target.to_owned(),
        read_only: read_only.unwrap_or(false),
        kind,
    })
}

/// The path that a source means; none where it is the name of a volume.
fn host_path(source: &str, base: &LocalBase) -> Option<Result<String, String>> {
    if source.starts_with('/') {
        return Some(Ok(source.to_owned()));
    }
    if source == "." || source == ".." || source.starts_with("./") || source.starts_with("../") {
        return Some(Ok(format!("{}/{source}", base.here)));
    }
    let below = source.strip_prefix('~')?;
    if !below.is_empty() && !below.starts_with('/') {
        return Some(Err(format!("`{source}` names the home of another user")));
    }
    Some(match &base.home {
        Some(home) => Ok(format!("{home}{below}")),
        None => Err(format!("`{source}` needs HOME")),
    })
}

/// What `--mount` says, before it is known what kind of mount it is.
#[derive(Default)]
struct Said {
    source: Option<String>,
    target: Option<String>,
    read_only: bool,
    propagation: Option<String>,
    recursive: Option<String>,
    no_copy: bool,
    subpath: Option<String>,
    labels: BTreeMap<String, String>,
    size_bytes: Option<u64>,
    mode: Option<u32>,
    /// The first field that only one kind has: the kind, and the field.
    special: Vec<(&'static str, String)>,
}

/// Reads the fields of `--mount`.
pub(super) fn mount(fields: &[(String, String)]) -> Result<MountSpec, String> {
    let mut kind = "volume".to_owned();
    let mut said = Said::default();
    for (name, value) in fields {
        match name.as_str() {
            "type" => kind.clone_from(value),
            "source" | "src" => said.source = Some(value.clone()),
            "target" | "destination" | "dst" => said.target = Some(value.clone()),
            "readonly" | "ro" | "read_only" => said.read_only = switch(value)?,
            _ => special(&mut said, name, value)?,
        }
    }
    if let Some((of, name)) = said.special.iter().find(|(of, _)| *of != kind) {
        return Err(format!("`{name}` is of mounts of type {of}, not of `{kind}`"));
    }
    let target = said.target.clone().ok_or("a mount needs a target")?;
    let needed =
        |source: Option<String>| source.ok_or_else(|| format!("a mount of type {kind} needs a source"));
    let kind = match kind.as_str() {
        "bind" => MountKind::Bind {
            source: needed(said.source)?,
            create_host_path: false,
            propagation: said.propagation,
            selinux: None,
            recursive: said.recursive,
        },
        "volume" => MountKind::Volume {
            source: said.source,
            no_copy: said.no_copy,
            subpath: said.subpath,
            labels: said.labels,
            selinux: None,
        },
        "tmpfs" if said.source.is_some() => return Err("a mount of memory has no source".to_owned()),
        "tmpfs" => MountKind::Tmpfs {
            size_bytes: said.size_bytes,
            mode: said.mode,
            options: Vec::new(),
        },
        "image" => MountKind::Image {
            source: needed(said.source)?,
            subpath: said.subpath,
        },
        other => return Err(format!("`{other}` is none of bind, volume, tmpfs and image")),
    };
    Ok(MountSpec {
        target,
        read_only: said.read_only,
        kind,
    })
}

fn special(said: &mut Said, name: &str, value: &str) -> Result<(), String> {
    let of = match name {
        "bind-propagation" => {
            said.propagation = Some(value.to_owned());
            "bind"
        }
        "bind-recursive" => {
            said.recursive = Some(value.to_owned());
            "bind"
        }
        "bind-nonrecursive" => {
            said.recursive = switch(value)?.then(|| "disabled".to_owned());
            "bind"
        }
        "volume-nocopy" => {
            said.no_copy = switch(value)?;
            "volume"
        }
        "volume-subpath" => {
            said.subpath = Some(value.to_owned());
            "volume"
        }
        "volume-label" => {
            let (key, value) = value.split_once('=').unwrap_or((value, ""));
            said.labels.insert(key.to_owned(), value.to_owned());
            "volume"
        }
        "tmpfs-size" => {
            said.size_bytes = Some(size(value)?);
            "tmpfs"
        }
        "tmpfs-mode" => {
            let mode = u32::from_str_radix(value, 8);
            said.mode = Some(mode.map_err(|_| format!("`{value}` is not an octal mode"))?);
            "tmpfs"
        }
        "image-subpath" => {
            said.subpath = Some(value.to_owned());
            "image"
        }
        other => return Err(format!("`{other}` is nothing that a mount can be told here")),
    };
    said.special.push((of, name.to_owned()));
    Ok(())
}

/// Reads `TARGET[:OPTIONS]`.
pub(super) fn tmpfs(text: &str) -> MountSpec {
    let (target, options) = text.split_once(':').unwrap_or((text, ""));
    MountSpec {
        target: target.to_owned(),
        read_only: false,
        kind: MountKind::Tmpfs {
            size_bytes: None,
            mode: None,
            options: options
                .split(',')
                .filter(|option| !option.is_empty())
                .map(str::to_owned)
                .collect(),
        },
    }
}
