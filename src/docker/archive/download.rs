//! Out of a container: by the engine's archive call, or by a program of the sandbox where that does not see.

use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result};
use crate::spec::{DownloadOptions, DownloadTarget, FileKind, TransferProgress};

use super::super::lanes::Lane;
use super::super::{DockerProvider, DockerRaw};
use super::content::{broken, check_size};
use super::entry::{Entry, Kind, Reader};
use super::facts::Reach;
use super::path::RemotePath;
use super::resolve::{LastLink, Place};
use super::settle::{self, Content, LocalTarget};
use super::sink::{Sink, is_a_directory, special};
use super::stream::{CHUNKS, Chunk, ChunkReader, Moved};
use super::tool::{Script, Tool};
use super::{Accept, path_error};

const OPERATION: Operation = Operation::Download;

/// More than the line that a sandbox's program prints first.
const LINE_BYTES: usize = 256;

impl DockerProvider {
    /// Copies something out of a container.
    pub(in super::super) async fn download_to(
        &self,
        raw: &DockerRaw,
        remote: &str,
        target: DownloadTarget<'_>,
        options: &DownloadOptions,
        accept: Accept,
    ) -> Result<TransferProgress> {
        let path = self.remote_path(raw, OPERATION, remote).await?;
        let moved = Moved::new(options.progress.clone(), None);
        let quick = self.take_quickly(raw, &path, target, |local| Sink {
            target: LocalTarget::new(local),
            options: options.clone(),
            accept,
            remote: path.to_string(),
            name: path.parts().pop_back().unwrap_or_default(),
            moved: moved.clone(),
        });
        let Some(target) = quick.await? else {
            return Ok(moved.progress());
        };
        let place = self.resolve(raw, OPERATION, &path, LastLink::Follow).await?;
        let accept = if matches!(target, DownloadTarget::Writer(_)) {
            Accept::File
        } else {
            accept
        };
        if !place.is_live() {
            check_source(&path, &place, accept)?;
        }
        let _slot = self.lanes().slot(Lane::Transfer).await?;
        let name = path.parts().pop_back().filter(|name| name != "..");
        let download = Download {
            raw,
            place: &place,
            options: options.clone(),
            accept,
            remote: path.to_string(),
            name: name.or_else(|| place.real.last().cloned()).unwrap_or_default(),
            names_directory: path.names_directory(),
            moved: moved.clone(),
        };
        let holds_live = place.kind == Some(FileKind::Directory)
            && raw.shell.is_some()
            && place
                .facts
                .mounts_below(&place.real)
                .any(|(_, reach)| reach == Reach::Live);
        if place.is_live() || holds_live {
            Box::pin(self.send_live(&download, target)).await?;
        } else {
            self.get(&download, target).await?;
        }
        Ok(moved.progress())
    }

    /// By the archive call.
    async fn get(&self, download: &Download<'_>, target: DownloadTarget<'_>) -> Result<()> {
        let path = download.place.path();
        let stalls = (&download.moved, download.options.stall_timeout);
        match target {
            DownloadTarget::Path(local) => {
                let sink = download.sink(LocalTarget::new(local));
                self.read_archive(download.raw, OPERATION, &path, stalls, move |reader| {
                    let entry = reader.next().map_err(broken)?.ok_or_else(nothing)?;
                    sink.take(reader, &entry)
                })
                .await
            }
            DownloadTarget::Writer(writer) => {
                let (sender, receiver) = mpsc::channel(CHUNKS);
                let sink = download.sink(LocalTarget::new(std::path::Path::new("")));
                let reading = self.read_archive(download.raw, OPERATION, &path, stalls, move |reader| {
                    let entry = reader.next().map_err(broken)?.ok_or_else(nothing)?;
                    sink.pass_on(reader, &entry, &sender)
                });
                let (read, written) = tokio::join!(reading, write_out(receiver, writer));
                written.and(read)
            }
        }
    }

    /// By a program of the sandbox.
    async fn send_live(&self, download: &Download<'_>, target: DownloadTarget<'_>) -> Result<()> {
        let path = download.place.path();
        let wanted = if download.accept == Accept::File {
            "file"
        } else {
            "any"
        };
        let written_as = if download.names_directory {
            "directory"
        } else {
            "any"
        };
        let arguments = [path.as_str(), wanted, written_as];
        let facts = Arc::clone(&download.place.facts);
        let mut tool = self
            .tool(download.raw, &facts, OPERATION, Script::Send, &arguments)
            .await?;
        let first = async {
            let mut printed: Vec<u8> = Vec::new();
            while !printed.contains(&b'\n') && printed.len() < LINE_BYTES {
                match tool.next(OPERATION).await? {
                    Some(bytes) => printed.extend_from_slice(&bytes),
                    None => break,
                }
            }
            Ok::<_, Error>(printed)
        };
        let stall_timeout = download.options.stall_timeout;
        let printed = download
            .moved
            .unless_stalled(stall_timeout, OPERATION, first)
            .await??;
        let Some(end) = printed.iter().position(|&byte| byte == b'\n') else {
            tool.end(OPERATION).await?.check(OPERATION, &download.remote)?;
            return Err(nothing());
        };
        let (line, rest) = (&printed[..end], Bytes::copy_from_slice(&printed[end + 1..]));
        let about = about_file(line);
        let (sender, receiver) = mpsc::channel(CHUNKS);
        let pumped = pump(tool, rest, sender, download);
        let taken = take_live(download, target, about, receiver);
        let both = async { tokio::join!(pumped, taken) };
        let (pumped, taken) = download
            .moved
            .unless_stalled(stall_timeout, OPERATION, both)
            .await?;
        // An unpacker that was cut off only says so; the program says why.
        match taken {
            Err(error) if error.kind() == ErrorKind::Io => Err(pumped.err().unwrap_or(error)),
            taken => taken.and(pumped),
        }
    }
}

