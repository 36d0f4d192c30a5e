//! From a spec to the engine's create request: pure, and tested as a table.

use std::collections::HashMap;

use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig, PortBinding};

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::{SandboxSpec, check_environment};

use super::PROVIDER;
use super::agent::ExecPathPolicy;
use super::config::CreateConfig;
use super::image::ImageReference;
use super::options::{Effective, effective};
use super::owner;

/// Everything the create transaction needs, checked before the first engine call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CreateRequest {
    pub(super) image: ImageReference,
    pub(super) options: Effective,
    pub(super) body: ContainerCreateBody,
}

/// Checks a spec and turns it into a request. Labels that need the engine's clock are added by
/// [`CreateRequest::with_labels`].
pub(super) fn create_request(
    config: &CreateConfig,
    exec_path: ExecPathPolicy,
    default_metadata: &std::collections::BTreeMap<String, String>,
    spec: &SandboxSpec,
) -> Result<CreateRequest> {
    let image: ImageReference = spec
        .image()
        .ok_or_else(|| {
            Error::invalid(Operation::Create, "the spec has no image")
                .with_hint("name one with `SandboxSpec::new`")
        })?
        .parse()?;
    check_environment(Operation::Create, spec.env())?;
    owner::check_metadata(spec.metadata())?;
    owner::check_metadata(default_metadata)?;
    check_workdir(spec)?;
    check_resources(spec)?;
    let options = effective(config, exec_path, spec)?;
    let (entrypoint, cmd) = main_process(config, &options, spec)?;
    let mut labels: HashMap<String, String> = HashMap::new();
    labels.extend(default_metadata.clone());
    labels.extend(spec.metadata().clone());
    let ports: Vec<String> = spec
        .ports()
        .as_slice()
        .iter()
        .map(|port| format!("{port}/tcp"))
        .collect();
    let body = ContainerCreateBody {
        image: Some(image.to_string()),
        entrypoint: Some(entrypoint),
        cmd: Some(cmd),
        env: non_empty(
            spec.env()
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
        ),
        working_dir: spec.workdir().map(str::to_owned),
        labels: Some(labels),
        // Bindings without exposed ports publish nothing, silently (engine-facts S10): both are sent.
        exposed_ports: non_empty(ports),
        host_config: Some(host_config(config, spec, &options)),
        ..ContainerCreateBody::default()
    };
    Ok(CreateRequest { image, options, body })
}

impl CreateRequest {
    /// Adds the library's own labels (contract D17).
    pub(super) fn with_labels(mut self, created: &str, expires: Option<&str>) -> Self {
        let owner = owner::owner();
        let labels = self.body.labels.get_or_insert_default();
        let mut put = |suffix: &str, value: &str| {
            labels.insert(format!("{}{suffix}", owner::LABEL), value.to_owned());
        };
        put("", "1");
        put(".owner", &owner.id);
        put(".run", &owner.run);
        put(".created", created);
        put(".kind", "sandbox");
        if let Some(expires) = expires {
            put(".expires", expires);
        }
        self
    }
}

/// More than this not every `sleep` can be told; it is 68 years.
const MAX_SLEEP_SECONDS: u64 = i32::MAX as u64;

fn main_process(
    config: &CreateConfig,
    options: &Effective,
    spec: &SandboxSpec,
) -> Result<(Vec<String>, Vec<String>)> {
    if let Some(bad) = spec.entrypoint().iter().find(|argument| argument.contains('\0')) {
        return Err(Error::invalid(
            Operation::Create,
            format!("the entrypoint argument `{}` holds NUL", bad.escape_debug()),
        ));
    }
    match (spec.entrypoint().split_first(), spec.ttl()) {
        // Only the agent could end somebody else's main process in time.
        (Some(_), Some(_)) if options.exec_path == ExecPathPolicy::Engine => Err(Error::unsupported(
            Operation::Create,
            PROVIDER,
            "a ttl together with an entrypoint without the resident agent",
        )
        .with_hint("leave out the ttl, or start the program as a command in a sandbox that is kept alive")),
        (Some((program, arguments)), _) => Ok((vec![program.clone()], arguments.to_vec())),
        (None, None) => Ok((
            vec![config.keepalive_shell.clone()],
            vec!["-c".to_owned(), config.keepalive_cmd.clone()],
        )),
        (None, Some(ttl)) => {
            // Contract C6: at least a second, rounded up.
            let seconds = ttl.as_secs().saturating_add(u64::from(ttl.subsec_nanos() > 0));
            Ok((
                vec![config.keepalive_shell.clone()],
                vec![
                    "-c".to_owned(),
                    format!(
                        "trap 'exit 0' TERM INT; sleep {} & wait $!",
                        seconds.clamp(1, MAX_SLEEP_SECONDS)
                    ),
                ],
            ))
        }
    }
}

