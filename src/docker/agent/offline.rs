//! Sandboxes without a network, made without the engine's part in it.
//!
//! Even for network `none` Docker makes a network namespace of its own and has the runtime call its big program back for
//! it, which takes more than half of a start. Told that the container has no networking at all, it leaves the namespace
//! to the runtime: it is as empty, and `lo` is up in it as well. What is lost with it is the hosts file that the engine
//! mounts, so the library writes that one itself, before the sandbox is ready.

use std::time::{Duration, SystemTime};

use bollard::models::{ContainerCreateBody, HostConfig};
use bytes::Bytes;

use crate::error::{ErrorKind, Operation, Result};
use crate::spec::FileOwner;

use super::super::DockerProvider;
use super::super::archive::put_file;
use super::super::connect::Flavor;
use super::files::{Answer, WriteAs};
use super::resident::Resident;

/// What Docker writes for network `none`.
const HOSTS: &str = "127.0.0.1\tlocalhost\n\
    ::1\tlocalhost ip6-localhost ip6-loopback\n\
    fe00::0\tip6-localnet\n\
    ff00::0\tip6-mcastprefix\n\
    ff02::1\tip6-allnodes\n\
    ff02::2\tip6-allrouters\n";
const FOLDER: &str = "/etc";
const NAME: &str = "hosts";
const MODE: u32 = 0o644;

/// How long the agent may take to write the file.
const PATIENCE: Duration = Duration::from_secs(10);

/// Says whether a sandbox is no other for its programs when the engine leaves its network out.
pub(super) fn is_possible(flavor: Flavor, body: &ContainerCreateBody) -> bool {
    let Some(host) = &body.host_config else {
        return false;
    };
    flavor == Flavor::Docker
        && host.network_mode.as_deref() == Some("none")
        // The file could not be written.
        && host.readonly_rootfs != Some(true)
        && !names_hosts(host)
        && !mounts_over(body, host)
}

/// The engine would write more than the usual lines.
fn names_hosts(host: &HostConfig) -> bool {
    [
        &host.extra_hosts,
        &host.dns,
        &host.dns_search,
        &host.dns_options,
        &host.links,
    ]
    .iter()
    .any(|list| list.as_ref().is_some_and(|list| !list.is_empty()))
}

/// Something of the caller's may be at the file's place. What other containers have mounted is not known.
fn mounts_over(body: &ContainerCreateBody, host: &HostConfig) -> bool {
    let is_over = |target: &str| {
        let target = target.trim_end_matches('/');
        target.is_empty()
            || target == FOLDER
            || target
                .strip_prefix(FOLDER)
                .is_some_and(|rest| rest.starts_with('/'))
    };
    let mounts = host.mounts.iter().flatten();
    let binds = host.binds.iter().flatten();
    mounts.filter_map(|mount| mount.target.as_deref()).any(is_over)
        || binds.filter_map(|bind| bind.split(':').nth(1)).any(is_over)
        || host
            .tmpfs
            .iter()
            .flat_map(|tmpfs| tmpfs.keys())
            .any(|target| is_over(target))
        || body.volumes.iter().flatten().any(|target| is_over(target))
        || host.volumes_from.as_ref().is_some_and(|from| !from.is_empty())
}

impl DockerProvider {
    /// Writes the hosts file: by the agent where that may write it, else by an archive call.
    pub(super) async fn write_loopback_hosts(&self, resident: &Resident, container_id: &str) -> Result<()> {
        let content = Bytes::from_static(HOSTS.as_bytes());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let marks = WriteAs {
            mode: MODE,
            mtime_seconds: now.unwrap_or_default().as_secs(),
            owner: FileOwner { uid: 0, gid: 0 },
        };
        let path = format!("{FOLDER}/{NAME}");
        let written = self.write_by_agent(resident, &path, marks, &content, PATIENCE);
        match written.await {
            Answer::Agent(()) => Ok(()),
            // The archive call writes the same.
            Answer::Elsewhere | Answer::Unknown => {
                let client = self.engine().await?.client.clone();
                let put = put_file(client, container_id, (FOLDER, NAME), marks, &content).await;
                put.map_err(|failure| {
                    let message = "the sandbox's hosts file could not be written";
                    failure.into_error(Operation::Create, message, ErrorKind::CreateFailed)
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::Mount;

    use super::*;

    fn body(change: impl FnOnce(&mut HostConfig)) -> ContainerCreateBody {
        let mut host = HostConfig {
            network_mode: Some("none".into()),
            ..HostConfig::default()
        };
        change(&mut host);
        ContainerCreateBody {
            host_config: Some(host),
            ..ContainerCreateBody::default()
        }
    }

    fn mount(target: &str) -> Vec<Mount> {
        vec![Mount {
            target: Some(target.into()),
            ..Mount::default()
        }]
    }

    #[test]
    fn only_what_makes_no_difference_is_left_out() {
        assert!(is_possible(Flavor::Docker, &body(|_| {})));
        assert!(is_possible(
            Flavor::Docker,
            &body(|host| host.mounts = Some(mount("/etcetera")))
        ));
        assert!(!is_possible(Flavor::Podman, &body(|_| {})));
        assert!(!is_possible(Flavor::Docker, &ContainerCreateBody::default()));
        let others = vec![
            body(|host| host.network_mode = None),
            body(|host| host.network_mode = Some("bridge".into())),
            body(|host| host.readonly_rootfs = Some(true)),
            body(|host| host.extra_hosts = Some(vec!["a:1.2.3.4".into()])),
            body(|host| host.dns = Some(vec!["1.2.3.4".into()])),
            body(|host| host.dns_search = Some(vec!["a".into()])),
            body(|host| host.dns_options = Some(vec!["a".into()])),
            body(|host| host.mounts = Some(mount("/etc/"))),
            body(|host| host.mounts = Some(mount("/etc/hosts"))),
            body(|host| host.binds = Some(vec!["a:/etc:ro".into()])),
            body(|host| host.tmpfs = Some([("/etc".to_owned(), String::new())].into())),
            body(|host| host.volumes_from = Some(vec!["a".into()])),
        ];
        for other in others {
            assert!(!is_possible(Flavor::Docker, &other), "{other:?}");
        }
    }
}
