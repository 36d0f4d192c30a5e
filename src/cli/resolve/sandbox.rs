//! What a sandbox should be: the neutral spec, and what goes to the Docker provider.

use gym_sandbox::PullPolicy;
use gym_sandbox::docker::{CreateConfig, DockerConfig, ImageReference, Preset};
use gym_sandbox::{Error, Operation, Result, SandboxResources, SandboxSpec};

use super::super::args::{PresetArg, PullArg, SandboxArgs};
use super::super::units::{ByteSize, Transfer};
use super::{Backend, SandboxRequest, Upload, variables};

pub(super) fn request(
    args: SandboxArgs,
    backend: Backend,
    mut config: DockerConfig,
) -> Result<SandboxRequest> {
    create_config(&args, &mut config.create);
    let upload = |transfer: Transfer| Upload {
        local: transfer.source.into(),
        remote: transfer.target,
    };
    Ok(SandboxRequest {
        config,
        spec: spec(&args, backend)?,
        uploads: args.upload.into_iter().map(upload).collect(),
    })
}

fn create_config(args: &SandboxArgs, config: &mut CreateConfig) {
    config.network.clone_from(&args.network);
    config.pids_limit = args.pids;
    if let Some(preset) = args.preset {
        config.preset = match preset {
            PresetArg::Compat => Preset::Compat,
            PresetArg::Hardened => Preset::Hardened,
        };
    }
    if let Some(pull) = args.pull {
        config.pull_policy = match pull {
            PullArg::Missing => PullPolicy::Missing,
            PullArg::Always => PullPolicy::Always,
            PullArg::Never => PullPolicy::Never,
        };
    }
}

fn spec(args: &SandboxArgs, backend: Backend) -> Result<SandboxSpec> {
    if args.network.as_deref() == Some("none")
        && let Some(port) = args.port.first()
    {
        return Err(Error::invalid(
            Operation::Configure,
            format!("--port {port}: a sandbox on --network none publishes no ports"),
        )
        .with_hint("leave one of the two out"));
    }
    let spec = match (&args.image, backend) {
        (Some(image), _) => {
            check_image(image)?;
            SandboxSpec::new(image)
        }
        (None, Backend::Local) => SandboxSpec::default(),
        (None, Backend::Docker) => {
            return Err(Error::invalid(Operation::Configure, "no image is given")
                .with_hint("name one with `--image REF`"));
        }
    };
    let mut spec = spec
        .with_ports(args.port.iter().copied())?
        .with_resources(resources(args.cpus, args.memory)?);
    if let Some(workdir) = &args.workdir {
        spec = spec.with_workdir(workdir);
    }
    for (name, value) in variables(&args.env)? {
        spec = spec.with_env(name, value);
    }
    Ok(spec)
}

/// Refuses what can be no image before an engine is asked for it.
pub(super) fn check_image(image: &str) -> Result<()> {
    image.parse::<ImageReference>().map(drop).map_err(|error| {
        let hint = error.hint().unwrap_or_default().to_owned();
        Error::invalid(Operation::Configure, "--image names no image")
            .with_source(error)
            .with_hint(hint)
    })
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
