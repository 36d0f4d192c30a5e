//! Who is dead, and what goes with them: pure, and tested as a table. All times are the engine's.

use std::collections::BTreeMap;
use std::time::Duration;

use bollard::models::ContainerSummaryStateEnum as State;

use crate::spec::{KeptSandboxes, ObjectKind};

use super::super::connect::EngineTime;
use super::super::owner::{Keep, Proof, kind};
use super::look::{Look, Object};

/// What is known of one owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnerFacts {
    /// It is this process.
    pub(super) is_own: bool,
    /// What its owner file proves.
    pub(super) proof: Proof,
    /// The end of the latest of its leases that is there.
    pub(super) lease_seen: Option<EngineTime>,
    /// The end of the latest first lease that its objects name. None when one of them names none.
    pub(super) first_lease: Option<EngineTime>,
    /// How often it renews its lease.
    pub(super) renewal: Duration,
    /// How long ago an earlier look saw no lease of it either. None without an earlier look.
    pub(super) missing_for: Option<Duration>,
}

/// Whether an owner lives, and why that is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Alive(&'static str),
    Dead(&'static str),
    /// It may be dead, and another look after so long can prove it.
    LookAgain(Duration),
    Unsure(&'static str),
}

/// Judges an owner. Death has to be proven.
pub(super) fn judge(facts: &OwnerFacts, now: EngineTime, grace: Duration) -> Life {
    if facts.is_own {
        return Life::Alive("it is this process");
    }
    match facts.proof {
        Proof::Alive => return Life::Alive("its owner file is locked"),
        Proof::Dead => return Life::Dead("its process has ended"),
        Proof::Nothing => {}
    }
    if let Some(end) = facts.lease_seen {
        return if end > now {
            Life::Alive("its lease holds")
        } else if end.plus(grace) > now {
            Life::Unsure("its lease has ended, but not its grace")
        } else {
            Life::Dead("its lease has ended")
        };
    }
    // No lease is there. A prune of volumes removes leases of the living: it proves nothing yet.
    match facts.first_lease {
        None => return Life::Unsure("nothing says until when its first lease holds"),
        Some(end) if end > now => return Life::Alive("its first lease holds"),
        Some(end) if end.plus(grace) > now => {
            return Life::Unsure("its first lease has ended, but not its grace");
        }
        Some(_) => {}
    }
    let patience = facts.renewal + grace;
    match facts.missing_for {
        Some(missing) if missing >= patience => {
            Life::Dead("it has no lease, and has made none in the time that it renews it")
        }
        _ => Life::LookAgain(patience),
    }
}

/// Collects what is known of every owner that a look has seen something of.
pub(super) fn owners(
    look: &Look,
    earlier: Option<&Look>,
    own: &str,
    default_renewal: Duration,
    proof_of: impl Fn(&str) -> Proof,
) -> BTreeMap<String, OwnerFacts> {
    let mut owners: BTreeMap<String, OwnerFacts> = BTreeMap::new();
    for (owner, objects) in by_owner(look) {
        let leases = objects.iter().filter(|object| is_lease(object));
        let others = objects.iter().filter(|object| !is_lease(object));
        // Kept objects have no lease that is renewed for them; their label only bounds their making.
        let first: Option<Vec<EngineTime>> = others
            .filter(|object| object.marks.keep == Keep::No)
            .map(|object| object.marks.lease)
            .collect();
        let missed_before = earlier.is_some_and(|earlier| {
            !earlier
                .objects
                .iter()
                .any(|object| is_lease(object) && object.marks.owner.as_deref() == Some(owner))
        });
        owners.insert(
            owner.to_owned(),
            OwnerFacts {
                is_own: owner == own,
                proof: proof_of(owner),
                lease_seen: leases.filter_map(|lease| lease.marks.lease).max(),
                first_lease: first.and_then(|ends| ends.into_iter().max()),
                renewal: objects
                    .iter()
                    .filter_map(|object| object.marks.renewal)
                    .max()
                    .unwrap_or(default_renewal),
                missing_for: earlier
                    .filter(|_| missed_before)
                    .map(|earlier| look.at.saturating_duration_since(earlier.at)),
            },
        );
    }
    owners
}

fn by_owner(look: &Look) -> BTreeMap<&str, Vec<&Object>> {
    let mut owners: BTreeMap<&str, Vec<&Object>> = BTreeMap::new();
    for object in &look.objects {
        if let Some(owner) = &object.marks.owner {
            owners.entry(owner).or_default().push(object);
        }
    }
    owners
}

pub(super) fn is_lease(object: &Object) -> bool {
    object.kind == ObjectKind::Volume && object.marks.kind.as_deref() == Some(kind::LEASE)
}

/// What is to become of one object, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Remove(&'static str),
    Keep(&'static str),
    LookAgain(Duration),
    Unsure(&'static str),
}

/// A container that fills a shared volume and is older than this was left behind: filling takes a fraction of a second.
const FILLING: Duration = Duration::from_secs(60);

/// Decides on one object.
pub(super) fn fate(
    object: &Object,
    owner: Option<Life>,
    holder: Option<Life>,
    now: EngineTime,
    kept: KeptSandboxes,
) -> Fate {
    let marks = &object.marks;
    if marks.kind.as_deref() == Some(kind::SHARED) {
        let is_old = object.made.is_some_and(|made| now.since(made) > FILLING);
        let is_left = object.kind == ObjectKind::Container
            && object.state != Some(State::RUNNING)
            && (is_old || matches!(owner, Some(Life::Dead(_))));
        return if is_left {
            Fate::Remove("it was left by a filling that was interrupted")
        } else {
            Fate::Keep("it is shared by all")
        };
    }
    if marks.expires.is_some_and(|expires| expires <= now) {
        return Fate::Remove("its ttl has ended");
    }
    if marks.keep == Keep::Yes {
        let was_begun_only = object.kind == ObjectKind::Container
            && object.state == Some(State::CREATED)
            && marks.lease.is_some_and(|end| end <= now);
        return match kept {
            KeptSandboxes::Remove => Fate::Remove("kept ones are to be removed, too"),
            KeptSandboxes::Leave if was_begun_only => {
                Fate::Remove("it was to be kept, but its start was interrupted")
            }
            KeptSandboxes::Leave => Fate::Keep("it was kept on purpose"),
        };
    }
    match holder {
        Some(Life::Alive(_)) => return Fate::Keep("a living process has taken it over"),
        Some(Life::Unsure(_) | Life::LookAgain(_)) if !matches!(owner, Some(Life::Alive(_))) => {
            return Fate::Unsure("the process that has taken it over may live");
        }
        _ => {}
    }
    match owner {
        None => Fate::Unsure("it names no owner"),
        Some(Life::Alive(why)) => Fate::Keep(why),
        Some(Life::Dead(why)) => Fate::Remove(why),
        Some(Life::LookAgain(after)) => Fate::LookAgain(after),
        Some(Life::Unsure(why)) => Fate::Unsure(why),
    }
}

#[cfg(test)]
mod tests;
