//! TCP connections into a container and between containers, carried by the resident agent's program as a command: no
//! program of the image is needed, and nothing has to be published.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Mutex;

use async_trait::async_trait;
use tokio::io::AsyncReadExt;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::{ExecSession, PortConnection, PortForwardingProvider, SandboxHandle, SpawnProvider};
use crate::spec::{ExecOptions, ExecReason, ExecResult, ExecTimeout, OutputCap};

use super::agent::{self, ExecPathPolicy};
use super::status::hint_for;
use super::{DockerProvider, DockerRaw, PROVIDER};

/// What the program says first once it is connected, or listens.
const CONNECTED: u8 = b'+';

/// The program's exit code for a port that is taken.
const TAKEN: i32 = 3;

/// The program's exit code for a ready file that can't be made.
const NOT_MADE: i32 = 4;

/// How much of a connection waits between this process and the command.
const BUFFER_BYTES: usize = 64 * 1024;

/// The program's words of failure are short.
const SAID_BYTES: usize = 4096;

#[async_trait]
impl PortForwardingProvider for DockerProvider {
    fn validate_port_forwarding(&self) -> Result<()> {
        match self.config().exec.exec_path {
            ExecPathPolicy::Engine => Err(no_program()),
            ExecPathPolicy::Auto | ExecPathPolicy::Agent => Ok(()),
        }
    }

    async fn forward_ports(
        &self,
        handle: &SandboxHandle,
        target: IpAddr,
        ports: &[u16],
        ready_file: &str,
    ) -> Result<()> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Forward)?;
        let named = |error: Error| error.with_sandbox(handle.sandbox_id());
        let argv = relay_command(target, ports, ready_file).map_err(named)?;
        let mut session = self.forwarder(handle, raw, ExecOptions::new(argv)).await?;
        // It runs until it is dropped with this future, or its sandbox ends.
        let result = session.wait().await?;
        Err(named(why_ended(&result)))
    }

    async fn connect_port(&self, handle: &SandboxHandle, port: u16) -> Result<PortConnection> {
        let raw = handle.raw_for::<DockerRaw>(PROVIDER, Operation::Forward)?;
        if port == 0 {
            return Err(Error::invalid(Operation::Forward, "port 0 is not in 1..=65535"));
        }
        let (input, writer) = tokio::io::duplex(BUFFER_BYTES);
        let options = ExecOptions::new(dial_command(port)).with_stdin_reader(input);
        let mut session = self.forwarder(handle, raw, options).await?;
        let mut reader = session.take_stdout().ok_or_else(|| {
            Error::new(
                ErrorKind::Internal,
                Operation::Forward,
                "the connection has no output",
            )
        })?;
        let mut first = [0];
        match reader.read_exact(&mut first).await {
            Ok(_) if first == [CONNECTED] => Ok(PortConnection::new(reader, writer, Mutex::new(session))),
            _ => {
                let result = session.wait().await?;
                Err(not_connected(port, &result).with_sandbox(handle.sandbox_id()))
            }
        }
    }
}

impl DockerProvider {
    async fn forwarder(
        &self,
        handle: &SandboxHandle,
        raw: &DockerRaw,
        options: ExecOptions,
    ) -> Result<Box<dyn ExecSession>> {
        if !raw.agent.has_program() {
            return Err(no_program().with_sandbox(handle.sandbox_id()));
        }
        let mut options = options.with_output_cap(OutputCap::Bytes(SAID_BYTES));
        options.timeout = ExecTimeout::Never;
        self.spawn(handle, options).await
    }
}

fn no_program() -> Error {
    Error::unsupported(
        Operation::Forward,
        PROVIDER,
        "forwarding in a sandbox without the resident agent's program",
    )
    .with_hint(
        "make the sandbox with `exec_path` `auto` or `agent`; or declare the port, so that it is published",
    )
}

fn dial_command(port: u16) -> Vec<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    [agent::PROGRAM, "dial", "--to", &address.to_string()]
        .map(str::to_owned)
        .into()
}

