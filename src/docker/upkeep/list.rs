//! Lists of sandboxes, with what is known of their owners.

use std::collections::BTreeMap;

use bollard::models::ContainerSummaryStateEnum as State;

use crate::error::{Operation, Result};
use crate::spec::{ObjectKind, OwnerState, SandboxFilter, SandboxId, SandboxStatus, SandboxSummary};

use super::super::DockerProvider;
use super::super::connect::EngineTime;
use super::super::lease::held_by_this_process;
use super::super::owner::{self, Keep, kind, matches, proof_of};
use super::decide::{Life, judge, owners};
use super::holds::Holds;
use super::look::Object;

impl DockerProvider {
    pub(super) async fn summaries(&self, filter: &SandboxFilter) -> Result<Vec<SandboxSummary>> {
        let look = self.look_at_all(Operation::List).await?;
        let lease = &self.config().lease;
        let own = &owner::owner().id;
        let owners = owners(&look, None, own, lease.renewal, proof_of);
        let lives: BTreeMap<&str, Life> = owners
            .iter()
            .map(|(owner, facts)| (owner.as_str(), judge(facts, look.now, lease.grace)))
            .collect();
        let own_holds = held_by_this_process();
        let holds = Holds::new(&look, &lives, own, &own_holds);
        let mut sandboxes: Vec<(Option<EngineTime>, SandboxSummary)> = look
            .objects
            .iter()
            .filter(|object| is_sandbox(object) && matches(filter, &object.labels))
            .filter_map(|object| {
                let holder = holds.holder(&object.name);
                let state = if object.marks.keep == Keep::Yes {
                    OwnerState::Kept
                } else {
                    let maker = object.marks.owner.as_deref();
                    let life = maker.and_then(|maker| lives.get(maker).copied());
                    state_of(
                        own,
                        maker.map(|maker| (maker, life.unwrap_or(Life::Unsure("nothing is known of it")))),
                        holder,
                    )
                };
                let created = object.marks.created.or(object.made);
                let mut summary = summary(object.clone(), created, state, look.now)?;
                summary.holder = holder.map(|(holder, _)| holder.to_owned());
                Some((created, summary))
            })
            .collect();
        sandboxes.sort_by_key(|(created, _)| *created);
        Ok(sandboxes.into_iter().map(|(_, sandbox)| sandbox).collect())
    }
}

fn is_sandbox(object: &Object) -> bool {
    object.kind == ObjectKind::Container && object.marks.kind.as_deref() != Some(kind::SHARED)
}

/// What is known of the maker of a sandbox and of who has taken it over, in one word: one that lives is enough.
fn state_of(own: &str, maker: Option<(&str, Life)>, holder: Option<(&str, Life)>) -> OwnerState {
    let both = || maker.into_iter().chain(holder);
    if both().any(|(who, _)| who == own) {
        OwnerState::Own
    } else if both().any(|(_, life)| matches!(life, Life::Alive(_))) {
        OwnerState::Alive
    } else if maker.is_some() && both().all(|(_, life)| matches!(life, Life::Dead(_))) {
        OwnerState::Dead
    } else {
        OwnerState::Unsure
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
