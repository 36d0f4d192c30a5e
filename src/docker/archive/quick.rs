//! What is small and ordinary, by the resident agent where one is at hand. What it does not do goes the usual way, which
//! also finds the right error.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::{
    DownloadTarget, FileEntry, FileKind, FileOwner, FileStat, TransferProgress, UploadOptions,
};

use super::super::agent::{AgentFileKind, Answer, FileInfo, WriteAs};
use super::super::lanes::Lane;
use super::super::{DockerProvider, DockerRaw};
use super::content::check_size;
use super::download::writer_failed;
use super::entry::{Entry, Kind};
use super::path::{RemotePath, absolute};
use super::settle::{self, Content};
use super::sink::Sink;
use super::stat::time_of;
use super::stream::Moved;
use super::upload::{Marks, blocking};

/// The path as the agent gets it. None where it says more than a path can: written as a directory, or with `..`, which
/// leads elsewhere when parents are missing.
pub(super) fn ordinary(path: &RemotePath) -> Option<String> {
    let parts = path.parts();
    let has_dots = parts.iter().any(|part| part == "..");
    (!path.names_directory() && !has_dots && !parts.is_empty()).then(|| absolute(&parts))
}

impl DockerProvider {
    /// Writes a small file. None when it did not.
    pub(super) async fn write_quickly(
        &self,
        raw: &DockerRaw,
        path: &RemotePath,
        content: &Bytes,
        options: &UploadOptions,
        from: (u32, u64),
    ) -> Result<Option<TransferProgress>> {
        let Some(at) = ordinary(path) else {
            return Ok(None);
        };
        let marks = Marks::new(options, from, self.facts(raw, Operation::Upload).await?.owner);
        let write_as = WriteAs {
            mode: marks.mode,
            mtime_seconds: marks.mtime,
            owner: marks.owner,
        };
        let _slot = self.lanes().slot(Lane::Transfer).await?;
        let patience = options.stall_timeout;
        let written = self.write_by_agent(&raw.agent, &at, write_as, content, patience);
        match written.await {
            Answer::Agent(()) => {
                let moved = Moved::new(options.progress.clone(), Some(content.len() as u64));
                moved.add_bytes(content.len());
                moved.add_entry();
                Ok(Some(moved.progress()))
            }
            Answer::Elsewhere => Ok(None),
            Answer::Unknown => Err(agent_silent(patience)),
        }
    }

    /// Takes a small file out. Gives the target back when it did not.
    pub(super) async fn take_quickly<'a>(
        &self,
        raw: &DockerRaw,
        path: &RemotePath,
        target: DownloadTarget<'a>,
        sink: impl FnOnce(&std::path::Path) -> Sink,
    ) -> Result<Option<DownloadTarget<'a>>> {
        let Some(at) = ordinary(path) else {
            return Ok(Some(target));
        };
        let sink = sink(match &target {
            DownloadTarget::Path(local) => local,
            DownloadTarget::Writer(_) => std::path::Path::new(""),
        });
        let _slot = self.lanes().slot(Lane::Transfer).await?;
        let Answer::Agent((info, content)) = self.read_by_agent(raw, &at, sink.options.max_bytes).await
        else {
            return Ok(Some(target));
        };
        sink.moved.add_entry();
        sink.moved.set_total(Some(content.len() as u64));
        match target {
            DownloadTarget::Path(_) => {
                blocking(move || {
                    let entry = entry_of(&info, content.len());
                    settle::file(
                        Content::Raw(&mut content.as_slice()),
                        &entry,
                        &sink.name,
                        &sink.target,
                        &sink.options,
                        &sink.moved,
                    )
                })
                .await??;
            }
            DownloadTarget::Writer(writer) => {
                check_size(sink.moved.progress(), content.len() as u64, &sink.options)?;
                writer.write_all(&content).await.map_err(writer_failed)?;
                writer.flush().await.map_err(writer_failed)?;
                sink.moved.add_bytes(content.len());
            }
        }
        Ok(None)
    }

    /// Looks at a path. None where it is to be looked at another way.
    pub(super) async fn stat_quickly(&self, raw: &DockerRaw, path: &RemotePath) -> Option<Option<FileStat>> {
        match self.stat_by_agent(raw, &ordinary(path)?).await {
            Answer::Agent(info) => Some(info.map(stat_of)),
            Answer::Elsewhere | Answer::Unknown => None,
        }
    }

    /// Looks into a directory. None where it is to be looked into another way.
    pub(super) async fn list_quickly(&self, raw: &DockerRaw, path: &RemotePath) -> Option<Vec<FileEntry>> {
        let Answer::Agent(infos) = self.list_by_agent(raw, &absolute(&straight(path)?)).await else {
            return None;
        };
        let entry = |mut info: FileInfo| {
            let name = OsString::from_vec(std::mem::take(&mut info.name));
            FileEntry::new(name, stat_of(info))
        };
        Some(infos.into_iter().map(entry).collect())
    }
}

/// The agent did not say whether it did what an upload asked of it.
pub(super) fn agent_silent(patience: Duration) -> Error {
    Error::new(
        ErrorKind::Timeout,
        Operation::Upload,
        format!("nothing moved for {patience:?}: the sandbox's agent does not answer"),
    )
}

/// The names of a path that has no `..`. A directory may be written as one.
fn straight(path: &RemotePath) -> Option<std::collections::VecDeque<String>> {
    let parts = path.parts();
    (!parts.iter().any(|part| part == "..")).then_some(parts)
}

fn entry_of(info: &FileInfo, size: usize) -> Entry {
    Entry {
        name: Vec::new(),
        kind: Kind::File,
        size: size as u64,
        mode: info.mode & 0o7777,
        mtime: seconds_of(info.modified_ns),
        uid: info.uid,
        gid: info.gid,
        link: Vec::new(),
    }
}

fn stat_of(info: FileInfo) -> FileStat {
    let kind = match info.kind {
        AgentFileKind::File => FileKind::File,
        AgentFileKind::Directory => FileKind::Directory,
        AgentFileKind::Link => FileKind::Symlink,
        AgentFileKind::Other => FileKind::Special,
    };
    let mut stat = FileStat::new(kind);
    stat.size_bytes = if kind == FileKind::File { info.size } else { 0 };
    stat.mode = info.mode & 0o7777;
    stat.mtime = time_of(seconds_of(info.modified_ns));
    stat.owner = FileOwner::new(info.uid, info.gid);
    stat.link_target = (kind == FileKind::Symlink).then(|| PathBuf::from(OsString::from_vec(info.target)));
    stat
}

/// Whole seconds, as archives have them; what lies before 1970 is 1970.
fn seconds_of(nanoseconds: i64) -> u64 {
    u64::try_from(nanoseconds.div_euclid(1_000_000_000)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_means_the_same_everywhere_goes_to_the_agent() {
        for (typed, expected) in [
            ("/a/b", Some("/a/b")),
            ("a", Some("/w/a")),
            ("/a//./b", Some("/a/b")),
            ("/a/", None),
            ("/a/../b", None),
            ("/", None),
            (".", None),
        ] {
            let path = RemotePath::parse(Operation::Upload, typed, "/w").unwrap();
            assert_eq!(ordinary(&path).as_deref(), expected, "{typed}");
        }
    }

    #[test]
    fn times_are_whole_seconds_from_1970_on() {
        for (nanoseconds, seconds) in [(0, 0), (1_999_999_999, 1), (-1, 0), (i64::MIN, 0)] {
            assert_eq!(seconds_of(nanoseconds), seconds, "{nanoseconds}");
        }
    }
}