fn relay_command(target: IpAddr, ports: &[u16], ready_file: &str) -> Result<Vec<String>> {
    let invalid = |text: &str| Err(Error::invalid(Operation::Forward, text.to_owned()));
    if ports.is_empty() {
        return invalid("there is no port to forward");
    }
    if ports.contains(&0) {
        return invalid("port 0 is not in 1..=65535");
    }
    let mut seen = HashSet::new();
    if let Some(port) = ports.iter().find(|&port| !seen.insert(port)) {
        return invalid(&format!("port {port} is given twice"));
    }
    if !ready_file.starts_with('/') || ready_file.contains('\0') {
        return invalid("the ready file must be an absolute path in the sandbox");
    }
    let mut argv = vec![
        agent::PROGRAM.to_owned(),
        "relay".to_owned(),
        "--to".to_owned(),
        SocketAddr::new(target, 0).to_string(),
        "--ready-file".to_owned(),
        ready_file.to_owned(),
    ];
    for port in ports {
        argv.extend(["--port".to_owned(), port.to_string()]);
    }
    Ok(argv)
}

/// Why a relay that should run for ever has ended.
fn why_ended(result: &ExecResult) -> Error {
    if let Some(ExecReason::Sandbox(reason)) = result.reason {
        return Error::new(
            ErrorKind::Sandbox(reason),
            Operation::Forward,
            "the relay ended with its sandbox",
        )
        .with_hint(hint_for(reason));
    }
    let kind = match result.return_code {
        TAKEN => ErrorKind::Conflict,
        NOT_MADE => ErrorKind::Io,
        _ => ErrorKind::Internal,
    };
    let error = Error::new(
        kind,
        Operation::Forward,
        format!("the relay ended: {}", said(result)),
    );
    if kind == ErrorKind::Io {
        return error.with_hint("name a file of a folder in which the sandbox's user can write");
    }
    error
}

fn not_connected(port: u16, result: &ExecResult) -> Error {
    let said = said(result);
    let error = |kind, message: String| Error::new(kind, Operation::Forward, message);
    match result.reason {
        Some(ExecReason::Sandbox(reason)) => error(
            ErrorKind::Sandbox(reason),
            format!("port {port} of the sandbox can't be reached: {said}"),
        )
        .with_hint(hint_for(reason)),
        Some(ExecReason::Start(_)) => error(
            ErrorKind::Internal,
            format!("port {port} of the sandbox can't be reached: {said}"),
        ),
        None => error(
            ErrorKind::NotFound,
            format!("nothing answers at port {port} of the sandbox: {said}"),
        )
        .with_hint("the server must listen on the sandbox's loopback address, or on all"),
    }
}

/// What the program said, or why it said nothing. It comes out of the sandbox.
fn said(result: &ExecResult) -> String {
    let text = result
        .message
        .clone()
        .unwrap_or_else(|| result.captured_stderr.text());
    text.trim_end()
        .chars()
        .take(200)
        .flat_map(char::escape_debug)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_addresses_and_ports() {
        assert_eq!(
            dial_command(80),
            ["/.gym-sandbox/agent", "dial", "--to", "127.0.0.1:80"]
        );
        let argv = relay_command("fd00::2".parse().unwrap(), &[80, 81], "/tmp/ready").unwrap();
        assert_eq!(
            argv[1..],
            [
                "relay",
                "--to",
                "[fd00::2]:0",
                "--ready-file",
                "/tmp/ready",
                "--port",
                "80",
                "--port",
                "81"
            ]
        );
    }

    #[test]
    fn what_can_not_be_forwarded_is_refused() {
        let target = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
        for (ports, file) in [
            (vec![], "/r"),
            (vec![80, 0], "/r"),
            (vec![80, 81, 80], "/r"),
            (vec![80], "r"),
            (vec![80], "/r\0"),
        ] {
            let error = relay_command(target, &ports, file).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{ports:?} {file:?}");
        }
    }
}
