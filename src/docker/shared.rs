//! Folders of the storage that the provider's operator has set aside (contract 1.3): which names are ones, what a
//! container gets, and the look at the folders before it is started. Links are the danger: a sandbox with a folder can
//! make one in it, and the engine would follow it anywhere on its machine.

use std::collections::BTreeMap;

use bollard::models::{ContainerCreateBody, HostConfig, Mount, MountType};
use bollard::query_parameters::ContainerArchiveInfoOptionsBuilder;
use serde::Deserialize;
use serde_json::json;

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result};
use crate::provider::{SharedAccess, SharedStorageProvider};
use crate::spec::container::{MountKind, MountSpec};
use crate::spec::{Mapping, SandboxSpec, Value};

use super::config::SharedStorageConfig;
use super::create::CreateGuard;
use super::failure::{QUICK, call};
use super::request::CreateRequest;
use super::{DockerProvider, PROVIDER, new_sandbox_id};

/// The provider option, and what marks an entry of it that is a shared folder.
const OPTION: &str = "volumes";
const TYPE: &str = "shared";

/// Where the container that looks has the storage.
const LOOK_AT: &str = "/.gym-sandbox-shared";

const MAX_NAME_BYTES: usize = 255;
const MAX_PATH_BYTES: usize = 4000;

/// A bit of Go's `os.FileMode`, which the engine sends.
const GO_DIRECTORY: u32 = 1 << 31;

impl SharedStorageProvider for DockerProvider {
    fn shared_volume_options(
        &self,
        source: Option<&str>,
        target: &str,
        access: SharedAccess,
    ) -> Result<Mapping> {
        let storage = &self.config().shared_storage;
        configured(Operation::Configure, storage)?;
        let asked = Asked {
            source: source.map(str::to_owned),
            target: target.to_owned(),
            read_only: access == SharedAccess::ReadOnly,
        };
        asked
            .folder()
            .map_err(|problem| Error::invalid(Operation::Configure, problem))?;
        let entry = json!({
            "type": TYPE,
            "source": asked.source,
            "target": asked.target,
            "read_only": asked.read_only,
        });
        Ok(Mapping::from_iter([(
            OPTION.to_owned(),
            Value::Array(vec![entry]),
        )]))
    }

    fn shared_volume_metadata(&self) -> Result<BTreeMap<String, String>> {
        configured(Operation::Configure, &self.config().shared_storage)?;
        Ok(BTreeMap::new())
    }
}

/// An entry of the provider option.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(default)]
    source: Option<String>,
    target: String,
    #[serde(default)]
    read_only: bool,
}

impl Asked {
    /// The names of the folder below the storage; none for all of it.
    fn folder(&self) -> Result<Vec<&str>, String> {
        check_absolute("the target of a shared folder", &self.target)?;
        self.source.as_deref().map_or_else(|| Ok(Vec::new()), relative)
    }
}

/// What a container has of the storage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SharedMounts {
    pub(super) mounts: Vec<MountSpec>,
    /// What has to be looked at before the container is started.
    pub(super) looks: Option<Looks>,
}

/// Folders of the engine's machine, which nobody but the engine can look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Looks {
    root: String,
    folders: Vec<Vec<String>>,
}

/// Reads what a spec asks for, and says what its container gets. The policy has no say in it: the storage is of whoever
/// writes the policy.
pub(super) fn mounts(storage: &SharedStorageConfig, spec: &SandboxSpec) -> Result<SharedMounts> {
    let mut shared = SharedMounts::default();
    let entries = spec.provider_options().get(OPTION).and_then(Value::as_array);
    let mut folders = Vec::new();
    for entry in entries.into_iter().flatten().filter(|entry| is_shared(entry)) {
        configured(Operation::Create, storage)?;
        let asked = read(entry)?;
        let folder = asked.folder().map_err(invalid)?;
        let below = (!folder.is_empty()).then(|| folder.join("/"));
        let kind = match (&storage.host_path, &storage.volume) {
            (Some(root), _) => {
                let root = root.trim_end_matches('/');
                if !folder.is_empty() {
                    folders.push(folder.iter().map(|&name| name.to_owned()).collect());
                }
                MountSpec::bind(
                    below.map_or_else(|| root.to_owned(), |below| format!("{root}/{below}")),
                    "",
                )
                .kind
            }
            (None, volume) => MountKind::Volume {
                source: volume.clone(),
                no_copy: true,
                subpath: below,
                labels: BTreeMap::new(),
                selinux: None,
            },
        };
        shared.mounts.push(MountSpec {
            target: asked.target.clone(),
            read_only: asked.read_only,
            kind,
        });
    }
    if let Some(root) = &storage.host_path
        && !folders.is_empty()
    {
        shared.looks = Some(Looks {
            root: root.clone(),
            folders,
        });
    }
    Ok(shared)
}

/// Whether an entry of the provider option `volumes` is a shared folder, and no volume string.
pub(super) fn is_shared(entry: &Value) -> bool {
    entry.get("type").and_then(Value::as_str) == Some(TYPE)
}

