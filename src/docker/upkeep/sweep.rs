//! A sweep: one look, and a second one a while later where that can prove what the first could not.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use crate::error::{Operation, Result};
use crate::spec::{ObjectKind, SecondLook, SharedObjects, SweepMode, SweepOptions, SweepReport, SweptObject};

use super::super::DockerProvider;
use super::super::agent::FILLER;
use super::super::lease::held_by_this_process;
use super::super::owner::{self, Keep, forget, matches, proof_of};
use super::decide::{Fate, Life, fate, judge, owners};
use super::holds::Holds;
use super::look::{Look, Object};
use super::remove::Doomed;

/// What is to be done after a look.
#[derive(Default)]
struct Decision {
    doomed: Vec<Doomed>,
    unsure: Vec<SweptObject>,
    left: usize,
    /// Dead owners of whom nothing is left when all this is removed.
    done_with: Vec<String>,
    look_again_after: Option<Duration>,
}

impl DockerProvider {
    pub(super) async fn sweep_engine(&self, options: &SweepOptions) -> Result<SweepReport> {
        let first = self.look_at_all(Operation::Sweep).await?;
        let decision = self.decide(&first, None, options);
        let again = decision.look_again_after;
        let mut report = self.carry_out(decision, options.mode).await;
        if let Some(after) = again
            && options.second_look == SecondLook::Wait
        {
            tracing::debug!(?after, "a second look is needed");
            tokio::time::sleep(after).await;
            let second = self.look_at_all(Operation::Sweep).await?;
            let decision = self.decide(&second, Some(&first), options);
            let later = self.carry_out(decision, options.mode).await;
            for object in later.removed {
                if !report.removed.contains(&object) {
                    report.removed.push(object);
                }
            }
            report.failed = later.failed;
            report.unsure = later.unsure;
            report.left = later.left;
        }
        if options.shared == SharedObjects::RemoveUnused {
            let is_dry = options.mode == SweepMode::DryRun;
            let names = self.remove_stale_volumes(Operation::Sweep, is_dry).await?;
            report.removed.extend(names.into_iter().map(shared));
        }
        Ok(report)
    }

    /// Sweeps once, without a second look, while the caller goes on.
    pub(in crate::docker) fn sweep_in_background(&self) {
        let provider = self.clone();
        self.reaper().submit("sweep at connect", async move {
            let options = SweepOptions::default().with_second_look(SecondLook::Never);
            // Boxed: the sweep's own calls reach the engine by what has started it.
            match Box::pin(provider.sweep_engine(&options)).await {
                Ok(report) => tracing::debug!(removed = report.removed.len(), "swept at connect"),
                Err(error) => tracing::warn!(%error, "the sweep at connect failed"),
            }
        });
    }

    fn decide(&self, look: &Look, earlier: Option<&Look>, options: &SweepOptions) -> Decision {
        let lease = &self.config().lease;
        let own = &owner::owner().id;
        let owners = owners(look, earlier, own, lease.renewal, proof_of);
        let lives: BTreeMap<&str, Life> = owners
            .iter()
            .map(|(owner, facts)| (owner.as_str(), judge(facts, look.now, lease.grace)))
            .collect();
        let own_holds = held_by_this_process();
        let holds = Holds::new(look, &lives, own, &own_holds);
        let mut decision = Decision::default();
        for object in look
            .objects
            .iter()
            .filter(|object| matches(&options.filter, &object.labels))
        {
            let life = object.marks.owner.as_deref().and_then(|owner| lives.get(owner));
            match fate(object, life.copied(), holds.life(object), look.now, options.kept) {
                Fate::Remove(why) => decision.doomed.push((object.clone(), why.to_owned())),
                Fate::Keep(_) => decision.left += 1,
                Fate::Unsure(why) => decision.unsure.push(named(object, why)),
                Fate::LookAgain(after) => {
                    decision.look_again_after = decision.look_again_after.max(Some(after));
                    decision.unsure.push(named(
                        object,
                        "its owner has no lease, but was looked for once only",
                    ));
                }
            }
        }
        decision.done_with = done_with(look, &lives, &decision.doomed);
        decision
    }

    async fn carry_out(&self, decision: Decision, mode: SweepMode) -> SweepReport {
        let mut report = SweepReport {
            unsure: decision.unsure,
            left: decision.left,
            ..SweepReport::default()
        };
        if mode == SweepMode::DryRun {
            let doomed = decision.doomed.iter();
            report.removed = doomed.map(|(object, why)| named(object, why)).collect();
            return report;
        }
        let removal = self.remove_objects(decision.doomed).await;
        report.removed = removal.removed;
        report.failed = removal.failed.into_iter().map(|(object, _)| object).collect();
        if report.failed.is_empty() {
            // On the file system, but few and small.
            forget(decision.done_with.iter().map(String::as_str));
        }
        report
    }
}

/// The dead owners whose files prove nothing more: all that they have goes, but for what was kept on purpose. A sweep of
/// a part leaves the proof to the next one.
fn done_with(look: &Look, lives: &BTreeMap<&str, Life>, doomed: &[Doomed]) -> Vec<String> {
    let going: HashSet<&str> = doomed.iter().map(|(object, _)| object.id.as_str()).collect();
    let stays = |owner: &str| {
        look.objects.iter().any(|object| {
            object.marks.owner.as_deref() == Some(owner)
                && object.marks.keep == Keep::No
                && !going.contains(object.id.as_str())
        })
    };
    let dead = lives.iter().filter(|(_, life)| matches!(life, Life::Dead(_)));
    dead.filter(|(owner, _)| !stays(owner))
        .map(|(owner, _)| (*owner).to_owned())
        .collect()
}

/// The agent's volume of another build, or a container that was to fill it.
fn shared(name: String) -> SweptObject {
    let kind = if name.starts_with(FILLER) {
        ObjectKind::Container
    } else {
        ObjectKind::Volume
    };
    SweptObject::new(kind, name, None, "it is of another version, and nothing uses it")
}

fn named(object: &Object, why: &str) -> SweptObject {
    SweptObject::new(object.kind, object.name.clone(), object.marks.owner.clone(), why)
}
