//! The short forms of ports, mounts and devices, read from their text.
//!
//! Text to plain data; putting them into the tree is canonical.rs's work.

/// One published port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) host_ip: String,
    pub(crate) published: String,
    pub(crate) target: u16,
    pub(crate) protocol: String,
}

/// The protocols a port may have.
const PROTOCOLS: &[&str] = &["tcp", "udp", "sctp"];

/// Reads `[ip:][published[-end]:]target[-end][/protocol]`.
///
/// # Errors
///
/// The text is no port; the message says which part.
pub(crate) fn parse_port(text: &str) -> Result<Vec<Port>, String> {
    let pieces: Vec<&str> = text.split(':').collect();
    let container = pieces.last().copied().unwrap_or_default();
    let (host_ip, published) = match pieces.len() {
        0 | 1 => (String::new(), ""),
        2 => (String::new(), pieces[0]),
        length => (pieces[..length - 2].join(":"), pieces[length - 2]),
    };
    let (protocol, container) = split_protocol(container);
    let host_ip = read_address(&host_ip)?;
    if container.is_empty() {
        return Err(format!("no port specified: {text}<empty>"));
    }
    let (start, end) = parse_range(container).ok_or_else(|| format!("invalid containerPort: {container}"))?;
    let mut wanted = None;
    if !published.is_empty() {
        let range = parse_range(published).ok_or_else(|| format!("invalid hostPort: {published}"))?;
        if range.1 - range.0 != end - start && start != end {
            return Err(format!(
                "invalid ranges specified for container and host Ports: {container} and {published}"
            ));
        }
        wanted = Some(range);
    }
    let protocol = protocol.to_lowercase();
    if !PROTOCOLS.contains(&protocol.as_str()) {
        return Err(format!("invalid proto: {protocol}"));
    }
    let mut ports: Vec<Port> = (start..=end)
        .map(|target| Port {
            host_ip: host_ip.clone(),
            published: match wanted {
                None => String::new(),
                // One target and several host ports: the engine chooses one of them.
                Some((first, last)) if start == end && first != last => format!("{first}-{last}"),
                Some((first, _)) => (first + (target - start)).to_string(),
            },
            target,
            protocol: protocol.clone(),
        })
        .collect();
    // The reference orders a range by the text of its ports.
    ports.sort_by_key(|port| port.target.to_string());
    Ok(ports)
}

fn split_protocol(container: &str) -> (&str, &str) {
    let mut parts = container.split('/');
    let port = parts.next().unwrap_or_default();
    match parts.next() {
        _ if port.is_empty() => ("", ""),
        None | Some("") => ("tcp", port),
        Some(protocol) => (protocol, port),
    }
}

fn read_address(text: &str) -> Result<String, String> {
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest
            .strip_suffix(']')
            .ok_or_else(|| format!("invalid ip address {text}"))?,
        None if text.contains(':') => {
            return Err(format!("invalid ip address {text}: too many colons in address"));
        }
        None => text,
    };
    if bare.is_empty() || is_ip_address(bare) {
        Ok(bare.to_owned())
    } else {
        Err(format!("invalid ip address: {bare}"))
    }
}

/// Tells whether text is an IPv4 or IPv6 address.
pub(crate) fn is_ip_address(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok()
}

/// Reads `8000` or `8000-9000`.
pub(crate) fn parse_range(text: &str) -> Option<(u16, u16)> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u16>().ok()).flatten()
    };
    let mut parts = text.split('-');
    let start = number(parts.next()?)?;
    let end = parts.next().map_or(Some(start), number)?;
    (start <= end).then_some((start, end))
}

/// One mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one word of the short form")]
pub(crate) struct Mount {
    pub(crate) source: String,
    pub(crate) target: String,
    pub(crate) is_bind: bool,
    pub(crate) read_only: bool,
    pub(crate) nocopy: bool,
    pub(crate) propagation: Option<String>,
    pub(crate) selinux: Option<String>,
    /// Options the reference ignores without a word.
    pub(crate) ignored: Vec<String>,
    /// Set when a one-letter name was read as a Windows drive.
    pub(crate) drive: bool,
    /// Set for a target of one or two characters, which the reference gives no volume options.
    pub(crate) tiny: bool,
}

