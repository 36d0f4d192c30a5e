//! The resident agent of gym-sandbox: runs the commands of one sandbox from within it. One thread, no dependency but std,
//! one static file; see docs/agent.md.

mod connect;
mod context;
mod link;
mod options;
mod probe;
mod processes;
mod program;
#[expect(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "the library shows all of the same source"
)]
mod protocol;
mod relay;
mod runner;
mod server;
mod sys;
mod users;

use options::{Mode, Options};

fn main() {
    let options = match Options::parse(std::env::args_os().skip(1)) {
        Ok(options) => options,
        Err(mistake) => {
            server::say(&mistake);
            server::say(options::USAGE);
            sys::exit_now(2)
        }
    };
    match options.mode {
        Mode::Init | Mode::Serve => server::Server::run(&options),
        Mode::Connect => sys::exit_now(connect::run(&options)),
        Mode::Dial => sys::exit_now(relay::dial(&options)),
        Mode::Relay => sys::exit_now(relay::relay(&options)),
        Mode::Version => {
            let hex = protocol::Fingerprint::hex(probe::fingerprint());
            let mut out = std::io::stdout();
            let _ = std::io::Write::write_all(&mut out, format!("{hex}\n").as_bytes());
        }
    }
}
