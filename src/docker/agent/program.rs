//! The agent's program as this library holds it, and the volume that carries it into sandboxes.

use std::io;
use std::sync::OnceLock;

use bytes::Bytes;
use gym_sandbox_agent::{ARCHITECTURE, BINARY, FINGERPRINT};

/// Where the volume is mounted.
pub(super) const FOLDER: &str = "/.gym-sandbox";

/// Where the program is in a sandbox.
pub(in crate::docker) const PROGRAM: &str = "/.gym-sandbox/agent";

/// How the names of the volumes of all builds begin, and those of the locks.
const VOLUME: &str = "gym-sandbox-agent-";
pub(in crate::docker) const FILLER: &str = "gym-sandbox-agent-fill-";

/// The program's name in the volume.
const NAME: &str = "agent";

/// Why commands can't be run by an agent on an engine of this architecture; None when they can.
pub(super) fn unusable_on(os_type: &str, architecture: &str) -> Option<String> {
    if BINARY.is_none() {
        return Some("this library was built without the agent's program".to_owned());
    }
    if os_type != "linux" {
        return Some(format!("the agent is for Linux, the engine runs {os_type}"));
    }
    let architecture = canonical(architecture);
    (architecture != ARCHITECTURE)
        .then(|| format!("the agent of this library is for {ARCHITECTURE}, the engine is {architecture}"))
}

/// The engine's word for what the kernel calls otherwise.
fn canonical(architecture: &str) -> &str {
    match architecture {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "i386" | "i686" => "386",
        "armv7l" | "armv6l" => "arm",
        other => other,
    }
}

/// The volume with this very program. Another build has another one.
pub(super) fn volume() -> String {
    format!("{VOLUME}{FINGERPRINT}{}", suffix())
}

/// Says whether a volume is the agent's, of another build than this. The names of the tests' own are left alone, which
/// have something behind the hash.
pub(super) fn is_volume_of_another_build(name: &str) -> bool {
    let Some(hash) = name.strip_prefix(VOLUME) else {
        return false;
    };
    hash.len() == FINGERPRINT.len()
        && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
        && hash != FINGERPRINT
}

/// Tests damage volumes of their own.
fn suffix() -> String {
    #[cfg(test)]
    return super::tests::SUFFIX.with(|suffix| suffix.borrow().clone());
    #[cfg(not(test))]
    String::new()
}

/// The container that somebody fills the volume with; its name is the lock.
pub(super) fn filler() -> String {
    format!("{FILLER}{FINGERPRINT}{}", suffix())
}

/// The size of the whole program in bytes.
pub(super) fn size_bytes() -> u64 {
    BINARY.map_or(0, |program| program.len() as u64)
}

/// An archive with the program, owned by root, executable by all.
pub(super) fn archive() -> io::Result<Bytes> {
    static ARCHIVE: OnceLock<Bytes> = OnceLock::new();
    if let Some(archive) = ARCHIVE.get() {
        return Ok(archive.clone());
    }
    let program = BINARY.unwrap_or_default();
    let mut header = tar::Header::new_gnu();
    header.set_size(program.len() as u64);
    header.set_mode(0o755);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_entry_type(tar::EntryType::Regular);
    let mut builder = tar::Builder::new(Vec::with_capacity(program.len() + 4096));
    builder.append_data(&mut header, NAME, program)?;
    let archive: Bytes = builder.into_inner()?.into();
    Ok(ARCHIVE.get_or_init(|| archive).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_of_another_kind_gets_no_agent() {
        assert!(unusable_on("windows", "x86_64").is_some());
        assert!(unusable_on("linux", "s390x").is_some());
        if BINARY.is_some() {
            assert_eq!(unusable_on("linux", ARCHITECTURE), None);
            assert_eq!(unusable_on("linux", std::env::consts::ARCH), None);
        }
    }

    #[test]
    fn only_volumes_of_other_builds_are_stale() {
        let other = FINGERPRINT.replace(|_| true, "0");
        assert!(is_volume_of_another_build(&format!("{VOLUME}{other}")));
        for name in [
            format!("{VOLUME}{FINGERPRINT}"),
            format!("{VOLUME}{other}-test-1"),
            format!("{VOLUME}fill-{other}"),
            format!("{VOLUME}{}", &other[1..]),
            format!("x{VOLUME}{other}"),
            "data".to_owned(),
        ] {
            assert!(!is_volume_of_another_build(&name), "{name}");
        }
    }

    #[test]
    fn the_archive_holds_the_whole_program() {
        let archive = archive().unwrap();
        let mut archive = tar::Archive::new(&archive[..]);
        let entry = archive.entries().unwrap().next().unwrap().unwrap();
        assert_eq!(entry.size(), size_bytes());
        assert_eq!(entry.header().mode().unwrap(), 0o755);
        assert_eq!(format!("{FOLDER}/{}", entry.path().unwrap().display()), PROGRAM);
    }
}
