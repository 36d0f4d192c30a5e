//! Networks and volumes whose create had no answer: the engine may have made them, or be at it. They are looked for by the
//! token of their create, in the background, and removed.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::Result;
use crate::spec::container::SharedObject;

use super::super::DockerProvider;
use super::super::create::token_label;
use super::super::failure::EngineFailure;

/// How often, over about 16 s, an object has to be absent before it counts as never made.
const ABSENT_LOOKS: u32 = 20;

/// How often the engine is asked in all, where it can't be reached or refuses the removal.
const MOST_LOOKS: u32 = 100;

const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What a create was to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    Network,
    Volume,
}

/// Whether the engine may have made what it was asked for and could not say so.
pub(super) fn is_lost(failure: &EngineFailure) -> bool {
    match failure {
        EngineFailure::Transport { .. } | EngineFailure::Deadline(_) | EngineFailure::Unreadable { .. } => {
            true
        }
        EngineFailure::Unreached { .. } | EngineFailure::Refused { .. } | EngineFailure::NoSubnet { .. } => {
            false
        }
    }
}

impl DockerProvider {
    /// Removes what a create has made that had no answer. Closing the provider waits for that.
    pub(super) fn remove_lost(&self, what: Lost, token: String) {
        let provider = self.clone();
        let reaper = self.reaper().clone();
        reaper.submit("remove what a create without an answer has made", async move {
            let mut pause = Duration::from_millis(50);
            let mut absent = 0;
            for _ in 0..MOST_LOOKS {
                match provider.remove_by_token(what, &token).await {
                    Ok(0) => absent += 1,
                    Ok(_) => return,
                    Err(error) => tracing::debug!(%error, "removing is tried again"),
                }
                if absent >= ABSENT_LOOKS {
                    return;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            tracing::warn!(
                ?what,
                "what a create without an answer may have made is left to a sweep"
            );
        });
    }

    /// Says how many there were.
    async fn remove_by_token(&self, what: Lost, token: &str) -> Result<usize> {
        let label = BTreeMap::from([(token_label(), token.to_owned())]);
        let found: Vec<SharedObject> = match what {
            Lost::Network => self.networks_with(&label).await?,
            Lost::Volume => self.volumes_with(&label).await?,
        };
        for object in &found {
            match what {
                Lost::Network => self.remove_network_if_present(&object.id).await?,
                Lost::Volume => self.remove_volume_if_present(&object.id).await?,
            }
        }
        Ok(found.len())
    }
}
