//! How values of flags and options are written: sizes, ports, devices, limits, networks. Pure text to data.

use std::net::IpAddr;
use std::time::Duration;

use crate::spec::container::{
    BlockRate, BlockWeight, DeviceRequest, DeviceSpec, EndpointSpec, NamespaceMode, NetworkAttachment,
    Protocol, PublishedPort, UlimitSpec,
};
use crate::spec::units;

type Parsed<T> = Result<T, String>;

pub(super) fn size(text: &str) -> Parsed<u64> {
    bytes(text).and_then(|bytes| u64::try_from(bytes).map_err(|_| format!("`{text}` is not a size")))
}

/// A size, or -1.
pub(super) fn size_or_none(text: &str) -> Parsed<i64> {
    if text == "-1" {
        return Ok(-1);
    }
    bytes(text)
}

fn bytes(text: &str) -> Parsed<i64> {
    units::parse_bytes(text).map_err(|_| format!("`{text}` is not a size such as 64m"))
}

pub(super) fn number<T: std::str::FromStr>(text: &str) -> Parsed<T> {
    text.parse().map_err(|_| format!("`{text}` is not such a number"))
}

pub(super) fn duration(text: &str) -> Parsed<Duration> {
    let nanoseconds =
        units::parse_duration(text).map_err(|_| format!("`{text}` is not a duration such as 1m30s"))?;
    u64::try_from(nanoseconds)
        .map(Duration::from_nanos)
        .map_err(|_| format!("`{text}` is negative"))
}

/// `NAME=VALUE`.
pub(super) fn pair(text: &str) -> Parsed<(String, String)> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not NAME=VALUE")),
    }
}

