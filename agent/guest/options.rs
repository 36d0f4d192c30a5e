//! What the program is told on its command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStringExt;
use std::str::FromStr;

use crate::protocol::DEFAULT_NAME;

/// How to use the program, for a person who finds it in a sandbox.
pub(crate) const USAGE: &str = "\
usage: gym-sandbox-agent MODE [OPTION...]
modes:
  init [-- PROGRAM ARGUMENT...]  be the main process; with a program run it, pass on signals, end as it ends
  serve                          be the agent of a sandbox that has a main process of its own
  connect                        hand standard input and output to the agent, and start it if there is none
  dial                           carry standard input and output to the address of --to
  relay                          listen on loopback ports and carry connections to the same ports of --to
  version                        print the fingerprint of this file
options:
  --name NAME        the abstract socket of this sandbox's agent
  --keep-home        HOME is in the container's configuration, and not from its passwd file
  --socket PATH      (init, serve) dial this socket at once; (connect) have the agent dial it
  --bootstrap        (init) standard input and output are the first client
  --ttl-ms NUMBER    (init, serve) end the sandbox after so long
  --idle-ms NUMBER   (init, serve) end the sandbox after so long without a command or message
  --lease-ms NUMBER  (init, serve) end the sandbox after so long without a message
  --no-start         (connect) fail if there is no agent
  --to ADDRESS:PORT  (dial, relay) where connections go
  --port NUMBER      (relay) listen on this port, too
  --ready-file PATH  (relay) make this file once all ports are listened on";

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Init,
    Serve,
    Connect,
    Dial,
    Relay,
    Version,
}

/// The command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) mode: Mode,
    pub(crate) name: Vec<u8>,
    pub(crate) keep_home: bool,
    pub(crate) socket: Option<Vec<u8>>,
    pub(crate) bootstrap: bool,
    pub(crate) no_start: bool,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) idle_ms: Option<u64>,
    pub(crate) lease_ms: Option<u64>,
    /// `connect` waits on it until the agent that it starts can be reached.
    pub(crate) ready_descriptor: Option<RawFd>,
    pub(crate) target: Option<SocketAddr>,
    pub(crate) ports: Vec<u16>,
    pub(crate) ready_file: Option<Vec<u8>>,
    pub(crate) entrypoint: Vec<Vec<u8>>,
}

impl Options {
    /// Reads the arguments behind the program's name.
    pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut arguments = arguments.map(OsString::into_vec);
        let mode = match arguments.next().as_deref() {
            Some(b"init") => Mode::Init,
            Some(b"serve") => Mode::Serve,
            Some(b"connect") => Mode::Connect,
            Some(b"dial") => Mode::Dial,
            Some(b"relay") => Mode::Relay,
            Some(b"version") => Mode::Version,
            Some(other) => return Err(format!("unknown mode `{}`", String::from_utf8_lossy(other))),
            None => return Err("a mode is missing".to_owned()),
        };
        let mut options = Self {
            mode,
            name: DEFAULT_NAME.as_bytes().to_vec(),
            keep_home: false,
            socket: None,
            bootstrap: false,
            no_start: false,
            ttl_ms: None,
            idle_ms: None,
            lease_ms: None,
            ready_descriptor: None,
            target: None,
            ports: Vec::new(),
            ready_file: None,
            entrypoint: Vec::new(),
        };
        while let Some(argument) = arguments.next() {
            let name = String::from_utf8_lossy(&argument).into_owned();
            let mut value = || arguments.next().ok_or_else(|| format!("`{name}` needs a value"));
            match name.as_str() {
                "--name" => options.name = value()?,
                "--keep-home" => options.keep_home = true,
                "--socket" => options.socket = Some(value()?),
                "--bootstrap" => options.bootstrap = true,
                "--no-start" => options.no_start = true,
                "--ttl-ms" => options.ttl_ms = number(&value()?)?,
                "--idle-ms" => options.idle_ms = number(&value()?)?,
                "--lease-ms" => options.lease_ms = number(&value()?)?,
                "--to" => options.target = Some(parsed(&value()?)?),
                "--port" => options.ports.push(parsed(&value()?)?),
                "--ready-file" => options.ready_file = Some(value()?),
                "--ready-descriptor" => {
                    options.ready_descriptor = number(&value()?)?.and_then(|fd| fd.try_into().ok());
                }
                "--" => options.entrypoint = arguments.by_ref().collect(),
                _ => return Err(format!("unknown option `{name}`")),
            }
        }
        if options.bootstrap && !options.entrypoint.is_empty() {
            return Err("`--bootstrap` takes the streams that the program needs".to_owned());
        }
        Ok(options)
    }
}

/// An address or port.
fn parsed<T: FromStr>(text: &[u8]) -> Result<T, String> {
    let text = String::from_utf8_lossy(text);
    text.parse().map_err(|_| format!("`{text}` can't be read"))
}

/// 0 is none.
fn number(digits: &[u8]) -> Result<Option<u64>, String> {
    let text = String::from_utf8_lossy(digits);
    let number: u64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    Ok((number > 0).then_some(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        Options::parse(arguments.iter().map(OsString::from))
    }

    #[test]
    fn everything_behind_two_dashes_is_the_program() {
        let options = parse(&["init", "--ttl-ms", "5", "--", "sh", "--", "--name"]).expect("well-formed");
        assert_eq!(options.ttl_ms, Some(5));
        assert_eq!(
            options.entrypoint,
            [b"sh".to_vec(), b"--".to_vec(), b"--name".to_vec()]
        );
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(parse(&[]), Err("a mode is missing".to_owned()));
        assert_eq!(parse(&["dance"]), Err("unknown mode `dance`".to_owned()));
        assert_eq!(
            parse(&["init", "--ttl"]),
            Err("unknown option `--ttl`".to_owned())
        );
        assert_eq!(
            parse(&["init", "--ttl-ms"]),
            Err("`--ttl-ms` needs a value".to_owned())
        );
        assert_eq!(
            parse(&["init", "--ttl-ms", "x"]),
            Err("`x` is no number".to_owned())
        );
    }
}
