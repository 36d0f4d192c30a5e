//! Whatever bytes a sandbox sends as an archive, nothing beside the target changes. Run with `cargo fuzz run unpack`.

#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|archive: &[u8]| {
    let outer = tempfile::tempdir().expect("a folder");
    let (canary, target) = (outer.path().join("canary"), outer.path().join("target"));
    fs::write(&canary, "alive").expect("a canary");
    let _refused = gym_sandbox::docker::unpack_for_fuzzing(archive, &target);
    assert_eq!(fs::read(&canary).expect("the canary"), b"alive");
    for entry in fs::read_dir(outer.path()).expect("the folder") {
        let name = entry.expect("an entry").file_name();
        assert!(name == "canary" || name == "target", "{name:?} was made beside the target");
    }
});
