//! The calls of the system that std does not have, each behind a safe function. Every `unsafe` of the program is here.
//! Knows nothing of the protocol. The program has one thread, which is what many of the reasons rest on.

#![expect(
    unsafe_code,
    reason = "these calls have no safe form in std, and the program has no dependency"
)]

mod terminal;

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use terminal::{open_terminal, set_terminal_size};

/// The 64-bit layouts and numbers below are those of Linux on x86-64, ARM and RISC-V.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
compile_error!("the agent is for 64-bit little-endian Linux");

pub(crate) mod errno {
    pub(crate) const EPERM: i32 = 1;
    pub(crate) const ENOENT: i32 = 2;
    pub(crate) const E2BIG: i32 = 7;
    pub(crate) const ENOEXEC: i32 = 8;
    pub(crate) const EAGAIN: i32 = 11;
    pub(crate) const ENOMEM: i32 = 12;
    pub(crate) const EACCES: i32 = 13;
    pub(crate) const EBUSY: i32 = 16;
    pub(crate) const EEXIST: i32 = 17;
    pub(crate) const ENOTDIR: i32 = 20;
    pub(crate) const EISDIR: i32 = 21;
    pub(crate) const EINVAL: i32 = 22;
    pub(crate) const EMFILE: i32 = 24;
    pub(crate) const EFBIG: i32 = 27;
    pub(crate) const EOVERFLOW: i32 = 75;
    pub(crate) const ELIBBAD: i32 = 80;
    pub(crate) const EOPNOTSUPP: i32 = 95;
}

pub(crate) mod signal {
    pub(crate) const HUP: i32 = 1;
    pub(crate) const INT: i32 = 2;
    pub(crate) const QUIT: i32 = 3;
    pub(crate) const KILL: i32 = 9;
    pub(crate) const USR1: i32 = 10;
    pub(crate) const USR2: i32 = 12;
    pub(crate) const PIPE: i32 = 13;
    pub(crate) const TERM: i32 = 15;
    pub(crate) const CHLD: i32 = 17;
    pub(crate) const CONT: i32 = 18;
    /// The last signal there is.
    pub(crate) const LAST: i32 = 64;
}

pub(crate) const POLLIN: i16 = 1;
pub(crate) const POLLOUT: i16 = 4;
pub(crate) const POLLERR: i16 = 8;
pub(crate) const POLLHUP: i16 = 16;

#[cfg(target_arch = "aarch64")]
pub(crate) const O_NOFOLLOW: i32 = 0x8000;
#[cfg(not(target_arch = "aarch64"))]
pub(crate) const O_NOFOLLOW: i32 = 0x2_0000;
pub(crate) const O_NONBLOCK: i32 = 0x800;

const SIG_DFL: usize = 0;
const WNOHANG: c_int = 1;
const WUNTRACED: c_int = 2;
const F_SETFD: c_int = 2;
const F_GETFL: c_int = 3;
const F_SETFL: c_int = 4;
const F_SETPIPE_SZ: c_int = 1031;
const F_GETPIPE_SZ: c_int = 1032;
const CLONE_VM: c_int = 0x100;
const CLONE_VFORK: c_int = 0x4000;
const PR_SET_CHILD_SUBREAPER: c_int = 36;
const RLIMIT_STACK: c_int = 3;
const RLIMIT_NOFILE: c_int = 7;
const CLOCK_BOOTTIME: c_int = 7;
const RENAME_EXCHANGE: c_uint = 2;
const AT_FDCWD: c_int = -100;
#[cfg(target_arch = "x86_64")]
const SYS_RENAMEAT2: c_long = 316;
/// The number of all architectures whose table is the kernel's common one.
#[cfg(not(target_arch = "x86_64"))]
const SYS_RENAMEAT2: c_long = 276;
const SYS_PIDFD_SEND_SIGNAL: c_long = 424;
const SYS_PIDFD_OPEN: c_long = 434;
const SYS_CLOSE_RANGE: c_long = 436;
const SOL_SOCKET: c_int = 1;
const SO_PEERCRED: c_int = 17;
const SCM_RIGHTS: c_int = 1;
const MSG_CMSG_CLOEXEC: c_int = 0x4000_0000;
const MSG_NOSIGNAL: c_int = 0x4000;
const TIOCSCTTY: c_ulong = 0x540e;
const STACK_BYTES: usize = 128 * 1024;

