//! The process that stands between the agent and one command: it starts the command, is the parent of all its orphans,
//! reaps them, and kills the tree when asked. A fork of the agent that never returns; knows no client.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use crate::context::Context;
use crate::link::{Order, Records, Report};
use crate::processes;
use crate::program::{Failure, Program};
use crate::protocol::{ExecRequest, SignalTarget};
use crate::sys::{self, Ended, POLLIN, PollFd, SignalSet, signal};

/// The number of the runner's link; 0, 1 and 2 are the command's.
const LINK: RawFd = 3;
/// How long a kill waits at first before it looks for more to kill, and at most.
const FIRST_PAUSE_MS: u64 = 1;
const LONGEST_PAUSE_MS: u64 = 20;
/// The same once the time for a report is over.
const LATE_PAUSE_MS: u64 = 1000;
/// After so many rounds that saw only its own children a kill looks at the whole tree again.
const ROUNDS_BETWEEN_LOOKS: u32 = 4;

/// The group `tty`.
const TERMINAL_GROUP: u32 = 5;

/// What a forked child needs to become a runner.
pub(crate) struct Job<'a> {
    pub(crate) request: &'a ExecRequest,
    pub(crate) context: &'a Context,
    pub(crate) link: OwnedFd,
    /// Standard input, output and error of the command.
    pub(crate) stdio: [OwnedFd; 3],
    /// All three are one terminal, which becomes the command's.
    pub(crate) is_terminal: bool,
}

/// Runs the command; called in a forked child.
pub(crate) fn run(job: Job<'_>) -> ! {
    let Job {
        request,
        context,
        link,
        stdio,
        is_terminal,
    } = job;
    sys::block_signals(&SignalSet::all_but(&[]));
    let link = match keep_only(link, stdio) {
        Ok(link) => UnixStream::from(link),
        Err(_) => sys::exit_now(1),
    };
    // What came for the agent before the fork is the agent's.
    sys::take_signals();
    let mut runner = Runner::new(link);
    match start(request, context, is_terminal) {
        Ok(pid) => runner.main = pid,
        Err((stage, errno)) => {
            runner.report(Report::Failed(stage, errno));
            sys::exit_now(0)
        }
    }
    for standard in 0..3 {
        sys::close_one(standard);
    }
    runner.report(Report::Started(runner.main.cast_unsigned()));
    runner.watch()
}

fn start(request: &ExecRequest, context: &Context, is_terminal: bool) -> Result<i32, Failure> {
    // Without it orphans go to the agent, which reaps them; only kills are less exact. The hello says so.
    let _ = sys::become_subreaper();
    let program = Program::of_request(request, context, is_terminal)?;
    if is_terminal {
        // Else its user could not open /dev/tty's own name anew. The group is that of terminals everywhere.
        let uid = program.owner().unwrap_or(context.uid);
        let _ = std::os::unix::fs::chown("/proc/self/fd/0", Some(uid), Some(TERMINAL_GROUP));
    }
    if let Some(uid) = program.owner() {
        for standard in 0..3 {
            // A user must be able to open /dev/stdout anew. /dev/null stays whose it is.
            let path = format!("/proc/self/fd/{standard}");
            if fs::metadata(&path).is_ok_and(|found| !is_device(&found)) {
                let _ = std::os::unix::fs::chown(&path, Some(uid), None);
            }
        }
    }
    program.start()
}

fn is_device(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    found.file_type().is_char_device()
}

/// Makes these the descriptors 0, 1 and 2 and the link 3, and closes all others: those of clients and commands must not
/// stay open for as long as this child lives.
pub(crate) fn keep_only(link: OwnedFd, stdio: [OwnedFd; 3]) -> std::io::Result<OwnedFd> {
    // The agent has 0, 1 and 2 open at all times, so that none of these four has such a number.
    for (to, from) in (0..).zip(&stdio) {
        sys::duplicate_to(from.as_raw_fd(), to)?;
    }
    if link.as_raw_fd() != LINK {
        sys::duplicate_to(link.as_raw_fd(), LINK)?;
    }
    // From here on their numbers belong to nobody in this process.
    std::mem::forget((link, stdio));
    if sys::close_from(LINK + 1).is_err() {
        let list = fs::read_dir("/proc/self/fd")?;
        let open: Vec<RawFd> = list
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        // The list itself was one of them, and is closed by now.
        for fd in open.into_iter().filter(|fd| *fd > LINK && sys::is_open(*fd)) {
            sys::close_one(fd);
        }
    }
    sys::close_at_exec(LINK)?;
    sys::inherited(LINK)
}

struct Runner {
    /// None when the agent is gone.
    link: Option<UnixStream>,
    orders: Records,
    main: i32,
    has_exited: bool,
    kill: Option<Kill>,
}

/// A kill under way.
struct Kill {
    /// When to report what lives on; None when that is done or nobody asked.
    report_at: Option<u64>,
    killed: u32,
    rounds: u32,
    pause_ms: u64,
}