fn read(entry: &Value) -> Result<Asked> {
    let mut fields = entry.as_object().cloned().unwrap_or_default();
    fields.remove("type");
    serde_json::from_value(Value::Object(fields)).map_err(|error| {
        invalid(format!(
            "a shared folder of the provider option `{OPTION}`: {error}"
        ))
    })
}

fn invalid(problem: String) -> Error {
    Error::invalid(Operation::Create, problem)
}

fn configured(operation: Operation, storage: &SharedStorageConfig) -> Result<()> {
    if storage.is_there() {
        return Ok(());
    }
    Err(
        Error::unsupported(operation, PROVIDER, "shared storage").with_hint(
            "whoever configures the provider can name some with `shared_storage.host_path` or `.volume`",
        ),
    )
}

/// Checks an absolute path that is not `/`; the error says which one it is.
pub(super) fn check_absolute(what: &str, path: &str) -> Result<(), String> {
    let below = path.strip_prefix('/').filter(|below| !below.is_empty());
    let names = below.map(relative).transpose().map_err(|_| ()).ok().flatten();
    if names.is_none() {
        return Err(format!(
            "{what} `{}` is not an absolute path below `/` without `..`, `:`, backslashes and control characters",
            path.escape_debug()
        ));
    }
    Ok(())
}

/// The names of a path below something else. `.` and double slashes are left out.
fn relative(path: &str) -> Result<Vec<&str>, String> {
    let names: Vec<&str> = path.split('/').filter(|name| !["", "."].contains(name)).collect();
    let is_safe = !path.starts_with('/')
        && !names.is_empty()
        && path.len() <= MAX_PATH_BYTES
        && names
            .iter()
            .all(|name| *name != ".." && name.len() <= MAX_NAME_BYTES)
        && !path.contains([':', '\\'])
        && !path.contains(char::is_control);
    if is_safe {
        return Ok(names);
    }
    Err(format!(
        "the shared folder `{}` is not a relative path without `..`, `:`, backslashes and control characters",
        path.escape_debug()
    ))
}

impl DockerProvider {
    /// Looks at every folder by way of a container that has the storage and is never started. The image is there: the
    /// sandbox's own container was made from it.
    pub(super) async fn look_at_shared(&self, request: &CreateRequest) -> Result<()> {
        let Some(looks) = &request.looks else {
            return Ok(());
        };
        let mut guard = CreateGuard::new(self, new_sandbox_id()?);
        let platform = request.options.platform.as_deref();
        let answer = self
            .call_create(&mut guard, platform, looker(request, &looks.root))
            .await?;
        let looker = answer.map_err(|failure| {
            failure.into_error(
                Operation::Create,
                format!(
                    "the shared storage `{}` can't be looked at",
                    looks.root.escape_debug()
                ),
                ErrorKind::CreateFailed,
            )
        })?;
        for folder in &looks.folders {
            self.look_at_folder(&looker.id, folder).await?;
        }
        // The guard's drop removes it in the background.
        Ok(())
    }

    async fn look_at_folder(&self, looker: &str, folder: &[String]) -> Result<()> {
        let client = &self.engine().await?.client;
        let mut path = LOOK_AT.to_owned();
        let mut names = folder.iter();
        loop {
            let options = ContainerArchiveInfoOptionsBuilder::new().path(&path).build();
            let problem = match call(QUICK, client.get_container_archive_info(looker, Some(options))).await {
                Ok(found) if !found.link_target.is_empty() => {
                    Some((PathProblem::Permission, "leads through a link"))
                }
                Ok(found) if found.file_mode & GO_DIRECTORY == 0 => {
                    Some((PathProblem::NotADirectory, "is not a folder"))
                }
                Ok(_) => None,
                Err(failure) if failure.is_status(404) => Some((PathProblem::NotFound, "is not there")),
                Err(failure) => {
                    return Err(failure.into_error(
                        Operation::Create,
                        format!("the shared folder `{}` can't be looked at", folder.join("/")),
                        ErrorKind::CreateFailed,
                    ));
                }
            };
            if let Some((problem, text)) = problem {
                return Err(Error::new(
                    ErrorKind::Path(problem),
                    Operation::Create,
                    format!("the shared folder `{}` {text}", folder.join("/")),
                )
                .with_hint("a sandbox with all of the shared storage can make folders in it"));
            }
            let Some(name) = names.next() else { return Ok(()) };
            path = format!("{path}/{name}");
        }
    }
}

/// A container as that of the sandbox, with nothing but its image and its labels.
fn looker(request: &CreateRequest, root: &str) -> ContainerCreateBody {
    ContainerCreateBody {
        image: request.body.image.clone(),
        // Never started, but an engine wants a program.
        entrypoint: Some(vec![LOOK_AT.to_owned()]),
        labels: request.body.labels.clone(),
        host_config: Some(HostConfig {
            mounts: Some(vec![Mount {
                typ: Some(MountType::BIND),
                source: Some(root.to_owned()),
                target: Some(LOOK_AT.to_owned()),
                read_only: Some(true),
                ..Mount::default()
            }]),
            network_mode: Some("none".to_owned()),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

#[cfg(test)]
mod tests;
