//! What a container may use of its host, and what holds it.

use super::service::Subject;
use super::{Notes, Planner, service_path, text};
use crate::compose::model::{BlkioConfig, BlkioLimit, ByteSize, DeviceRequest as Request, Ulimit};
use crate::spec::container::{
    BlockIo, BlockRate, BlockWeight, ContainerSpec, DeviceRequest, DeviceSpec, LimitSpec, NamespaceMode,
    UlimitSpec,
};

pub(super) fn apply(
    planner: &Planner<'_>,
    subject: &Subject<'_>,
    spec: &mut ContainerSpec,
    notes: &mut Notes,
) {
    let service = subject.service;
    spec.limits = limits(planner, subject);
    spec.ulimits = service
        .ulimits
        .iter()
        .map(|(name, limit)| {
            let (soft, hard) = match *limit {
                Ulimit::Single(both) => (both, both),
                Ulimit::Pair { soft, hard } => (soft, hard),
            };
            UlimitSpec {
                name: name.clone(),
                soft,
                hard,
            }
        })
        .collect();
    spec.sysctls.clone_from(&service.sysctls);
    spec.storage_options.clone_from(&service.storage_opt);
    spec.read_only = service.read_only;
    devices(subject, spec);
    spec.device_rules.clone_from(&service.device_cgroup_rules);
    spec.cap_add.clone_from(&service.cap_add);
    spec.cap_drop.clone_from(&service.cap_drop);
    spec.security_options.clone_from(&service.security_opt);
    spec.privileged = service.privileged;
    spec.ipc = namespace(planner, subject, "ipc", &service.ipc, notes);
    spec.pid = namespace(planner, subject, "pid", &service.pid, notes);
    spec.uts = namespace(planner, subject, "uts", &service.uts, notes);
    spec.user_namespace = namespace(planner, subject, "userns_mode", &service.userns_mode, notes);
    spec.cgroup_namespace = namespace(planner, subject, "cgroup", &service.cgroup, notes);
    spec.cgroup_parent = text(&service.cgroup_parent);
    spec.runtime = text(&service.runtime);
}

fn limits(planner: &Planner<'_>, subject: &Subject<'_>) -> LimitSpec {
    let service = subject.service;
    let given = planner
        .options
        .service_specs
        .get(subject.name)
        .map(crate::spec::SandboxSpec::resources);
    let deploy = service.deploy.as_ref().map(|deploy| &deploy.resources);
    let most = deploy.and_then(|resources| resources.limits.as_ref());
    let least = deploy.and_then(|resources| resources.reservations.as_ref());
    let cpus = most.map(|limits| limits.cpus).filter(|&cpus| cpus > 0.0);
    let memory = most.and_then(|limits| bytes(limits.memory));
    let mut limits = LimitSpec::default();
    limits.cpus = Some(cpus.unwrap_or(service.cpus))
        .filter(|&cpus| cpus > 0.0)
        .map(exact)
        .or_else(|| given.and_then(|given| given.cpu));
    limits.memory_bytes = memory
        .or_else(|| bytes(service.mem_limit))
        .or_else(|| given.and_then(|given| given.memory_mib).map(|mib| mib << 20));
    limits.memory_reservation_bytes = least
        .and_then(|reserved| bytes(reserved.memory))
        .or_else(|| bytes(service.mem_reservation));
    limits.memory_swap_bytes = match service.memswap_limit.bytes() {
        // As the engine does by itself for docker compose: as much swap as memory.
        0 => limits
            .memory_bytes
            .and_then(|bytes| i64::try_from(bytes.saturating_mul(2)).ok()),
        limit => Some(limit),
    };
    limits.memory_swappiness = given_number(service.mem_swappiness.bytes());
    limits.pids = most
        .map(|limits| limits.pids)
        .and_then(given_number)
        .or_else(|| given_number(service.pids_limit));
    limits.shm_bytes = bytes(service.shm_size);
    limits.cpu_shares = given_number(service.cpu_shares);
    limits.cpu_period = given_number(service.cpu_period);
    limits.cpu_quota = given_number(service.cpu_quota);
    limits.cpu_realtime_period = given_number(service.cpu_rt_period);
    limits.cpu_realtime_runtime = given_number(service.cpu_rt_runtime);
    limits.cpuset = text(&service.cpuset);
    limits.oom_kill_disable = service.oom_kill_disable.then_some(true);
    limits.oom_score_adj = given_number(service.oom_score_adj);
    if let Some(block_io) = &service.blkio_config {
        limits.block_io = self::block_io(block_io);
    }
    limits
}

