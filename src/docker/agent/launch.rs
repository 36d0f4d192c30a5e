//! How a create request is changed so that the sandbox has an agent: pure, and tested as a table.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use bollard::models::{ContainerCreateBody, HostConfig, Mount, MountType, MountVolumeOptions};

use super::super::owner::LABEL;
use super::program::{self, PROGRAM};
use super::socket;

/// Who the sandbox's main process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Main {
    /// The agent, alone or with the entrypoint as its child.
    Agent,
    /// The entrypoint; the agent is started beside it when it is first needed.
    Entrypoint,
}

/// How the agent is started in one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Launch {
    /// The abstract socket of this sandbox's agent: sandboxes that share a network share those names.
    pub(super) name: String,
    pub(super) main: Main,
    /// `HOME` is configured, and not from the passwd file.
    pub(super) keep_home: bool,
    pub(super) ttl: Option<Duration>,
    /// How long the sandbox may be without traffic.
    pub(super) idle: Option<Duration>,
    /// How long the sandbox lives after the last word of any client, where it does not outlive its owner.
    pub(super) lease: Option<Duration>,
    /// The folder of this machine with the socket to dial, where the engine is local.
    pub(super) folder: Option<PathBuf>,
    /// The engine makes no network for it, not even an empty one.
    pub(super) is_offline: bool,
}

impl Launch {
    /// The options that all modes of the program take.
    pub(super) fn common_arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--name".to_owned(), self.name.clone()];
        if self.keep_home {
            arguments.push("--keep-home".to_owned());
        }
        arguments
    }

    /// Changes a request so that its container has the agent.
    pub(super) fn apply(&self, body: &mut ContainerCreateBody, entrypoint: &[String]) {
        let host = body.host_config.get_or_insert_default();
        let mounts = host.mounts.get_or_insert_default();
        mounts.push(volume_mount(true));
        if self.main == Main::Entrypoint {
            return;
        }
        host.init = Some(false);
        body.network_disabled = self.is_offline.then_some(true);
        let mut argv = vec![PROGRAM.to_owned(), "init".to_owned()];
        argv.extend(self.common_arguments());
        if let Some(folder) = &self.folder {
            mounts.push(Mount {
                target: Some(socket::FOLDER.to_owned()),
                source: Some(folder.display().to_string()),
                typ: Some(MountType::BIND),
                read_only: Some(true),
                ..Mount::default()
            });
            argv.extend(["--socket".to_owned(), socket::path_in_sandbox()]);
        }
        for (option, duration) in [
            ("--ttl-ms", self.ttl),
            ("--idle-ms", self.idle),
            ("--lease-ms", self.lease),
        ] {
            if let Some(duration) = duration {
                // 0 would be none at all.
                let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).max(1);
                argv.extend([option.to_owned(), milliseconds.to_string()]);
            }
        }
        if !entrypoint.is_empty() {
            argv.push("--".to_owned());
            argv.extend_from_slice(entrypoint);
        }
        body.entrypoint = Some(argv);
        // An empty list keeps the image's own command away (engine-facts S26).
        body.cmd = Some(Vec::new());
    }
}

/// The program's volume. Everything that is needed to make it is said, because the first create makes it.
pub(super) fn volume_mount(read_only: bool) -> Mount {
    Mount {
        target: Some(program::FOLDER.to_owned()),
        source: Some(program::volume()),
        typ: Some(MountType::VOLUME),
        read_only: Some(read_only),
        volume_options: Some(MountVolumeOptions {
            // What an image has at the path is not copied into the volume of all.
            no_copy: Some(true),
            labels: Some(shared_labels()),
            ..MountVolumeOptions::default()
        }),
        ..Mount::default()
    }
}

/// The labels of what belongs to no single owner.
pub(super) fn shared_labels() -> HashMap<String, String> {
    HashMap::from([
        (LABEL.to_owned(), "1".to_owned()),
        (format!("{LABEL}.kind"), "shared".to_owned()),
    ])
}

