//! Addresses of containers, and names in their hosts files.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::net::IpAddr;

use async_trait::async_trait;
use bollard::models::ContainerInspectResponse;
use tokio::sync::Mutex;

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result, SandboxReason};
use crate::provider::{NetworkProvider, SandboxHandle, SandboxProvider, check_host_name};
use crate::spec::{ExecErrorType, ExecOptions, ExecReason, ExecResult, SandboxStatus, StartProblem};

use super::per_container::PerContainer;
use super::status::{hint_for, status_of};
use super::{DockerProvider, DockerRaw, PROVIDER};

/// What marks the lines that are ours, so that a name given again replaces them.
const MARK: &str = "# gym-sandbox";

/// Puts the lines of its input, which may be more than an argument can hold, in place of ours in the hosts file. The file
/// is a mount: it is written, never replaced; and only when the old one could be read.
const SET_HOSTS: &str = r#"new=$(cat) || exit 127
old=$(grep -v '# gym-sandbox$' /etc/hosts)
[ $? -le 1 ] || exit 127
printf '%s\n%s\n' "$old" "$new" >/etc/hosts"#;

/// What a shell ends with that has not found a program.
const NO_PROGRAM: i32 = 127;

/// One change of a hosts file at a time: what is written was read before. Containers share these by their ids.
static CHANGES: PerContainer<Mutex<()>, 64> = PerContainer([const { Mutex::const_new(()) }; 64]);

#[async_trait]
impl NetworkProvider for DockerProvider {
    fn validate_networking(&self) -> Result<()> {
        match self.config().create.network.as_deref() {
            Some("none") => Err(Error::new(
                ErrorKind::Unsupported,
                Operation::Network,
                "sandboxes on network `none` reach nobody",
            )
            .with_hint("set `create.network` to a network of the engine, or leave it out")),
            _ => Ok(()),
        }
    }

    async fn network_address(&self, handle: &SandboxHandle) -> Result<IpAddr> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Network)?;
        let inspected = self.look_at(&raw.container_id, Operation::Network).await;
        inspected
            .and_then(|inspected| address(&inspected))
            .map_err(|error| error.with_sandbox(handle.sandbox_id()))
    }

    async fn set_hosts(&self, handle: &SandboxHandle, hosts: &BTreeMap<String, IpAddr>) -> Result<()> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Network)?;
        let lines = lines(hosts)?;
        if lines.is_empty() {
            return Ok(());
        }
        let _change = CHANGES.of(&raw.container_id).lock().await;
        // The names that were set before, but for those given again, stay.
        let known = self
            .run_hosts(handle, ExecOptions::new(["cat", "/etc/hosts"]))
            .await?;
        let all = kept(&known, hosts) + &lines;
        let options = ExecOptions::new(["sh", "-c", SET_HOSTS]).with_stdin(all.into_bytes());
        self.run_hosts(handle, options).await.map(drop)
    }
}

impl DockerProvider {
    /// Runs a command as root, and gives its output.
    async fn run_hosts(&self, handle: &SandboxHandle, options: ExecOptions) -> Result<String> {
        let result = self.exec(handle, options.with_user("0")).await?;
        if result.is_success() {
            return Ok(result.stdout().unwrap_or_default());
        }
        let is_read_only = self.has_read_only_root(handle).await;
        Err(not_changed(&result, is_read_only).with_sandbox(handle.sandbox_id()))
    }

    /// Then the engine mounts the hosts file read-only, too. What can't be seen is not so.
    async fn has_read_only_root(&self, handle: &SandboxHandle) -> bool {
        let Ok(raw) = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Network) else {
            return false;
        };
        let inspected = self.look_at(&raw.container_id, Operation::Network).await;
        inspected.is_ok_and(|inspected| {
            inspected
                .host_config
                .is_some_and(|host| host.readonly_rootfs == Some(true))
        })
    }
}

/// Why the hosts file could not be changed.
fn not_changed(result: &ExecResult, is_read_only: bool) -> Error {
    const TOOLS: &str =
        "it is written with the sandbox's own `sh`, `cat` and `grep`; use a network with aliases";
    let (kind, hint) = match (result.error_type, result.reason) {
        (_, Some(ExecReason::Sandbox(reason))) => (ErrorKind::Sandbox(reason), hint_for(reason)),
        (_, Some(ExecReason::Start(StartProblem::NotFound))) => (ErrorKind::Unsupported, TOOLS),
        (None, _) if result.return_code == NO_PROGRAM => (ErrorKind::Unsupported, TOOLS),
        (Some(ExecErrorType::Timeout), _) => (
            ErrorKind::Timeout,
            "the sandbox has too much to do, or its `sh` hangs; try again",
        ),
        _ if is_read_only => (
            ErrorKind::Path(PathProblem::ReadOnly),
            "with a read-only root the hosts file is read-only, too; make the sandbox with `extra_hosts`, or on a network \
             with aliases",
        ),
        _ => (
            ErrorKind::Path(PathProblem::NotServable),
            "`/etc/hosts` must be a file that the sandbox's root can write; else use a network with aliases",
        ),
    };
    Error::new(
        kind,
        Operation::Network,
        format!(
            "the sandbox's hosts file could not be changed (code {}): {}",
            result.return_code,
            result.stderr().unwrap_or_default().trim_end().escape_debug()
        ),
    )
    .with_hint(hint)
}