/// The C library's `sigset_t`: 1,024 bits.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SignalSet([u64; 16]);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PollFd {
    fd: RawFd,
    events: i16,
    pub(crate) ready: i16,
}

impl PollFd {
    pub(crate) fn new(fd: &impl AsRawFd, events: i16) -> Self {
        Self {
            fd: fd.as_raw_fd(),
            events,
            ready: 0,
        }
    }
}

#[repr(C)]
struct TimeSpec {
    seconds: i64,
    nanoseconds: i64,
}

#[repr(C)]
#[derive(Default)]
struct Usage {
    user: [i64; 2],
    system: [i64; 2],
    rest: [c_long; 14],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limit {
    soft: u64,
    hard: u64,
}

/// The process on the other side of a unix socket.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peer {
    /// 0 when it is in a process namespace that is not visible from here.
    pub(crate) pid: i32,
    pub(crate) uid: u32,
    gid: u32,
}

#[repr(C)]
struct Message {
    name: *mut c_void,
    name_bytes: u32,
    slices: *mut c_void,
    slice_count: usize,
    control: *mut c_void,
    control_bytes: usize,
    flags: c_int,
}

/// The address of a unix socket.
#[repr(C)]
struct Address {
    family: u16,
    path: [u8; 108],
}

/// A control message that holds two descriptors.
#[repr(C, align(8))]
#[derive(Default)]
struct Rights {
    bytes: usize,
    level: c_int,
    kind: c_int,
    descriptors: [RawFd; 2],
}

unsafe extern "C" {
    fn fork() -> c_int;
    fn clone(
        run: extern "C" fn(*mut c_void) -> c_int,
        stack: *mut c_void,
        flags: c_int,
        data: *mut c_void,
        ...
    ) -> c_int;
    fn _exit(code: c_int) -> !;
    fn execve(path: *const c_char, argv: *const *const c_char, envp: *const *const c_char) -> c_int;
    fn wait4(pid: c_int, status: *mut c_int, options: c_int, usage: *mut Usage) -> c_int;
    fn kill(pid: c_int, signal: c_int) -> c_int;
    fn signal(number: c_int, handler: usize) -> usize;
    fn sigemptyset(set: *mut SignalSet) -> c_int;
    fn sigfillset(set: *mut SignalSet) -> c_int;
    fn sigaddset(set: *mut SignalSet, number: c_int) -> c_int;
    fn sigprocmask(how: c_int, set: *const SignalSet, old: *mut SignalSet) -> c_int;
    fn ppoll(fds: *mut PollFd, count: c_ulong, timeout: *const TimeSpec, mask: *const SignalSet) -> c_int;
    fn prctl(option: c_int, ...) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn setsid() -> c_int;
    fn setgroups(count: usize, groups: *const u32) -> c_int;
    fn setresgid(real: u32, effective: u32, saved: u32) -> c_int;
    fn setresuid(real: u32, effective: u32, saved: u32) -> c_int;
    fn getgroups(count: c_int, groups: *mut u32) -> c_int;
    fn geteuid() -> u32;
    fn getegid() -> u32;
    fn chdir(path: *const c_char) -> c_int;
    fn access(path: *const c_char, mode: c_int) -> c_int;
    fn dup2(from: RawFd, to: RawFd) -> RawFd;
    fn fcntl(fd: RawFd, command: c_int, ...) -> c_int;
    fn ioctl(fd: RawFd, request: c_ulong, ...) -> c_int;
    fn getrlimit(which: c_int, limit: *mut Limit) -> c_int;
    fn setrlimit(which: c_int, limit: *const Limit) -> c_int;
    fn clock_gettime(clock: c_int, time: *mut TimeSpec) -> c_int;
    fn getsockopt(fd: RawFd, level: c_int, name: c_int, value: *mut c_void, bytes: *mut c_uint) -> c_int;
    fn socket(family: c_int, kind: c_int, protocol: c_int) -> RawFd;
    fn connect(fd: RawFd, address: *const Address, bytes: c_uint) -> c_int;
    fn sendmsg(fd: RawFd, message: *const Message, flags: c_int) -> isize;
    fn recvmsg(fd: RawFd, message: *mut Message, flags: c_int) -> isize;
}

fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Forks. 0 in the child.
pub(crate) fn fork_process() -> io::Result<i32> {
    // SAFETY: there is one thread, so the child's memory is whole, locks of the allocator included.
    checked(unsafe { fork() })
}

/// Ends this process without running anything else.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: it takes a number and does not return.
    unsafe { _exit(code) }
}

/// Runs `child` in a new process that shares this one's memory, and returns its pid when that has executed a program or
/// ended. The caller must not rely on anything `child` does to memory but what it means to hand back.
pub(crate) fn spawn_sharing_memory(child: &mut dyn FnMut()) -> io::Result<i32> {
    extern "C" fn run(data: *mut c_void) -> c_int {
        // SAFETY: `data` is the reference below, which lives while the parent stands still in clone.
        let child = unsafe { &mut *data.cast::<&mut dyn FnMut()>() };
        child();
        // Neither returning into libc's exit handlers nor unwinding may happen in memory that is the parent's.
        exit_now(127)
    }
    let mut child = child;
    let mut stack = vec![0_u128; STACK_BYTES / 16];
    let top = stack.as_mut_ptr_range().end;
    let data = (&raw mut child).cast();
    // SAFETY: the stack is aligned, large enough and lives on; CLONE_VFORK keeps this process still until the child has
    // left this memory. Descriptors and signal actions are the child's own copies.
    checked(unsafe { clone(run, top.cast(), CLONE_VM | CLONE_VFORK | signal::CHLD, data) })
}

/// Pointers to C strings with a null at their end, as execve takes them.
pub(crate) struct Pointers<'a> {
    pointers: Vec<*const c_char>,
    _strings: std::marker::PhantomData<&'a CStr>,
}

impl<'a> Pointers<'a> {
    pub(crate) fn new(strings: impl Iterator<Item = &'a CStr>) -> Self {
        let pointers = strings.map(CStr::as_ptr).chain([std::ptr::null()]).collect();
        Self {
            pointers,
            _strings: std::marker::PhantomData,
        }
    }
}

/// Becomes another program; the error number if that fails.
pub(crate) fn execute(path: &CStr, argv: &Pointers<'_>, envp: &Pointers<'_>) -> i32 {
    // SAFETY: all pointers are to C strings that live as long as the arrays, which end with null.
    unsafe { execve(path.as_ptr(), argv.pointers.as_ptr(), envp.pointers.as_ptr()) };
    last_errno()
}

pub(crate) fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// A child that has ended.
pub(crate) struct Ended {
    pub(crate) pid: i32,
    pub(crate) status: i32,
    pub(crate) user_us: u64,
    pub(crate) system_us: u64,
}

/// Takes one child that has ended, without waiting. None while all live; ECHILD when there is none at all.
pub(crate) fn reap() -> io::Result<Option<Ended>> {
    wait_for_child(WNOHANG)
}

/// The same, and also children that have been stopped, which stay.
pub(crate) fn reap_or_see_stopped() -> io::Result<Option<Ended>> {
    wait_for_child(WNOHANG | WUNTRACED)
}

impl Ended {
    /// It has not ended but stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.status & 0xff == 0x7f
    }
}

fn wait_for_child(options: c_int) -> io::Result<Option<Ended>> {
    let mut status = 0;
    let mut usage = Usage::default();
    // SAFETY: both pointers are to values that live through the call.
    let pid = checked(unsafe { wait4(-1, &raw mut status, options, &raw mut usage) })?;
    let microseconds = |[seconds, rest]: [i64; 2]| {
        u64::try_from(seconds.saturating_mul(1_000_000).saturating_add(rest)).unwrap_or(0)
    };
    let _ = usage.rest;
    Ok((pid != 0).then(|| Ended {
        pid,
        status,
        user_us: microseconds(usage.user),
        system_us: microseconds(usage.system),
    }))
}

