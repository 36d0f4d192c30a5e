//! Programs that tests write and run: those of this crate, and of `tests/`.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a shell script of these lines that can be run at once.
///
/// Another process writes it: a child that another test starts while this process has the file open for writing has it
/// open, too, until it has become its program, and nobody can run the file until then.
pub(super) fn write_script(path: &Path, lines: &str) {
    let mut writer = Command::new("/bin/sh")
        .args(["-c", "rm -f \"$0\" && cat >\"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = writer.stdin.take().unwrap();
    write!(input, "#!/bin/sh\n{lines}\n").unwrap();
    drop(input);
    assert!(writer.wait().unwrap().success());
}