/// The lines of the file, each with our mark.
fn lines(hosts: &BTreeMap<String, IpAddr>) -> Result<String> {
    let mut lines = String::new();
    for (name, address) in hosts {
        check_host_name(name)?;
        // Writing to a text can't fail.
        let _ = writeln!(lines, "{address}\t{name} {MARK}");
    }
    Ok(lines)
}

/// Our lines of the file as it is, without those whose names are given again. Names are the same in either case.
fn kept(file: &str, hosts: &BTreeMap<String, IpAddr>) -> String {
    let again: HashSet<String> = hosts.keys().map(|name| name.to_ascii_lowercase()).collect();
    file.lines()
        .filter(|line| line.ends_with(MARK))
        .filter(|line| {
            line.split_whitespace()
                .nth(1)
                .is_some_and(|name| !again.contains(&name.to_ascii_lowercase()))
        })
        .fold(String::new(), |text, line| text + line + "\n")
}

/// The first usable address: that of the default bridge, else of the networks in the order of their names; IPv4 before
/// IPv6.
fn address(inspected: &ContainerInspectResponse) -> Result<IpAddr> {
    let status = status_of(inspected.state.as_ref());
    if !matches!(status, SandboxStatus::Running | SandboxStatus::Paused) {
        return Err(Error::new(
            ErrorKind::Sandbox(SandboxReason::NotRunning),
            Operation::Network,
            format!("the sandbox is {status} and has no address"),
        )
        .with_hint(hint_for(SandboxReason::NotRunning)));
    }
    let networks: BTreeMap<_, _> = inspected
        .network_settings
        .iter()
        .flat_map(|settings| settings.networks.iter().flatten())
        .collect();
    let usable = |text: &Option<String>| -> Option<IpAddr> {
        let address: IpAddr = text.as_deref()?.parse().ok()?;
        (!address.is_unspecified() && !address.is_loopback()).then_some(address)
    };
    let all = || networks.values();
    all()
        .find_map(|endpoint| usable(&endpoint.ip_address))
        .or_else(|| all().find_map(|endpoint| usable(&endpoint.global_ipv6_address)))
        .ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                Operation::Network,
                "the sandbox has no address of its own",
            )
            .with_hint("it is on network `none`, or in the network of another container")
        })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn inspected(status: &str, networks: &Value) -> ContainerInspectResponse {
        serde_json::from_value(json!({
            "State": {"Status": status},
            "NetworkSettings": {"Networks": networks},
        }))
        .unwrap()
    }

    #[test]
    fn the_address_is_the_first_usable_one() {
        for (networks, expected) in [
            (json!({"bridge": {"IPAddress": "172.17.0.2"}}), "172.17.0.2"),
            (
                json!({"b": {"IPAddress": "10.0.1.2"}, "a": {"IPAddress": "10.0.0.2"}}),
                "10.0.0.2",
            ),
            (
                json!({"a": {"IPAddress": ""}, "b": {"IPAddress": "10.0.1.2"}}),
                "10.0.1.2",
            ),
            (
                json!({"a": {"IPAddress": "", "GlobalIPv6Address": "fd00::2"}}),
                "fd00::2",
            ),
            (
                json!({"a": {"GlobalIPv6Address": "fd00::2"}, "b": {"IPAddress": "10.0.1.2"}}),
                "10.0.1.2",
            ),
        ] {
            let address = address(&inspected("running", &networks)).unwrap();
            assert_eq!(address.to_string(), expected);
        }
    }

    #[test]
    fn what_is_no_address_is_none() {
        for networks in [
            json!({}),
            json!({"none": {"IPAddress": ""}}),
            json!({"a": {"IPAddress": "0.0.0.0"}}),
            json!({"a": {"IPAddress": "127.0.0.1"}}),
            json!({"a": {"IPAddress": "not an address"}}),
        ] {
            let error = address(&inspected("running", &networks)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
        }
        let ended = inspected("exited", &json!({"bridge": {"IPAddress": "172.17.0.2"}}));
        assert_eq!(
            address(&ended).unwrap_err().kind(),
            ErrorKind::Sandbox(SandboxReason::NotRunning)
        );
    }

    #[test]
    fn lines_hold_names_and_nothing_else() {
        let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
        let hosts = BTreeMap::from([
            ("db".to_owned(), ip("10.0.0.2")),
            ("cache_1.internal".to_owned(), ip("fd00::2")),
        ]);
        assert_eq!(
            lines(&hosts).unwrap(),
            "fd00::2\tcache_1.internal # gym-sandbox\n10.0.0.2\tdb # gym-sandbox\n"
        );
        for name in [
            "",
            "a b",
            "a\nb",
            "-a",
            "a-",
            "a..b",
            "a.",
            "#a",
            "é",
            &"x".repeat(64),
        ] {
            let hosts = BTreeMap::from([(name.to_owned(), ip("10.0.0.2"))]);
            assert_eq!(
                lines(&hosts).unwrap_err().kind(),
                ErrorKind::InvalidArgument,
                "{name:?}"
            );
        }
    }

    #[test]
    fn only_our_own_lines_are_kept_and_those_given_again_are_not() {
        let file =
            "127.0.0.1 localhost\n10.0.0.2\tdb # gym-sandbox\n10.0.0.3\tweb # gym-sandbox\n10.0.0.4 web\n";
        let again = BTreeMap::from([("DB".to_owned(), "10.0.0.9".parse().unwrap())]);
        assert_eq!(kept(file, &again), "10.0.0.3\tweb # gym-sandbox\n");
    }
}
