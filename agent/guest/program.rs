//! One program to be started: its arguments, environment, user and directory, and the start itself.

use std::ffi::CString;
use std::fs;

use crate::context::Context;
use crate::protocol::{ExecRequest, MARKER, StartStage};
use crate::sys::{self, SignalSet, errno, signal};
use crate::users::{Databases, User};

/// Why a program did not start.
pub(crate) type Failure = (StartStage, i32);

/// Everything that is needed between the fork and the exec, where nothing may be allocated or looked up.
pub(crate) struct Program<'a> {
    context: &'a Context,
    argv: Vec<CString>,
    environment: Vec<CString>,
    /// The files to try, in the order of PATH.
    candidates: Vec<CString>,
    directory: CString,
    /// None where the agent's own user runs it.
    user: Option<User>,
    /// A terminal that it was given becomes its own.
    takes_terminal: bool,
}

impl<'a> Program<'a> {
    /// Prepares a client's command.
    pub(crate) fn of_request(
        request: &ExecRequest,
        context: &'a Context,
        is_terminal: bool,
    ) -> Result<Self, Failure> {
        let databases = Databases::read();
        let user = find_user(&request.user, &databases, context)?;
        let uid = user.as_ref().map_or(context.uid, |user| user.uid);
        let mut marker = format!("{MARKER}=").into_bytes();
        marker.extend_from_slice(&request.id);
        let mut environment = overlaid(&context.environment, request.env.iter().chain([&marker]));
        // What runc does: an empty HOME counts as none.
        if value_of(&environment, b"HOME").is_none_or(<[u8]>::is_empty) {
            let home = user
                .as_ref()
                .map_or_else(|| databases.home_of(uid), |user| user.home.clone());
            environment = overlaid(&environment, [&[b"HOME=", home.as_slice()].concat()].into_iter());
        }
        let directory = if request.cwd.is_empty() {
            &context.directory
        } else {
            &request.cwd
        };
        if directory.first() != Some(&b'/') {
            return Err((StartStage::Cwd, errno::EINVAL));
        }
        if is_terminal && value_of(&environment, b"TERM").is_none() {
            environment = overlaid(&environment, [&b"TERM=xterm".to_vec()].into_iter());
        }
        Ok(Self {
            takes_terminal: is_terminal,
            ..Self::new(context, &request.argv, environment, directory, user)?
        })
    }

    /// Prepares the program that a container was meant to run, which the agent runs in its stead.
    pub(crate) fn of_entrypoint(
        argv: &[Vec<u8>],
        home: Option<Vec<u8>>,
        context: &'a Context,
    ) -> Result<Self, Failure> {
        let home = home.map(|home| [b"HOME=", home.as_slice()].concat());
        let environment = overlaid(&context.environment, home.iter());
        Ok(Self {
            takes_terminal: true,
            ..Self::new(context, argv, environment, &context.directory, None)?
        })
    }

    fn new(
        context: &'a Context,
        argv: &[Vec<u8>],
        environment: Vec<Vec<u8>>,
        directory: &[u8],
        user: Option<User>,
    ) -> Result<Self, Failure> {
        let unusable = (StartStage::Request, errno::EINVAL);
        let program = argv.first().ok_or(unusable)?;
        let path = value_of(&environment, b"PATH").unwrap_or_default();
        let candidates = candidates(program, path);
        let strings = |items: Vec<Vec<u8>>| {
            let strings: Result<Vec<CString>, _> = items.into_iter().map(CString::new).collect();
            strings.map_err(|_| unusable)
        };
        Ok(Self {
            context,
            candidates: strings(candidates)?,
            argv: strings(argv.to_vec())?,
            environment: strings(environment)?,
            directory: CString::new(directory).map_err(|_| (StartStage::Cwd, errno::EINVAL))?,
            user,
            takes_terminal: false,
        })
    }

    /// The user whose descriptors the program's should be; None where they need not change.
    pub(crate) fn owner(&self) -> Option<u32> {
        self.user.as_ref().map(|user| user.uid)
    }

    /// Starts the program with this process's descriptors 0, 1 and 2, and returns its pid.
    pub(crate) fn start(&self) -> Result<i32, Failure> {
        let argv = sys::Pointers::new(self.argv.iter().map(CString::as_c_str));
        let environment = sys::Pointers::new(self.environment.iter().map(CString::as_c_str));
        let mut failure = None;
        let pid = sys::spawn_sharing_memory(&mut || {
            failure = Some(self.become_program(&argv, &environment));
            sys::exit_now(127);
        });
        // A child that executed has left the memory without saying anything.
        match (pid, failure) {
            (Ok(pid), None) => Ok(pid),
            (Ok(_), Some(failure)) => Err(failure),
            (Err(error), _) => Err((StartStage::Resources, error.raw_os_error().unwrap_or(0))),
        }
    }

    /// Runs in the child. Returns only when it failed.
    fn become_program(&self, argv: &sys::Pointers<'_>, environment: &sys::Pointers<'_>) -> Failure {
        sys::start_session();
        if self.takes_terminal {
            sys::take_terminal();
        }
        // std ignores this signal for its own programs; others expect the default.
        sys::restore_pipe_signal();
        // A user who may not write it is the agent's own, whose score is what it is.
        let _ = fs::write("/proc/self/oom_score_adj", &self.context.oom_score);
        sys::set_descriptor_limit(self.context.descriptor_limit);
        let mut entered = sys::enter(&self.directory);
        if let Some(user) = &self.user
            && let Err(number) = sys::become_user(user.uid, user.gid, &user.groups)
        {
            return (StartStage::User, number);
        }
        // Some directories are closed to root and open to the user.
        if matches!(entered, Err(errno::EACCES | errno::EPERM)) {
            entered = sys::enter(&self.directory);
        }
        if let Err(number) = entered {
            return (StartStage::Cwd, number);
        }
        sys::block_signals(&SignalSet::empty());
        self.execute(argv, environment)
    }

