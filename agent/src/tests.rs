//! Looks at what the build script made.

use super::protocol::Fingerprint;
use super::{ARCHITECTURE, BINARY, FINGERPRINT};

#[test]
fn the_program_is_a_static_file_for_linux() {
    let binary = BINARY.expect("built with this library");
    assert_eq!(&binary[..4], b"\x7fELF");
    let machine = u16::from_le_bytes([binary[18], binary[19]]);
    assert!(
        (machine == 62) == (ARCHITECTURE == "amd64"),
        "{machine} is called {ARCHITECTURE}"
    );
    assert_eq!(binary[16], 2, "not position independent");
    assert!(
        !binary.windows(8).any(|window| window == b"/ld-linu"),
        "no dynamic linker is named"
    );
}

#[test]
fn the_fingerprint_is_that_of_the_program() {
    let hex = Fingerprint::hex(Fingerprint::of(BINARY.expect("built with this library")));
    assert_eq!(hex, FINGERPRINT);
}