impl Runner {
    fn new(link: UnixStream) -> Self {
        Self {
            link: Some(link),
            orders: Records::default(),
            main: 0,
            has_exited: false,
            kill: None,
        }
    }

    fn report(&self, report: Report) {
        if let Some(mut link) = self.link.as_ref() {
            // An agent that is gone is noticed by reading.
            let _ = link.write_all(&report.to_record());
        }
    }

    /// Reaps, and does what the agent says, until no process of the tree is left.
    fn watch(mut self) -> ! {
        let mask = SignalSet::all_but(&[signal::CHLD]);
        loop {
            if !self.reap() {
                if self.kill.as_ref().is_some_and(|kill| kill.report_at.is_some()) {
                    self.report(Report::Killed(self.kill.as_ref().map_or(0, |kill| kill.killed)));
                }
                self.report(Report::Empty);
                sys::exit_now(0)
            }
            let pause = self.strike();
            let mut waiting: Vec<PollFd> = self.link.iter().map(|link| PollFd::new(link, POLLIN)).collect();
            sys::wait_ready(&mut waiting, pause, &mask);
            if waiting.first().is_some_and(|link| link.ready != 0) {
                self.obey();
            }
        }
    }

    /// Takes all children that have ended. False when there is none left: all descendants have become children by then,
    /// so that none can hide.
    fn reap(&mut self) -> bool {
        loop {
            match sys::reap() {
                Ok(Some(ended)) => self.note(&ended),
                Ok(None) => return true,
                Err(error) => return error.kind() == ErrorKind::Interrupted,
            }
        }
    }

    fn note(&mut self, ended: &Ended) {
        // The low seven bits are the signal.
        if let Some(kill) = &mut self.kill
            && ended.status & 0x7f == signal::KILL
        {
            kill.killed += 1;
        }
        if ended.pid == self.main {
            self.has_exited = true;
            let Ended {
                status,
                user_us,
                system_us,
                ..
            } = *ended;
            self.report(Report::Exited {
                status,
                user_us,
                system_us,
            });
        }
    }

    /// Kills what there is to kill now, and says how long to wait before the next time.
    fn strike(&mut self) -> Option<u64> {
        let kill = self.kill.as_mut()?;
        let looks = kill.rounds.is_multiple_of(ROUNDS_BETWEEN_LOOKS);
        kill.rounds += 1;
        // Killing the children alone is quick enough to win against processes that fork and exit; the look at the whole
        // tree stops the others from making more meanwhile.
        if looks || !processes::signal_children(signal::KILL) {
            processes::signal_descendants(signal::KILL);
        }
        let now = sys::now_ms();
        if kill.report_at.is_some_and(|at| at <= now) {
            kill.report_at = None;
            kill.pause_ms = LATE_PAUSE_MS;
            let killed = kill.killed;
            let survivors = processes::descendants(std::process::id().cast_signed());
            for survivor in survivors {
                self.report(Report::Survivor(survivor.pid.cast_unsigned()));
            }
            self.report(Report::Killed(killed));
            return Some(LATE_PAUSE_MS);
        }
        let pause = kill
            .report_at
            .map_or(kill.pause_ms, |at| kill.pause_ms.min(at - now));
        if kill.report_at.is_some() {
            kill.pause_ms = (kill.pause_ms * 2).min(LONGEST_PAUSE_MS);
        }
        Some(pause)
    }

    fn obey(&mut self) {
        let Some(mut link) = self.link.as_ref() else {
            return;
        };
        let mut bytes = [0; 240];
        match link.read(&mut bytes) {
            Ok(count) if count > 0 => self.orders.push(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // The agent is gone. A command that still runs would never be heard of again; what an ended one has left
            // running was meant to live on.
            _ => {
                self.link = None;
                if !self.has_exited {
                    self.start_kill(None);
                }
            }
        }
        while let Some(order) = self.orders.order() {
            match order {
                Order::Kill(wait_ms) => self.start_kill(Some(wait_ms)),
                Order::Signal(number, target) => self.signal(number.into(), target),
            }
        }
    }

    fn start_kill(&mut self, wait_ms: Option<u32>) {
        let report_at = wait_ms.map(|wait_ms| sys::now_ms() + u64::from(wait_ms));
        let killed = self.kill.as_ref().map_or(0, |kill| kill.killed);
        self.kill = Some(Kill {
            report_at,
            killed,
            rounds: 0,
            pause_ms: FIRST_PAUSE_MS,
        });
    }

    fn signal(&self, number: i32, target: SignalTarget) {
        match target {
            // Once it is reaped its number can be another's.
            SignalTarget::Process if self.has_exited => {}
            SignalTarget::Process => drop(sys::send_signal(self.main, number)),
            SignalTarget::Group if self.has_exited => processes::signal_group_descendants(self.main, number),
            SignalTarget::Group => drop(sys::send_signal(-self.main, number)),
            SignalTarget::Tree => processes::signal_descendants(number),
        }
    }
}
