//! What the engine is asked for a session: pure, tested as a table.

use bollard::models::ExecConfig;

use crate::spec::{Command, PtyMode, SandboxPtySpec};

use super::super::connect::ApiVersion;
use super::super::exec::MARKER;

/// From this version on an engine sets the size of a terminal before its program runs (engine-facts S18).
const CONSOLE_SIZE: ApiVersion = ApiVersion::new(1, 42);

/// The engine ends a stream when these keys come in a row, and can't be told not to (engine-facts S17). The first of them
/// is held back until the next byte comes, so it is one that is hardly ever typed.
const DETACH_KEYS: &str =
    "ctrl-^,ctrl-_,ctrl-^,ctrl-^,ctrl-_,ctrl-_,ctrl-^,ctrl-_,ctrl-^,ctrl-^,ctrl-_,ctrl-^";

/// Sets the size where the engine does not, and becomes the program. An image without stty gets it a moment later.
const SET_SIZE: &str = r#"stty rows "$1" cols "$2" 2>/dev/null; shift 2; exec "$@""#;

/// The program of a session; None where it takes a shell and the image has none.
pub(in crate::docker) fn argv(command: Option<&Command>, shell: Option<&str>) -> Option<Vec<String>> {
    match (command, shell) {
        (Some(Command::Argv(argv)), _) => Some(argv.clone()),
        (Some(Command::Shell(line)), Some(shell)) => {
            Some(vec![shell.to_owned(), "-c".to_owned(), line.clone()])
        }
        (None, Some(shell)) => Some(vec![shell.to_owned()]),
        (_, None) => None,
    }
}

/// Says whether the size has to be set from inside.
pub(super) fn needs_resize(spec: &SandboxPtySpec, api: ApiVersion) -> bool {
    spec.mode == PtyMode::Pty && api < CONSOLE_SIZE
}

/// The exec of a session.
pub(super) fn exec_config(
    spec: &SandboxPtySpec,
    argv: Vec<String>,
    shell: Option<&str>,
    marker: &str,
    api: ApiVersion,
) -> ExecConfig {
    let is_pty = spec.mode == PtyMode::Pty;
    let mut env: Vec<String> = spec
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    env.push(format!("{MARKER}={marker}"));
    let argv = match shell {
        Some(shell) if needs_resize(spec, api) => {
            let (rows, cols) = (spec.rows.to_string(), spec.cols.to_string());
            let before = [shell, "-c", SET_SIZE, "sh", &rows, &cols];
            before.map(str::to_owned).into_iter().chain(argv).collect()
        }
        _ => argv,
    };
    ExecConfig {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(is_pty),
        console_size: (is_pty && api >= CONSOLE_SIZE).then(|| vec![spec.rows.into(), spec.cols.into()]),
        detach_keys: is_pty.then(|| DETACH_KEYS.to_owned()),
        env: Some(env),
        cmd: Some(argv),
        user: spec.user.as_ref().map(|user| user.as_str().to_owned()),
        working_dir: spec.cwd.clone(),
        ..ExecConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b34_the_size_is_set_by_the_engine_where_it_can_and_else_inside() {
        let spec = SandboxPtySpec::new(["vi"]).with_size(40, 120);
        let argv = || vec!["vi".to_owned()];
        let new = exec_config(&spec, argv(), Some("bash"), "m", ApiVersion::new(1, 42));
        assert_eq!(new.console_size, Some(vec![40, 120]));
        assert_eq!(new.cmd, Some(argv()));
        let old = exec_config(&spec, argv(), Some("bash"), "m", ApiVersion::new(1, 41));
        assert_eq!(old.console_size, None);
        assert_eq!(
            old.cmd.unwrap(),
            ["bash", "-c", SET_SIZE, "sh", "40", "120", "vi"]
        );
        let bare = exec_config(&spec, argv(), None, "m", ApiVersion::new(1, 41));
        assert_eq!(bare.cmd, Some(argv()));
    }

    #[test]
    fn pipes_have_no_size_and_no_detach_keys() {
        let spec = SandboxPtySpec::new(["cat"])
            .with_mode(PtyMode::Pipe)
            .with_user("root");
        let config = exec_config(
            &spec,
            vec!["cat".to_owned()],
            Some("sh"),
            "m",
            ApiVersion::new(1, 41),
        );
        assert_eq!(config.tty, Some(false));
        assert_eq!((config.console_size, config.detach_keys), (None, None));
        assert_eq!(config.cmd.unwrap(), ["cat"]);
        assert_eq!(config.user.as_deref(), Some("0"));
    }

    #[test]
    fn a_session_without_a_command_runs_the_shell() {
        let line = Command::from("echo hi");
        let list = Command::from(["a", "b"]);
        for (command, shell, expected) in [
            (None, Some("bash"), Some(vec!["bash"])),
            (None, None, None),
            (Some(&line), Some("sh"), Some(vec!["sh", "-c", "echo hi"])),
            (Some(&line), None, None),
            (Some(&list), None, Some(vec!["a", "b"])),
        ] {
            let expected = expected.map(|argv| argv.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(argv(command, shell), expected);
        }
    }
}
