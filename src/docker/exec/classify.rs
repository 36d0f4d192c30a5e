//! What the engine's refusals mean: start failures, and states of a sandbox. Texts are looked at only after the engine has
//! said that the start failed, never in a command's own output (contract D5, D6).

use crate::error::SandboxReason;
use crate::spec::StartProblem;

use super::super::failure::EngineFailure;

/// The codes that engines give to an exec that could not be started (engine-facts S6).
pub(super) fn is_start_failure(code: i64) -> bool {
    (126..=128).contains(&code)
}

/// Engine texts of failed starts, in the order they are looked for: a missing directory and a missing program end in
/// the same words, as do the namespaces and the group of a container that has just died.
const START_TEXTS: [(&str, StartProblem); 18] = [
    ("namespace path", StartProblem::Other),
    ("adding pid", StartProblem::Other),
    ("cgroup.procs", StartProblem::Other),
    ("chdir to cwd", StartProblem::Cwd),
    ("cwd must be an absolute path", StartProblem::Cwd),
    ("mkdir", StartProblem::Cwd),
    ("unable to find user", StartProblem::User),
    ("unable to find group", StartProblem::User),
    ("no matching entries in passwd file", StartProblem::User),
    ("no matching entries in group file", StartProblem::User),
    ("uids and gids must be in range", StartProblem::User),
    ("argument list too long", StartProblem::TooLong),
    ("exec format error", StartProblem::BadFormat),
    ("executable file not found", StartProblem::NotFound),
    ("permission denied", StartProblem::NotExecutable),
    ("is a directory", StartProblem::NotExecutable),
    ("not a directory", StartProblem::NotExecutable),
    ("no such file or directory", StartProblem::NotFound),
];

/// Which problem these words of the engine mean.
pub(in crate::docker) fn start_problem(text: &str) -> StartProblem {
    let text = text.to_lowercase();
    START_TEXTS
        .iter()
        .find(|(part, _)| text.contains(part))
        .map_or(StartProblem::Other, |&(_, problem)| problem)
}

/// What runtimes say where it is the container that can't have another process, whatever it is.
const SANDBOX_TEXTS: [(&str, SandboxReason); 4] = [
    ("cannot exec in a paused state", SandboxReason::Paused),
    ("cannot exec in a ", SandboxReason::NotRunning),
    ("cannot exec a container that has ", SandboxReason::NotRunning),
    // Of its main process, which has ended: runtimes without this name it as a file that is not there.
    (
        "unable to create new parent process: namespace path",
        SandboxReason::NotRunning,
    ),
];

/// Whether the text of a failed start is about the sandbox and not about the command.
pub(super) fn state_in(text: &str) -> Option<SandboxReason> {
    // Where a program is named, it is the one to blame, whatever its name is.
    if text.contains("exec: \"") {
        return None;
    }
    SANDBOX_TEXTS
        .iter()
        .find(|(part, _)| text.contains(part))
        .map(|&(_, reason)| reason)
}

/// What a refusal says of a container that runs again by now. Both states are refused by the same status.
pub(super) fn was_refused(failure: &EngineFailure) -> Option<(SandboxReason, String)> {
    if !failure.is_status(409) {
        return None;
    }
    let reason = if failure.text()?.contains("is paused") {
        SandboxReason::Paused
    } else {
        SandboxReason::NotRunning
    };
    let message = format!("the sandbox runs, and could not when the command was to start: {failure}");
    Some((reason, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d06_a_refusal_of_a_container_that_runs_again_says_what_it_was() {
        let refused = |status, text: &str| EngineFailure::Refused {
            status,
            text: text.to_owned(),
        };
        for (failure, reason) in [
            (
                refused(409, "Container c is paused, unpause the container before exec"),
                Some(SandboxReason::Paused),
            ),
            (
                refused(409, "Container c is not running"),
                Some(SandboxReason::NotRunning),
            ),
            (refused(500, "c is paused"), None),
        ] {
            assert_eq!(
                was_refused(&failure).map(|(reason, _)| reason),
                reason,
                "{failure:?}"
            );
        }
    }

    #[test]
    fn d06_what_a_runtime_says_of_the_sandbox_is_no_failed_start_of_the_command() {
        let namespace = "OCI runtime exec failed: exec failed: unable to start container process: unable to create new \
                         parent process: namespace path: lstat /proc/4711/ns/ipc: no such file or directory: unknown";
        for (text, reason) in [
            (
                "cannot exec in a stopped state: unknown",
                Some(SandboxReason::NotRunning),
            ),
            (
                "cannot exec in a paused state: unknown",
                Some(SandboxReason::Paused),
            ),
            (
                "OCI runtime exec failed: exec failed: cannot exec a container that has stopped: unknown",
                Some(SandboxReason::NotRunning),
            ),
            (
                "OCI runtime exec failed: exec failed: unable to create new parent process: namespace path: lstat \
                 /proc/4711/ns/ipc: no such file or directory: unknown",
                Some(SandboxReason::NotRunning),
            ),
            (namespace, Some(SandboxReason::NotRunning)),
            (
                "OCI runtime exec failed: exec failed: exec: \"cannot exec in a \": executable file not found in $PATH: unknown",
                None,
            ),
            ("something else", None),
        ] {
            assert_eq!(state_in(text), reason, "{text}");
        }
    }

    #[test]
    fn d5_engine_texts_of_failed_starts() {
        for (text, problem) in [
            (
                "OCI runtime exec failed: exec failed: unable to start container process: exec: \"no-such-prog\": executable file not found in $PATH: unknown\r\n",
                StartProblem::NotFound,
            ),
            (
                "OCI runtime exec failed: exec failed: unable to start container process: exec: \"/nope\": stat /nope: no such file or directory: unknown",
                StartProblem::NotFound,
            ),
            (
                "OCI runtime exec failed: exec failed: unable to start container process: exec: \"/etc\": permission denied: unknown",
                StartProblem::NotExecutable,
            ),
            (
                "OCI runtime exec failed: exec failed: unable to start container process: exec: \"/etc\": is a directory: unknown",
                StartProblem::NotExecutable,
            ),
            (
                "OCI runtime exec failed: exec failed: unable to start container process: chdir to cwd (\"/does/not/exist\") set in config.json failed: no such file or directory: unknown",
                StartProblem::Cwd,
            ),
            (
                "unable to find user nobody2: no matching entries in passwd file",
                StartProblem::User,
            ),
            (
                "unable to find group extra: no matching entries in group file",
                StartProblem::User,
            ),
            ("something else", StartProblem::Other),
            (
                "exec failed: unable to create new parent process: namespace path: lstat /proc/19170/ns/ipc: no such file or \
                 directory: unknown",
                StartProblem::Other,
            ),
            (
                "error adding pid 70 to cgroups: failed to write 70: open /sys/fs/cgroup/memory/docker/c/cgroup.procs: no such \
                 file or directory: unknown",
                StartProblem::Other,
            ),
        ] {
            assert_eq!(start_problem(text), problem, "{text}");
        }
    }
}
