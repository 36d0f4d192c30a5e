//! The ways into a container: one archive call for what is small, a part that gets its name at the end for what is
//! large, whole files one after the other for a directory, and the sandbox's own programs where the engine sees nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::{FileKind, FileOwner};

use super::super::agent::WriteAs;
use super::super::failure::{EngineFailure, QUICK};
use super::super::status::{Looked, removed};
use super::super::{DockerProvider, DockerRaw};
use super::discard::{Discard, Leftover};
use super::entry::{Entry, Kind, TRAILER, header_bytes, padding};
use super::facts::Reach;
use super::pack::{self, PackError, Stamp, Tree};
use super::path::absolute;
use super::resolve::Place;
use super::stat::failure_error;
use super::stream::{CHUNKS, CancelOnDrop, ChunkWriter};
use super::tool::Script;
use super::transfer::{Body, Clash, put};
use super::upload::{FeedError, Payload, Upload, below, blocking, feed, read_only, seconds};

const OPERATION: Operation = Operation::Upload;

/// How long the removal of a part is waited for.
const DISCARD: Duration = Duration::from_secs(5);

/// The name of a part that gets its real name by a link, at the root of its mount. An empty file of this name stays.
const LINKED_PART: &str = ".gym-sandbox-part";

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

    /// A part beside the target that gets the target's name when all of it is there.
    pub(super) async fn put_large(&self, upload: &Upload<'_>, payload: Payload<'_>) -> Result<()> {
        if upload.raw.shell.is_none() || !self.runs(upload.raw).await? {
            return self.put_linked(upload, payload).await;
        }
        let place = upload.place;
        let part = part_name();
        let mut part_path = place.real.clone();
        part_path.pop();
        part_path.push(part);
        let (part, target) = (absolute(&part_path), place.path());
        let entry = upload.marks.entry(
            &part_path[place.base()..].join("/"),
            Kind::File,
            size_of(&payload),
        );
        let before = [parents(place, upload.marks.owner), header_bytes(&entry)].concat();
        let after = [vec![0; padding(entry.size)], TRAILER.to_vec()].concat();
        let mut discard = Discard::new(self, upload, Leftover::Part(part.clone()));
        // The program that gives the name starts while the content is on its way: an exec takes as long as 20 MB.
        let arguments = [part.as_str(), target.as_str()];
        let naming = self.tool(upload.raw, &place.facts, OPERATION, Script::Finish, &arguments);
        let (naming, sent) = tokio::join!(naming, self.send(upload, payload, (before, after)));
        let mut naming = naming?;
        if let Err(error) = sent {
            naming.end_input().await;
            // The program says when the part is gone; if it does not, the guard tries.
            if matches!(
                tokio::time::timeout(DISCARD, naming.next(OPERATION)).await,
                Ok(Ok(Some(_)))
            ) {
                discard.disarm();
            }
            return Err(error);
        }
        let named = async {
            // What a program that has ended has to say is in its exit code.
            naming.write(b"keep\n").await;
            naming
                .end(OPERATION)
                .await?
                .check(OPERATION, &upload.path.to_string())
        };
        upload
            .moved
            .unless_stalled(upload.options.stall_timeout, OPERATION, named)
            .await??;
        discard.disarm();
        Ok(())
    }

    /// Where no program can give a part its name, a hard link in the same archive does. An archive can't remove: the
    /// part's own name stays as an empty file.
    async fn put_linked(&self, upload: &Upload<'_>, payload: Payload<'_>) -> Result<()> {
        let place = upload.place;
        let lock = Arc::clone(&place.facts.link_name).lock_owned().await;
        let mut part = place.real[..place.mount].to_vec();
        part.push(LINKED_PART.to_owned());
        let part_name = part[place.base()..].join("/");
        let entry = upload.marks.entry(&part_name, Kind::File, size_of(&payload));
        let before = [parents(place, upload.marks.owner), header_bytes(&entry)].concat();
        let mut link = upload.marks.entry(&name_below(place), Kind::HardLink, 0);
        link.link = part_name.clone().into_bytes();
        let after = [
            vec![0; padding(entry.size)],
            header_bytes(&link),
            header_bytes(&empty_part(part_name.clone())),
            TRAILER.to_vec(),
        ]
        .concat();
        let mut discard = Discard::new(
            self,
            upload,
            Leftover::Linked {
                name: part_name,
                base: base_path(place),
                _lock: lock,
            },
        );
        self.send(upload, payload, (before, after)).await?;
        discard.disarm();
        Ok(())
    }

    /// Sends an archive that holds one large file.
    async fn send(
        &self,
        upload: &Upload<'_>,
        payload: Payload<'_>,
        around: (Vec<u8>, Vec<u8>),
    ) -> Result<()> {
        let client = self.engine().await?.client.clone();
        let (sender, receiver) = mpsc::channel(CHUNKS);
        let sending = put(
            client,
            upload.raw.container_id.clone(),
            base_path(upload.place),
            Clash::Refuse,
            Body::Streamed(receiver, upload.moved.clone()),
        );
        let both = async { tokio::join!(feed(payload, around, sender, upload.moved.clone()), sending) };
        let (fed, sent) = upload
            .moved
            .unless_stalled(upload.options.stall_timeout, OPERATION, both)
            .await?;
        match (fed, sent) {
            (Ok(()), Ok(())) => Ok(()),
            (Err(FeedError::Failed(error)), _) => Err(error),
            // The engine ended the call, so that it knows why.
            (_, Err(failure)) => Err(self.why_ended(upload, failure).await),
            (Err(FeedError::Cut), Ok(())) => Err(PackError::Cut.into_error()),
        }
    }

    /// An engine that refuses early closes the connection under the body, and the client may see only that: what is
    /// wrong is then looked up (bugs B17).
    async fn why_ended(&self, upload: &Upload<'_>, failure: EngineFailure) -> Error {
        if matches!(failure, EngineFailure::Transport { .. })
            && let Err(error) = self.head(upload.raw, OPERATION, "/").await
        {
            return error;
        }
        failure_error(OPERATION, &upload.path.to_string(), failure)
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

    /// Says whether programs can be run in the container now.
    async fn runs(&self, raw: &DockerRaw) -> Result<bool> {
        match self.look(&raw.container_id).await {
            Ok(Looked::There(inspected)) => {
                let state = inspected.state.unwrap_or_default();
                Ok(state.running == Some(true)
                    && state.paused != Some(true)
                    && state.restarting != Some(true))
            }
            Ok(Looked::Gone) => Err(removed(OPERATION)),
            Err(failure) => Err(failure_error(OPERATION, "/", failure)),
        }
    }
}

pub(super) fn size_of(payload: &Payload<'_>) -> u64 {
    payload.size().unwrap_or_default()
}

pub(super) fn part_name() -> String {
    format!(
        ".gym-sandbox-{}",
        &uuid::Uuid::new_v4().simple().to_string()[..12]
    )
}

/// The path of the archive call.
fn base_path(place: &Place) -> String {
    absolute(&place.real[..place.base()])
}

/// The target's name in the archive.
fn name_below(place: &Place) -> String {
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

pub(super) fn empty_part(name: String) -> Entry {
    let (name, kind, link) = (name.into_bytes(), Kind::File, Vec::new());
    Entry {
        name,
        kind,
        size: 0,
        mode: 0o600,
        mtime: 0,
        uid: 0,
        gid: 0,
        link,
    }
}

fn cut_off(error: tokio::task::JoinError) -> Error {
    Error::new(ErrorKind::Internal, OPERATION, "an archive call was cut off").with_source(error)
}