/// Sends a signal to a process, or to the group `-pid`.
pub(crate) fn send_signal(pid: i32, number: i32) -> io::Result<()> {
    // SAFETY: it takes numbers only.
    checked(unsafe { kill(pid, number) }).map(drop)
}

/// A descriptor that stands for one process, whatever becomes of its number.
pub(crate) fn open_process(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: it takes numbers only.
    let fd = unsafe { syscall(SYS_PIDFD_OPEN, pid, 0) };
    let fd = checked(RawFd::try_from(fd).unwrap_or(-1))?;
    // SAFETY: the call has just made this descriptor, nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(crate) fn send_signal_exactly(process: &OwnedFd, number: i32) -> io::Result<()> {
    // SAFETY: no information is given, which a null pointer says.
    let result = unsafe {
        syscall(
            SYS_PIDFD_SEND_SIGNAL,
            process.as_raw_fd(),
            number,
            std::ptr::null::<c_void>(),
            0,
        )
    };
    checked(c_int::try_from(result).unwrap_or(-1)).map(drop)
}

/// One bit for each signal that has come and was not taken yet.
static ARRIVED: AtomicU64 = AtomicU64::new(0);

extern "C" fn note_signal(number: c_int) {
    ARRIVED.fetch_or(1 << (number - 1), Ordering::Relaxed);
}

/// Takes the signals that have come, a bit each: signal n is bit n - 1.
pub(crate) fn take_signals() -> u64 {
    ARRIVED.swap(0, Ordering::Relaxed)
}

/// From now on these signals are noted for [`take_signals`].
pub(crate) fn note_signals(numbers: impl Iterator<Item = i32>) {
    let handler = note_signal as extern "C" fn(c_int) as usize;
    for number in numbers {
        // SAFETY: the handler only touches an atomic, which may be done in a signal handler.
        unsafe { signal(number, handler) };
    }
}

/// Lets SIGPIPE end this process, as a new program expects it.
pub(crate) fn restore_pipe_signal() {
    // SAFETY: the default action is no code of ours.
    unsafe { signal(signal::PIPE, SIG_DFL) };
}

impl SignalSet {
    pub(crate) fn empty() -> Self {
        let mut set = Self([0; 16]);
        // SAFETY: the set is as large as the C library's.
        unsafe { sigemptyset(&raw mut set) };
        set
    }

    /// All but these.
    pub(crate) fn all_but(numbers: &[i32]) -> Self {
        let mut full = Self([0; 16]);
        // SAFETY: the set is as large as the C library's.
        unsafe { sigfillset(&raw mut full) };
        let mut but = Self::empty();
        for number in numbers {
            // SAFETY: as above.
            unsafe { sigaddset(&raw mut but, *number) };
        }
        for (word, without) in full.0.iter_mut().zip(but.0) {
            *word &= !without;
        }
        full
    }
}

/// Holds back exactly these signals.
pub(crate) fn block_signals(set: &SignalSet) {
    const SIG_SETMASK: c_int = 2;
    // SAFETY: the set lives through the call and the old one is not asked for.
    unsafe { sigprocmask(SIG_SETMASK, set, std::ptr::null_mut()) };
}

