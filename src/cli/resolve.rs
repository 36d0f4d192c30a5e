//! From what was typed to what is to be done. Refuses, by name, what this build cannot do. Does no engine I/O.

use std::path::PathBuf;

use gym_sandbox::docker::{DockerConfig, Preset, PullPolicy};
use gym_sandbox::{
    Command, Error, ErrorKind, ExecOptions, ExecTimeout, Operation, Result, SandboxResources, SandboxSpec,
};

use super::args::{
    Args, BenchArgs, CommandArgs, ExecPathArg, GlobalArgs, PresetArg, ProviderArg, PullArg, RunArgs,
};
use super::output::Format;
use super::session::Afterwards;
use super::units::{ByteSize, TimeLimit, Transfer, Variable};

/// What is to be done.
#[derive(Debug)]
pub(super) enum Action {
    /// Run one command.
    Run(Box<RunRequest>),
    /// Look at the engine.
    Doctor(DoctorRequest),
    /// Measure.
    Bench(BenchRequest),
}

/// One command in a sandbox of its own.
#[derive(Debug)]
pub(super) struct RunRequest {
    pub(super) config: DockerConfig,
    pub(super) spec: SandboxSpec,
    pub(super) options: ExecOptions,
    pub(super) input: Input,
    pub(super) uploads: Vec<Upload>,
    pub(super) downloads: Vec<Download>,
    pub(super) afterwards: Afterwards,
    pub(super) format: Format,
}

/// Where a command's standard input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// It has none.
    Empty,
    /// It is this process's own.
    Process,
}

/// A copy into the sandbox.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Upload {
    pub(super) local: PathBuf,
    pub(super) remote: String,
}

/// A copy out of the sandbox.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Download {
    pub(super) remote: String,
    pub(super) local: PathBuf,
}

/// A look at the engine.
#[derive(Debug)]
pub(super) struct DoctorRequest {
    pub(super) config: DockerConfig,
    pub(super) format: Format,
}

/// A measurement.
#[derive(Debug)]
pub(super) struct BenchRequest {
    pub(super) config: DockerConfig,
    pub(super) image: String,
    pub(super) filter: Option<String>,
    pub(super) effort: Effort,
    pub(super) format: Format,
}

/// How many samples are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// As many as a verdict needs.
    Full,
    /// A few, to see that it works.
    Quick,
}

/// Makes the request.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] or [`ErrorKind::Unsupported`] naming the option.
pub(super) fn resolve(args: Args) -> Result<Action> {
    let Args { global, command } = args;
    if matches!(global.provider, ProviderArg::Local) {
        return Err(missing(
            "--provider local needs the local provider",
            "use `--provider docker`",
        ));
    }
    let config = engine_config(&global);
    let format = if global.json { Format::Json } else { Format::Text };
    Ok(match command {
        CommandArgs::Run(args) => Action::Run(Box::new(run_request(*args, config, format)?)),
        CommandArgs::Doctor => Action::Doctor(DoctorRequest { config, format }),
        CommandArgs::Bench(BenchArgs { rows, quick, image }) => Action::Bench(BenchRequest {
            config,
            image,
            filter: rows,
            effort: if quick { Effort::Quick } else { Effort::Full },
            format,
        }),
    })
}

fn engine_config(global: &GlobalArgs) -> DockerConfig {
    let mut config = DockerConfig::default();
    config.host.clone_from(&global.host);
    config
}

fn run_request(args: RunArgs, mut config: DockerConfig, format: Format) -> Result<RunRequest> {
    if matches!(args.exec_path, ExecPathArg::Agent) {
        return Err(missing(
            "--exec-path agent needs the resident agent",
            "use `--exec-path engine`, or leave it out",
        ));
    }
    create_config(&args, &mut config);
    Ok(RunRequest {
        config,
        spec: spec(&args)?,
        options: exec_options(&args),
        input: if args.stdin { Input::Process } else { Input::Empty },
        uploads: args.upload.into_iter().map(upload).collect(),
        downloads: args.download.into_iter().map(download).collect(),
        afterwards: if args.keep {
            Afterwards::Keep
        } else {
            Afterwards::Remove
        },
        format,
    })
}

