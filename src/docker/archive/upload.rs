//! Into a container: what is sent, by which way, and that the target is never half of it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result};
use crate::spec::{FileKind, FileOwner, TransferProgress, UploadOptions, UploadSource};

use super::super::lanes::Lane;
use super::super::{DockerProvider, DockerRaw};
use super::entry::{Entry, Kind};
use super::facts::Reach;
use super::look::last_link;
use super::pack::{self, PackError, SMALL_BYTES};
use super::path::RemotePath;
use super::resolve::Place;
use super::stream::{CHUNK_BYTES, ChunkWriter, Moved};
use super::{Accept, local_error, path_error};

const OPERATION: Operation = Operation::Upload;

/// What is sent.
pub(super) enum Payload<'a> {
    Small(Bytes),
    File {
        file: File,
        path: PathBuf,
        size: u64,
    },
    Reader {
        reader: Box<dyn AsyncRead + Send + Unpin + 'a>,
        size: u64,
    },
    Tree(PathBuf),
}

impl Payload<'_> {
    pub(super) fn size(&self) -> Option<u64> {
        match self {
            Self::Small(bytes) => Some(bytes.len() as u64),
            Self::File { size, .. } | Self::Reader { size, .. } => Some(*size),
            Self::Tree(_) => None,
        }
    }
}

/// What the target file gets beside its content.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks {
    pub(super) mode: u32,
    pub(super) mtime: u64,
    pub(super) owner: FileOwner,
}

impl Marks {
    /// What the options say, else the source's mode and time, and the sandbox's user.
    pub(super) fn new(options: &UploadOptions, (mode, mtime): (u32, u64), owner: FileOwner) -> Self {
        Self {
            mode: options.mode.unwrap_or(mode) & 0o7777,
            mtime: options.mtime.map_or(mtime, seconds),
            owner: options.owner.unwrap_or(owner),
        }
    }

    pub(super) fn entry(self, name: &str, kind: Kind, size: u64) -> Entry {
        Entry {
            name: name.as_bytes().to_vec(),
            kind,
            size,
            mode: self.mode,
            mtime: self.mtime,
            uid: self.owner.uid,
            gid: self.owner.gid,
            link: Vec::new(),
        }
    }
}

impl DockerProvider {
    /// Copies something into a container.
    pub(in super::super) async fn upload_source(
        &self,
        raw: &DockerRaw,
        source: UploadSource<'_>,
        remote: &str,
        options: &UploadOptions,
        accept: Accept,
    ) -> Result<TransferProgress> {
        let path = self.remote_path(raw, OPERATION, remote).await?;
        let name = match &source {
            UploadSource::Path(local) => local.file_name().map(|name| name.to_string_lossy().into_owned()),
            _ => None,
        };
        let (payload, mode, mtime) = load(source, accept).await?;
        let is_tree = matches!(payload, Payload::Tree(_));
        if is_tree && options.mode.is_some() {
            return Err(Error::invalid(
                OPERATION,
                "a mode was given for a directory, whose files have a mode each",
            ));
        }
        let path = if path.names_directory() && !is_tree {
            let name = name.ok_or_else(|| {
                Error::invalid(
                    OPERATION,
                    format!("`{path}` names a directory, and bytes have no name of their own"),
                )
                .with_hint("add a file name to the path")
            })?;
            path.join(&name)
        } else {
            path
        };
        let from = (mode, mtime);
        if let Payload::Small(content) = &payload
            && let Some(progress) = self.write_quickly(raw, &path, content, options, from).await?
        {
            return Ok(progress);
        }
        let place = self.resolve(raw, OPERATION, &path, last_link(&path)).await?;
        check_target(&path, &place, is_tree)?;
        let marks = Marks::new(options, from, place.facts.owner);
        let _slot = self.lanes().slot(Lane::Transfer).await?;
        let moved = Moved::new(options.progress.clone(), payload.size());
        let upload = Upload {
            raw,
            path: &path,
            place: &place,
            options,
            marks,
            moved: &moved,
        };
        match payload {
            Payload::Tree(source) => self.upload_tree(&upload, source).await?,
            payload if place.is_live() || is_bound_file(&place) => {
                self.receive_live(&upload, payload).await?;
            }
            Payload::Small(content) => self.put_small(&upload, &content).await?,
            payload => self.put_large(&upload, payload).await?,
        }
        if !is_tree {
            moved.add_entry();
        }
        Ok(moved.progress())
    }
}