/// Waits until a descriptor is ready, a signal outside `mask` comes, or the time is over. None waits for ever.
pub(crate) fn wait_ready(descriptors: &mut [PollFd], timeout_ms: Option<u64>, mask: &SignalSet) {
    for descriptor in descriptors.iter_mut() {
        descriptor.ready = 0;
    }
    let timeout = timeout_ms.map(|milliseconds| TimeSpec {
        seconds: i64::try_from(milliseconds / 1000).unwrap_or(i64::MAX),
        nanoseconds: i64::try_from(milliseconds % 1000).unwrap_or(0) * 1_000_000,
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the array, time and mask live through the call, and the count is that of the array.
    unsafe {
        ppoll(
            descriptors.as_mut_ptr(),
            descriptors.len() as c_ulong,
            timeout,
            mask,
        )
    };
}

/// Milliseconds since the machine started, its sleep included. Goes on while a sandbox is paused.
pub(crate) fn now_ms() -> u64 {
    let mut time = TimeSpec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the value lives through the call.
    unsafe { clock_gettime(CLOCK_BOOTTIME, &raw mut time) };
    u64::try_from(time.seconds * 1000 + time.nanoseconds / 1_000_000).unwrap_or(0)
}

/// Orphans among this process's descendants become its children.
pub(crate) fn become_subreaper() -> io::Result<()> {
    // SAFETY: it takes numbers only.
    checked(unsafe {
        prctl(
            PR_SET_CHILD_SUBREAPER,
            1 as c_ulong,
            0 as c_ulong,
            0 as c_ulong,
            0 as c_ulong,
        )
    })
    .map(drop)
}

/// Gives each of two files the name of the other, in one step.
pub(crate) fn exchange(one: &CStr, other: &CStr) -> io::Result<()> {
    // SAFETY: both are C strings that live through the call.
    let result = unsafe {
        syscall(
            SYS_RENAMEAT2,
            AT_FDCWD,
            one.as_ptr(),
            AT_FDCWD,
            other.as_ptr(),
            RENAME_EXCHANGE,
        )
    };
    checked(c_int::try_from(result).unwrap_or(-1)).map(drop)
}

/// Closes all descriptors from `first` on. Only for a process that owns none of them by a Rust value it still uses.
pub(crate) fn close_from(first: RawFd) -> io::Result<()> {
    // SAFETY: callers are children that keep no such value, see above.
    let result = unsafe { syscall(SYS_CLOSE_RANGE, first, c_uint::MAX, 0) };
    checked(c_int::try_from(result).unwrap_or(-1)).map(drop)
}

/// Closes one descriptor of a number, for a system without [`close_from`]; the same holds.
pub(crate) fn close_one(fd: RawFd) {
    // SAFETY: callers are children that keep no value that owns it.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
}

/// Makes `to` another name of `from`, inherited by programs.
pub(crate) fn duplicate_to(from: RawFd, to: RawFd) -> io::Result<()> {
    // SAFETY: it takes numbers only; what was open at `to` is closed, which callers mean.
    checked(unsafe { dup2(from, to) }).map(drop)
}

pub(crate) fn is_open(fd: RawFd) -> bool {
    // SAFETY: any number may be asked about.
    unsafe { fcntl(fd, F_GETFL) >= 0 }
}

/// Leaves a descriptor open to the next program that is executed.
pub(crate) fn inherit_at_exec(fd: RawFd) -> io::Result<()> {
    // SAFETY: it takes numbers only.
    checked(unsafe { fcntl(fd, F_SETFD, 0) }).map(drop)
}

/// Keeps a descriptor from programs that are executed.
pub(crate) fn close_at_exec(fd: RawFd) -> io::Result<()> {
    const FD_CLOEXEC: c_int = 1;
    // SAFETY: it takes numbers only.
    checked(unsafe { fcntl(fd, F_SETFD, FD_CLOEXEC) }).map(drop)
}

/// Takes over a descriptor that this process was started with.
pub(crate) fn inherited(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: any open descriptor may be looked at.
    checked(unsafe { fcntl(fd, F_GETFL) })?;
    // SAFETY: it is open; callers take each number at most once, at the start.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Reads and writes of this descriptor do not wait.
pub(crate) fn set_nonblocking(fd: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: it takes numbers only.
    let flags = checked(unsafe { fcntl(fd.as_raw_fd(), F_GETFL) })?;
    // SAFETY: as above.
    checked(unsafe { fcntl(fd.as_raw_fd(), F_SETFL, flags | O_NONBLOCK) }).map(drop)
}

/// Asks for a pipe that holds so many bytes; a refusal leaves it as it is.
pub(crate) fn enlarge_pipe(fd: &impl AsRawFd, bytes: i32) {
    // SAFETY: it takes numbers only.
    unsafe { fcntl(fd.as_raw_fd(), F_SETPIPE_SZ, bytes) };
}

/// How many bytes a pipe holds; 64 KiB where it can't be told.
pub(crate) fn pipe_capacity(fd: &impl AsRawFd) -> usize {
    // SAFETY: it takes numbers only.
    let bytes = unsafe { fcntl(fd.as_raw_fd(), F_GETPIPE_SZ) };
    usize::try_from(bytes).unwrap_or(64 * 1024)
}

/// Starts a session of its own.
pub(crate) fn start_session() {
    // SAFETY: it takes nothing. It fails only for the leader of a group, who has one.
    unsafe { setsid() };
}

/// Makes standard input this session's terminal, if it is one.
pub(crate) fn take_terminal() {
    // SAFETY: it takes numbers only; no terminal there is an error that changes nothing.
    unsafe { ioctl(0, TIOCSCTTY, 0 as c_int) };
}

pub(crate) fn own_user() -> (u32, u32) {
    // SAFETY: it takes nothing and can't fail.
    let uid = unsafe { geteuid() };
    // SAFETY: as above.
    (uid, unsafe { getegid() })
}

/// The supplementary groups of this process.
pub(crate) fn own_groups() -> Vec<u32> {
    let mut groups = vec![0; 65_536];
    // SAFETY: the array has room for as many as are asked for, the most there can be.
    let count = unsafe { getgroups(65_536, groups.as_mut_ptr()) };
    groups.truncate(usize::try_from(count).unwrap_or(0));
    groups.shrink_to_fit();
    groups
}

/// Becomes another user, in the only order that works; the error number if that fails.
pub(crate) fn become_user(uid: u32, gid: u32, groups: &[u32]) -> Result<(), i32> {
    // SAFETY: the array holds as many groups as are said.
    checked(unsafe { setgroups(groups.len(), groups.as_ptr()) }).map_err(|_| last_errno())?;
    // SAFETY: it takes numbers only.
    checked(unsafe { setresgid(gid, gid, gid) }).map_err(|_| last_errno())?;
    // SAFETY: it takes numbers only.
    checked(unsafe { setresuid(uid, uid, uid) })
        .map_err(|_| last_errno())
        .map(drop)
}

/// Enters a directory; the error number if that fails.
pub(crate) fn enter(directory: &CStr) -> Result<(), i32> {
    // SAFETY: it is a C string.
    checked(unsafe { chdir(directory.as_ptr()) })
        .map_err(|_| last_errno())
        .map(drop)
}

pub(crate) fn exists(path: &CStr) -> bool {
    // SAFETY: it is a C string; mode 0 asks whether there is a file.
    unsafe { access(path.as_ptr(), 0) == 0 }
}

/// How many descriptors a process may have.
pub(crate) fn descriptor_limit() -> Limit {
    limit_of(RLIMIT_NOFILE)
}

/// How many bytes the stack may have.
pub(crate) fn stack_limit() -> u64 {
    limit_of(RLIMIT_STACK).soft
}

fn limit_of(which: c_int) -> Limit {
    let mut limit = Limit::default();
    // SAFETY: the value lives through the call.
    unsafe { getrlimit(which, &raw mut limit) };
    limit
}

pub(crate) fn set_descriptor_limit(limit: Limit) {
    // SAFETY: the value lives through the call.
    unsafe { setrlimit(RLIMIT_NOFILE, &raw const limit) };
}

impl Limit {
    /// As much as may be had without asking anybody, up to what the program can ever use.
    pub(crate) fn raised(self) -> Self {
        Self {
            soft: self.hard.min(65_536).max(self.soft),
            hard: self.hard,
        }
    }
}

/// Connects to a unix socket by its path without ever waiting.
pub(crate) fn connect_at_once(path: &[u8]) -> io::Result<OwnedFd> {
    const AF_UNIX: u16 = 1;
    const SOCK_STREAM: c_int = 1;
    const SOCK_CLOEXEC: c_int = 0x8_0000;
    let mut address = Address {
        family: AF_UNIX,
        path: [0; 108],
    };
    // The last byte stays zero.
    if path.len() >= address.path.len() {
        return Err(io::Error::from_raw_os_error(errno::EINVAL));
    }
    address.path[..path.len()].copy_from_slice(path);
    // SAFETY: it takes numbers only.
    let fd = checked(unsafe { socket(AF_UNIX.into(), SOCK_STREAM | SOCK_CLOEXEC | O_NONBLOCK, 0) })?;
    // SAFETY: the call has just made this descriptor, nobody else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let bytes = c_uint::try_from(size_of::<Address>()).unwrap_or(0);
    // SAFETY: the address lives through the call and has as many bytes as are said.
    checked(unsafe { connect(socket.as_raw_fd(), &raw const address, bytes) })?;
    Ok(socket)
}

/// Who is on the other side of a unix socket.
pub(crate) fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let mut peer = Peer::default();
    let mut bytes = c_uint::try_from(size_of::<Peer>()).unwrap_or(0);
    let value = (&raw mut peer).cast();
    // SAFETY: the value has as many bytes as are said and lives through the call.
    checked(unsafe { getsockopt(socket.as_raw_fd(), SOL_SOCKET, SO_PEERCRED, value, &raw mut bytes) })?;
    let _ = peer.gid;
    Ok(peer)
}

/// Hands two descriptors to the other side of a unix socket, with one byte.
pub(crate) fn send_descriptors(socket: BorrowedFd<'_>, descriptors: [RawFd; 2], byte: u8) -> io::Result<()> {
    let mut rights = Rights {
        bytes: size_of::<Rights>(),
        level: SOL_SOCKET,
        kind: SCM_RIGHTS,
        descriptors,
    };
    let mut byte = [byte];
    let mut slice = IoSliceMut::new(&mut byte);
    let message = message(&mut slice, &mut rights);
    // SAFETY: the message points to one slice and one control message, both alive, with their sizes.
    let sent = unsafe { sendmsg(socket.as_raw_fd(), &raw const message, MSG_NOSIGNAL) };
    if sent < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Takes what [`send_descriptors`] has sent. None where the bytes came without descriptors, or nothing came.
pub(crate) fn receive_descriptors(socket: BorrowedFd<'_>) -> io::Result<Option<([OwnedFd; 2], u8)>> {
    let mut rights = Rights::default();
    let mut byte = [0];
    let mut slice = IoSliceMut::new(&mut byte);
    let mut message = message(&mut slice, &mut rights);
    // SAFETY: the message points to one slice and room for one control message, both alive, with their sizes.
    let received = unsafe { recvmsg(socket.as_raw_fd(), &raw mut message, MSG_CMSG_CLOEXEC) };
    if received < 0 {
        return Err(io::Error::last_os_error());
    }
    // One descriptor alone would have the size of its padding; then there is nothing to take over but that one.
    if rights.level != SOL_SOCKET
        || rights.kind != SCM_RIGHTS
        || rights.bytes < size_of::<Rights>() - size_of::<RawFd>()
    {
        return Ok(None);
    }
    let count = (rights.bytes + size_of::<[RawFd; 2]>() - size_of::<Rights>()) / size_of::<RawFd>();
    let mut taken = rights.descriptors.into_iter().take(count).map(|fd| {
        // SAFETY: the kernel has just put this descriptor here for us; nobody else owns it.
        unsafe { OwnedFd::from_raw_fd(fd) }
    });
    Ok(match (taken.next(), taken.next()) {
        (Some(input), Some(output)) => Some(([input, output], byte[0])),
        _ => None,
    })
}

fn message(slice: &mut IoSliceMut<'_>, rights: &mut Rights) -> Message {
    Message {
        name: std::ptr::null_mut(),
        name_bytes: 0,
        // std says that this type has the layout of iovec.
        slices: std::ptr::from_mut(slice).cast(),
        slice_count: 1,
        control: std::ptr::from_mut(rights).cast(),
        control_bytes: size_of::<Rights>(),
        flags: 0,
    }
}
