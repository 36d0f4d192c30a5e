//! The process that an engine's exec starts to reach the agent: it hands its standard input and output over and waits.
//! No byte of a client passes through it.

use std::ffi::CString;
use std::io::{Read, pipe};
use std::os::fd::{AsFd, AsRawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use crate::options::Options;
use crate::server::{DONE, LEAVES, WAITS, fail, say};
use crate::sys;

/// How long an agent may take to start.
const START_LIMIT: Duration = Duration::from_secs(10);
/// The number under which a new agent finds the pipe it says ready on.
const READY: i32 = 3;

/// Connects; returns the exit code: 0 after the agent has ended the stream, 1 when the agent was lost, 2 without one.
pub(crate) fn run(options: &Options) -> i32 {
    let agent = match reach(options) {
        Ok(agent) => agent,
        Err(reason) => {
            say(&reason);
            return 2;
        }
    };
    if let Some(path) = &options.socket {
        return match sys::connect_at_once(path)
            .and_then(|socket| sys::send_descriptors(agent.as_fd(), [socket.as_raw_fd(); 2], LEAVES))
        {
            Ok(()) => 0,
            Err(error) => {
                say(&format!("cannot connect the agent to the socket: {error}"));
                2
            }
        };
    }
    if let Err(error) = sys::send_descriptors(agent.as_fd(), [0, 1], WAITS) {
        say(&format!("cannot hand over the stream: {error}"));
        return 2;
    }
    // From here on the agent alone holds them, so that their end is seen on the other side when it closes them.
    if let Ok(null) = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
    {
        for standard in 0..2 {
            let _ = sys::duplicate_to(null.as_raw_fd(), standard);
        }
    }
    let mut word = [0];
    let mut agent = agent;
    match agent.read(&mut word) {
        Ok(1) if word == [DONE] => 0,
        _ => 1,
    }
}

fn reach(options: &Options) -> Result<UnixStream, String> {
    let address = SocketAddr::from_abstract_name(&options.name).map_err(|error| error.to_string())?;
    let connect = || UnixStream::connect_addr(&address);
    let agent = match connect() {
        Ok(agent) => agent,
        Err(error) if options.no_start => return Err(format!("there is no agent: {error}")),
        Err(_) => {
            start(options)?;
            // Another one may have been quicker than ours; either will do.
            connect().map_err(|error| format!("the agent does not start: {error}"))?
        }
    };
    let own = sys::own_user().0;
    match sys::peer(agent.as_fd()) {
        Ok(peer) if peer.pid > 0 && (peer.uid == own || peer.uid == 0) => Ok(agent),
        // Any process of the network can take a name; only root and this user can be the agent.
        _ => Err("somebody else listens under the agent's name".to_owned()),
    }
}

/// Starts an agent that outlives this process, and waits until it can be reached or has ended.
fn start(options: &Options) -> Result<(), String> {
    let (mut ready, writer) = pipe().map_err(|error| error.to_string())?;
    let child = sys::fork_process().map_err(|error| format!("cannot start an agent: {error}"))?;
    if child == 0 {
        // The agent is a grandchild, so that it does not become a zombie of a main process that knows nothing of it.
        match sys::fork_process() {
            Ok(0) => become_agent(options, writer.as_raw_fd()),
            _ => sys::exit_now(0),
        }
    }
    drop(writer);
    while matches!(sys::reap(), Ok(None)) {
        sys::wait_ready(&mut [], Some(1), &sys::SignalSet::empty());
    }
    let mut waiting = [sys::PollFd::new(&ready, sys::POLLIN)];
    let limit_ms = u64::try_from(START_LIMIT.as_millis()).unwrap_or(u64::MAX);
    sys::wait_ready(&mut waiting, Some(limit_ms), &sys::SignalSet::empty());
    if waiting[0].ready == 0 {
        return Err(format!(
            "the agent does not start within {} s",
            START_LIMIT.as_secs()
        ));
    }
    // No byte means that it has ended, which it does when another one has the name.
    let _ = ready.read(&mut [0]);
    Ok(())
}

fn become_agent(options: &Options, ready: i32) -> ! {
    sys::start_session();
    let null = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null");
    let Ok(null) = null else {
        fail("cannot open /dev/null")
    };
    if ready == READY || sys::duplicate_to(ready, READY).is_ok() {
        let _ = sys::inherit_at_exec(READY);
    }
    for standard in 0..3 {
        let _ = sys::duplicate_to(null.as_raw_fd(), standard);
    }
    // Descriptors other than these close at exec, as std opens them all so.
    let name = CString::new(options.name.clone()).unwrap_or_default();
    let mut arguments = vec![
        c"gym-sandbox-agent".to_owned(),
        c"serve".to_owned(),
        c"--name".to_owned(),
        name,
    ];
    arguments.push(c"--ready-descriptor".to_owned());
    arguments.push(c"3".to_owned());
    if options.keep_home {
        arguments.push(c"--keep-home".to_owned());
    }
    for (flag, value) in [
        (c"--ttl-ms", options.ttl_ms),
        (c"--idle-ms", options.idle_ms),
        (c"--lease-ms", options.lease_ms),
    ] {
        if let Some(value) = value {
            arguments.push(flag.to_owned());
            arguments.push(CString::new(value.to_string()).unwrap_or_default());
        }
    }
    let environment: Vec<CString> = std::env::vars_os()
        .filter_map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok())
        .collect();
    let program = std::env::current_exe().map(|path| path.into_os_string().as_bytes().to_vec());
    let program = program
        .ok()
        .and_then(|path| CString::new(path).ok())
        .unwrap_or_default();
    sys::execute(
        &program,
        &sys::Pointers::new(arguments.iter().map(CString::as_c_str)),
        &sys::Pointers::new(environment.iter().map(CString::as_c_str)),
    );
    sys::exit_now(1)
}
