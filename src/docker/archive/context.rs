//! The context of a build as a tar stream: a directory, or what is chosen of it, and files that are not in it.

use std::io::{self, Write};
use std::path::PathBuf;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::spec::{FileOwner, SpecialFiles};

use super::entry::{Entry, Kind, TRAILER, header_bytes, padding};
use super::pack::{PackError, Selection, Stamp, Tree, pack_tree};
use super::stream::{CHUNKS, ChunkWriter, Moved};

/// What is sent.
#[derive(Debug)]
pub(in crate::docker) struct Context {
    /// The directory.
    pub(in crate::docker) source: Option<PathBuf>,
    /// What is chosen of it.
    pub(in crate::docker) selection: Box<dyn Selection>,
    /// Files that come first: name and content.
    pub(in crate::docker) files: Vec<(String, Vec<u8>)>,
}

impl Context {
    /// Packs it on a blocking thread, as fast as it is received. Everything belongs to root, as the docker command
    /// sends it.
    pub(in crate::docker) fn send(
        self,
    ) -> (
        mpsc::Receiver<io::Result<Bytes>>,
        JoinHandle<Result<(), PackError>>,
    ) {
        let (sender, receiver) = mpsc::channel(CHUNKS);
        let packing = tokio::task::spawn_blocking(move || self.pack(&mut ChunkWriter::new(sender)));
        (receiver, packing)
    }

    fn pack(self, writer: &mut ChunkWriter) -> Result<(), PackError> {
        let mut first = entries(&self.files);
        let Some(source) = self.source else {
            first.extend_from_slice(&TRAILER);
            return writer
                .write_all(&first)
                .and_then(|()| writer.flush())
                .map_err(|_| PackError::Cut);
        };
        let tree = Tree {
            source,
            name: Vec::new(),
            own_entry: false,
            parents: first,
            stamp: Stamp {
                owner: FileOwner { uid: 0, gid: 0 },
                mtime: None,
                special_files: SpecialFiles::Skip,
            },
            selection: Some(self.selection),
        };
        pack_tree(&tree, writer, &Moved::new(None, None))
    }
}

/// A whole archive of some files.
pub(in crate::docker) fn packed(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut archive = entries(files);
    archive.extend_from_slice(&TRAILER);
    archive
}

fn entries(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, content) in files {
        let size = content.len() as u64;
        bytes.extend(header_bytes(&Entry {
            name: name.clone().into_bytes(),
            kind: Kind::File,
            size,
            mode: 0o600,
            mtime: 0,
            uid: 0,
            gid: 0,
            link: Vec::new(),
        }));
        bytes.extend_from_slice(content);
        bytes.extend_from_slice(&TRAILER[..padding(size)]);
    }
    bytes
}
