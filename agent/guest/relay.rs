//! TCP connections within the sandbox, carried by a process of their own: to a port for a client outside, and from
//! loopback ports to another sandbox. Knows nothing of the agent.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::options::Options;
use crate::server::say;

/// The first byte of a connection's output: the server has answered.
const CONNECTED: &[u8] = b"+";
/// How long a server may take to answer.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// Connections that one relay process carries at once; more are closed at once.
const CONNECTIONS: usize = 256;
/// Enough for a copying thread.
const STACK_BYTES: usize = 128 * 1024;
/// How long to wait when the system has no descriptor left for a new connection.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// Carries standard input and output to an address: 0 when the server has closed, 2 when nothing answers there.
pub(crate) fn dial(options: &Options) -> i32 {
    let Some(address) = options.target else {
        say("`dial` needs `--to ADDRESS:PORT`");
        return 2;
    };
    let stream = match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
        Ok(stream) => stream,
        Err(error) => {
            say(&format!("{error}"));
            return 2;
        }
    };
    let _ = stream.set_nodelay(true);
    let mut out = std::io::stdout().lock();
    if out.write_all(CONNECTED).and_then(|()| out.flush()).is_err() {
        return 1;
    }
    let Ok(writing) = stream.try_clone() else { return 1 };
    let input = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        carry(&mut std::io::stdin().lock(), &mut &writing);
        let _ = writing.shutdown(Shutdown::Write);
    });
    if input.is_err() {
        say("there is no room for another thread");
        return 1;
    }
    carry(&mut &stream, &mut out);
    0
}

/// Listens on loopback ports and carries each connection to the same port of the target. Ends only when it can't begin.
pub(crate) fn relay(options: &Options) -> i32 {
    let Some(target) = options.target else {
        say("`relay` needs `--to ADDRESS:0`");
        return 2;
    };
    let ready = options.ready_file.clone().map(std::ffi::OsString::from_vec);
    if let Some(ready) = &ready {
        let _ = std::fs::remove_file(ready);
    }
    let mut listeners = Vec::new();
    for port in &options.ports {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, *port)) {
            Ok(listener) => listeners.push((listener, *port)),
            Err(error) => {
                say(&format!("port {port}: {error}"));
                return if error.kind() == std::io::ErrorKind::AddrInUse {
                    3
                } else {
                    2
                };
            }
        }
    }
    let room = Arc::new(AtomicUsize::new(0));
    for (listener, port) in listeners {
        let room = Arc::clone(&room);
        let target = SocketAddr::new(target.ip(), port);
        let serving = thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn(move || serve(&listener, target, &room));
        if serving.is_err() {
            say("there is no room for another thread");
            return 2;
        }
    }
    if let Some(ready) = &ready
        && let Err(error) = std::fs::write(ready, b"ready\n")
    {
        say(&format!("the ready file: {error}"));
        return 4;
    }
    let mut out = std::io::stdout();
    let _ = out.write_all(CONNECTED).and_then(|()| out.flush());
    loop {
        thread::park();
    }
}

fn serve(listener: &TcpListener, target: SocketAddr, room: &Arc<AtomicUsize>) {
    loop {
        let Ok((client, _)) = listener.accept() else {
            thread::sleep(EXHAUSTED);
            continue;
        };
        let place = Place::take(room);
        let Some(place) = place else { continue };
        // Without room for a thread the client sees its connection closed.
        let _ = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            let _place = place;
            join(&client, target);
        });
    }
}

/// One of the connections that are carried at once.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(room: &Arc<AtomicUsize>) -> Option<Self> {
        if room.fetch_add(1, Ordering::Relaxed) < CONNECTIONS {
            return Some(Self(Arc::clone(room)));
        }
        room.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn join(client: &TcpStream, target: SocketAddr) {
    let Ok(server) = TcpStream::connect_timeout(&target, CONNECT_LIMIT) else {
        return;
    };
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let (Ok(from_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else {
        return;
    };
    let up = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        carry(&mut &from_client, &mut &to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    let Ok(up) = up else { return };
    carry(&mut &server, &mut &*client);
    let _ = client.shutdown(Shutdown::Write);
    let _ = up.join();
}

/// Copies until the end of the one or an error of the other, and hands every piece on at once.
fn carry(from: &mut dyn Read, to: &mut dyn Write) {
    let mut buffer = [0; 16 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                if to.write_all(&buffer[..count]).and_then(|()| to.flush()).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
