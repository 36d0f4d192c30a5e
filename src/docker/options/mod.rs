//! What one sandbox asks for beyond the neutral spec: provider options, `run_args` and presets over the configuration, laid
//! over each other into one neutral container (contract C13, C15, D9-D11).

mod arguments;
mod builder;
mod flags;
mod json;
mod table;
mod values;
mod volumes;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::{Error, Operation, Result};
use crate::provider::check_provider_options;
use crate::spec::container::{
    ContainerSpec, DeviceRequest, LogSpec, MountKind, MountSpec, NetworkAttachment,
};
use crate::spec::{Mapping, PullPolicy, SNAPSHOT_OPTION, SandboxResources, SandboxSpec, Value};

use super::agent::ExecPathPolicy;
use super::config::{DockerConfig, Preset};
use super::image::ImageReference;
use super::owner::Keep;
use super::{shared, snapshot};
use arguments::wrong;
use builder::Builder;
pub(super) use builder::LocalBase;
use flags::{EXEC_FLAGS, FLAGS};
use json::Said;
pub(super) use table::ExecDefaults;
use table::{Shape, Takes};

/// The options that are no property of the container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Own {
    pull_policy: Option<PullPolicy>,
    preset: Option<Preset>,
    exec_path: Option<ExecPathPolicy>,
    snapshot_id: Option<String>,
    keep: Option<bool>,
    project: Option<String>,
}

const OWN: [&str; 6] = [
    "pull_policy",
    "preset",
    "exec_path",
    SNAPSHOT_OPTION,
    "keep",
    "project",
];

/// The key of raw arguments, a text or a list.
const RUN_ARGS: &str = "run_args";

/// How a sandbox is made, beside what its container is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Effective {
    pub(super) pull_policy: PullPolicy,
    pub(super) platform: Option<String>,
    pub(super) exec_path: ExecPathPolicy,
    pub(super) preset: Preset,
    /// The image of a snapshot, instead of the spec's.
    pub(super) snapshot: Option<ImageReference>,
    /// What was asked for by these names, for errors.
    pub(super) resources: SandboxResources,
    /// Whether it outlives its process.
    pub(super) keep: Keep,
    /// What it belongs to.
    pub(super) project: Option<String>,
}

/// What a `hardened` sandbox has that says nothing else.
const HARDENED_MEMORY: u64 = 2048 << 20;
const HARDENED_PIDS: i64 = 512;

/// Reads the options that are no property of the container, and refuses unknown ones.
pub(super) fn effective(config: &DockerConfig, spec: &SandboxSpec) -> Result<Effective> {
    let mut allowed = Vec::from(OWN);
    allowed.push(RUN_ARGS);
    allowed.extend(FLAGS.iter().filter_map(|flag| Some(flag.option?.0)));
    let options = spec.provider_options();
    check_provider_options(Operation::Create, "provider options", options, &allowed)?;
    let mut own = Mapping::new();
    for key in OWN {
        let Some(value) = options.get(key) else { continue };
        // One after the other, so that the error names the option: serde's does not.
        let only = Mapping::from_iter([(key.to_owned(), value.clone())]);
        if let Err(error) = serde_json::from_value::<Own>(Value::Object(only)) {
            return Err(wrong(&named(key), &error.to_string()));
        }
        own.insert(key.to_owned(), value.clone());
    }
    let own: Own = serde_json::from_value(Value::Object(own))
        .map_err(|error| wrong("a provider option", &error.to_string()))?;
    let snapshot = own
        .snapshot_id
        .map(|id| snapshot::reference(Operation::Create, &id))
        .transpose()?;
    if own.project.as_deref() == Some("") {
        return Err(wrong(&named("project"), "it is empty"));
    }
    let pull_policy = match snapshot {
        // No registry has it.
        Some(_) => PullPolicy::Never,
        None => own.pull_policy.unwrap_or(config.create.pull_policy),
    };
    Ok(Effective {
        pull_policy,
        snapshot,
        platform: None,
        exec_path: own.exec_path.unwrap_or(config.exec.exec_path),
        preset: own.preset.unwrap_or(config.create.preset),
        resources: spec.resources().clone(),
        keep: if own.keep.unwrap_or_default() {
            Keep::Yes
        } else {
            Keep::No
        },
        project: own.project,
    })
}

/// Lays configuration, resources, options and arguments over a container that has what the spec says of its process.
pub(super) fn lay_over(
    config: &DockerConfig,
    preset: Preset,
    spec: &SandboxSpec,
    container: ContainerSpec,
    base: LocalBase,
) -> Result<ContainerSpec> {
    let mut builder = Builder::new(container, base);
    configured(config, &mut builder)?;
    resources(config, spec, &mut builder.container);
    builder.begin_layer();
    let options = spec.provider_options();
    for flag in FLAGS {
        if let Some((key, shape)) = flag.option
            && let Some(value) = options.get(key)
        {
            let value = &without_shared(value);
            option(&mut builder, key, shape, &flag.takes, value)?;
        }
    }
    if let Some(arguments) = options.get(RUN_ARGS) {
        let Said::Texts(list) =
            json::said(arguments, Shape::OneOrMany).map_err(|why| wrong(&named(RUN_ARGS), &why))?
        else {
            return Err(wrong(&named(RUN_ARGS), "it must be a text or a list of texts"));
        };
        builder.begin_layer();
        arguments::apply(&mut builder, FLAGS, RUN_ARGS, &list)?;
    }
    let mut container = builder.finish()?;
    if preset == Preset::Hardened {
        harden(config, &mut container);
    }
    Ok(container)
}