fn create_config(args: &RunArgs, config: &mut DockerConfig) {
    config.create.network.clone_from(&args.network);
    config.create.pids_limit = args.pids;
    if let Some(preset) = args.preset {
        config.create.preset = match preset {
            PresetArg::Compat => Preset::Compat,
            PresetArg::Hardened => Preset::Hardened,
        };
    }
    if let Some(pull) = args.pull {
        config.create.pull_policy = match pull {
            PullArg::Missing => PullPolicy::Missing,
            PullArg::Always => PullPolicy::Always,
            PullArg::Never => PullPolicy::Never,
        };
    }
}

fn spec(args: &RunArgs) -> Result<SandboxSpec> {
    let image = args.image.as_deref().ok_or_else(|| {
        Error::invalid(Operation::Configure, "no image is given").with_hint("name one with `--image REF`")
    })?;
    let mut spec = SandboxSpec::new(image)
        .with_ports(args.port.iter().copied())?
        .with_resources(resources(args.cpus, args.memory)?);
    if let Some(workdir) = &args.workdir {
        spec = spec.with_workdir(workdir);
    }
    for text in &args.env {
        let variable: Variable = text
            .parse()
            .map_err(|problem: String| Error::invalid(Operation::Configure, format!("--env: {problem}")))?;
        if let Some(value) = variable_value(&variable)? {
            spec = spec.with_env(&variable.name, value);
        }
    }
    Ok(spec)
}

