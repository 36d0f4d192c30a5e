//! What other processes than the maker have taken over, as their leases say: pure.

use std::collections::{BTreeMap, HashMap};

use crate::spec::ObjectKind;

use super::decide::{Life, is_lease};
use super::look::{Look, Object};

/// Who holds what. A sandbox that is held keeps what it may need: the networks and volumes of its maker, the containers
/// of the same project, and the lease of its maker, which tells of the death of that one.
#[derive(Debug, Default)]
pub(super) struct Holds<'a> {
    sandboxes: HashMap<&'a str, (&'a str, Life)>,
    makers: HashMap<&'a str, Life>,
    projects: HashMap<(&'a str, &'a str), Life>,
}

impl<'a> Holds<'a> {
    /// Reads the leases of all whose death is not proven. What this process itself has taken over it knows better than
    /// any lease, which somebody may have pruned.
    pub(super) fn new(
        look: &'a Look,
        lives: &BTreeMap<&str, Life>,
        own: &'a str,
        own_holds: &'a [String],
    ) -> Self {
        let mut holds = Self::default();
        for lease in look.objects.iter().filter(|object| is_lease(object)) {
            let Some(holder) = lease.marks.owner.as_deref().filter(|holder| *holder != own) else {
                continue;
            };
            let life = lives.get(holder).filter(|life| !matches!(life, Life::Dead(_)));
            if let Some(life) = life {
                for name in &lease.marks.holds {
                    let held = holds.sandboxes.entry(name).or_insert((holder, *life));
                    if !matches!(held.1, Life::Alive(_)) {
                        *held = (holder, *life);
                    }
                }
            }
        }
        for name in own_holds {
            let life = Life::Alive("it is this process");
            holds.sandboxes.insert(name, (own, life));
        }
        for object in look.objects.iter().filter(|object| is_container(object)) {
            let held = holds.sandboxes.get(object.name.as_str()).map(|(_, life)| *life);
            let (Some(life), Some(maker)) = (held, object.marks.owner.as_deref()) else {
                continue;
            };
            better(holds.makers.entry(maker).or_insert(life), life);
            if let Some(project) = object.marks.project.as_deref() {
                better(holds.projects.entry((maker, project)).or_insert(life), life);
            }
        }
        holds
    }

    /// The life of whoever holds an object, where somebody does.
    pub(super) fn life(&self, object: &Object) -> Option<Life> {
        let maker = object.marks.owner.as_deref()?;
        if !is_container(object) {
            return self.makers.get(maker).copied();
        }
        let itself = self.sandboxes.get(object.name.as_str()).map(|(_, life)| *life);
        let project = object.marks.project.as_deref();
        itself.or_else(|| self.projects.get(&(maker, project?)).copied())
    }

    /// Who holds a sandbox.
    pub(super) fn holder(&self, sandbox: &str) -> Option<(&'a str, Life)> {
        self.sandboxes.get(sandbox).copied()
    }
}

fn is_container(object: &Object) -> bool {
    object.kind == ObjectKind::Container
}

/// One that lives is enough.
fn better(known: &mut Life, life: Life) {
    if matches!(life, Life::Alive(_)) {
        *known = life;
    }
}