    fn execute(&self, argv: &sys::Pointers<'_>, environment: &sys::Pointers<'_>) -> Failure {
        let mut failure = (StartStage::NotFound, errno::ENOENT);
        for path in &self.candidates {
            match sys::execute(path, argv, environment) {
                errno::ENOENT if sys::exists(path) => return (StartStage::BadFormat, errno::ENOENT),
                errno::ENOENT | errno::ENOTDIR => {}
                // Another directory of the path may hold one that can be executed.
                errno::EACCES => failure = (StartStage::NotExecutable, errno::EACCES),
                number @ errno::EPERM => return (StartStage::NotExecutable, number),
                number @ errno::E2BIG => return (StartStage::TooLong, number),
                number @ (errno::ENOEXEC | errno::ELIBBAD) => return (StartStage::BadFormat, number),
                number @ (errno::EAGAIN | errno::ENOMEM) => return (StartStage::Resources, number),
                number => return (StartStage::Other, number),
            }
        }
        failure
    }
}

/// None for the agent's own user.
fn find_user(spec: &[u8], databases: &Databases, context: &Context) -> Result<Option<User>, Failure> {
    if spec.is_empty() {
        return Ok(None);
    }
    let mut user = databases
        .find(spec)
        .map_err(|number| (StartStage::User, number))?;
    // Engines since 20.10.18 put the main group among the others too (CVE-2022-36109); whether this one does shows in the
    // groups that the agent was given itself.
    if context.groups.contains(&context.gid) && !user.groups.contains(&user.gid) {
        user.groups.insert(0, user.gid);
    }
    // Groups that the container's configuration adds to every user's show in the agent's own, beside those that its user
    // has from the files.
    let own = databases
        .find(context.uid.to_string().as_bytes())
        .map(|own| own.groups)
        .unwrap_or_default();
    for group in &context.groups {
        if *group != context.gid && !own.contains(group) && !user.groups.contains(group) {
            user.groups.push(*group);
        }
    }
    let is_own =
        user.uid == context.uid && user.gid == context.gid && is_same_set(&user.groups, &context.groups);
    Ok((!is_own).then_some(user))
}

/// The kernel sorts groups.
fn is_same_set(one: &[u32], other: &[u32]) -> bool {
    one.iter().all(|group| other.contains(group)) && other.iter().all(|group| one.contains(group))
}

/// An environment with entries replaced in their place, added at the end, or removed by a name alone.
fn overlaid<'a>(base: &[Vec<u8>], entries: impl Iterator<Item = &'a Vec<u8>>) -> Vec<Vec<u8>> {
    let mut environment = base.to_vec();
    for entry in entries {
        let name = entry.split(|byte| *byte == b'=').next().unwrap_or_default();
        let place = environment.iter().position(|other| name_of(other) == name);
        match (entry.contains(&b'='), place) {
            (true, Some(place)) => environment[place].clone_from(entry),
            (true, None) => environment.push(entry.clone()),
            (false, Some(place)) => drop(environment.remove(place)),
            (false, None) => {}
        }
    }
    environment
}

fn name_of(entry: &[u8]) -> &[u8] {
    entry.split(|byte| *byte == b'=').next().unwrap_or_default()
}

fn value_of<'a>(environment: &'a [Vec<u8>], name: &[u8]) -> Option<&'a [u8]> {
    environment
        .iter()
        .find_map(|entry| entry.strip_prefix(name)?.strip_prefix(b"="))
}

/// Where a program may be. Relative directories of the path are left out, as runc refuses what it finds there.
fn candidates(program: &[u8], path: &[u8]) -> Vec<Vec<u8>> {
    if program.contains(&b'/') {
        return vec![program.to_vec()];
    }
    if program.is_empty() {
        return Vec::new();
    }
    let directories = path
        .split(|byte| *byte == b':')
        .filter(|directory| directory.starts_with(b"/"));
    directories
        .map(|directory| [directory, b"/", program].concat())
        .collect()
}

/// Signals that stop a program by default and that PID 1 passes on.
pub(crate) const STOPPING: [i32; 6] = [
    signal::TERM,
    signal::INT,
    signal::QUIT,
    signal::HUP,
    signal::USR1,
    signal::USR2,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &[&str]) -> Vec<Vec<u8>> {
        items.iter().map(|item| item.as_bytes().to_vec()).collect()
    }

    #[test]
    fn an_overlay_replaces_in_place_adds_and_removes() {
        let base = list(&["A=1", "B=2", "C=3"]);
        let overlay = list(&["B=x=y", "D=4", "C", "E", "D=5", "F="]);
        assert_eq!(
            overlaid(&base, overlay.iter()),
            list(&["A=1", "B=x=y", "D=5", "F="])
        );
    }

    #[test]
    fn programs_are_looked_for_in_absolute_directories_only() {
        assert_eq!(
            candidates(b"ls", b"/bin:.::/usr/bin"),
            list(&["/bin/ls", "/usr/bin/ls"])
        );
        assert_eq!(candidates(b"./ls", b"/bin"), list(&["./ls"]));
        assert!(candidates(b"", b"/bin").is_empty());
        assert!(candidates(b"ls", b"").is_empty());
    }
}