/// The value that was given, else that of this process. None where it has none: then the variable is left out.
fn variable_value(variable: &Variable) -> Result<Option<String>> {
    if let Some(value) = &variable.value {
        return Ok(Some(value.clone()));
    }
    match std::env::var(&variable.name) {
        Ok(value) => Ok(Some(value)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(Error::invalid(
            Operation::Configure,
            format!(
                "the value of this process's variable `{}` is not UTF-8",
                variable.name
            ),
        )),
    }
}

fn resources(cpus: Option<f64>, memory: Option<ByteSize>) -> Result<SandboxResources> {
    let mut resources = SandboxResources::default();
    if let Some(cpus) = cpus {
        resources = resources.with_cpu(cpus);
    }
    if let Some(memory) = memory {
        let mebibytes = memory.mebibytes().ok_or_else(|| {
            Error::invalid(
                Operation::Configure,
                format!("--memory of {} bytes is not a whole number of MiB", memory.0),
            )
            .with_hint("give a size in `m` or `g`, as in `512m`")
        })?;
        resources = resources.with_memory_mib(mebibytes);
    }
    Ok(resources)
}

fn exec_options(args: &RunArgs) -> ExecOptions {
    let command = match &args.shell {
        Some(line) => Command::Shell(line.clone()),
        None => Command::Argv(args.command.clone()),
    };
    let timeout = match args.timeout {
        None => ExecTimeout::Default,
        Some(TimeLimit::Never) => ExecTimeout::Never,
        Some(TimeLimit::After(limit)) => ExecTimeout::After(limit),
    };
    let options = ExecOptions::new(command).with_timeout(timeout);
    match &args.user {
        Some(user) => options.with_user(user.as_str()),
        None => options,
    }
}

fn upload(transfer: Transfer) -> Upload {
    Upload {
        local: transfer.source.into(),
        remote: transfer.target,
    }
}

fn download(transfer: Transfer) -> Download {
    Download {
        remote: transfer.source,
        local: transfer.target.into(),
    }
}

fn missing(what: &str, instead: &'static str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        Operation::Configure,
        format!("{what}, which this build does not have"),
    )
    .with_hint(instead)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::args::parse_from;
    use super::*;

    fn typed(arguments: &[&str]) -> Result<Action> {
        resolve(parse_from(&[&["gym-sandbox"], arguments].concat()))
    }

    fn run(arguments: &[&str]) -> RunRequest {
        match typed(arguments) {
            Ok(Action::Run(request)) => *request,
            other => panic!("not a run: {other:?}"),
        }
    }

    #[test]
    fn a_plain_run_has_the_library_s_defaults() {
        let request = run(&["run", "--image", "i", "--", "true"]);
        assert_eq!(request.config, DockerConfig::default());
        assert_eq!(request.spec, SandboxSpec::new("i"));
        assert_eq!(request.options.command, Command::from(["true"]));
        assert_eq!(request.options.timeout, ExecTimeout::Default);
        assert_eq!(request.input, Input::Empty);
        assert_eq!(request.afterwards, Afterwards::Remove);
        assert_eq!(request.format, Format::Text);
    }

    #[test]
    fn every_option_of_a_run_arrives() {
        let request = run(&[
            "--host",
            "unix:///x",
            "--json",
            "run",
            "--image",
            "i",
            "--env",
            "A=1",
            "--env",
            "NOT_SET_ANYWHERE",
            "--workdir",
            "/w",
            "--user",
            "u:g",
            "--timeout",
            "1m30s",
            "--cpus",
            "0.5",
            "--memory",
            "512m",
            "--pids",
            "9",
            "--network",
            "none",
            "--preset",
            "hardened",
            "--upload",
            "a:/b",
            "--download",
            "/c:d",
            "--port",
            "80",
            "--port",
            "81",
            "--pull",
            "never",
            "--stdin",
            "--exec-path",
            "engine",
            "--keep",
            "--shell",
            "echo x",
        ]);
        assert_eq!(request.config.host.as_deref(), Some("unix:///x"));
        assert_eq!(request.config.create.network.as_deref(), Some("none"));
        assert_eq!(request.config.create.pids_limit, Some(9));
        assert_eq!(request.config.create.preset, Preset::Hardened);
        assert_eq!(request.config.create.pull_policy, PullPolicy::Never);
        let expected = SandboxSpec::new("i")
            .with_env("A", "1")
            .with_workdir("/w")
            .with_resources(SandboxResources::default().with_cpu(0.5).with_memory_mib(512))
            .with_ports([80, 81])
            .unwrap();
        assert_eq!(request.spec, expected);
        assert_eq!(request.options.command, Command::Shell("echo x".to_owned()));
        assert_eq!(request.options.user, Some("u:g".into()));
        assert_eq!(
            request.options.timeout,
            ExecTimeout::After(Duration::from_secs(90))
        );
        assert_eq!(request.input, Input::Process);
        assert_eq!(
            request.uploads,
            [Upload {
                local: "a".into(),
                remote: "/b".into()
            }]
        );
        assert_eq!(
            request.downloads,
            [Download {
                remote: "/c".into(),
                local: "d".into()
            }]
        );
        assert_eq!(request.afterwards, Afterwards::Keep);
        assert_eq!(request.format, Format::Json);
    }

    #[test]
    fn what_this_build_lacks_is_refused_by_name() {
        for (arguments, name) in [
            (&["--provider", "local", "doctor"][..], "--provider local"),
            (
                &["run", "--image", "i", "--exec-path", "agent", "--", "x"],
                "--exec-path agent",
            ),
        ] {
            let error = typed(arguments).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(name), "{error}");
            assert!(error.hint().is_some());
        }
    }

    #[test]
    fn what_can_t_be_honoured_exactly_is_refused() {
        for arguments in [
            &["run", "--", "x"][..],
            &["run", "--image", "i", "--memory", "1000k", "--", "x"],
            &["run", "--image", "i", "--port", "80", "--port", "80", "--", "x"],
        ] {
            assert_eq!(
                typed(arguments).unwrap_err().kind(),
                ErrorKind::InvalidArgument,
                "{arguments:?}"
            );
        }
    }
}