/// One upload on its way.
pub(super) struct Upload<'a> {
    pub(super) raw: &'a DockerRaw,
    pub(super) path: &'a RemotePath,
    pub(super) place: &'a Place,
    pub(super) options: &'a UploadOptions,
    pub(super) marks: Marks,
    pub(super) moved: &'a Moved,
}

/// The engine mounts these files: they can be written, but not replaced.
fn is_bound_file(place: &Place) -> bool {
    let path = place.path();
    matches!(path.as_str(), "/etc/hosts" | "/etc/hostname" | "/etc/resolv.conf")
        || (place.mount == place.real.len() && place.mount > 0 && place.kind == Some(FileKind::File))
}

/// A file never replaces a directory, nor a directory a file; and nothing is sent to where nothing can be written.
fn check_target(path: &RemotePath, place: &Place, is_tree: bool) -> Result<()> {
    match place.kind {
        Some(FileKind::Directory) if !is_tree => Err(path_error(
            OPERATION,
            PathProblem::IsADirectory,
            format!("`{path}` is a directory in the sandbox"),
        )
        .with_hint("end the path with `/` to copy into the directory")),
        Some(FileKind::File | FileKind::Special) if is_tree => Err(path_error(
            OPERATION,
            PathProblem::NotADirectory,
            format!("`{path}` is a file in the sandbox, and a directory is to be copied there"),
        )),
        _ if place.reach == (Reach::Archive { writable: false }) => Err(read_only(path)),
        _ => Ok(()),
    }
}

pub(super) fn read_only(path: &RemotePath) -> Error {
    path_error(
        OPERATION,
        PathProblem::ReadOnly,
        format!("`{path}` lies on a read-only mount of the sandbox"),
    )
    .with_hint("copy to a writable volume or tmpfs of the sandbox")
}

/// Opens the source and says which mode and time it has.
async fn load(source: UploadSource<'_>, accept: Accept) -> Result<(Payload<'_>, u32, u64)> {
    let now = seconds(SystemTime::now());
    match source {
        UploadSource::Bytes(bytes) => Ok((Payload::Small(bytes), 0o644, now)),
        UploadSource::Path(local) => {
            let local = local.to_owned();
            blocking(move || open(local, accept)).await?
        }
        UploadSource::Reader {
            mut reader,
            size: Some(size),
        } if size <= SMALL_BYTES => {
            let mut content = Vec::new();
            (&mut reader)
                .take(size + 1)
                .read_to_end(&mut content)
                .await
                .map_err(reader_failed)?;
            if content.len() as u64 != size {
                return Err(wrong_size(size));
            }
            Ok((Payload::Small(content.into()), 0o644, now))
        }
        UploadSource::Reader {
            reader,
            size: Some(size),
        } => Ok((Payload::Reader { reader, size }, 0o644, now)),
        UploadSource::Reader { reader, size: None } => Ok((spool(reader).await?, 0o644, now)),
    }
}

fn open(local: PathBuf, accept: Accept) -> Result<(Payload<'static>, u32, u64)> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let failed = |error| local_error(OPERATION, &local, error);
    let metadata = std::fs::metadata(&local).map_err(failed)?;
    let mode = metadata.permissions().mode() & 0o7777;
    let mtime = u64::try_from(metadata.mtime()).unwrap_or_default();
    if metadata.is_dir() {
        return match accept {
            Accept::Any => Ok((Payload::Tree(local), mode, mtime)),
            Accept::File => Err(path_error(
                OPERATION,
                PathProblem::IsADirectory,
                format!("`{}` is a directory; a file is needed", local.display()),
            )),
        };
    }
    if !metadata.is_file() {
        return Err(PackError::Special(local).into_error());
    }
    let mut file = File::open(&local).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    if size > SMALL_BYTES {
        return Ok((
            Payload::File {
                file,
                path: local,
                size,
            },
            mode,
            mtime,
        ));
    }
    let mut content = Vec::new();
    pack::read_small(&mut file, &local, size, &mut content).map_err(PackError::into_error)?;
    Ok((Payload::Small(content.into()), mode, mtime))
}

