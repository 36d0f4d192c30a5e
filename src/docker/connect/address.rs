//! An engine's address: the text a user writes and what it means. Reads no file and opens no connection.

use std::fmt;
use std::path::PathBuf;

/// The longest path a unix socket can have on Linux: `sun_path` holds 108 bytes with the final NUL.
const MAX_SOCKET_PATH_BYTES: usize = 107;

/// Where the remote engine listens when an `ssh://` address names no socket.
const REMOTE_SOCKET: &str = "/var/run/docker.sock";

/// Where an engine listens and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    Unix(PathBuf),
    Tcp {
        host: String,
        port: u16,
        tls: Option<TlsFiles>,
    },
    Ssh(SshAddress),
}

/// A machine reached by the `ssh` program, and the engine's socket on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SshAddress {
    pub(super) user: Option<String>,
    pub(super) host: String,
    pub(super) port: Option<u16>,
    pub(super) socket: String,
}

/// The folder that holds `ca.pem`, `cert.pem` and `key.pem`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TlsFiles {
    pub(super) directory: PathBuf,
    pub(super) presence: Presence,
}

/// Which of the files must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// All three: the user named the folder.
    All,
    /// None: what is missing is not used.
    Any,
}

/// What `tcp://` and `https://` addresses use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TlsSettings {
    /// For `tcp://`; without it such an address is spoken to in the clear.
    pub(super) tcp: Option<TlsFiles>,
    /// For `https://`, which is always TLS.
    pub(super) https: TlsFiles,
}

impl Address {
    /// Reads an address. The error says what is wrong with it, without the address itself.
    pub(super) fn parse(text: &str, tls: &TlsSettings) -> Result<Self, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err("it has no scheme; an address starts with `unix://`, `tcp://`, `http://`, `https://` or `ssh://`"
                .to_owned());
        };
        match scheme {
            "unix" => unix(rest),
            "tcp" => tcp(rest, if tls.tcp.is_some() { 2376 } else { 2375 }, tls.tcp.clone()),
            "http" => tcp(rest, 80, None),
            "https" => tcp(rest, 443, Some(tls.https.clone())),
            "ssh" => ssh(rest).map(Self::Ssh),
            "npipe" => Err("named pipes exist on Windows only".to_owned()),
            _ => Err(format!(
                "its scheme `{scheme}` is not one of `unix`, `tcp`, `http`, `https`, `ssh`"
            )),
        }
    }

    /// Says whether what this engine publishes on its loopback address can be reached on ours.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp { host, .. } => {
                let address = host.trim_start_matches('[').trim_end_matches(']');
                host == "localhost"
                    || address
                        .parse::<std::net::IpAddr>()
                        .is_ok_and(|address| address.is_loopback())
            }
            Self::Ssh(_) => false,
        }
    }

    /// The machine of an engine that is elsewhere.
    pub(super) fn remote_host(&self) -> Option<&str> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp { host, .. } | Self::Ssh(SshAddress { host, .. }) => (!self.is_local()).then_some(host),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp {
                host,
                port,
                tls: None,
            } => write!(f, "tcp://{host}:{port}"),
            Self::Tcp {
                host,
                port,
                tls: Some(_),
            } => write!(f, "https://{host}:{port}"),
            Self::Ssh(SshAddress {
                user,
                host,
                port,
                socket,
            }) => {
                f.write_str("ssh://")?;
                if let Some(user) = user {
                    write!(f, "{user}@")?;
                }
                f.write_str(host)?;
                if let Some(port) = port {
                    write!(f, ":{port}")?;
                }
                if socket != REMOTE_SOCKET {
                    f.write_str(socket)?;
                }
                Ok(())
            }
        }
    }
}

/// An address as the user wrote it, fit for an error: without what stands between `://` and `@`, which may hold a
/// password. A user name alone is kept.
pub(super) fn redacted(text: &str) -> String {
    let start = text.find("://").map_or(0, |scheme| scheme + 3);
    let Some(end) = text[start..].rfind('@').map(|at| start + at) else {
        return text.to_owned();
    };
    match text[start..end].find(':') {
        Some(colon) => format!("{}:***{}", &text[..start + colon], &text[end..]),
        None => text.to_owned(),
    }
}

fn unix(path: &str) -> Result<Address, String> {
    if !path.starts_with('/') {
        return Err(
            "the path after `unix://` is not absolute; write `unix:///path/to/engine.sock`".to_owned(),
        );
    }
    if path.contains('\0') {
        return Err("the path holds a NUL".to_owned());
    }
    if path.len() > MAX_SOCKET_PATH_BYTES {
        return Err(format!(
            "the path has {} bytes and a unix socket's can have {MAX_SOCKET_PATH_BYTES}",
            path.len()
        ));
    }
    Ok(Address::Unix(path.into()))
}

fn tcp(rest: &str, default_port: u16, tls: Option<TlsFiles>) -> Result<Address, String> {
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains(['/', '?', '#']) {
        return Err("a path after the port is not supported".to_owned());
    }
    if authority.contains('@') {
        return Err("user and password are not supported; use a client certificate".to_owned());
    }
    let (host, port) = host_and_port(authority)?;
    // `tcp://:2375` is what engines are told to listen on; as a destination it is this machine.
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Ok(Address::Tcp {
        host: host.to_owned(),
        port: port.unwrap_or(default_port),
        tls,
    })
}

fn ssh(rest: &str) -> Result<SshAddress, String> {
    let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
    let (user, destination) = match authority.rsplit_once('@') {
        Some((user, destination)) => (Some(user), destination),
        None => (None, authority),
    };
    if user.is_some_and(|user| user.contains(':')) {
        return Err("passwords are not supported; use a key or an agent".to_owned());
    }
    // A leading dash would be an option of ssh and not a name.
    if user.is_some_and(|user| !is_name(user)) {
        return Err(
            "the user name is empty or holds something other than letters, digits, `.`, `_` and `-`"
                .to_owned(),
        );
    }
    let (host, port) = host_and_port(destination)?;
    if host.is_empty() {
        return Err("it names no machine".to_owned());
    }
    let socket = if matches!(path, "" | "/") {
        REMOTE_SOCKET
    } else {
        path
    };
    if socket.contains(':') || socket.chars().any(char::is_control) {
        return Err("the socket's path can't hold `:` or a control character".to_owned());
    }
    Ok(SshAddress {
        user: user.map(str::to_owned),
        host: host.to_owned(),
        port,
        socket: socket.to_owned(),
    })
}

fn host_and_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = if authority.starts_with('[') {
        let Some(end) = authority.find(']') else {
            return Err("the `[` of its IPv6 address is not closed".to_owned());
        };
        let (host, rest) = authority.split_at(end + 1);
        if host[1..end].parse::<std::net::Ipv6Addr>().is_err() {
            return Err(format!("`{host}` is not an IPv6 address"));
        }
        match rest.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if rest.is_empty() => (host, None),
            None => return Err("something other than `:port` follows its IPv6 address".to_owned()),
        }
    } else {
        match authority.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err("it has more than one `:`; an IPv6 address stands in `[` and `]`".to_owned());
            }
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    if !host.is_empty() && !host.starts_with('[') && !is_name(host) {
        return Err(format!("`{host}` is not a host name or an IP address"));
    }
    match port {
        None => Ok((host, None)),
        Some(port) => match port.parse::<u16>() {
            Ok(number) if number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok((host, Some(number)))
            }
            _ => Err(format!("`{port}` is not a port")),
        },
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
}

#[cfg(test)]
mod tests;
