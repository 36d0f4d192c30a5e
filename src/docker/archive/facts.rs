//! What a container is like, as far as files are concerned: what is mounted where, and whose files are made. Read once
//! for each container, since none of it changes in its life.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bollard::models::{ContainerInspectResponse, MountType};

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result};
use crate::spec::FileOwner;

use super::super::{DockerProvider, DockerRaw};
use super::account::{needs_files, owner_of};
use super::path::{RemotePath, split};

/// How much of a passwd or group file is read.
const ACCOUNT_FILE_BYTES: u64 = 1 << 20;

/// More containers than this are not remembered at once.
const REMEMBERED: usize = 1024;

/// How a part of the file tree is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// By the engine's archive calls.
    Archive {
        /// Mounted for writing.
        writable: bool,
    },
    /// The engine's archive calls don't see it: they answer 200 and write below the mount (engine-facts S2).
    Live,
    /// The kernel's own trees, of which the same is true.
    Kernel,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    at: Vec<String>,
    reach: Reach,
}

/// What is known of a container.
#[derive(Debug)]
pub(super) struct ContainerFacts {
    /// The root is among them, and the longest come first.
    mounts: Vec<Mount>,
    /// Where relative paths begin.
    pub(super) workdir: String,
    /// Who owns what is uploaded.
    pub(super) owner: FileOwner,
    /// Who runs the programs that move files in the container: root, where root may do what it is for.
    pub(super) mover: Option<&'static str>,
    /// Held while a file gets its name by a link, whose part has one name for all.
    pub(super) link_name: Arc<tokio::sync::Mutex<()>>,
}

impl ContainerFacts {
    fn new(inspected: &ContainerInspectResponse, owner: FileOwner) -> Self {
        let host = inspected.host_config.clone().unwrap_or_default();
        let read_only_root = host.readonly_rootfs == Some(true);
        let mut mounts = vec![Mount {
            at: Vec::new(),
            reach: Reach::Archive {
                writable: !read_only_root,
            },
        }];
        let mut add = |path: &str, reach| {
            mounts.push(Mount {
                at: split(path).into(),
                reach,
            });
        };
        for path in ["/proc", "/sys", "/dev"] {
            add(path, Reach::Kernel);
        }
        for path in host.tmpfs.unwrap_or_default().keys() {
            add(path, Reach::Live);
        }
        for mount in host.mounts.unwrap_or_default() {
            if let (Some(MountType::TMPFS), Some(path)) = (mount.typ, mount.target) {
                add(&path, Reach::Live);
            }
        }
        for mount in inspected.mounts.clone().unwrap_or_default() {
            let reach = match mount.typ.as_deref() {
                Some("tmpfs") => Reach::Live,
                _ => Reach::Archive {
                    writable: mount.rw != Some(false),
                },
            };
            add(&mount.destination.unwrap_or_default(), reach);
        }
        // The sort keeps the order of equals: the last one named wins, as the kernel's last mount does.
        mounts.reverse();
        mounts.sort_by_key(|mount| std::cmp::Reverse(mount.at.len()));
        let has = |list: Option<&Vec<String>>, names: &[&str]| {
            list.is_some_and(|list| {
                list.iter()
                    .any(|name| names.contains(&name.to_uppercase().trim_start_matches("CAP_")))
            })
        };
        let needed = ["DAC_OVERRIDE", "CHOWN", "FOWNER"];
        let dropped = has(host.cap_drop.as_ref(), &["ALL"])
            && !has(host.cap_add.as_ref(), &["ALL", "DAC_OVERRIDE"])
            || has(host.cap_drop.as_ref(), &needed);
        let workdir = inspected
            .config
            .as_ref()
            .and_then(|config| config.working_dir.clone());
        Self {
            mounts,
            workdir: workdir.unwrap_or_default(),
            owner,
            mover: (!dropped).then_some("0:0"),
            link_name: Arc::default(),
        }
    }

    /// The mount that a resolved path lies on, as the number of its names, and how it is reached.
    pub(super) fn mount_of(&self, path: &[String]) -> (usize, Reach) {
        self.mounts
            .iter()
            .find(|mount| path.starts_with(&mount.at))
            .map_or((0, Reach::Archive { writable: true }), |mount| {
                (mount.at.len(), mount.reach)
            })
    }

    pub(super) fn is_live(&self, path: &[String]) -> bool {
        matches!(self.mount_of(path).1, Reach::Live | Reach::Kernel)
    }