/// Fields such as `a=b,c`, with quotes around those that hold a comma.
pub(super) fn fields(text: &str) -> Parsed<Vec<(String, String)>> {
    let mut all = Vec::new();
    let (mut field, mut is_quoted) = (String::new(), false);
    for character in text.chars().chain([',']) {
        match character {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => all.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    if is_quoted {
        return Err(format!("`{text}` has a quote without its end"));
    }
    Ok(all
        .into_iter()
        .map(|field| match field.split_once('=') {
            Some((name, value)) => (name.trim().to_owned(), value.to_owned()),
            None => (field.trim().to_owned(), String::new()),
        })
        .collect())
}

/// `true`, `false`, and for a field without a value true.
pub(super) fn switch(text: &str) -> Parsed<bool> {
    match text {
        "" | "true" | "1" | "t" | "T" | "TRUE" | "True" => Ok(true),
        "false" | "0" | "f" | "F" | "FALSE" | "False" => Ok(false),
        other => Err(format!("`{other}` is neither true nor false")),
    }
}

pub(super) fn host_line(text: &str) -> Parsed<(String, String)> {
    text.split_once(['=', ':'])
        .map(|(name, address)| (name.to_owned(), address.to_owned()))
        .ok_or_else(|| format!("`{text}` is not NAME:ADDRESS"))
}

/// `NAME=SOFT[:HARD]`.
pub(super) fn ulimit(text: &str) -> Parsed<UlimitSpec> {
    let (name, limits) = pair(text)?;
    let (soft, hard) = limits.split_once(':').unwrap_or((&limits, &limits));
    Ok(UlimitSpec {
        name,
        soft: number(soft)?,
        hard: number(hard)?,
    })
}

/// `HOST[:CONTAINER[:PERMISSIONS]]`, or a device of the container device interface such as `vendor.com/class=name`.
pub(super) enum Device {
    Path(DeviceSpec),
    Interface(DeviceRequest),
}

pub(super) fn device(text: &str) -> Parsed<Device> {
    if !text.starts_with('/') {
        let is_cdi = text.split_once('=').is_some_and(|(kind, _)| kind.contains('/'));
        if !is_cdi {
            return Err(format!("`{text}` is neither a path nor VENDOR/CLASS=NAME"));
        }
        return Ok(Device::Interface(DeviceRequest {
            driver: Some("cdi".to_owned()),
            device_ids: vec![text.to_owned()],
            ..DeviceRequest::default()
        }));
    }
    let mut parts = text.split(':');
    let host_path = parts.next().unwrap_or_default().to_owned();
    let (second, third) = (parts.next(), parts.next());
    if parts.next().is_some() {
        return Err(format!("`{text}` has too many parts"));
    }
    // With two parts the second may be the permissions.
    let (container_path, permissions) = match (second, third) {
        (Some(rights), None) if !rights.starts_with('/') => (host_path.clone(), rights),
        (Some(path), rights) => (path.to_owned(), rights.unwrap_or("rwm")),
        (None, _) => (host_path.clone(), "rwm"),
    };
    Ok(Device::Path(DeviceSpec {
        host_path,
        container_path,
        permissions: permissions.to_owned(),
    }))
}

/// `PATH:RATE`, the rate a size or a number.
pub(super) fn rate(text: &str, is_size: bool) -> Parsed<BlockRate> {
    let (path, rate) = text
        .rsplit_once(':')
        .ok_or_else(|| format!("`{text}` is not PATH:RATE"))?;
    Ok(BlockRate {
        path: path.to_owned(),
        rate: if is_size { bytes(rate)? } else { number(rate)? },
    })
}

pub(super) fn device_weight(text: &str) -> Parsed<BlockWeight> {
    let (path, weight) = text
        .rsplit_once(':')
        .ok_or_else(|| format!("`{text}` is not PATH:WEIGHT"))?;
    Ok(BlockWeight {
        path: path.to_owned(),
        weight: number(weight)?,
    })
}

/// `all`, a number, or fields such as `device=0,capabilities=utility`.
pub(super) fn gpus(text: &str) -> Parsed<DeviceRequest> {
    let mut request = DeviceRequest {
        capabilities: vec![vec!["gpu".to_owned()]],
        ..DeviceRequest::default()
    };
    if text == "all" {
        request.count = Some(-1);
        return Ok(request);
    }
    if let Ok(count) = text.parse::<i64>() {
        request.count = Some(count);
        return Ok(request);
    }
    for (name, value) in fields(text)? {
        match name.as_str() {
            "count" if value == "all" => request.count = Some(-1),
            "count" => request.count = Some(number(&value)?),
            "device" => request.device_ids = value.split(',').map(str::to_owned).collect(),
            "driver" => request.driver = Some(value),
            "capabilities" => request.capabilities[0].extend(value.split(',').map(str::to_owned)),
            other => {
                return Err(format!(
                    "`{other}` is none of count, device, driver and capabilities"
                ));
            }
        }
    }
    if request.count.is_none() && request.device_ids.is_empty() {
        request.count = Some(1);
    }
    Ok(request)
}

/// `[[IP:]HOST_PORT:]PORT[/PROTOCOL]`; ranges go with ranges of the same length.
pub(super) fn published(text: &str) -> Parsed<Vec<PublishedPort>> {
    let (rest, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    let protocol = match protocol.to_ascii_lowercase().as_str() {
        "tcp" => Protocol::Tcp,
        "udp" => Protocol::Udp,
        "sctp" => Protocol::Sctp,
        other => return Err(format!("`{other}` is none of tcp, udp and sctp")),
    };
    let (host, container) = rest.rsplit_once(':').unwrap_or(("", rest));
    let (address, host_ports) = match host.rsplit_once(':') {
        Some((address, ports)) => (Some(address), ports),
        None => (None, host),
    };
    let host_ip = address
        .filter(|address| !address.is_empty())
        .map(|address| {
            let plain = address.trim_start_matches('[').trim_end_matches(']');
            // A name such as `localhost` is taken as every address (engine-facts S10).
            plain
                .parse::<IpAddr>()
                .map_err(|_| format!("`{address}` is not an IP address"))
        })
        .transpose()?;
    let targets = range(container)?;
    let sources = if host_ports.is_empty() {
        None
    } else {
        Some(range(host_ports)?)
    };
    let one_to_one = sources.clone().filter(|sources| sources.len() == targets.len());
    if sources.is_some() && one_to_one.is_none() && targets.len() != 1 {
        return Err(format!("`{text}` has ranges of different lengths"));
    }
    Ok(targets
        .enumerate()
        .map(|(index, target)| PublishedPort {
            target,
            protocol,
            host_ip,
            published: match (&sources, &one_to_one) {
                (None, _) => None,
                (_, Some(sources)) => sources.clone().nth(index).map(|port| port.to_string()),
                // One port on any of a range.
                (Some(_), None) => Some(host_ports.to_owned()),
            },
        })
        .collect())
}

fn range(text: &str) -> Parsed<std::ops::RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (number::<u16>(first)?, number::<u16>(last)?);
    if first > last {
        return Err(format!("`{text}` ends before it begins"));
    }
    Ok(first..=last)
}

/// A network's name or mode, or fields such as `name=net,alias=web`.
pub(super) fn network(text: &str) -> Parsed<NetworkAttachment> {
    let fields = if text.contains('=') {
        fields(text)?
    } else {
        vec![("name".to_owned(), text.to_owned())]
    };
    let mut endpoint = EndpointSpec::default();
    for (name, value) in fields {
        match name.as_str() {
            "name" => endpoint.network = value,
            "alias" => endpoint.aliases.push(value),
            "ip" => endpoint.ipv4_address = Some(value),
            "ip6" => endpoint.ipv6_address = Some(value),
            "link-local-ip" => endpoint.link_local_ips.push(value),
            "mac-address" => endpoint.mac_address = Some(value),
            "gw-priority" => endpoint.gateway_priority = Some(number(&value)?),
            "driver-opt" => {
                let (key, value) = pair(&value)?;
                endpoint.driver_options.insert(key, value);
            }
            other => return Err(format!("`{other}` is nothing that can be said of a network")),
        }
    }
    if endpoint.network.is_empty() {
        return Err("the name of the network is empty".to_owned());
    }
    let is_plain = endpoint == EndpointSpec::new(&endpoint.network);
    let mode = match endpoint.network.as_str() {
        "default" | "bridge" => Some(NetworkAttachment::Default),
        "none" => Some(NetworkAttachment::None),
        "host" => Some(NetworkAttachment::Host),
        name => name
            .strip_prefix("container:")
            .map(|name| NetworkAttachment::Container(name.to_owned())),
    };
    match mode {
        Some(mode) if is_plain => Ok(mode),
        Some(_) => Err(format!("nothing more can be said of `{}`", endpoint.network)),
        None => Ok(NetworkAttachment::Networks(vec![endpoint])),
    }
}

pub(super) fn namespace(text: &str) -> Parsed<NamespaceMode> {
    match text {
        "" => Ok(NamespaceMode::Default),
        "private" => Ok(NamespaceMode::Private),
        "shareable" => Ok(NamespaceMode::Shareable),
        "none" => Ok(NamespaceMode::None),
        "host" => Ok(NamespaceMode::Host),
        other => match other.strip_prefix("container:") {
            Some(name) if !name.is_empty() => Ok(NamespaceMode::Container(name.to_owned())),
            _ => Err(format!("`{other}` is no namespace")),
        },
    }
}

/// A security option, which the engine wants with the content of a profile and not with its path.
pub(super) fn security_option(text: &str) -> Parsed<String> {
    let profile = text
        .strip_prefix("seccomp=")
        .or_else(|| text.strip_prefix("seccomp:"));
    match profile {
        Some(profile) if !["unconfined", "builtin"].contains(&profile) && !profile.starts_with('{') => {
            Err("a seccomp profile is given as its JSON text, not as a path".to_owned())
        }
        _ if text.is_empty() => Err("it is empty".to_owned()),
        _ => Ok(text.to_owned()),
    }
}
