//! The flags of `docker run` that a sandbox takes, and the provider options of the same meaning: one table (contract D9,
//! docs/options.md).

use crate::spec::container::HealthTest;

use super::table::{
    ExecDefaults, Flag, Shape, health, insert, log, mount, nothing, push, set, switch, switch_of, text,
    value, value_of,
};
use super::values::{self, Device, number, pair, size, size_or_none};
use super::volumes;

const LIBRARY: &str = "the library decides it";
const SPEC: &str = "the spec says it";

/// All flags, by name.
pub(super) static FLAGS: &[Flag] = &[
    value("add-host", |b, v| {
        b.container.extra_hosts.push(values::host_line(v)?);
        Ok(())
    })
    .option("extra_hosts", Shape::Pairs(':')),
    value("annotation", |b, v| insert(&mut b.container.annotations, v))
        .option("annotations", Shape::Pairs('=')),
    nothing("attach", &["a"], LIBRARY),
    value("blkio-weight", |b, v| {
        set(&mut b.container.limits.block_io.weight, number(v))
    })
    .option("blkio_weight", Shape::One),
    value("blkio-weight-device", |b, v| {
        let weight = values::device_weight(v)?;
        b.container.limits.block_io.device_weights.push(weight);
        Ok(())
    }),
    value("cap-add", |b, v| push(&mut b.container.cap_add, v)).option("cap_add", Shape::Many),
    value("cap-drop", |b, v| push(&mut b.container.cap_drop, v)).option("cap_drop", Shape::Many),
    value("cgroup-parent", |b, v| text(&mut b.container.cgroup_parent, v))
        .option("cgroup_parent", Shape::One),
    value("cgroupns", |b, v| {
        b.container.cgroup_namespace = values::namespace(v)?;
        Ok(())
    })
    .option("cgroupns_mode", Shape::One),
    nothing("cidfile", &[], "the handle has the id"),
    value("cpu-period", |b, v| {
        set(&mut b.container.limits.cpu_period, number(v))
    })
    .option("cpu_period", Shape::One),
    value("cpu-quota", |b, v| {
        set(&mut b.container.limits.cpu_quota, number(v))
    })
    .option("cpu_quota", Shape::One),
    value("cpu-rt-period", |b, v| {
        set(&mut b.container.limits.cpu_realtime_period, number(v))
    }),
    value("cpu-rt-runtime", |b, v| {
        set(&mut b.container.limits.cpu_realtime_runtime, number(v))
    }),
    value("cpu-shares", |b, v| {
        set(&mut b.container.limits.cpu_shares, number(v))
    })
    .or(&["c"])
    .option("cpu_shares", Shape::One),
    value("cpus", |b, v| set(&mut b.container.limits.cpus, number(v))),
    value("cpuset-cpus", |b, v| text(&mut b.container.limits.cpuset, v)).option("cpuset_cpus", Shape::One),
    value("cpuset-mems", |b, v| text(&mut b.container.limits.cpuset_mems, v))
        .option("cpuset_mems", Shape::One),
    nothing("detach", &["d"], LIBRARY),
    nothing("detach-keys", &[], LIBRARY),
    value("device", |b, v| {
        match values::device(v)? {
            Device::Path(device) => b.container.devices.push(device),
            Device::Interface(request) => b.container.device_requests.push(request),
        }
        Ok(())
    })
    .option("devices", Shape::Many),
    value("device-cgroup-rule", |b, v| {
        push(&mut b.container.device_rules, v)
    })
    .option("device_cgroup_rules", Shape::Many),
    value("device-read-bps", |b, v| {
        let rate = values::rate(v, true)?;
        b.container.limits.block_io.read_bytes.push(rate);
        Ok(())
    }),
    value("device-read-iops", |b, v| {
        let rate = values::rate(v, false)?;
        b.container.limits.block_io.read_operations.push(rate);
        Ok(())
    }),
    value("device-write-bps", |b, v| {
        let rate = values::rate(v, true)?;
        b.container.limits.block_io.write_bytes.push(rate);
        Ok(())
    }),
    value("device-write-iops", |b, v| {
        let rate = values::rate(v, false)?;
        b.container.limits.block_io.write_operations.push(rate);
        Ok(())
    }),
    nothing("disable-content-trust", &[], LIBRARY),
    value("dns", |b, v| push(&mut b.container.dns, v)).option("dns", Shape::Many),
    value("dns-option", |b, v| push(&mut b.container.dns_options, v))
        .or(&["dns-opt"])
        .option("dns_opt", Shape::Many),
    value("dns-search", |b, v| push(&mut b.container.dns_search, v)).option("dns_search", Shape::Many),
    value("domainname", |b, v| text(&mut b.container.domainname, v)).option("domainname", Shape::One),
    nothing("entrypoint", &[], SPEC),
    value("env", |b, v| {
        let (name, value) = pair(v).map_err(|_| "it is not NAME=VALUE".to_owned())?;
        b.container.environment.set(name, Some(value));
        Ok(())
    })
    .or(&["e"]),
    nothing(
        "env-file",
        &[],
        "read the file and give its variables in the spec's env",
    ),
    value("expose", |b, v| push(&mut b.container.expose, v)).option("expose", Shape::Many),
    value("gpus", |b, v| {
        b.container.device_requests.push(values::gpus(v)?);
        Ok(())
    })
    .option("gpus", Shape::One),
    value("group-add", |b, v| push(&mut b.container.group_add, v)).option("group_add", Shape::Many),
    value("health-cmd", |b, v| {
        health(b).test = HealthTest::Shell(v.to_owned());
        Ok(())
    }),
    value("health-interval", |b, v| {
        set(&mut health(b).interval, values::duration(v))
    }),
    value("health-retries", |b, v| set(&mut health(b).retries, number(v))),
    value("health-start-interval", |b, v| {
        set(&mut health(b).start_interval, values::duration(v))
    }),
    value("health-start-period", |b, v| {
        set(&mut health(b).start_period, values::duration(v))
    }),
    value("health-timeout", |b, v| {
        set(&mut health(b).timeout, values::duration(v))
    }),
    value("hostname", |b, v| text(&mut b.container.hostname, v))
        .or(&["h"])
        .option("hostname", Shape::One),
    switch("init", |b, v| b.container.init = Some(v)).option("use_init", Shape::Switch),
    nothing(
        "interactive",
        &["i"],
        "a command's standard input is given with the command",
    ),
    value("ip", |b, v| text(&mut b.endpoint.ipv4_address, v)).option("ip", Shape::One),
    value("ip6", |b, v| text(&mut b.endpoint.ipv6_address, v)).option("ip6", Shape::One),
    value("ipc", |b, v| {
        b.container.ipc = values::namespace(v)?;
        Ok(())
    })
    .option("ipc_mode", Shape::One),
    value("isolation", |b, v| text(&mut b.container.isolation, v)),
    nothing("kernel-memory", &[], "engines take it no more"),
    value("label", |b, v| {
        let (name, value) = v.split_once('=').unwrap_or((v, ""));
        if name.is_empty() {
            return Err("the name is empty".to_owned());
        }
        b.container.labels.insert(name.to_owned(), value.to_owned());
        Ok(())
    })
    .or(&["l"])
    .option("labels", Shape::Pairs('=')),
    nothing(
        "label-file",
        &[],
        "read the file and give its labels in the spec's metadata",
    ),
    nothing("link", &[], "use a network and its aliases"),
    value("link-local-ip", |b, v| push(&mut b.endpoint.link_local_ips, v)),
    value("log-driver", |b, v| text(&mut log(b).driver, v)).option("log_driver", Shape::One),
    value("log-opt", |b, v| insert(&mut log(b).options, v)).option("log_opt", Shape::Pairs('=')),
    value("mac-address", |b, v| text(&mut b.container.mac_address, v)).option("mac_address", Shape::One),
    value("memory", |b, v| {
        set(&mut b.container.limits.memory_bytes, size(v))
    })
    .or(&["m"]),
    value("memory-reservation", |b, v| {
        set(&mut b.container.limits.memory_reservation_bytes, size(v))
    })
    .option("memory_reservation", Shape::One),
    value("memory-swap", |b, v| {
        set(&mut b.container.limits.memory_swap_bytes, size_or_none(v))
    })
    .option("memory_swap", Shape::One),
    value("memory-swappiness", |b, v| {
        set(&mut b.container.limits.memory_swappiness, number(v))
    })
    .option("memory_swappiness", Shape::One),
    value("mount", |b, v| {
        let read = volumes::mount(&values::fields(v)?);
        mount(b, read)
    })
    .option("mounts", Shape::Maps),
    nothing(
        "name",
        &[],
        "the library makes names that a lost reply can be cleaned up by",
    ),
    value("network", |b, v| {
        let network = values::network(v)?;
        b.add_network(network);
        Ok(())
    })
    .or(&["net"])
    .option("network", Shape::OneOrMany),
    value("network-alias", |b, v| push(&mut b.endpoint.aliases, v))
        .or(&["net-alias"])
        .option("network_aliases", Shape::Many),
    switch("no-healthcheck", |b, v| {
        if v {
            health(b).test = HealthTest::Disabled;
        }
    })
    .option("no_healthcheck", Shape::Switch),
    switch("oom-kill-disable", |b, v| {
        b.container.limits.oom_kill_disable = v.then_some(true);
    })
    .option("oom_kill_disable", Shape::Switch),
    value("oom-score-adj", |b, v| {
        set(&mut b.container.limits.oom_score_adj, number(v))
    })
    .option("oom_score_adj", Shape::One),
    value("pid", |b, v| {
        b.container.pid = values::namespace(v)?;
        Ok(())
    })
    .option("pid_mode", Shape::One),
    value("pids-limit", |b, v| match number(v)? {
        0 => Err("0 would be no limit; -1 is none".to_owned()),
        pids => set(&mut b.container.limits.pids, Ok(pids)),
    })
    .option("pids_limit", Shape::One),
    value("platform", |b, v| text(&mut b.container.platform, v)).option("platform", Shape::One),
    switch("privileged", |b, v| b.container.privileged = v).option("privileged", Shape::Switch),
    value("publish", |b, v| {
        b.container.ports.extend(values::published(v)?);
        Ok(())
    })
    .or(&["p"])
    .option("publish", Shape::Many),
    nothing("publish-all", &["P"], "name the ports in the spec"),
    nothing("pull", &[], "use the provider option `pull_policy`"),
    nothing("quiet", &["q"], LIBRARY),
    switch("read-only", |b, v| b.container.read_only = v).option("read_only", Shape::Switch),
    nothing("restart", &[], "a sandbox that ends has ended"),
    nothing("rm", &[], "a sandbox is removed when it is closed"),
    value("runtime", |b, v| text(&mut b.container.runtime, v)).option("runtime", Shape::One),
    value("security-opt", |b, v| {
        let option = values::security_option(v)?;
        push(&mut b.container.security_options, &option)
    })
    .option("security_opt", Shape::Many),
    value("shm-size", |b, v| set(&mut b.container.limits.shm_bytes, size(v))).option("shm_size", Shape::One),
    nothing("sig-proxy", &[], LIBRARY),
    value("stop-signal", |b, v| text(&mut b.container.stop_signal, v)).option("stop_signal", Shape::One),
    value("stop-timeout", |b, v| {
        let seconds: u64 = number(v)?;
        b.container.stop_timeout = Some(std::time::Duration::from_secs(seconds));
        Ok(())
    })
    .option("stop_timeout", Shape::One),
    value("storage-opt", |b, v| insert(&mut b.container.storage_options, v))
        .option("storage_opt", Shape::Pairs('=')),
    value("sysctl", |b, v| insert(&mut b.container.sysctls, v)).option("sysctls", Shape::Pairs('=')),
    value("tmpfs", |b, v| mount(b, Ok(volumes::tmpfs(v)))).option("tmpfs", Shape::Pairs(':')),
    nothing("tty", &["t"], "a terminal is made with a terminal session"),
    value("ulimit", |b, v| {
        b.container.ulimits.push(values::ulimit(v)?);
        Ok(())
    })
    .option("ulimits", Shape::Pairs('=')),
    nothing("use-api-socket", &[], "it would hand out the engine"),
    value("user", |b, v| text(&mut b.container.user, v))
        .or(&["u"])
        .option("user", Shape::One),
    value("userns", |b, v| {
        b.container.user_namespace = values::namespace(v)?;
        Ok(())
    })
    .option("userns_mode", Shape::One),
    value("uts", |b, v| {
        b.container.uts = values::namespace(v)?;
        Ok(())
    })
    .option("uts_mode", Shape::One),
    value("volume", |b, v| {
        let read = volumes::volume(v, &b.base);
        mount(b, read)
    })
    .or(&["v"])
    .option("volumes", Shape::OneOrMany),
    nothing("volume-driver", &[], "make the volume before, with its driver"),
    value("volumes-from", |b, v| push(&mut b.container.volumes_from, v)).option("volumes_from", Shape::Many),
    value("workdir", |b, v| text(&mut b.container.working_dir, v)).or(&["w"]),
];

/// The flags of `docker exec`.
pub(super) static EXEC_FLAGS: &[Flag<ExecDefaults>] = &[
    nothing("detach", &["d"], LIBRARY),
    nothing("detach-keys", &[], LIBRARY),
    value_of("env", |d: &mut ExecDefaults, v| {
        d.env
            .push(pair(v).map_err(|_| "it is not NAME=VALUE".to_owned())?);
        Ok(())
    })
    .or(&["e"]),
    nothing("env-file", &[], "give the variables one by one"),
    nothing(
        "interactive",
        &["i"],
        "a command's standard input is given with the command",
    ),
    switch_of("privileged", |d: &mut ExecDefaults, v| d.privileged = v),
    nothing("tty", &["t"], "a terminal is made with a terminal session"),
    value_of("user", |d: &mut ExecDefaults, v| text(&mut d.user, v)).or(&["u"]),
    value_of("workdir", |d: &mut ExecDefaults, v| text(&mut d.workdir, v)).or(&["w"]),
];
