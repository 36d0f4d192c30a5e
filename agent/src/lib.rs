//! The resident agent of gym-sandbox: its program, ready to be put into a sandbox, and the protocol it speaks.
//! Runs nothing and does no I/O; that is the client's in `gym-sandbox`.

// One source for both sides: the program in the sandbox is compiled from the same files.
#[path = "../guest/protocol/mod.rs"]
pub mod protocol;

/// The program for Linux, statically linked: no file of the image is needed to run it. None when it could not be built
/// with this library: cargo has then shown a warning that says why.
pub const BINARY: Option<&[u8]> = include!(concat!(env!("OUT_DIR"), "/binary.rs"));

/// The [`Fingerprint`](protocol::Fingerprint) of [`BINARY`] as 32 hex digits; empty without one. The program says the same in its hello.
pub const FINGERPRINT: &str = env!("GYM_SANDBOX_AGENT_FINGERPRINT");

/// What [`BINARY`] runs on, in the words of an engine: `amd64`, `arm64`, ...; empty without one.
pub const ARCHITECTURE: &str = env!("GYM_SANDBOX_AGENT_ARCHITECTURE");

#[cfg(test)]
#[path = "../guest/protocol/tests.rs"]
mod protocol_tests;
#[cfg(test)]
mod tests;
