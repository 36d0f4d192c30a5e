//! Engines behind ssh: one `ssh` process that forwards a local socket to the engine's, for all calls.
//!
//! bollard has a transport for ssh, which is not used: it starts an ssh master for each connection (an exec makes
//! three), passes `host:port` on in a form that ssh takes for a host name, and accepts unknown host keys unasked. Here
//! the user's own ssh configuration decides about keys, hosts and jumps, and nothing is ever asked for.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

use super::address::SshAddress;
use super::tried::Failure;

/// What the remote side prints when the session stands. A login script may print other lines before it.
const READY: &str = "gym-sandbox-forwarding";

/// How much of what ssh prints is looked at.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024;

/// The first and the longest pause before a broken connection is made again.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// A local socket that is the engine's. Dropping it ends the ssh process.
///
/// A connection that breaks is made again; calls fail until then.
pub(super) struct Tunnel {
    socket: PathBuf,
    // The thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
    // Owned here and not by the thread, which the end of the process does not wait for.
    _directory: TempDir,
}

impl Tunnel {
    /// Starts ssh and waits until it forwards.
    pub(super) async fn open(target: &SshAddress, deadline: Duration) -> Result<Self, Failure> {
        Self::open_with(Path::new("ssh"), target, deadline).await
    }

    async fn open_with(program: &Path, target: &SshAddress, deadline: Duration) -> Result<Self, Failure> {
        let directory = tempfile::Builder::new()
            .prefix("gym-sandbox-ssh-")
            .tempdir()
            .map_err(|error| Failure::unavailable(format!("no folder for the forwarded socket: {error}")))?;
        let socket = directory.path().join("engine.sock");
        let forwarding = Forwarding {
            program: program.to_owned(),
            arguments: arguments(target, &socket),
        };
        let (stop, stopped) = oneshot::channel();
        let (report, outcome) = oneshot::channel();
        // A thread with a runtime of its own: the tunnel serves every runtime that the engine is used from, and must
        // not end with the one in which it was opened.
        std::thread::Builder::new()
            .name("gym-sandbox-ssh".to_owned())
            .spawn(move || forwarding.run(stopped, report))
            .map_err(|error| Failure::unavailable(format!("no thread for ssh: {error}")))?;
        match tokio::time::timeout(deadline, outcome).await {
            Ok(Ok(Ok(()))) => Ok(Self {
                socket,
                _stop: stop,
                _directory: directory,
            }),
            Ok(Ok(Err(problem))) => Err(Failure::unavailable(problem).with_hint(
                "check that `ssh` to this machine works without a question, and that it may use the engine",
            )),
            Ok(Err(_)) => Err(Failure::unavailable("the ssh thread ended")),
            Err(_) => Err(Failure::unavailable(format!(
                "ssh did not connect in {deadline:?}"
            ))),
        }
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }
}