impl Mount {
    /// Tells whether the author surely meant a volume of one letter, which was read as a Windows drive.
    pub(crate) fn is_misread_name(&self) -> bool {
        let drive = self.drive
            && is_file_path(if self.source.is_empty() {
                &self.target
            } else {
                &self.source
            });
        drive && (self.source.is_empty() || !self.target.starts_with('/') && !is_file_path(&self.target))
    }
}

/// Reads `[source:]target[:options]`.
///
/// # Errors
///
/// A part is empty, or there are too many.
pub(crate) fn parse_mount(text: &str) -> Result<Mount, String> {
    if text.is_empty() {
        return Err("invalid empty volume spec".to_owned());
    }
    if text.len() <= 2 {
        return Ok(Mount {
            target: text.to_owned(),
            tiny: true,
            ..Mount::default()
        });
    }
    let mut mount = Mount::default();
    let parts = split_mount(text, &mut mount);
    let last = parts.len() - 1;
    for (position, part) in parts.into_iter().enumerate() {
        if part.is_empty() {
            return Err(format!("invalid spec: {text}: empty section between colons"));
        }
        if mount.source.is_empty() && position == last {
            mount.target = part;
        } else if mount.source.is_empty() {
            mount.source = part;
        } else if mount.target.is_empty() {
            mount.target = part;
        } else if position < last {
            return Err(format!("invalid spec: {text}: too many colons"));
        } else {
            part.split(',')
                .for_each(|option| apply_option(&mut mount, option));
        }
    }
    mount.is_bind = is_file_path(&mount.source);
    Ok(mount)
}

/// Splits at colons, except after a single letter (a drive) and inside `${...}`.
fn split_mount(text: &str, mount: &mut Mount) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut variables = 0usize;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let part = parts.last_mut().expect("there is always a last part");
        match c {
            '$' if characters.peek() == Some(&'{') => {
                variables += 1;
                part.push(c);
            }
            '}' if variables > 0 => {
                variables -= 1;
                part.push(c);
            }
            ':' if is_letter(part) => {
                mount.drive = true;
                part.push(c);
            }
            ':' if variables == 0 => parts.push(String::new()),
            _ => part.push(c),
        }
    }
    parts
}

fn is_letter(part: &str) -> bool {
    let mut characters = part.chars();
    characters.next().is_some_and(char::is_alphabetic) && characters.next().is_none()
}

const PROPAGATIONS: &[&str] = &["rprivate", "private", "rshared", "shared", "rslave", "slave"];

fn apply_option(mount: &mut Mount, option: &str) {
    match option {
        "ro" => mount.read_only = true,
        "rw" => mount.read_only = false,
        "nocopy" => mount.nocopy = true,
        "z" | "Z" => mount.selinux = Some(option.to_owned()),
        _ if PROPAGATIONS.contains(&option) => mount.propagation = Some(option.to_owned()),
        _ => mount.ignored.push(option.to_owned()),
    }
}

/// Tells whether a source is a path rather than the name of a volume.
fn is_file_path(source: &str) -> bool {
    if source.starts_with(['.', '/', '~']) || source.starts_with(r"\\") {
        return true;
    }
    let mut characters = source.chars();
    characters.next().is_some_and(char::is_alphabetic) && characters.next() == Some(':')
}

/// Reads a device `source[:target[:permissions]]`.
///
/// # Errors
///
/// There are too many parts.
pub(crate) fn parse_device(text: &str) -> Result<[String; 3], String> {
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() > 3 {
        return Err(format!(
            "confusing device mapping, please use long syntax: {text}"
        ));
    }
    let source = parts[0];
    let target = parts
        .get(1)
        .copied()
        .filter(|target| !target.is_empty())
        .unwrap_or(source);
    let permissions = parts.get(2).copied().unwrap_or("rwm");
    Ok([source.to_owned(), target.to_owned(), permissions.to_owned()])
}

#[cfg(test)]
mod tests;