/// One download on its way.
struct Download<'a> {
    raw: &'a DockerRaw,
    place: &'a Place,
    options: DownloadOptions,
    accept: Accept,
    remote: String,
    /// What a file is called in a directory on this machine.
    name: String,
    names_directory: bool,
    moved: Moved,
}

impl Download<'_> {
    fn sink(&self, target: LocalTarget) -> Sink {
        Sink {
            target,
            options: self.options.clone(),
            accept: self.accept,
            remote: self.remote.clone(),
            name: self.name.clone(),
            moved: self.moved.clone(),
        }
    }
}

/// Takes the rest of what a program sends.
async fn take_live(
    download: &Download<'_>,
    target: DownloadTarget<'_>,
    about: Option<Entry>,
    mut receiver: mpsc::Receiver<Chunk>,
) -> Result<()> {
    let local = match target {
        DownloadTarget::Path(local) => local,
        DownloadTarget::Writer(writer) => {
            download.moved.add_entry();
            loop {
                match receiver.recv().await {
                    Some(Chunk::Data(bytes)) => {
                        check_size(download.moved.progress(), bytes.len() as u64, &download.options)?;
                        download.moved.add_bytes(bytes.len());
                        writer.write_all(&bytes).await.map_err(writer_failed)?;
                    }
                    Some(Chunk::End) => return writer.flush().await.map_err(writer_failed),
                    None => return Err(broken(std::io::ErrorKind::ConnectionAborted.into())),
                }
            }
        }
    };
    let sink = download.sink(LocalTarget::new(local));
    let taking = tokio::task::spawn_blocking(move || {
        if let Some(entry) = about {
            sink.moved.add_entry();
            let mut reader = ChunkReader::new(receiver);
            settle::file(
                Content::Raw(&mut reader),
                &entry,
                &sink.name,
                &sink.target,
                &sink.options,
                &sink.moved,
            )
        } else {
            let mut reader = Reader::new(ChunkReader::new(receiver));
            let entry = reader.next().map_err(broken)?.ok_or_else(nothing)?;
            sink.take(&mut reader, &entry)
        }
    });
    taking.await.map_err(|error| {
        Error::new(ErrorKind::Internal, OPERATION, "writing a download did not end").with_source(error)
    })?
}

/// Hands on what a program prints. The end is only said when the program ended well.
async fn pump(
    mut tool: Tool,
    rest: Bytes,
    sender: mpsc::Sender<Chunk>,
    download: &Download<'_>,
) -> Result<()> {
    let mut next = Some(rest);
    while let Some(bytes) = next {
        download.moved.step();
        if !bytes.is_empty() && sender.send(Chunk::Data(bytes)).await.is_err() {
            return Ok(());
        }
        next = tool.next(OPERATION).await?;
    }
    tool.end(OPERATION).await?.check(OPERATION, &download.remote)?;
    let _taken = sender.send(Chunk::End).await.is_ok();
    Ok(())
}

/// Reads `F size mode time`; None for a directory. It comes out of the sandbox: what can't be read is left out.
fn about_file(line: &[u8]) -> Option<Entry> {
    let line = std::str::from_utf8(line).unwrap_or_default();
    let mut words = line.strip_prefix("F ")?.split(' ');
    let size = words
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or_default();
    let mode = words
        .next()
        .and_then(|word| u32::from_str_radix(word, 8).ok())
        .unwrap_or(0o644);
    let mtime = words
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or_default();
    let (name, link_text) = (Vec::new(), Vec::new());
    Some(Entry {
        name,
        kind: Kind::File,
        size,
        mode: mode & 0o7777,
        mtime,
        uid: 0,
        gid: 0,
        link: link_text,
    })
}

async fn write_out(
    mut receiver: mpsc::Receiver<Bytes>,
    writer: &mut (dyn AsyncWrite + Send + Unpin),
) -> Result<()> {
    while let Some(bytes) = receiver.recv().await {
        writer.write_all(&bytes).await.map_err(writer_failed)?;
    }
    writer.flush().await.map_err(writer_failed)
}

fn check_source(path: &RemotePath, place: &Place, accept: Accept) -> Result<()> {
    match place.kind {
        None => Err(path_error(
            OPERATION,
            PathProblem::NotFound,
            format!("`{path}` does not exist in the sandbox"),
        )),
        Some(FileKind::Directory) if accept == Accept::File => Err(is_a_directory(&path.to_string())),
        Some(FileKind::Directory) => Ok(()),
        Some(_) if path.names_directory() => Err(path_error(
            OPERATION,
            PathProblem::NotADirectory,
            format!("`{path}` is a file in the sandbox, and is written as a directory"),
        )),
        Some(FileKind::File) => Ok(()),
        Some(_) => Err(special(&path.to_string())),
    }
}

fn nothing() -> Error {
    Error::new(ErrorKind::Io, OPERATION, "the sandbox sent nothing")
}

pub(super) fn writer_failed(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, OPERATION, "the writer of the content failed").with_source(error)
}