/// Writes what a reader gives to a temporary file, since an archive needs the size first.
async fn spool(mut reader: Box<dyn AsyncRead + Send + Unpin + '_>) -> Result<Payload<'static>> {
    let failed = |error| local_error(OPERATION, &std::env::temp_dir(), error);
    let file = blocking(tempfile::tempfile).await?.map_err(failed)?;
    let mut file = tokio::fs::File::from_std(file);
    let size = tokio::io::copy(&mut reader, &mut file)
        .await
        .map_err(reader_failed)?;
    tokio::io::AsyncWriteExt::flush(&mut file).await.map_err(failed)?;
    tokio::io::AsyncSeekExt::rewind(&mut file).await.map_err(failed)?;
    Ok(Payload::File {
        file: file.into_std().await,
        path: "the spooled content of a reader".into(),
        size,
    })
}

/// Sends content into a channel, between what comes before and after it. A source that fails cuts the stream.
pub(super) async fn feed(
    payload: Payload<'_>,
    around: (Vec<u8>, Vec<u8>),
    sender: mpsc::Sender<io::Result<Bytes>>,
    moved: Moved,
) -> Result<(), FeedError> {
    match payload {
        Payload::Small(content) => {
            let sent = sender.send(Ok(around.0.into())).await.is_ok() && {
                moved.add_bytes(content.len());
                sender.send(Ok(content)).await.is_ok() && sender.send(Ok(around.1.into())).await.is_ok()
            };
            if sent { Ok(()) } else { Err(FeedError::Cut) }
        }
        Payload::File { file, path, size } => {
            let packed = blocking(move || {
                pack::pack_file(&file, &path, size, &around, &mut ChunkWriter::new(sender), &moved)
            });
            match packed.await.map_err(FeedError::Failed)? {
                Ok(()) => Ok(()),
                Err(PackError::Cut) => Err(FeedError::Cut),
                Err(error) => Err(FeedError::Failed(error.into_error())),
            }
        }
        Payload::Reader { reader, size } => {
            let fed = feed_reader(reader, size, around, &sender, &moved).await;
            if matches!(fed, Err(FeedError::Failed(_))) {
                let _nobody = sender
                    .send(Err(io::Error::other("the reader failed")))
                    .await
                    .is_err();
            }
            fed
        }
        Payload::Tree(_) => Err(FeedError::Failed(Error::new(
            ErrorKind::Internal,
            OPERATION,
            "a directory was sent as a file",
        ))),
    }
}

/// Why a source was not sent to its end.
pub(super) enum FeedError {
    /// Nobody reads any more: the other end knows why.
    Cut,
    Failed(Error),
}

async fn feed_reader(
    mut reader: Box<dyn AsyncRead + Send + Unpin + '_>,
    size: u64,
    around: (Vec<u8>, Vec<u8>),
    sender: &mpsc::Sender<io::Result<Bytes>>,
    moved: &Moved,
) -> Result<(), FeedError> {
    let send = async |bytes: Bytes| sender.send(Ok(bytes)).await.map_err(|_| FeedError::Cut);
    send(around.0.into()).await?;
    let mut left = size;
    loop {
        let most = usize::try_from(left.max(1))
            .unwrap_or(usize::MAX)
            .min(CHUNK_BYTES);
        let mut chunk = vec![0; most];
        let read = reader
            .read(&mut chunk)
            .await
            .map_err(|error| FeedError::Failed(reader_failed(error)))?;
        match (left, read) {
            (0, 0) => break,
            (0, _) | (_, 0) => return Err(FeedError::Failed(wrong_size(size))),
            _ => {}
        }
        chunk.truncate(read);
        send(chunk.into()).await?;
        moved.add_bytes(read);
        left -= read as u64;
    }
    send(around.1.into()).await
}

fn reader_failed(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, OPERATION, "the reader of the content failed").with_source(error)
}

fn wrong_size(size: u64) -> Error {
    path_error(
        OPERATION,
        PathProblem::Changed,
        format!("the reader did not give the {size} bytes that were announced"),
    )
}

/// Runs something that blocks on a thread for that.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        Error::new(ErrorKind::Internal, OPERATION, "work on a file did not end").with_source(error)
    })
}

pub(super) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs()
}

/// A local path that is below a directory by its names.
pub(super) fn below(directory: &Path, names: &[String]) -> PathBuf {
    names
        .iter()
        .fold(directory.to_owned(), |path, name| path.join(name))
}