/// Shared folders stand between the volume strings, and are mounted after the policy was asked.
fn without_shared(value: &Value) -> Value {
    match value {
        Value::Array(list) => list
            .iter()
            .filter(|entry| !shared::is_shared(entry))
            .cloned()
            .collect(),
        other => other.clone(),
    }
}

fn named(key: &str) -> String {
    format!("the provider option `{key}`")
}

fn configured(config: &DockerConfig, builder: &mut Builder) -> Result<()> {
    let create = &config.create;
    builder.add_network(network_of(create.network.as_deref()));
    let container = &mut builder.container;
    container.init = Some(create.use_init);
    container.read_only = create.read_only;
    container.cap_drop.clone_from(&create.cap_drop);
    container.security_options.clone_from(&create.security_opt);
    container.limits.pids = create.pids_limit;
    builder.begin_layer();
    arguments::apply(builder, FLAGS, "create.extra_run_args", &create.extra_run_args)
}

fn resources(config: &DockerConfig, spec: &SandboxSpec, container: &mut ContainerSpec) {
    let resources = spec.resources();
    if config.create.apply_resource_limits {
        container.limits.cpus = resources.cpu;
        // The range was checked before.
        container.limits.memory_bytes = resources.memory_mib.map(|mib| mib << 20);
    }
    if let Some(size) = resources.disk_gib {
        container
            .storage_options
            .insert("size".to_owned(), format!("{size}G"));
    }
    // A kind of card without a number is one card of it.
    let count = resources.gpu.or(resources.gpu_type.as_ref().map(|_| 1));
    if let Some(count) = count.filter(|&count| count > 0) {
        container.device_requests.push(DeviceRequest {
            count: Some(i64::try_from(count).unwrap_or(i64::MAX)),
            capabilities: vec![vec!["gpu".to_owned()]],
            ..DeviceRequest::default()
        });
    }
}

fn option(builder: &mut Builder, key: &str, shape: Shape, takes: &Takes, value: &Value) -> Result<()> {
    let name = named(key);
    // These are in the configuration, too, and a spec's own list takes its place.
    match key {
        "cap_drop" => builder.container.cap_drop.clear(),
        "security_opt" => builder.container.security_options.clear(),
        _ => {}
    }
    match (json::said(value, shape).map_err(|why| wrong(&name, &why))?, takes) {
        (Said::Texts(list), Takes::Value(set)) => list
            .iter()
            .try_for_each(|text| set(builder, text))
            .map_err(|why| wrong(&name, &why)),
        (Said::Switch(on), Takes::Switch(set)) => {
            set(builder, on);
            Ok(())
        }
        (Said::Fields(list), _) => {
            for fields in list {
                let mount = volumes::mount(&fields).map_err(|why| wrong(&name, &why))?;
                builder.container.mounts.push(mount);
            }
            Ok(())
        }
        _ => Err(wrong(&name, "it has another form")),
    }
}

/// What the preset `hardened` fills in.
fn harden(config: &DockerConfig, container: &mut ContainerSpec) {
    if !container
        .cap_drop
        .iter()
        .any(|capability| capability.eq_ignore_ascii_case("all"))
    {
        container.cap_drop.push("ALL".to_owned());
    }
    if !container
        .security_options
        .iter()
        .any(|option| option.starts_with("no-new-privileges"))
    {
        container.security_options.push("no-new-privileges".to_owned());
    }
    container.limits.pids.get_or_insert(HARDENED_PIDS);
    if config.create.apply_resource_limits {
        container.limits.memory_bytes.get_or_insert(HARDENED_MEMORY);
    }
    container.logging.get_or_insert_with(|| LogSpec {
        driver: Some("json-file".to_owned()),
        options: BTreeMap::from([
            ("max-size".to_owned(), "10m".to_owned()),
            ("max-file".to_owned(), "2".to_owned()),
        ]),
    });
    // Nearly every program wants to write there. What is in it counts as memory of the sandbox.
    if container.read_only && !container.mounts.iter().any(|mount| mount.target == "/tmp") {
        container.mounts.push(MountSpec {
            target: "/tmp".to_owned(),
            read_only: false,
            kind: MountKind::Tmpfs {
                size_bytes: container.limits.memory_bytes.map(|bytes| bytes / 2),
                mode: Some(0o1777),
                options: vec!["exec".to_owned()],
            },
        });
    }
}

/// Reads the network of the configuration as `docker run --network` does.
pub(super) fn network_of(network: Option<&str>) -> NetworkAttachment {
    network
        .and_then(|network| values::network(network).ok())
        .unwrap_or_default()
}

/// Checks raw arguments of the configuration.
pub(super) fn check_run_arguments(origin: &str, list: &[String]) -> Result<()> {
    let base = LocalBase {
        here: "/".to_owned(),
        home: Some("/".to_owned()),
    };
    arguments::apply(
        &mut Builder::new(ContainerSpec::default(), base),
        FLAGS,
        origin,
        list,
    )
}

/// Reads raw arguments for all commands.
pub(super) fn exec_defaults(origin: &str, list: &[String]) -> Result<ExecDefaults> {
    let mut defaults = ExecDefaults::default();
    arguments::apply(&mut defaults, EXEC_FLAGS, origin, list)?;
    let names = defaults.env.iter().cloned().collect();
    crate::spec::check_environment(Operation::Configure, &names).map_err(|error| {
        Error::invalid(
            Operation::Configure,
            format!("`{origin}` has a variable that no process can get"),
        )
        .with_source(error)
    })?;
    Ok(defaults)
}
