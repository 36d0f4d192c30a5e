//! Which place of this machine a path in a local sandbox means. Links are followed as a program in the sandbox would,
//! and a place outside of the workspace is refused however the path leads there.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result};

/// How many links may lead to a place; Linux has the same limit.
const LINKS: usize = 40;

/// What is done with a link that is the last part of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastLink {
    /// It is the place.
    Keep,
    /// What it leads to is the place. A path that ends in `/` always does this.
    Follow,
}

/// Finds the place of a path, which must be below one of the roots; the first of them is the workspace. Parts that do
/// not exist are taken as they are written.
pub(super) fn find(roots: &[PathBuf], remote: &str, last: LastLink, operation: Operation) -> Result<PathBuf> {
    if remote.is_empty() || remote.contains('\0') {
        return Err(Error::invalid(
            operation,
            "the path in the sandbox is empty or holds NUL",
        ));
    }
    let last = if remote.ends_with('/') {
        LastLink::Follow
    } else {
        last
    };
    let workspace = roots.first().map_or(Path::new("/"), PathBuf::as_path);
    let place =
        walk(workspace, Path::new(remote), last).map_err(|error| of_path(operation, remote, error))?;
    if roots.iter().any(|root| place.starts_with(root)) {
        return Ok(place);
    }
    Err(Error::new(
        ErrorKind::Path(PathProblem::Permission),
        operation,
        format!(
            "`{}` leads out of the workspace `{}`",
            remote.escape_debug(),
            workspace.display()
        ),
    )
    .with_hint("the local provider copies files only below the workspace; use a path relative to it, or allow others by `file_roots`"))
}

fn walk(workspace: &Path, remote: &Path, last: LastLink) -> io::Result<PathBuf> {
    let mut place = workspace.to_owned();
    let mut missing = false;
    let mut links = 0;
    let mut parts = VecDeque::new();
    push_front(&mut parts, remote);
    while let Some(part) = parts.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::RootDir) => place = PathBuf::from("/"),
            Some(Component::ParentDir) if missing => return Err(io::ErrorKind::NotFound.into()),
            Some(Component::ParentDir) => {
                place.pop();
            }
            Some(Component::Normal(name)) => {
                place.push(name);
                if missing || (parts.is_empty() && last == LastLink::Keep) {
                    continue;
                }
                match std::fs::symlink_metadata(&place) {
                    Ok(found) if found.is_symlink() => {
                        links += 1;
                        if links > LINKS {
                            return Err(rustix::io::Errno::LOOP.into());
                        }
                        let target = std::fs::read_link(&place)?;
                        place.pop();
                        push_front(&mut parts, &target);
                    }
                    Ok(found) if !found.is_dir() && !parts.is_empty() => {
                        return Err(io::ErrorKind::NotADirectory.into());
                    }
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::NotFound => missing = true,
                    Err(error) => return Err(error),
                }
            }
            _ => {}
        }
    }
    Ok(place)
}

fn push_front(parts: &mut VecDeque<OsString>, path: &Path) {
    let components: Vec<OsString> = path
        .components()
        .filter(|component| *component != Component::CurDir)
        .map(|component| component.as_os_str().to_owned())
        .collect();
    for component in components.into_iter().rev() {
        parts.push_front(component);
    }
}

/// An error of the system about a path, as what is wrong with the path.
pub(super) fn of_path(operation: Operation, path: impl AsRef<Path>, error: io::Error) -> Error {
    let problem = match error.kind() {
        io::ErrorKind::NotFound => PathProblem::NotFound,
        io::ErrorKind::IsADirectory => PathProblem::IsADirectory,
        io::ErrorKind::NotADirectory => PathProblem::NotADirectory,
        io::ErrorKind::ReadOnlyFilesystem => PathProblem::ReadOnly,
        io::ErrorKind::PermissionDenied => PathProblem::Permission,
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => PathProblem::Exists,
        _ => PathProblem::NotServable,
    };
    problem_of(operation, path, problem, "can't be used").with_source(error)
}

/// An error about a path that the system did not make.
pub(super) fn problem_of(
    operation: Operation,
    path: impl AsRef<Path>,
    problem: PathProblem,
    what: &str,
) -> Error {
    Error::new(
        ErrorKind::Path(problem),
        operation,
        format!("`{}` {what}", path.as_ref().display().to_string().escape_debug()),
    )
}
