//! How much of the host a container may use.

use std::collections::BTreeMap;

use serde::Serialize;

/// Limits. What is `None` is not limited.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LimitSpec {
    /// Processors, as in 1.5.
    pub cpus: Option<f64>,
    /// Weight against other containers; the engine's default is 1024.
    pub cpu_shares: Option<i64>,
    /// Length of a scheduler period in microseconds.
    pub cpu_period: Option<i64>,
    /// Microseconds of a period it gets.
    pub cpu_quota: Option<i64>,
    /// Length of a real-time period in microseconds.
    pub cpu_realtime_period: Option<i64>,
    /// Microseconds of a real-time period it gets.
    pub cpu_realtime_runtime: Option<i64>,
    /// Which processors, as in `0-2,4`.
    pub cpuset: Option<String>,
    /// Which memory nodes.
    pub cpuset_mems: Option<String>,
    /// The most memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// The most memory and swap together, in bytes; -1 for unlimited swap. None: as much as `memory_bytes`, so no swap.
    pub memory_swap_bytes: Option<i64>,
    /// Memory it is sure to get, in bytes.
    pub memory_reservation_bytes: Option<u64>,
    /// How readily memory is swapped, 0 to 100.
    pub memory_swappiness: Option<i64>,
    /// Whether the kernel may not kill it for memory.
    pub oom_kill_disable: Option<bool>,
    /// How readily the kernel kills it for memory, -1000 to 1000.
    pub oom_score_adj: Option<i64>,
    /// The most processes and threads; -1 for no limit.
    pub pids: Option<i64>,
    /// The size of `/dev/shm`, in bytes.
    pub shm_bytes: Option<u64>,
    /// Limits of block devices.
    pub block_io: BlockIo,
}

/// Limits of block devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BlockIo {
    /// Weight against other containers, 10 to 1000.
    pub weight: Option<u16>,
    /// Weights of single devices.
    pub device_weights: Vec<BlockWeight>,
    /// The most bytes a second read from a device.
    pub read_bytes: Vec<BlockRate>,
    /// The most bytes a second written to a device.
    pub write_bytes: Vec<BlockRate>,
    /// The most reads a second from a device.
    pub read_operations: Vec<BlockRate>,
    /// The most writes a second to a device.
    pub write_operations: Vec<BlockRate>,
}

/// The weight of a block device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BlockWeight {
    /// The path of the device.
    pub path: String,
    /// Its weight.
    pub weight: u16,
}

/// The rate of a block device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BlockRate {
    /// The path of the device.
    pub path: String,
    /// Bytes or operations a second.
    pub rate: i64,
}

/// A resource limit (`setrlimit`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UlimitSpec {
    /// The name, as in `nofile`.
    pub name: String,
    /// The soft limit; -1 for none.
    pub soft: i64,
    /// The hard limit; -1 for none.
    pub hard: i64,
}

/// A device of the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DeviceSpec {
    /// Its path on the host.
    pub host_path: String,
    /// Its path in the container.
    pub container_path: String,
    /// What is allowed: a part of `rwm`.
    pub permissions: String,
}

/// Devices that a driver gives out, such as graphics cards (Engine API `DeviceRequest`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeviceRequest {
    /// The driver. None for whichever has the capabilities.
    pub driver: Option<String>,
    /// How many; -1 for all.
    pub count: Option<i64>,
    /// Which ones.
    pub device_ids: Vec<String>,
    /// What they must be able to do: one of these lists.
    pub capabilities: Vec<Vec<String>>,
    /// Options of the driver.
    pub options: BTreeMap<String, String>,
}
