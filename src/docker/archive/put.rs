//! The ways into a container by one archive call: what is small at once, and a directory file after file.

use std::path::PathBuf;
use std::time::SystemTime;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::{FileKind, FileOwner};

use super::super::DockerProvider;
use super::super::agent::WriteAs;
use super::super::failure::{EngineFailure, QUICK};
use super::entry::{Entry, Kind, TRAILER, header_bytes, padding};
use super::facts::Reach;
use super::pack::{self, PackError, Stamp, Tree};
use super::path::absolute;
use super::resolve::Place;
use super::stat::failure_error;
use super::stream::{CHUNKS, CancelOnDrop, ChunkWriter};
use super::transfer::{Body, Clash, put};
use super::upload::{Upload, below, blocking, read_only, seconds};

const OPERATION: Operation = Operation::Upload;

impl DockerProvider {
    /// One call with everything in it. It goes to its end even when nobody waits any more: half of it is never there.
    pub(super) async fn put_small(&self, upload: &Upload<'_>, content: &Bytes) -> Result<()> {
        let entry = upload
            .marks
            .entry(&name_below(upload.place), Kind::File, content.len() as u64);
        let mut body = parents(upload.place, upload.marks.owner);
        body.extend(archived(&entry, content));
        body.extend_from_slice(&TRAILER);
        let client = self.engine().await?.client.clone();
        let sending = tokio::spawn(put(
            client,
            upload.raw.container_id.clone(),
            base_path(upload.place),
            Clash::Refuse,
            Body::Whole(body),
        ));
        let sent = upload
            .moved
            .unless_stalled(upload.options.stall_timeout, OPERATION, sending)
            .await?;
        sent.map_err(cut_off)?
            .map_err(|failure| failure_error(OPERATION, &upload.path.to_string(), failure))?;
        upload.moved.add_bytes(content.len());
        Ok(())
    }

    /// A directory: entry after entry, each file whole.
    pub(super) async fn upload_tree(&self, upload: &Upload<'_>, source: PathBuf) -> Result<()> {
        let place = upload.place;
        let mut live = place.is_live();
        let below_target = place
            .facts
            .mounts_below(&place.real)
            .map(|(names, reach)| (below(&source, names), reach));
        for (local, reach) in below_target.collect::<Vec<_>>() {
            if tokio::fs::symlink_metadata(&local).await.is_ok() {
                match reach {
                    Reach::Archive { writable: true } => {}
                    Reach::Archive { writable: false } => return Err(read_only(upload.path)),
                    // The archive call would write below the mount, and say that all is well (engine-facts S2).
                    Reach::Live | Reach::Kernel => live = true,
                }
            }
        }
        let stamp = Stamp {
            owner: upload.marks.owner,
            mtime: upload.options.mtime.map(seconds),
            special_files: upload.options.special_files,
        };
        if live {
            let tree = Tree {
                source,
                name: Vec::new(),
                own_entry: false,
                parents: Vec::new(),
                stamp,
                selection: None,
            };
            return self.unpack_live(upload, tree).await;
        }
        let tree = Tree {
            source: source.clone(),
            name: place.real[place.base()..].join("/").into_bytes(),
            own_entry: matches!(place.kind, None | Some(FileKind::Symlink))
                && place.base() < place.real.len(),
            parents: parents(place, upload.marks.owner),
            stamp,
            selection: None,
        };
        // A link that is the target is replaced by a new directory, in which nothing can be replaced.
        let clash = if place.kind == Some(FileKind::Symlink) {
            Clash::Replace
        } else {
            Clash::Refuse
        };
        let client = self.engine().await?.client.clone();
        let (container_id, base) = (upload.raw.container_id.clone(), base_path(place));
        let (moved, stall_timeout) = (upload.moved.clone(), upload.options.stall_timeout);
        // Nobody waiting any more ends it after a whole file, in a task of its own.
        let _cancel = CancelOnDrop(moved.clone());
        let sending = tokio::spawn(async move {
            let (sender, receiver) = mpsc::channel(CHUNKS);
            let counted = moved.clone();
            let packing = blocking(move || pack::pack_tree(&tree, &mut ChunkWriter::new(sender), &counted));
            let sending = put(
                client,
                container_id,
                base,
                clash,
                Body::Streamed(receiver, moved.clone()),
            );
            moved
                .unless_stalled(stall_timeout, OPERATION, async { tokio::join!(packing, sending) })
                .await
        });
        let (packed, sent) = sending.await.map_err(cut_off)??;
        match (packed?, sent) {
            (Ok(()), Ok(())) => Ok(()),
            (Err(PackError::Torn(torn, error)), _) => {
                self.discard_torn(upload, &source, &torn).await;
                Err(error.into_error())
            }
            (Ok(()) | Err(PackError::Cut), Err(failure)) => Err(self.why_ended(upload, failure).await),
            (Err(error), _) => Err(error.into_error()),
        }
    }
}

/// The path of the archive call.
pub(super) fn base_path(place: &Place) -> String {
    absolute(&place.real[..place.base()])
}

/// The target's name in the archive.
pub(super) fn name_below(place: &Place) -> String {
    place.real[place.base()..].join("/")
}

/// Puts a file into a folder of a container, whose path is taken as it is.
pub(in crate::docker) async fn put_file(
    client: bollard::Docker,
    container_id: &str,
    (folder, name): (&str, &str),
    marks: WriteAs,
    content: &Bytes,
) -> Result<(), EngineFailure> {
    let entry = Entry {
        name: name.as_bytes().to_vec(),
        kind: Kind::File,
        size: content.len() as u64,
        mode: marks.mode,
        mtime: marks.mtime_seconds,
        uid: marks.owner.uid,
        gid: marks.owner.gid,
        link: Vec::new(),
    };
    let mut body = archived(&entry, content);
    body.extend_from_slice(&TRAILER);
    let putting = put(
        client,
        container_id.to_owned(),
        folder.to_owned(),
        Clash::Refuse,
        Body::Whole(body),
    );
    match tokio::time::timeout(QUICK, putting).await {
        Ok(put) => put,
        Err(_) => Err(EngineFailure::Deadline(QUICK)),
    }
}

/// A file as it is in an archive.
fn archived(entry: &Entry, content: &[u8]) -> Vec<u8> {
    let mut bytes = header_bytes(entry);
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len() + padding(content.len() as u64), 0);
    bytes
}

/// Entries for the parents that do not exist. One for a parent that exists would re-own it.
pub(super) fn parents(place: &Place, owner: FileOwner) -> Vec<u8> {
    let last = place.real.len().saturating_sub(1);
    let now = seconds(SystemTime::now());
    let made = last.saturating_sub(place.missing_parents).max(place.base())..last;
    made.flat_map(|index| {
        let name = place.real[place.base()..=index].join("/").into_bytes();
        let (kind, link) = (Kind::Directory, Vec::new());
        header_bytes(&Entry {
            name,
            kind,
            size: 0,
            mode: 0o755,
            mtime: now,
            uid: owner.uid,
            gid: owner.gid,
            link,
        })
    })
    .collect()
}

fn cut_off(error: tokio::task::JoinError) -> Error {
    Error::new(ErrorKind::Internal, OPERATION, "an archive call was cut off").with_source(error)
}
