//! Looking at, making and removing files in a container.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result};
use crate::spec::{
    DEFAULT_STALL_TIMEOUT, FileEntry, FileKind, FileOwner, FileStat, RemoveMode, UploadOptions,
};

use super::super::{DockerProvider, DockerRaw, PROVIDER};
use super::entry::{Entry, Kind, TRAILER, header_bytes};
use super::facts::Reach;
use super::path::{RemotePath, absolute};
use super::path_error;
use super::put::parents;
use super::resolve::{LastLink, Place};
use super::stat::{failure_error, time_of};
use super::stream::Moved;
use super::tool::{Script, no_tools};
use super::transfer::{Body, Clash, put};
use super::upload::{read_only, seconds};

const OPERATION: Operation = Operation::Files;

/// How much a listing may print: some hundred thousand entries.
const LISTING_BYTES: usize = 64 << 20;

fn last_link(path: &RemotePath) -> LastLink {
    if path.names_directory() {
        LastLink::Follow
    } else {
        LastLink::Keep
    }
}

fn written_as(path: &RemotePath) -> &'static str {
    if path.names_directory() {
        "directory"
    } else {
        "any"
    }
}

impl DockerProvider {
    /// What is at a path.
    pub(super) async fn path_stat(&self, raw: &DockerRaw, remote: &str) -> Result<Option<FileStat>> {
        let path = RemotePath::parse(OPERATION, remote)?;
        let place = self.resolve(raw, OPERATION, &path, last_link(&path)).await?;
        if place.is_live() {
            let arguments = [&place.path(), written_as(&path)];
            let run = self
                .run_tool(raw, &place.facts, OPERATION, Script::Stat, &arguments, 16 * 1024)
                .await?;
            return match run.0.check(OPERATION, remote) {
                Ok(()) => parse_stat(&run.1).map(Some).ok_or_else(unreadable),
                Err(error) if error.kind() == ErrorKind::Path(PathProblem::NotFound) => Ok(None),
                Err(error) => Err(error),
            };
        }
        match place.kind {
            None => Ok(None),
            Some(kind) if kind != FileKind::Directory && path.names_directory() => {
                Err(not_a_directory(&path))
            }
            Some(_) => {
                let moved = Moved::new(None, None);
                let stalls = (&moved, DEFAULT_STALL_TIMEOUT);
                let path = place.path();
                let stat = self.read_archive(raw, OPERATION, &path, stalls, |reader| {
                    reader
                        .next()
                        .map_err(|error| unreadable().with_source(error))?
                        .ok_or_else(unreadable)
                });
                match stat.await {
                    Ok(entry) => Ok(Some(stat_of(&entry))),
                    Err(error) if error.kind() == ErrorKind::Path(PathProblem::NotFound) => Ok(None),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// What is in a directory.
    pub(super) async fn path_list(&self, raw: &DockerRaw, remote: &str) -> Result<Vec<FileEntry>> {
        let path = RemotePath::parse(OPERATION, remote)?;
        let place = self.resolve(raw, OPERATION, &path, LastLink::Follow).await?;
        match place.kind {
            None if !place.is_live() => {
                return Err(path_error(
                    OPERATION,
                    PathProblem::NotFound,
                    format!("`{path}` does not exist in the sandbox"),
                ));
            }
            None | Some(FileKind::Directory) => {}
            Some(_) => return Err(not_a_directory(&path)),
        }
        let mut entries = match self.list_by_program(raw, &place, remote).await {
            Err(error) if !place.is_live() && cannot_run(&error) => self.list_archive(raw, &place).await?,
            listed => listed?,
        };
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    async fn list_by_program(&self, raw: &DockerRaw, place: &Place, remote: &str) -> Result<Vec<FileEntry>> {
        let arguments = [place.path()];
        let arguments = [arguments[0].as_str()];
        let run = self
            .run_tool(
                raw,
                &place.facts,
                OPERATION,
                Script::List,
                &arguments,
                LISTING_BYTES,
            )
            .await?;
        run.0.check(OPERATION, remote)?;
        parse_list(&run.1).ok_or_else(unreadable)
    }

    /// By the archive call, which sends the whole content along: for images without a shell, and stopped sandboxes.
    async fn list_archive(&self, raw: &DockerRaw, place: &Place) -> Result<Vec<FileEntry>> {
        let moved = Moved::new(None, None);
        let stalls = (&moved, DEFAULT_STALL_TIMEOUT);
        let path = if place.real.is_empty() {
            "/".to_owned()
        } else {
            place.path()
        };
        let most = crate::spec::DEFAULT_MAX_ENTRIES;
        self.read_archive(raw, OPERATION, &path, stalls, move |reader| {
            let failed = |error| unreadable().with_source(error);
            let names = |name: &[u8]| {
                name.split(|&byte| byte == b'/')
                    .filter(|part| !part.is_empty() && *part != b".")
                    .map(<[u8]>::to_vec)
                    .collect::<Vec<_>>()
            };
            let top = names(&reader.next().map_err(failed)?.ok_or_else(unreadable)?.name).len();
            let mut entries = Vec::new();
            let mut sizes: HashMap<Vec<u8>, u64> = HashMap::new();
            for _ in 0..most {
                let Some(entry) = reader.next().map_err(failed)? else {
                    return Ok(entries);
                };
                let mut parts = names(&entry.name);
                if parts.len() != top + 1 {
                    continue;
                }
                let mut stat = stat_of(&entry);
                if entry.kind == Kind::HardLink {
                    stat.kind = FileKind::File;
                    stat.size_bytes = sizes.get(&entry.link).copied().unwrap_or_default();
                }
                sizes.insert(entry.name, stat.size_bytes);
                entries.push(FileEntry::new(
                    OsString::from_vec(parts.pop().unwrap_or_default()),
                    stat,
                ));
            }
            Err(path_error(
                OPERATION,
                PathProblem::TooLarge,
                format!("there are more than {most} files in it"),
            ))
        })
        .await
    }

    /// Removes what is at a path.
    pub(super) async fn path_remove(&self, raw: &DockerRaw, remote: &str, mode: RemoveMode) -> Result<bool> {
        let path = RemotePath::parse(OPERATION, remote)?;
        let place = self.resolve(raw, OPERATION, &path, last_link(&path)).await?;
        if place.real.is_empty() {
            return Err(Error::invalid(
                OPERATION,
                "the root of a sandbox can't be removed",
            ));
        }
        if place.kind.is_none() && !place.is_live() {
            return Ok(false);
        }
        if place.reach == (Reach::Archive { writable: false }) {
            return Err(read_only(&path));
        }
        if raw.shell.is_none() {
            return Err(Error::unsupported(
                OPERATION,
                PROVIDER,
                "removing files in an image without a shell",
            ));
        }
        let recursive = if mode == RemoveMode::Recursive {
            "recursive"
        } else {
            "one"
        };
        let arguments = [&place.path(), recursive, written_as(&path)];
        let run = self
            .run_tool(
                raw,
                &place.facts,
                OPERATION,
                Script::Remove,
                &arguments,
                16 * 1024,
            )
            .await?;
        match run.0.check(OPERATION, remote) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Path(PathProblem::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes a directory.
    pub(super) async fn path_make_directory(
        &self,
        raw: &DockerRaw,
        remote: &str,
        options: &UploadOptions,
    ) -> Result<()> {
        let path = RemotePath::parse(OPERATION, remote)?;
        let place = self.resolve(raw, OPERATION, &path, LastLink::Follow).await?;
        let owner = options.owner.unwrap_or(place.facts.owner);
        let mode = options.mode.unwrap_or(0o755) & 0o7777;
        match place.kind {
            Some(FileKind::Directory) => return Ok(()),
            Some(_) => return Err(not_a_directory(&path)),
            None if place.reach == (Reach::Archive { writable: false }) => return Err(read_only(&path)),
            None if !place.is_live() => {
                return self.put_directory(raw, &place, owner, mode, options).await;
            }
            None => {}
        }
        let owner = if place.facts.mover.is_none() && owner == place.facts.owner {
            String::new()
        } else {
            format!("{}:{}", owner.uid, owner.gid)
        };
        let arguments = [&place.path(), &owner, format!("{mode:o}").as_str()].map(str::to_owned);
        let arguments = arguments.each_ref().map(String::as_str);
        let run = self
            .run_tool(
                raw,
                &place.facts,
                OPERATION,
                Script::MakeDirectory,
                &arguments,
                16 * 1024,
            )
            .await?;
        run.0.check(OPERATION, remote)
    }

    async fn put_directory(
        &self,
        raw: &DockerRaw,
        place: &Place,
        owner: FileOwner,
        mode: u32,
        options: &UploadOptions,
    ) -> Result<()> {
        let entry = Entry {
            name: place.real[place.base()..].join("/").into_bytes(),
            kind: Kind::Directory,
            size: 0,
            mode,
            mtime: seconds(options.mtime.unwrap_or_else(std::time::SystemTime::now)),
            uid: owner.uid,
            gid: owner.gid,
            link: Vec::new(),
        };
        let body = [parents(place, owner), header_bytes(&entry), TRAILER.to_vec()].concat();
        let client = self.engine().await?.client.clone();
        let base = absolute(&place.real[..place.base()]);
        let sending = put(
            client,
            raw.container_id.clone(),
            base,
            Clash::Refuse,
            Body::Whole(body),
        );
        let sent = Moved::new(None, None)
            .unless_stalled(options.stall_timeout, OPERATION, sending)
            .await?;
        sent.map_err(|failure| failure_error(OPERATION, &place.path(), failure))
    }
}

/// No program can be run now, or ever.
fn cannot_run(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Path(PathProblem::NotServable) | ErrorKind::Sandbox(_)
    )
}

fn not_a_directory(path: &RemotePath) -> Error {
    path_error(
        OPERATION,
        PathProblem::NotADirectory,
        format!("`{path}` is not a directory in the sandbox"),
    )
}

fn unreadable() -> Error {
    no_tools(OPERATION, "what the sandbox says of it can't be read")
}

fn stat_of(entry: &Entry) -> FileStat {
    let kind = match entry.kind {
        Kind::File | Kind::HardLink => FileKind::File,
        Kind::Directory => FileKind::Directory,
        Kind::Symlink => FileKind::Symlink,
        Kind::Special => FileKind::Special,
    };
    let mut stat = FileStat::new(kind);
    stat.size_bytes = if kind == FileKind::File { entry.size } else { 0 };
    stat.mode = entry.mode;
    stat.mtime = time_of(entry.mtime);
    stat.owner = FileOwner::new(entry.uid, entry.gid);
    stat.link_target =
        (kind == FileKind::Symlink).then(|| PathBuf::from(OsString::from_vec(entry.link.clone())));
    stat
}

/// Reads `mode size time uid gid` at the begin of a text, the mode in hex with the file's type.
fn parse_numbers(text: &[u8]) -> Option<(FileStat, &[u8])> {
    let mut rest = text;
    let mut word = || {
        let end = rest.iter().position(|byte| matches!(byte, b' ' | b'\n'))?;
        let word = std::str::from_utf8(&rest[..end]).ok()?;
        rest = &rest[end + 1..];
        Some(word)
    };
    let raw_mode = u32::from_str_radix(word()?, 16).ok()?;
    let size: u64 = word()?.parse().ok()?;
    let mtime: i64 = word()?.parse().ok()?;
    let (uid, gid) = (word()?.parse().ok()?, word()?.parse().ok()?);
    let kind = match raw_mode >> 12 {
        0o10 => FileKind::File,
        0o4 => FileKind::Directory,
        0o12 => FileKind::Symlink,
        _ => FileKind::Special,
    };
    let mut stat = FileStat::new(kind);
    stat.size_bytes = if kind == FileKind::File { size } else { 0 };
    stat.mode = raw_mode & 0o7777;
    stat.mtime = time_of(u64::try_from(mtime).unwrap_or_default());
    stat.owner = FileOwner::new(uid, gid);
    Some((stat, rest))
}

fn parse_stat(printed: &[u8]) -> Option<FileStat> {
    let (mut stat, rest) = parse_numbers(printed)?;
    if stat.kind == FileKind::Symlink {
        stat.link_target = Some(PathBuf::from(OsString::from_vec(rest.to_vec())));
    }
    Some(stat)
}

/// Reads names, links as pairs and lines of numbers, as `list.sh` prints them.
fn parse_list(printed: &[u8]) -> Option<Vec<FileEntry>> {
    let mut parts = printed.splitn(usize::MAX, |&byte| byte == 0);
    let mut used = 0;
    let mut next = || {
        let part = parts.next()?;
        used += part.len() + 1;
        Some(part)
    };
    let mut names = Vec::new();
    loop {
        match next()? {
            b"" => break,
            name => names.push(name),
        }
    }
    let mut links = HashMap::new();
    loop {
        match next()? {
            b"" => break,
            name => links.insert(name, next()?),
        };
    }
    let mut numbers = printed.get(used..)?;
    let mut entries = Vec::new();
    for name in names {
        let Some((mut stat, rest)) = parse_numbers(numbers) else {
            continue;
        };
        let Some(rest) = rest.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"\n")) else {
            continue;
        };
        numbers = rest;
        let name_alone = name.strip_prefix(b"./").unwrap_or(name);
        if matches!(name_alone, b"." | b"..") {
            continue;
        }
        let target = links
            .get(name)
            .map(|target| PathBuf::from(OsString::from_vec(target.to_vec())));
        stat.link_target = target.filter(|_| stat.kind == FileKind::Symlink);
        entries.push(FileEntry::new(OsString::from_vec(name_alone.to_vec()), stat));
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_with_odd_names_is_read_and_a_broken_one_is_not() {
        let printed = b"./*\0./a\nb\0./l\0./.\0./..\0./.h\0\0./l\0/to\0\0\
            81a4 3 10 1 2 ./a\nb\na1ff 3 11 0 0 ./l\n41ed 4096 9 0 0 ./.\n41ed 1 9 0 0 ./..\n89ed 0 12 5 6 ./.h\n";
        let entries = parse_list(printed).unwrap();
        let names: Vec<_> = entries.iter().map(|entry| entry.name.to_string_lossy()).collect();
        assert_eq!(names, ["a\nb", "l", ".h"]);
        assert_eq!(entries[1].stat.link_target, Some("/to".into()));
        assert_eq!(
            (entries[2].stat.mode, entries[2].stat.owner),
            (0o4755, FileOwner::new(5, 6))
        );
        assert_eq!(entries[0].stat.size_bytes, 3);
        assert!(parse_list(b"no end").is_none());
        assert!(parse_stat(b"garbage\n").is_none());
        assert_eq!(
            parse_stat(b"a1ff 3 11 0 0\nto\n x").unwrap().link_target,
            Some("to\n x".into())
        );
    }
}
