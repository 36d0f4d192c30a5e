//! Who comes before whom.

use std::collections::BTreeSet;

use crate::compose::model::Project;

/// The names of the active services, each after those it depends on; the rest by name.
pub(crate) fn dependency_order(project: &Project) -> Vec<String> {
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for name in project.services.keys() {
        visit(project, name, &mut seen, &mut order);
    }
    order
}

fn visit(project: &Project, name: &str, seen: &mut BTreeSet<String>, order: &mut Vec<String>) {
    // The loader refused cycles; the set is for projects that were changed since.
    if !project.services.contains_key(name) || !seen.insert(name.to_owned()) {
        return;
    }
    for dependency in project.services[name].depends_on.keys() {
        visit(project, dependency, seen, order);
    }
    order.push(name.to_owned());
}