fn host_config(config: &CreateConfig, spec: &SandboxSpec, options: &Effective) -> HostConfig {
    let bindings = spec.ports().as_slice().iter().map(|port| {
        let binding = PortBinding {
            host_ip: Some(config.publish_host.clone()),
            // An empty port lets the engine choose one.
            host_port: Some(String::new()),
        };
        (format!("{port}/tcp"), Some(vec![binding]))
    });
    let limits = config.apply_resource_limits;
    let memory = options.memory_mib.filter(|_| limits).map(mebibytes);
    HostConfig {
        network_mode: options.network.clone(),
        port_bindings: (!spec.ports().is_empty()).then(|| bindings.collect()),
        init: Some(options.use_init),
        readonly_rootfs: Some(options.read_only),
        cap_drop: non_empty(options.cap_drop.clone()),
        security_opt: non_empty(options.security_opt.clone()),
        pids_limit: options.pids_limit,
        nano_cpus: spec.resources().cpu.filter(|_| limits).map(nano_cpus),
        memory,
        // Equal to memory means no swap; left out the engine gives twice the memory (engine-facts C12).
        memory_swap: memory,
        log_config: options.log_cap.then(|| HostConfigLogConfig {
            typ: Some("json-file".to_owned()),
            config: Some(HashMap::from([
                ("max-size".to_owned(), "10m".to_owned()),
                ("max-file".to_owned(), "2".to_owned()),
            ])),
        }),
        ..HostConfig::default()
    }
}

fn check_workdir(spec: &SandboxSpec) -> Result<()> {
    match spec.workdir() {
        Some(workdir) if !workdir.starts_with('/') || workdir.contains('\0') => Err(Error::invalid(
            Operation::Create,
            format!(
                "the working directory `{}` is not an absolute path",
                workdir.escape_debug()
            ),
        )),
        _ => Ok(()),
    }
}

fn check_resources(spec: &SandboxSpec) -> Result<()> {
    let resources = spec.resources();
    // The engine takes much less for no limit at all.
    if resources.cpu.is_some_and(|cpu| cpu.is_nan() || cpu < 0.01) {
        return Err(Error::invalid(
            Operation::Create,
            "the resource `cpu` must be at least 0.01",
        ));
    }
    if resources.memory_mib == Some(0)
        || resources
            .memory_mib
            .is_some_and(|mib| mib > i64::MAX as u64 >> 20)
    {
        return Err(Error::invalid(
            Operation::Create,
            "the resource `memory_mib` must be from 1 to 2^43 - 1",
        ));
    }
    // What can't be honoured is refused by name, never dropped (contract D27).
    let refused = [
        (resources.disk_gib.is_some(), "the resource `disk_gib`"),
        (resources.gpu.is_some_and(|gpu| gpu > 0), "the resource `gpu`"),
        (resources.gpu_type.is_some(), "the resource `gpu_type`"),
    ];
    match refused.iter().find(|(asked, _)| *asked) {
        Some((_, what)) => Err(Error::new(
            ErrorKind::Unsupported,
            Operation::Create,
            format!("provider `{PROVIDER}` does not support {what}"),
        )),
        None => Ok(()),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a float is cut to the largest integer, which the engine refuses"
)]
fn nano_cpus(cpu: f64) -> i64 {
    (cpu * 1e9).round() as i64
}

fn mebibytes(mib: u64) -> i64 {
    // The range was checked in `check_resources`.
    i64::try_from(mib << 20).unwrap_or(i64::MAX)
}

fn non_empty<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

#[cfg(test)]
mod tests;
