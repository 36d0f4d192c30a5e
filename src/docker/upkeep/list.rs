//! Lists of sandboxes, with what is known of their owners.

use bollard::models::ContainerSummaryStateEnum as State;

use crate::error::{Operation, Result};
use crate::spec::{ObjectKind, OwnerState, SandboxFilter, SandboxId, SandboxStatus, SandboxSummary};

use super::super::DockerProvider;
use super::super::connect::EngineTime;
use super::super::owner::{self, Keep, kind, matches, proof_of};
use super::decide::{Life, judge, owners};
use super::look::Object;

impl DockerProvider {
    pub(super) async fn summaries(&self, filter: &SandboxFilter) -> Result<Vec<SandboxSummary>> {
        let look = self.look_at_all(Operation::List).await?;
        let lease = &self.config().lease;
        let own = &owner::owner().id;
        let owners = owners(&look, None, own, lease.renewal, proof_of);
        let mut sandboxes: Vec<(Option<EngineTime>, SandboxSummary)> = look
            .objects
            .into_iter()
            .filter(|object| is_sandbox(object) && matches(filter, &object.labels))
            .filter_map(|object| {
                let facts = object.marks.owner.as_ref().and_then(|owner| owners.get(owner));
                let state = if object.marks.keep == Keep::Yes {
                    OwnerState::Kept
                } else {
                    facts.map_or(OwnerState::Unsure, |facts| {
                        if facts.is_own {
                            OwnerState::Own
                        } else {
                            state_of(judge(facts, look.now, lease.grace))
                        }
                    })
                };
                let created = object.marks.created.or(object.made);
                Some((created, summary(object, created, state, look.now)?))
            })
            .collect();
        sandboxes.sort_by_key(|(created, _)| *created);
        Ok(sandboxes.into_iter().map(|(_, sandbox)| sandbox).collect())
    }
}

fn is_sandbox(object: &Object) -> bool {
    object.kind == ObjectKind::Container && object.marks.kind.as_deref() != Some(kind::SHARED)
}

fn state_of(life: Life) -> OwnerState {
    match life {
        Life::Alive(_) => OwnerState::Alive,
        Life::Dead(_) => OwnerState::Dead,
        Life::LookAgain(_) | Life::Unsure(_) => OwnerState::Unsure,
    }
}

fn summary(
    object: Object,
    created: Option<EngineTime>,
    owner_state: OwnerState,
    now: EngineTime,
) -> Option<SandboxSummary> {
    let status = match object.state {
        Some(State::RUNNING) => SandboxStatus::Running,
        Some(State::CREATED | State::RESTARTING) => SandboxStatus::Starting,
        Some(State::PAUSED) => SandboxStatus::Paused,
        Some(State::EXITED | State::REMOVING | State::STOPPING) => SandboxStatus::Stopped,
        Some(State::DEAD) => SandboxStatus::Error,
        Some(State::EMPTY) | None => SandboxStatus::Unknown,
    };
    let mut summary = SandboxSummary::new(SandboxId::new(object.name).ok()?, status, owner_state);
    summary.image = object.image;
    summary.created = created.map(EngineTime::to_rfc3339);
    summary.age_s = created.map(|created| now.since(created).as_secs());
    summary.expires = object.marks.expires.map(EngineTime::to_rfc3339);
    summary.owner = object.marks.owner;
    summary.run = object.marks.run;
    summary.project = object.marks.project;
    summary.labels = object.labels.into_iter().collect();
    Some(summary)
}
