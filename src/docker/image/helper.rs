//! Programs that keep credentials, `docker-credential-NAME`: asked in a process of their own, for a bounded time and
//! with bounded output.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::spec::RegistryCredentials;

/// An answer is a name and a secret.
const MAX_ANSWER_BYTES: u64 = 64 * 1024;

/// What helpers say where they have nothing.
const NOT_FOUND: [&str; 2] = ["credentials not found", "no credentials server URL"];

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// Asks a helper. None: it has nothing for that server. The text of an error holds nothing of a good answer.
///
/// Dropping the future kills the helper with all that it started.
pub(super) async fn ask(
    program: &str,
    server: &str,
    timeout: Duration,
) -> Result<Option<RegistryCredentials>, String> {
    match tokio::time::timeout(timeout, run(program, server)).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("it did not answer in {timeout:?}")),
    }
}

async fn run(program: &str, server: &str) -> Result<Option<RegistryCredentials>, String> {
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .process_group(0)
        .spawn()
        .map_err(|error| format!("it can't be started: {error}"))?;
    let mut group = Group::of(&child);
    if let Some(mut stdin) = child.stdin.take() {
        // A helper that does not read what it is asked for may still answer.
        let _unread = stdin.write_all(server.as_bytes()).await;
    }
    let mut answer = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout
            .take(MAX_ANSWER_BYTES + 1)
            .read_to_end(&mut answer)
            .await
            .map_err(|error| format!("its answer can't be read: {error}"))?;
    }
    if answer.len() as u64 > MAX_ANSWER_BYTES {
        return Err("its answer is too long".to_owned());
    }
    let status = child
        .wait()
        .await
        .map_err(|error| format!("its end can't be seen: {error}"))?;
    // What it leaves running on purpose, as an agent that keeps keys, may stay.
    group.0 = None;
    let answer = String::from_utf8_lossy(&answer);
    if !status.success() {
        // On failure the answer is the reason, not a secret.
        let reason = answer.trim();
        if NOT_FOUND.iter().any(|text| reason.contains(text)) {
            return Ok(None);
        }
        // One that says it fails and answers all the same may have said a secret.
        if reason.contains('{') {
            return Err(format!("it ended with {status}"));
        }
        let reason: String = reason.chars().take(200).collect();
        return Err(format!("it ended with {status}: {}", reason.escape_debug()));
    }
    let answer: Answer =
        serde_json::from_str(&answer).map_err(|_| "its answer is not the JSON of credentials".to_owned())?;
    Ok(match (answer.username.as_str(), answer.secret.as_str()) {
        ("", "") => None,
        ("<token>", token) => Some(RegistryCredentials::identity_token(token)),
        (username, secret) => Some(RegistryCredentials::password(username, secret)),
    })
}

/// The processes of a helper, killed on drop: one that is a script would leave what it waits for. The helper must not
/// have been waited for, else the number may be another's.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0.take() {
            // They may have ended.
            let _gone = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::docker::executable::write_script;

    /// No test waits longer than this for what should come.
    const SOON: Duration = Duration::from_secs(60);

    /// A helper that runs these lines.
    fn helper(lines: &str) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("helper");
        write_script(&path, lines);
        (folder, path.to_str().unwrap().to_owned())
    }

    async fn answer(lines: &str) -> Result<Option<RegistryCredentials>, String> {
        let (_folder, program) = helper(lines);
        ask(&program, "registry.example", SOON).await
    }

    #[tokio::test]
    async fn d12_a_helper_is_asked_for_the_server_and_gives_a_password_or_a_token() {
        let line = r#"read -r server || :; [ "$1 $server" = "get registry.example" ] || exit 9
            echo "{\"ServerURL\": \"$server\", \"Username\": \"u\", \"Secret\": \"s\"}""#;
        assert_eq!(
            answer(line).await,
            Ok(Some(RegistryCredentials::password("u", "s")))
        );
        let token = r#"echo '{"Username": "<token>", "Secret": "t"}'"#;
        assert_eq!(
            answer(token).await,
            Ok(Some(RegistryCredentials::identity_token("t")))
        );
        let none = "echo 'credentials not found in native keychain'; exit 1";
        assert_eq!(answer(none).await, Ok(None));
    }

    #[tokio::test]
    async fn d12_a_helper_that_fails_hangs_or_floods_is_an_error_in_time() {
        assert!(
            answer("echo locked; exit 2")
                .await
                .unwrap_err()
                .contains("locked")
        );
        let leak = answer("echo 'my secret'").await.unwrap_err();
        assert!(!leak.contains("secret"), "{leak}");
        let leak = answer(r#"echo '{"Username": "u", "Secret": "hidden"}'; exit 1"#).await;
        assert!(!leak.unwrap_err().contains("hidden"));
        assert!(answer("cat /dev/zero").await.unwrap_err().contains("too long"));
        let missing = ask("/no/such/helper", "a", Duration::from_secs(5)).await;
        assert!(missing.unwrap_err().contains("can't be started"));
        let (_folder, hanging) = helper("exec sleep 1000");
        let began = Instant::now();
        let error = ask(&hanging, "a", Duration::from_millis(200)).await.unwrap_err();
        assert!(error.contains("did not answer"), "{error}");
        assert!(began.elapsed() < SOON);
    }

    #[tokio::test]
    async fn d12_a_helper_is_ended_with_what_it_started_and_nothing_of_garbage_is_believed() {
        let folder = tempfile::tempdir().unwrap();
        let started = folder.path().join("started");
        let (_folder, hanging) = helper(&format!("sleep 1000 & echo $! > {}; wait", started.display()));
        let asking = tokio::spawn(async move { ask(&hanging, "a", Duration::from_secs(600)).await });
        let until = async |done: &dyn Fn() -> bool| {
            let deadline = Instant::now() + SOON;
            while !done() {
                assert!(Instant::now() < deadline, "it did not happen");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let read = || std::fs::read_to_string(&started).unwrap_or_default();
        until(&|| read().ends_with('\n')).await;
        asking.abort();
        assert!(asking.await.unwrap_err().is_cancelled());
        let stat = format!("/proc/{}/stat", read().trim());
        // One that has no parent any more may be a zombie for a while.
        until(&|| std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z"))).await;

        for garbage in [
            "",
            "echo",
            "printf '\\000\\377\\376'",
            "echo []",
            "echo '{\"Username\": 1, \"Secret\": []}'",
            "echo '{\"Username\": \"u\"}'",
            "kill -9 $$",
        ] {
            assert!(answer(garbage).await.is_err(), "{garbage}");
        }
    }
}
