//! A large file on its way into a container: a part beside the target that gets its name when all of it is there.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::error::{Error, ErrorKind, Operation, Result};

use super::super::agent::{Given, PendingName};
use super::super::failure::EngineFailure;
use super::super::status::{Looked, removed};
use super::super::{DockerProvider, DockerRaw};
use super::discard::{Discard, Leftover};
use super::entry::{Entry, Kind, TRAILER, header_bytes, padding};
use super::pack::PackError;
use super::path::absolute;
use super::put::{base_path, name_below, parents};
use super::quick::agent_silent;
use super::stat::failure_error;
use super::stream::CHUNKS;
use super::tool::Script;
use super::transfer::{Body, Clash, put};
use super::upload::{FeedError, Payload, Upload, feed};

const OPERATION: Operation = Operation::Upload;

/// How long the removal of a part is waited for.
const DISCARD: Duration = Duration::from_secs(5);

/// The name of a part that gets its real name by a link, at the root of its mount. An empty file of this name stays.
const LINKED_PART: &str = ".gym-sandbox-part";

impl DockerProvider {
    /// A part beside the target that gets the target's name when all of it is there.
    pub(super) async fn put_large(&self, upload: &Upload<'_>, payload: Payload<'_>) -> Result<()> {
        // Programs are needed in any case: where the agent can't give a part its name, or has gone.
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
        let arguments = [part.as_str(), target.as_str()];
        let naming = self.tool(upload.raw, &place.facts, OPERATION, Script::Finish, &arguments);
        let sending = self.send(upload, payload, (before, after));
        let (naming, sent) = if let Some(name) = PendingName::ask(&upload.raw.agent, &part, &target).await {
            if let Err(error) = sending.await {
                if name.give_up(DISCARD).await {
                    discard.disarm();
                }
                return Err(error);
            }
            let patience = upload.options.stall_timeout;
            match name.give(patience).await {
                Given::Done => {
                    discard.disarm();
                    return Ok(());
                }
                // What it can't the program can, or says why not.
                Given::Refused => (naming.await, Ok(())),
                Given::Lost => return Err(agent_lost()),
                Given::Silent => return Err(agent_silent(patience)),
            }
        } else {
            // An engine may keep the program from starting until the content is there, and an exec takes as long as 20 MB.
            tokio::join!(naming, sending)
        };
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
    pub(super) async fn why_ended(&self, upload: &Upload<'_>, failure: EngineFailure) -> Error {
        if matches!(failure, EngineFailure::Transport { .. })
            && let Err(error) = self.head(upload.raw, OPERATION, "/").await
        {
            return error;
        }
        failure_error(OPERATION, &upload.path.to_string(), failure)
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

fn agent_lost() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        OPERATION,
        "the sandbox's agent was lost while a file was copied that it was to name",
    )
    .with_retryable(true)
    .with_hint("look whether the file is there, and copy it again if not")
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
