//! Looking at, making and removing files in a container.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result};
use crate::spec::{
    DEFAULT_STALL_TIMEOUT, FileEntry, FileKind, FileOwner, FileStat, RemoveMode, UploadOptions,
};

use super::super::{DockerProvider, DockerRaw, PROVIDER};
use super::entry::{Entry, Kind, TRAILER, header_bytes};
use super::facts::Reach;
use super::listing::{parse_list, parse_stat, stat_of};
use super::path::{RemotePath, absolute};
use super::path_error;
use super::put::parents;
use super::resolve::{LastLink, Place};
use super::stat::failure_error;
use super::stream::Moved;
use super::tool::{Script, no_tools};
use super::transfer::{Body, Clash, put};
use super::upload::{read_only, seconds};

const OPERATION: Operation = Operation::Files;

/// How much a listing may print: some hundred thousand entries.
const LISTING_BYTES: usize = 64 << 20;

pub(super) fn last_link(path: &RemotePath) -> LastLink {
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
        let path = self.remote_path(raw, OPERATION, remote).await?;
        if let Some(stat) = self.stat_quickly(raw, &path).await {
            return Ok(stat);
        }
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
        let path = self.remote_path(raw, OPERATION, remote).await?;
        if let Some(mut entries) = self.list_quickly(raw, &path).await {
            entries.sort_by(|one, other| one.name.cmp(&other.name));
            return Ok(entries);
        }
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
        let path = self.remote_path(raw, OPERATION, remote).await?;
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
        let path = self.remote_path(raw, OPERATION, remote).await?;
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