struct Forwarding {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Forwarding {
    /// Keeps ssh running until told to stop. The first outcome is reported; a first failure ends it.
    fn run(self, stopped: oneshot::Receiver<()>, report: oneshot::Sender<Result<(), String>>) {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                let _caller_left = report.send(Err(format!("no runtime for ssh: {error}")));
                return;
            }
        };
        runtime.block_on(async {
            tokio::select! {
                _ = stopped => {}
                () = self.keep(report) => {}
            }
            // The process ends here: dropping it kills it.
        });
    }

    async fn keep(&self, report: oneshot::Sender<Result<(), String>>) {
        let mut report = Some(report);
        let mut pause = RECONNECT.0;
        loop {
            let problem = match self.start().await {
                Ok((mut child, rest)) => {
                    pause = RECONNECT.0;
                    if let Some(report) = report.take() {
                        let _caller_left = report.send(Ok(()));
                    }
                    // What ssh prints from now on is read, so that it never blocks on a full pipe. The end of the
                    // process counts and not that of its output, which a child of it may hold open.
                    tokio::pin!(rest);
                    let status = tokio::select! {
                        status = child.wait() => status,
                        () = &mut rest => child.wait().await,
                    };
                    format!(
                        "ssh ended: {}",
                        status.map_or_else(|error| error.to_string(), |status| status.to_string())
                    )
                }
                Err(problem) => problem,
            };
            if let Some(report) = report.take() {
                let _caller_left = report.send(Err(problem));
                return;
            }
            tracing::warn!(%problem, ?pause, "the ssh connection to the engine broke; it is made again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RECONNECT.1);
        }
    }

    /// Starts ssh and waits until it forwards or ends.
    async fn start(&self) -> Result<(Child, impl Future<Output = ()> + use<>), String> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            // The remote command ends at the end of this input: also when this process is killed.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => "the program `ssh` is not installed".to_owned(),
                _ => format!("ssh can't be started: {error}"),
            })?;
        // Taken, as waiting for a child closes the input that it holds, and ssh would end.
        let stdin = child.stdin.take();
        let (Some(stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err("ssh has no streams".to_owned());
        };
        let mut lines = BufReader::new(stdout.take(MAX_OUTPUT_BYTES)).lines();
        let ready = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if line.trim() == READY {
                    return true;
                }
            }
            false
        };
        let mut said = Vec::new();
        // Both are read at once: a full error pipe would keep ssh from the line that is waited for.
        let is_ready = {
            let errors = (&mut stderr).take(MAX_OUTPUT_BYTES);
            tokio::pin!(errors, ready);
            tokio::select! {
                is_ready = &mut ready => is_ready,
                () = read_all(&mut errors, &mut said) => ready.await,
            }
        };
        if is_ready {
            let rest = async move {
                tokio::join!(
                    discard(lines.into_inner().into_inner().into_inner()),
                    discard(stderr)
                );
                drop(stdin);
            };
            return Ok((child, rest));
        }
        read_all(&mut stderr.take(MAX_OUTPUT_BYTES), &mut said).await;
        let status = child
            .wait()
            .await
            .map_err(|error| format!("ssh can't be waited for: {error}"))?;
        Err(said_by_ssh(&said).unwrap_or_else(|| format!("ssh ended without a reason: {status}")))
    }
}

fn arguments(target: &SshAddress, socket: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    for option in [
        // Never ask: nobody is there to answer.
        "BatchMode=yes",
        "ConnectTimeout=10",
        // A dead connection is noticed after 45 s.
        "ServerAliveInterval=15",
        "ServerAliveCountMax=3",
        "ExitOnForwardFailure=yes",
        "StreamLocalBindMask=0177",
        "StreamLocalBindUnlink=yes",
        // A shared master would keep the forwarding beyond the life of this process.
        "ControlMaster=no",
        "ControlPath=none",
        "RemoteCommand=none",
        "RequestTTY=no",
    ] {
        arguments.extend(["-o".into(), option.into()]);
    }
    let mut forward = socket.as_os_str().to_owned();
    forward.push(":");
    forward.push(&target.socket);
    arguments.extend(["-L".into(), forward]);
    if let Some(port) = target.port {
        arguments.extend(["-p".into(), port.to_string().into()]);
    }
    if let Some(user) = &target.user {
        arguments.extend(["-l".into(), user.into()]);
    }
    let host = target.host.trim_start_matches('[').trim_end_matches(']');
    arguments.extend([
        "--".into(),
        host.into(),
        format!("echo {READY}; exec cat >/dev/null").into(),
    ]);
    arguments
}

/// The last line that ssh printed; lines before it are banners and warnings.
fn said_by_ssh(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    let line = line.strip_prefix("ssh: ").unwrap_or(line);
    Some(format!(
        "ssh: {}",
        line.chars()
            .filter(|character| !character.is_control())
            .take(300)
            .collect::<String>()
    ))
}

async fn read_all(from: &mut (impl AsyncRead + Unpin), into: &mut Vec<u8>) {
    // A stream that breaks ends here; what was read before is kept.
    let _broken = from.read_to_end(into).await;
}

async fn discard(mut from: impl AsyncRead + Unpin) {
    let _broken = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
}

#[cfg(test)]
mod tests;
