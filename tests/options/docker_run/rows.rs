//! Every flag that is taken, with a value, and where inspect shows it.

/// A flag, its value, and the part of what is compared that shows it. A switch has no value; a part is empty where the
/// value is what every container has.
pub(super) type Row = (&'static str, &'static str, &'static str);

/// What stands for something of the machine or of the test in a value.
pub(super) const NETWORK: &str = "{network}";
pub(super) const PREFIX: &str = "{prefix}";
pub(super) const CONTAINER: &str = "{container}";
pub(super) const DISK: &str = "{disk}";
pub(super) const PARENT: &str = "{parent}";
pub(super) const PLATFORM: &str = "{platform}";
/// The one that is not the engine's own.
pub(super) const CGROUPNS: &str = "{cgroupns}";

/// Rows that one container can have together, and nothing that differs on purpose (docs/options.md): no memory without
/// swap, no port without an address. What an engine may refuse stands alone.
pub(super) const GROUPS: &[&[Row]] = &[
    &[
        ("--shm-size", "8m", "ShmSize"),
        ("--memory", "64m", "Memory"),
        ("--memory-swap", "128m", "MemorySwap"),
        ("--cpus", "0.5", "NanoCpus"),
        ("--pids-limit", "40", "PidsLimit"),
    ],
    &[
        ("--memory", "64m", "Memory"),
        ("--memory-swap", "-1", "MemorySwap"),
        ("--memory-reservation", "32m", "MemoryReservation"),
        ("--cpu-shares", "512", "CpuShares"),
        ("--cpu-period", "50000", "CpuPeriod"),
        ("--cpu-quota", "25000", "CpuQuota"),
        ("--cpuset-cpus", "0", "CpusetCpus"),
        ("--cpuset-mems", "0", "CpusetMems"),
        ("--oom-score-adj", "5", "OomScoreAdj"),
        ("--ulimit", "nofile=100:200", "Ulimits"),
        ("--ulimit", "core=0", "Ulimits"),
    ],
    &[
        ("--volume", "/anonymous", "mounts"),
        ("--tmpfs", "/t:size=1m,mode=700", "Tmpfs"),
        ("--mount", "type=volume,dst=/m,volume-nocopy", "mounts"),
        ("--volumes-from", CONTAINER, "VolumesFrom"),
    ],
    &[
        ("--cap-drop", "ALL", "CapDrop"),
        ("--cap-add", "chown", "CapAdd"),
        ("--security-opt", "no-new-privileges", "SecurityOpt"),
        ("--device", "/dev/null:/dev/x:rw", "Devices"),
        ("--device-cgroup-rule", "c 1:3 rwm", "DeviceCgroupRules"),
    ],
    &[
        ("--hostname", "box", "hostname"),
        ("--domainname", "x.test", "domainname"),
        ("--add-host", "a:10.0.0.1", "ExtraHosts"),
        ("--dns", "10.0.0.2", "Dns"),
        ("--dns-search", "x.test", "DnsSearch"),
        ("--dns-option", "ndots:2", "DnsOptions"),
    ],
    &[
        ("--publish", "127.0.0.1::8080", "bindings"),
        ("--publish", "127.0.0.1:0:53/udp", "bindings"),
        ("--expose", "99", "exposed ports"),
        ("--expose", "100-101", "exposed ports"),
    ],
    &[
        ("--user", "1:2", "user"),
        ("--workdir", "/tmp", "workdir"),
        ("--env", "A=b c", "env"),
        ("--label", "x=y", "labels"),
        ("--label", "z", "labels"),
        ("--group-add", "5", "GroupAdd"),
        ("--platform", PLATFORM, ""),
    ],
    &[
        ("--read-only", "", "ReadonlyRootfs"),
        ("--ipc", "none", "IpcMode"),
        ("--stop-signal", "SIGINT", "stop signal"),
        ("--stop-timeout", "3", "stop timeout"),
        ("--no-healthcheck", "", "health"),
        ("--isolation", "default", ""),
    ],
    &[
        ("--sysctl", "net.core.somaxconn=100", "Sysctls"),
        ("--log-driver", "local", "LogConfig"),
        ("--log-opt", "max-size=1m", "LogConfig"),
        ("--cgroup-parent", PARENT, "CgroupParent"),
    ],
    &[
        ("--health-cmd", "true", "health"),
        ("--health-interval", "3s", "health"),
        ("--health-retries", "2", "health"),
        ("--health-start-period", "2s", "health"),
        ("--health-timeout", "1m1s", "health"),
    ],
    &[
        ("--network", NETWORK, "NetworkMode"),
        ("--network-alias", "other", "endpoint"),
        ("--ip", "{prefix}.77", "endpoint"),
        ("--link-local-ip", "169.254.7.7", "endpoint"),
    ],
    &[
        ("--network", NETWORK, "NetworkMode"),
        ("--ip6", "fd00:6a73:1::77", "endpoint"),
    ],
    &[("--mac-address", "02:42:fe:00:00:07", "endpoint")],
    &[("--network", "none", "NetworkMode")],
    &[
        ("--init", "", "Init"),
        ("--runtime", "runc", ""),
        ("--cgroupns", CGROUPNS, "CgroupnsMode"),
    ],
    &[
        ("--pid", "host", "PidMode"),
        ("--uts", "host", "UTSMode"),
        ("--userns", "host", "UsernsMode"),
    ],
    &[("--privileged", "", "Privileged")],
    &[("--annotation", "x.test/y=z", "Annotations")],
    &[
        ("--health-cmd", "true", "health"),
        ("--health-start-interval", "1s", "health"),
    ],
    &[("--storage-opt", "size=1g", "StorageOpt")],
    &[("--gpus", "1", "DeviceRequests")],
    &[("--memory-swappiness", "7", "MemorySwappiness")],
    &[("--oom-kill-disable", "", "OomKillDisable")],
    &[("--cpu-rt-period", "100000", "CpuRealtimePeriod")],
    &[("--cpu-rt-runtime", "1000", "CpuRealtimeRuntime")],
    &[("--blkio-weight", "300", "BlkioWeight")],
    &[("--blkio-weight-device", "{disk}:200", "BlkioWeightDevice")],
    &[
        ("--device-read-bps", "{disk}:1mb", "BlkioDeviceReadBps"),
        ("--device-read-iops", "{disk}:100", "BlkioDeviceReadIOps"),
        ("--device-write-bps", "{disk}:2mb", "BlkioDeviceWriteBps"),
        ("--device-write-iops", "{disk}:200", "BlkioDeviceWriteIOps"),
    ],
];

/// How arguments are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// `--flag value`
    Apart,
    /// `--flag=value`
    Joined,
    /// By the flag's other name, where it has one: `-fvalue` or `--other=value`.
    ByAlias,
}

impl Spelling {
    pub(super) const ALL: [Self; 3] = [Self::Apart, Self::Joined, Self::ByAlias];

    /// A flag with its value. `alias` is its other name.
    pub(super) fn arguments(self, flag: &str, value: &str, alias: Option<&str>) -> Vec<String> {
        match (self, alias, value) {
            (Self::Apart, _, "") => vec![flag.to_owned()],
            (Self::Apart, ..) => vec![flag.to_owned(), value.to_owned()],
            (Self::Joined, _, "") => vec![format!("{flag}=true")],
            (Self::Joined, ..) | (Self::ByAlias, None, _) if !value.is_empty() => {
                vec![format!("{flag}={value}")]
            }
            (Self::ByAlias, Some(alias), _) if alias.starts_with("--") => vec![format!("{alias}={value}")],
            (Self::ByAlias, Some(alias), _) => vec![format!("{alias}{value}")],
            _ => vec![flag.to_owned()],
        }
    }
}
