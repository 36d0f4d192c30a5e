//! The calls about terminals.

use std::ffi::{c_int, c_ulong};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use super::{checked, ioctl};

const O_RDWR: c_int = 2;
const O_NOCTTY: c_int = 0x100;
const O_CLOEXEC: c_int = 0x8_0000;
const TIOCSWINSZ: c_ulong = 0x5414;
const TIOCGPTPEER: c_ulong = 0x5441;
const TIOCGPTN: c_ulong = 0x8004_5430;
const TIOCSPTLCK: c_ulong = 0x4004_5431;

#[repr(C)]
struct Size {
    rows: u16,
    cols: u16,
    pixels: [u16; 2],
}

/// Makes a terminal: the side that keys are written to, and the side that is a program's.
pub(crate) fn open_terminal() -> io::Result<(File, OwnedFd)> {
    let ours = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(O_NOCTTY)
        .open("/dev/ptmx")?;
    let unlocked: c_int = 0;
    // SAFETY: the number lives through the call.
    checked(unsafe { ioctl(ours.as_raw_fd(), TIOCSPTLCK, &raw const unlocked) })?;
    // Without a path: /dev/pts may be another one than that of this terminal.
    // SAFETY: it takes numbers only.
    let peer = unsafe { ioctl(ours.as_raw_fd(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC) };
    let programs = if let Ok(fd) = checked(peer) {
        // SAFETY: the call has just made this descriptor, nobody else owns it.
        unsafe { OwnedFd::from_raw_fd(fd) }
    } else {
        let mut number: c_int = 0;
        // SAFETY: the number lives through the call.
        checked(unsafe { ioctl(ours.as_raw_fd(), TIOCGPTN, &raw mut number) })?;
        OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(O_NOCTTY)
            .open(format!("/dev/pts/{number}"))?
            .into()
    };
    Ok((ours, programs))
}

/// Sets the size of a terminal. Its program gets a signal where that is another one.
pub(crate) fn set_terminal_size(terminal: &impl AsRawFd, rows: u16, cols: u16) -> io::Result<()> {
    let size = Size {
        rows,
        cols,
        pixels: [0, 0],
    };
    let _ = (size.rows, size.cols, size.pixels);
    // SAFETY: the value lives through the call and is as large as the kernel's.
    checked(unsafe { ioctl(terminal.as_raw_fd(), TIOCSWINSZ, &raw const size) }).map(drop)
}