    /// Paths below a directory where something else is mounted, without the directory's own part.
    pub(super) fn mounts_below<'a>(
        &'a self,
        path: &'a [String],
    ) -> impl Iterator<Item = (&'a [String], Reach)> {
        self.mounts
            .iter()
            .filter(move |mount| mount.at.len() > path.len() && mount.at.starts_with(path))
            .map(move |mount| (&mount.at[path.len()..], mount.reach))
    }

    pub(super) fn root_is_writable(&self) -> bool {
        self.mount_of(&[]).1 == Reach::Archive { writable: true }
    }
}

/// The facts of the containers of a provider.
#[derive(Debug, Default)]
pub(in super::super) struct FactsCache(Mutex<HashMap<String, Arc<ContainerFacts>>>);

impl DockerProvider {
    /// The facts of a container, asked of the engine at the first transfer.
    pub(super) async fn facts(&self, raw: &DockerRaw, operation: Operation) -> Result<Arc<ContainerFacts>> {
        if let Some(facts) = self.known_facts().get(&raw.container_id) {
            return Ok(Arc::clone(facts));
        }
        let inspected = self.look_at(&raw.container_id, operation).await?;
        let user = inspected
            .config
            .as_ref()
            .and_then(|config| config.user.clone())
            .unwrap_or_default();
        let owner = self.owner_numbers(raw, operation, &user).await?;
        let facts = Arc::new(ContainerFacts::new(&inspected, owner));
        let mut known = self.known_facts();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(raw.container_id.clone(), Arc::clone(&facts));
        Ok(facts)
    }

    /// Reads a path of the caller, which may be relative to the working directory.
    pub(super) async fn remote_path(
        &self,
        raw: &DockerRaw,
        operation: Operation,
        path: &str,
    ) -> Result<RemotePath> {
        let workdir = &self.facts(raw, operation).await?.workdir;
        RemotePath::parse(operation, path, workdir)
    }

    fn known_facts(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<ContainerFacts>>> {
        // Entries are only ever put in whole.
        self.facts_cache()
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn owner_numbers(&self, raw: &DockerRaw, operation: Operation, user: &str) -> Result<FileOwner> {
        let (mut passwd, mut group) = (String::new(), String::new());
        if needs_files(user) {
            passwd = self.account_file(raw, operation, "/etc/passwd").await?;
            if user.contains(':') {
                group = self.account_file(raw, operation, "/etc/group").await?;
            }
        }
        owner_of(user, &passwd, &group).ok_or_else(|| {
            Error::new(
                ErrorKind::Path(PathProblem::NotFound),
                operation,
                format!(
                    "the sandbox's user `{}` is not in its /etc/passwd and /etc/group",
                    user.escape_debug()
                ),
            )
            .with_hint("name the owner by numbers in the upload's options")
        })
    }

    /// A file of accounts as text; empty where there is none.
    async fn account_file(&self, raw: &DockerRaw, operation: Operation, path: &str) -> Result<String> {
        let mut path = path.to_owned();
        if let Some(stat) = self.head(raw, operation, &path).await?
            && let Some(target) = stat.link_target
        {
            path = target;
        }
        let bytes = self
            .small_file(raw, operation, &path, ACCOUNT_FILE_BYTES)
            .await?
            .unwrap_or_default();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::{HostConfig, MountPoint};

    use super::*;

    fn parts(path: &str) -> Vec<String> {
        split(path).into()
    }

    #[test]
    fn the_longest_mount_says_how_a_path_is_reached() {
        let inspected = ContainerInspectResponse {
            host_config: Some(HostConfig {
                readonly_rootfs: Some(true),
                tmpfs: Some([("/tmp".to_owned(), String::new())].into()),
                ..HostConfig::default()
            }),
            mounts: Some(vec![
                MountPoint {
                    destination: Some("/work".into()),
                    rw: Some(true),
                    ..MountPoint::default()
                },
                MountPoint {
                    destination: Some("/tmp/ro".into()),
                    rw: Some(false),
                    ..MountPoint::default()
                },
            ]),
            ..ContainerInspectResponse::default()
        };
        let facts = ContainerFacts::new(&inspected, FileOwner::ROOT);
        for (path, mount) in [
            ("/etc/x", (0, Reach::Archive { writable: false })),
            ("/work/x", (1, Reach::Archive { writable: true })),
            ("/workbench", (0, Reach::Archive { writable: false })),
            ("/tmp/x", (1, Reach::Live)),
            ("/tmp/ro/x", (2, Reach::Archive { writable: false })),
            ("/proc/1/status", (1, Reach::Kernel)),
            ("/dev/shm", (1, Reach::Kernel)),
        ] {
            assert_eq!(facts.mount_of(&parts(path)), mount, "{path}");
        }
        assert!(!facts.root_is_writable());
        assert_eq!(facts.mounts_below(&parts("/tmp")).count(), 1);
        assert_eq!(facts.mover, Some("0:0"));
    }
}
