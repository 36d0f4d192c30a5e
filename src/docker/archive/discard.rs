//! What a transfer leaves that is cut off, and its removal.

use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use crate::error::Operation;

use super::super::{DockerProvider, DockerRaw};
use super::entry::{TRAILER, header_bytes};
use super::facts::ContainerFacts;
use super::large::empty_part;
use super::stat::failure_error;
use super::tool::Script;
use super::transfer::{Body, Clash, put};
use super::upload::Upload;

const OPERATION: Operation = Operation::Upload;

impl DockerProvider {
    /// Removes the half of a file that stopped being what was announced.
    pub(super) async fn discard_torn(
        &self,
        upload: &Upload<'_>,
        source: &std::path::Path,
        torn: &std::path::Path,
    ) {
        let Some(relative) = torn.strip_prefix(source).ok().and_then(std::path::Path::to_str) else {
            return;
        };
        let path = format!("{}/{relative}", upload.place.path().trim_end_matches('/'));
        let removed = self
            .run_tool(
                upload.raw,
                &upload.place.facts,
                OPERATION,
                Script::Discard,
                &[&path],
                1024,
            )
            .await;
        if let Err(error) = removed {
            tracing::warn!(%error, "a file that was uploaded in part could not be removed");
        }
    }
}

/// What a cut transfer leaves.
pub(super) enum Leftover {
    /// A file that a program can remove.
    Part(String),
    /// A file that can only be emptied; no other one is sent under its name until then.
    Linked {
        name: String,
        base: String,
        _lock: OwnedMutexGuard<()>,
    },
}

/// Removes what a transfer leaves that ends in any other way than well.
pub(super) struct Discard {
    provider: DockerProvider,
    raw: DockerRaw,
    facts: Arc<ContainerFacts>,
    leftover: Option<Leftover>,
}

impl Discard {
    pub(super) fn new(provider: &DockerProvider, upload: &Upload<'_>, leftover: Leftover) -> Self {
        Self {
            provider: provider.clone(),
            raw: upload.raw.clone(),
            facts: Arc::clone(&upload.place.facts),
            leftover: Some(leftover),
        }
    }

    pub(super) fn disarm(&mut self) {
        self.leftover = None;
    }
}

impl Drop for Discard {
    fn drop(&mut self) {
        let Some(leftover) = self.leftover.take() else {
            return;
        };
        let (provider, raw, facts) = (self.provider.clone(), self.raw.clone(), Arc::clone(&self.facts));
        self.provider
            .reaper()
            .submit("remove what a cut upload left", async move {
                let done = match leftover {
                    Leftover::Part(path) => provider
                        .run_tool(&raw, &facts, OPERATION, Script::Discard, &[&path], 1024)
                        .await
                        .map(|_| ()),
                    Leftover::Linked { name, base, _lock } => {
                        let body = [header_bytes(&empty_part(name)), TRAILER.to_vec()].concat();
                        match provider.engine().await {
                            Ok(engine) => {
                                let client = engine.client.clone();
                                put(
                                    client,
                                    raw.container_id.clone(),
                                    base,
                                    Clash::Refuse,
                                    Body::Whole(body),
                                )
                                .await
                                .map_err(|failure| failure_error(OPERATION, "/", failure))
                            }
                            Err(error) => Err(error),
                        }
                    }
                };
                if let Err(error) = done {
                    tracing::warn!(%error, "what a cut upload left could not be removed");
                }
            });
    }
}