/// Why a sandbox with these rights may not have the volume that all share: it could reach behind a read-only mount.
pub(super) fn may_not_share(host: Option<&HostConfig>) -> Option<&'static str> {
    let host = host?;
    if host.privileged == Some(true) {
        return Some("the sandbox is privileged");
    }
    let adds = |name: &str| {
        host.cap_add.iter().flatten().any(|capability| {
            let capability = capability.to_ascii_uppercase();
            capability.strip_prefix("CAP_").unwrap_or(&capability) == name
        })
    };
    if adds("SYS_ADMIN") || adds("ALL") {
        return Some("the sandbox may mount file systems");
    }
    let binds_a_path = host
        .binds
        .iter()
        .flatten()
        .any(|bind| bind.starts_with(['/', '.', '~']))
        || host
            .mounts
            .iter()
            .flatten()
            .any(|mount| mount.typ == Some(MountType::BIND));
    binds_a_path.then_some("the sandbox has folders of the engine's machine")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch() -> Launch {
        Launch {
            name: "n".into(),
            main: Main::Agent,
            keep_home: false,
            ttl: None,
            idle: None,
            lease: None,
            folder: None,
            is_offline: false,
        }
    }

    fn applied(launch: &Launch, entrypoint: &[&str]) -> ContainerCreateBody {
        let mut body = ContainerCreateBody {
            entrypoint: Some(vec!["sh".into()]),
            cmd: Some(vec!["-c".into(), "loop".into()]),
            host_config: Some(HostConfig {
                init: Some(true),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let entrypoint: Vec<String> = entrypoint.iter().map(|&argument| argument.to_owned()).collect();
        launch.apply(&mut body, &entrypoint);
        body
    }

    #[test]
    fn the_agent_is_the_main_process_without_an_init() {
        let body = applied(&launch(), &[]);
        assert_eq!(body.entrypoint.unwrap(), [PROGRAM, "init", "--name", "n"]);
        assert_eq!(body.cmd, Some(vec![]));
        let host = body.host_config.unwrap();
        assert_eq!(host.init, Some(false));
        let mounts = host.mounts.unwrap();
        assert_eq!(mounts.len(), 1);
        assert_eq!(mounts[0].read_only, Some(true));
        assert_eq!(mounts[0].volume_options.as_ref().unwrap().no_copy, Some(true));
    }

    #[test]
    fn a_ttl_a_lease_and_an_entrypoint_go_to_the_agent() {
        let launch = Launch {
            ttl: Some(Duration::from_micros(1)),
            idle: Some(Duration::from_secs(2)),
            lease: Some(Duration::from_secs(360)),
            keep_home: true,
            folder: Some("/tmp/x".into()),
            ..launch()
        };
        let body = applied(&launch, &["nginx", "-g"]);
        assert_eq!(
            body.entrypoint.unwrap(),
            [
                PROGRAM,
                "init",
                "--name",
                "n",
                "--keep-home",
                "--socket",
                "/.gym-sandbox-socket/agent",
                "--ttl-ms",
                "1",
                "--idle-ms",
                "2000",
                "--lease-ms",
                "360000",
                "--",
                "nginx",
                "-g"
            ]
        );
        assert_eq!(
            body.host_config.unwrap().mounts.unwrap()[1].source.as_deref(),
            Some("/tmp/x")
        );
    }

    #[test]
    fn an_entrypoint_of_its_own_stays_the_main_process() {
        let body = applied(
            &Launch {
                main: Main::Entrypoint,
                ..launch()
            },
            &["nginx"],
        );
        assert_eq!(body.entrypoint.unwrap(), ["sh"]);
        let host = body.host_config.unwrap();
        assert_eq!((host.init, host.mounts.unwrap().len()), (Some(true), 1));
    }

    #[test]
    fn who_could_reach_behind_the_mount_gets_none() {
        let config = |change: fn(&mut HostConfig)| {
            let mut host = HostConfig::default();
            change(&mut host);
            host
        };
        assert!(may_not_share(Some(&HostConfig::default())).is_none());
        for host in [
            config(|host| host.privileged = Some(true)),
            config(|host| host.cap_add = Some(vec!["CAP_SYS_ADMIN".into()])),
            config(|host| host.cap_add = Some(vec!["all".into()])),
            config(|host| host.binds = Some(vec!["/etc:/etc".into()])),
            config(|host| {
                host.mounts = Some(vec![Mount {
                    typ: Some(MountType::BIND),
                    ..Mount::default()
                }]);
            }),
        ] {
            assert!(may_not_share(Some(&host)).is_some(), "{host:?}");
        }
        assert!(may_not_share(Some(&config(|host| host.binds = Some(vec!["data:/data".into()])))).is_none());
    }
}
