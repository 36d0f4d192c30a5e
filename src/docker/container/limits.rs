//! Limits, devices and kernel parameters of a container.

use bollard::models::{
    DeviceMapping, DeviceRequest, HostConfig, ResourcesBlkioWeightDevice, ResourcesUlimits, ThrottleDevice,
};

use crate::error::Result;
use crate::spec::container::{BlockRate, ContainerSpec, LimitSpec, UlimitSpec};

use super::{invalid, map_of, non_empty};

pub(super) fn apply(spec: &ContainerSpec, host: &mut HostConfig) -> Result<()> {
    let limits = &spec.limits;
    check(limits)?;
    host.nano_cpus = limits.cpus.map(nano_cpus);
    host.cpu_shares = limits.cpu_shares;
    host.cpu_period = limits.cpu_period;
    host.cpu_quota = limits.cpu_quota;
    host.cpu_realtime_period = limits.cpu_realtime_period;
    host.cpu_realtime_runtime = limits.cpu_realtime_runtime;
    host.cpuset_cpus.clone_from(&limits.cpuset);
    host.cpuset_mems.clone_from(&limits.cpuset_mems);
    host.memory = limits.memory_bytes.map(bytes);
    // Equal to memory means no swap; left out the engine gives twice the memory (engine-facts C12).
    host.memory_swap = limits.memory_swap_bytes.or(host.memory);
    host.memory_reservation = limits.memory_reservation_bytes.map(bytes);
    host.memory_swappiness = limits.memory_swappiness;
    host.oom_kill_disable = limits.oom_kill_disable;
    host.oom_score_adj = limits.oom_score_adj;
    host.pids_limit = limits.pids;
    host.shm_size = limits.shm_bytes.map(bytes);
    block_io(limits, host);
    host.ulimits = ulimits(&spec.ulimits)?;
    host.sysctls = map_of(&spec.sysctls);
    host.storage_opt = map_of(&spec.storage_options);
    devices(spec, host)
}

fn check(limits: &LimitSpec) -> Result<()> {
    let within =
        |value: Option<i64>, low: i64, high: i64| value.is_none_or(|value| (low..=high).contains(&value));
    let sizes = [
        ("memory", limits.memory_bytes),
        ("memory reservation", limits.memory_reservation_bytes),
        ("shared memory", limits.shm_bytes),
    ];
    // The engine takes 0 for no limit at all.
    if let Some((name, _)) = sizes
        .iter()
        .find(|(_, size)| size.is_some_and(|size| size == 0 || i64::try_from(size).is_err()))
    {
        return Err(invalid(format!(
            "the size of the {name} must be over 0 and below 2^63 bytes"
        )));
    }
    let checks = [
        (
            limits.cpus.is_none_or(|cpus| cpus.is_finite() && cpus >= 0.01),
            "the number of processors must be at least 0.01",
        ),
        (
            limits.memory_swap_bytes.is_none() || limits.memory_bytes.is_some(),
            "a limit of memory and swap together needs one of memory",
        ),
        (
            limits.memory_swap_bytes.is_none_or(|swap| swap == -1 || swap > 0),
            "memory and swap together must be over 0 bytes, or -1",
        ),
        (
            limits.pids.is_none_or(|pids| pids == -1 || pids > 0),
            "the limit of processes must be over 0, or -1 for none",
        ),
        (
            within(limits.oom_score_adj, -1000, 1000),
            "the OOM score adjustment must be from -1000 to 1000",
        ),
        (
            within(limits.memory_swappiness, 0, 100),
            "the swappiness must be from 0 to 100",
        ),
    ];
    match checks.iter().find(|(holds, _)| !holds) {
        Some((_, problem)) => Err(invalid((*problem).to_owned())),
        None => Ok(()),
    }
}

fn block_io(limits: &LimitSpec, host: &mut HostConfig) {
    let io = &limits.block_io;
    host.blkio_weight = io.weight;
    host.blkio_weight_device = non_empty(
        io.device_weights
            .iter()
            .map(|device| ResourcesBlkioWeightDevice {
                path: Some(device.path.clone()),
                weight: Some(usize::from(device.weight)),
            })
            .collect(),
    );
    host.blkio_device_read_bps = rates(&io.read_bytes);
    host.blkio_device_write_bps = rates(&io.write_bytes);
    host.blkio_device_read_iops = rates(&io.read_operations);
    host.blkio_device_write_iops = rates(&io.write_operations);
}

fn rates(rates: &[BlockRate]) -> Option<Vec<ThrottleDevice>> {
    non_empty(
        rates
            .iter()
            .map(|rate| ThrottleDevice {
                path: Some(rate.path.clone()),
                rate: Some(rate.rate),
            })
            .collect(),
    )
}

fn ulimits(ulimits: &[UlimitSpec]) -> Result<Option<Vec<ResourcesUlimits>>> {
    for limit in ulimits {
        let over = limit.soft == -1 || limit.soft > limit.hard;
        if limit.hard != -1 && over {
            return Err(invalid(format!(
                "the soft limit of ulimit `{}` is over its hard limit",
                limit.name.escape_debug()
            )));
        }
        if limit.soft < -1 || limit.hard < -1 {
            return Err(invalid(format!(
                "ulimit `{}` must be at least 0, or -1 for none",
                limit.name.escape_debug()
            )));
        }
    }
    Ok(non_empty(
        ulimits
            .iter()
            .map(|limit| ResourcesUlimits {
                name: Some(limit.name.clone()),
                soft: Some(limit.soft),
                hard: Some(limit.hard),
            })
            .collect(),
    ))
}

fn devices(spec: &ContainerSpec, host: &mut HostConfig) -> Result<()> {
    for device in &spec.devices {
        let permissions = device.permissions.as_str();
        if !permissions.bytes().all(|byte| b"rwm".contains(&byte)) {
            return Err(invalid(format!(
                "the permissions `{}` of device `{}` are not of r, w and m",
                permissions.escape_debug(),
                device.host_path.escape_debug()
            )));
        }
    }
    let or = |text: &str, default: &str| Some(if text.is_empty() { default } else { text }.to_owned());
    host.devices = non_empty(
        spec.devices
            .iter()
            .map(|device| DeviceMapping {
                path_on_host: Some(device.host_path.clone()),
                path_in_container: or(&device.container_path, &device.host_path),
                cgroup_permissions: or(&device.permissions, "rwm"),
            })
            .collect(),
    );
    host.device_cgroup_rules = non_empty(spec.device_rules.clone());
    host.device_requests = non_empty(
        spec.device_requests
            .iter()
            .map(|request| DeviceRequest {
                driver: request.driver.clone(),
                // Without a number and names all are meant, as for the docker command.
                count: request
                    .count
                    .or_else(|| request.device_ids.is_empty().then_some(-1)),
                device_ids: non_empty(request.device_ids.clone()),
                capabilities: non_empty(request.capabilities.clone()),
                options: map_of(&request.options),
            })
            .collect(),
    );
    Ok(())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a float is cut to the largest integer, which the engine refuses"
)]
fn nano_cpus(cpus: f64) -> i64 {
    (cpus * 1e9).round() as i64
}

fn bytes(size: u64) -> i64 {
    // The range was checked.
    i64::try_from(size).unwrap_or(i64::MAX)
}
