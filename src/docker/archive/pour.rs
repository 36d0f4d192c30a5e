//! Into a container by its own programs, where the engine's archive calls see nothing.

use std::io;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::error::{Operation, Result};

use super::super::DockerProvider;
use super::large::{part_name, size_of};
use super::pack::{self, PackError, Tree};
use super::stream::{CHUNKS, ChunkWriter};
use super::tool::Script;
use super::upload::{FeedError, Payload, Upload, blocking, feed};

const OPERATION: Operation = Operation::Upload;

impl DockerProvider {
    /// Writes one file by a program of the sandbox.
    pub(super) async fn receive_live(&self, upload: &Upload<'_>, payload: Payload<'_>) -> Result<()> {
        let place = upload.place;
        let first = place.real.first().map(String::as_str);
        // What can't be renamed is written in place: the kernel's files, and files that are mounts.
        let in_place = matches!(first, Some("proc" | "sys")) || !place.is_live();
        let (target, size, owner) = (
            place.path(),
            size_of(&payload).to_string(),
            Self::owner_argument(upload),
        );
        let arguments = [
            target.as_str(),
            &size,
            &owner,
            &format!("{:o}", upload.marks.mode),
            &upload.marks.mtime.to_string(),
            if in_place { "place" } else { "rename" },
            &part_name(),
        ];
        let (sender, receiver) = mpsc::channel(CHUNKS);
        let source = feed(payload, (Vec::new(), Vec::new()), sender, upload.moved.clone());
        let poured = self.pour(upload, Script::Receive, &arguments, receiver);
        let both = async { tokio::join!(source, poured) };
        let (fed, poured) = upload
            .moved
            .unless_stalled(upload.options.stall_timeout, OPERATION, both)
            .await?;
        match fed {
            Err(FeedError::Failed(error)) => Err(error),
            _ => poured,
        }
    }

    /// Unpacks a directory by the sandbox's own `tar`.
    pub(super) async fn unpack_live(&self, upload: &Upload<'_>, tree: Tree) -> Result<()> {
        let link = if upload.path.names_directory() {
            "follow"
        } else {
            "replace"
        };
        let (target, owner) = (upload.place.path(), Self::owner_argument(upload));
        let (sender, receiver) = mpsc::channel(CHUNKS);
        let moved = upload.moved.clone();
        let packing = blocking(move || pack::pack_tree(&tree, &mut ChunkWriter::new(sender), &moved));
        let arguments = [target.as_str(), owner.as_str(), link];
        let poured = self.pour(upload, Script::Unpack, &arguments, receiver);
        let both = async { tokio::join!(packing, poured) };
        let (packed, poured) = upload
            .moved
            .unless_stalled(upload.options.stall_timeout, OPERATION, both)
            .await?;
        match packed? {
            Ok(()) | Err(PackError::Cut) => poured,
            Err(error) => Err(error.into_error()),
        }
    }

    /// Gives a stream to a program of the sandbox as its input.
    async fn pour(
        &self,
        upload: &Upload<'_>,
        script: Script,
        arguments: &[&str],
        mut receiver: mpsc::Receiver<io::Result<Bytes>>,
    ) -> Result<()> {
        let mut tool = self
            .tool(upload.raw, &upload.place.facts, OPERATION, script, arguments)
            .await?;
        while let Some(Ok(chunk)) = receiver.recv().await {
            if !tool.write(&chunk).await {
                break;
            }
        }
        drop(receiver);
        tool.end(OPERATION)
            .await?
            .check(OPERATION, &upload.path.to_string())
    }

    /// The owner for `chown`; empty where the program already runs as that user and may not change owners.
    fn owner_argument(upload: &Upload<'_>) -> String {
        let owner = upload.marks.owner;
        if upload.place.facts.mover.is_none() && owner == upload.place.facts.owner {
            return String::new();
        }
        format!("{}:{}", owner.uid, owner.gid)
    }
}
