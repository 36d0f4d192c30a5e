//! Where a download goes: to a file or directory of this machine, or to a writer.

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::error::{Error, Operation, PathProblem, Result};
use crate::spec::DownloadOptions;

use super::content::{broken, check_size};
use super::entry::{Entry, Kind, Reader};
use super::settle::{self, Content, LocalTarget};
use super::stream::{CHUNK_BYTES, ChunkReader, Moved};
use super::{Accept, path_error};

const OPERATION: Operation = Operation::Download;

/// What a blocking thread needs to write a download.
pub(super) struct Sink {
    pub(super) target: LocalTarget,
    pub(super) options: DownloadOptions,
    pub(super) accept: Accept,
    pub(super) remote: String,
    pub(super) name: String,
    pub(super) moved: Moved,
}

impl Sink {
    pub(super) fn take(&self, reader: &mut Reader<ChunkReader>, entry: &Entry) -> Result<()> {
        self.moved.add_entry();
        match entry.kind {
            Kind::Directory if self.accept == Accept::File => Err(is_a_directory(&self.remote)),
            Kind::Directory => settle::tree(reader, entry, &self.target, &self.options, &self.moved),
            Kind::File => {
                self.moved.set_total(Some(entry.size));
                settle::file(
                    Content::Entry(reader),
                    entry,
                    &self.name,
                    &self.target,
                    &self.options,
                    &self.moved,
                )
            }
            _ => Err(special(&self.remote)),
        }
    }

    pub(super) fn pass_on(
        &self,
        reader: &mut Reader<ChunkReader>,
        entry: &Entry,
        sender: &mpsc::Sender<Bytes>,
    ) -> Result<()> {
        match entry.kind {
            Kind::File => {}
            Kind::Directory => return Err(is_a_directory(&self.remote)),
            _ => return Err(special(&self.remote)),
        }
        self.moved.add_entry();
        self.moved.set_total(Some(entry.size));
        check_size(self.moved.progress(), entry.size, &self.options)?;
        loop {
            let mut chunk = vec![
                0;
                usize::try_from(entry.size)
                    .unwrap_or(CHUNK_BYTES)
                    .clamp(1, CHUNK_BYTES)
            ];
            let read = reader.read(&mut chunk).map_err(broken)?;
            if read == 0 {
                return reader.drain().map_err(broken);
            }
            chunk.truncate(read);
            self.moved.add_bytes(read);
            // A writer that has failed says so itself.
            if sender.blocking_send(chunk.into()).is_err() {
                return Ok(());
            }
        }
    }
}

pub(super) fn is_a_directory(remote: &str) -> Error {
    path_error(
        OPERATION,
        PathProblem::IsADirectory,
        format!("`{remote}` is a directory in the sandbox; a file is needed"),
    )
}

pub(super) fn special(remote: &str) -> Error {
    path_error(
        OPERATION,
        PathProblem::NotServable,
        format!("`{remote}` is a device, socket or pipe in the sandbox"),
    )
}
