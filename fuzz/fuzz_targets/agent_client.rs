//! Whatever comes out of a sandbox in the name of its agent: the client understands it or ends the connection, and keeps
//! no more than it asked for. Run with `cargo fuzz run agent_client`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // The first byte says how the stream is cut.
    let Some((cut, stream)) = bytes.split_first() else { return };
    let pieces = stream.chunks(usize::from(*cut).max(1));
    let _ended = gym_sandbox::docker::agent_stream_for_fuzzing(pieces);
});
