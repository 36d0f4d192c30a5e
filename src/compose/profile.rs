//! Which services are active.

use super::model::Project;

/// Moves services whose profiles are not active aside.
pub(crate) fn apply(project: &mut Project, profiles: &[String]) {
    let mut active = profiles.to_vec();
    if active.is_empty()
        && let Some(list) = project.environment.get("COMPOSE_PROFILES")
    {
        active = list
            .split(',')
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect();
    }
    let services = std::mem::take(&mut project.services);
    let (enabled, disabled) = services
        .into_iter()
        .partition(|(_, service)| service.has_profile(&active));
    project.services = enabled;
    project.disabled_services = disabled;
    project.profiles = active;
}