/// The reference multiplies as a 32-bit float: 0.1 is 100,000,000 billionths there and not 100,000,001.
fn exact(cpus: f32) -> f64 {
    f64::from(cpus * 1e9_f32) / 1e9
}

fn bytes(size: ByteSize) -> Option<u64> {
    u64::try_from(size.bytes()).ok().filter(|&bytes| bytes > 0)
}

/// 0 stands for "not given", as with the engine.
fn given_number(value: i64) -> Option<i64> {
    (value != 0).then_some(value)
}

fn block_io(config: &BlkioConfig) -> BlockIo {
    let rates = |limits: &[BlkioLimit]| {
        limits
            .iter()
            .map(|limit| BlockRate {
                path: limit.path.clone(),
                rate: limit.rate.bytes(),
            })
            .collect()
    };
    BlockIo {
        weight: (config.weight > 0).then_some(config.weight),
        device_weights: config
            .weight_device
            .iter()
            .map(|device| BlockWeight {
                path: device.path.clone(),
                weight: device.weight,
            })
            .collect(),
        read_bytes: rates(&config.device_read_bps),
        write_bytes: rates(&config.device_write_bps),
        read_operations: rates(&config.device_read_iops),
        write_operations: rates(&config.device_write_iops),
    }
}

fn devices(subject: &Subject<'_>, spec: &mut ContainerSpec) {
    let service = subject.service;
    for device in &service.devices {
        // `vendor/class=name`, without a leading slash, is a name of the Container Device Interface.
        let is_cdi = !device.source.starts_with('/') && device.source.contains('=');
        if is_cdi {
            let request = DeviceRequest {
                driver: Some("cdi".to_owned()),
                device_ids: vec![device.source.clone()],
                ..DeviceRequest::default()
            };
            spec.device_requests.push(request);
            continue;
        }
        spec.devices.push(DeviceSpec {
            host_path: device.source.clone(),
            container_path: text(&device.target).unwrap_or_else(|| device.source.clone()),
            permissions: text(&device.permissions).unwrap_or_else(|| "rwm".to_owned()),
        });
    }
    let reserved = service
        .deploy
        .as_ref()
        .and_then(|deploy| deploy.resources.reservations.as_ref())
        .map(|reserved| reserved.devices.as_slice())
        .unwrap_or_default();
    spec.device_requests
        .extend(reserved.iter().map(|device| request(device, false)));
    spec.device_requests
        .extend(service.gpus.iter().map(|device| request(device, true)));
}

fn request(device: &Request, is_gpu: bool) -> DeviceRequest {
    let mut capabilities = device.capabilities.clone();
    if is_gpu && !capabilities.iter().any(|capability| capability == "gpu") {
        capabilities.push("gpu".to_owned());
    }
    DeviceRequest {
        driver: text(&device.driver),
        count: match device.count.get() {
            0 if device.device_ids.is_empty() => Some(-1),
            0 => None,
            count => Some(count),
        },
        device_ids: device.device_ids.clone(),
        capabilities: vec![capabilities],
        options: device.options.clone(),
    }
}

fn namespace(
    planner: &Planner<'_>,
    subject: &Subject<'_>,
    key: &str,
    value: &str,
    notes: &mut Notes,
) -> NamespaceMode {
    if let Some(other) = value.strip_prefix("service:") {
        return NamespaceMode::Container(planner.first_container(subject, key, other, notes));
    }
    if let Some(other) = value.strip_prefix("container:") {
        return NamespaceMode::Container(other.to_owned());
    }
    match value {
        "" => NamespaceMode::Default,
        "private" => NamespaceMode::Private,
        "shareable" => NamespaceMode::Shareable,
        "none" => NamespaceMode::None,
        "host" => NamespaceMode::Host,
        other => {
            let message = format!("`{other}` is no such namespace");
            notes.error(service_path(subject.name, key), message, None);
            NamespaceMode::Default
        }
    }
}
