//! Sandboxes in which the agent runs, or does not, alike: by their image, and by what limits any program in them.

use std::hash::{DefaultHasher, Hash, Hasher};

use bollard::models::{ContainerCreateBody, HostConfig};

use super::super::request::CreateRequest;

/// A kind of sandboxes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SandboxKind {
    pub(super) image: String,
    /// Of the limits and rights. One sandbox with a stack of 16 KiB says nothing of the others of its image.
    limits: u64,
}

impl SandboxKind {
    pub(super) fn of(request: &CreateRequest) -> Self {
        Self {
            image: request.image.to_string(),
            limits: limits_of(&request.body),
        }
    }
}

fn limits_of(body: &ContainerCreateBody) -> u64 {
    let host = body.host_config.clone().unwrap_or_default();
    let limits = HostConfig {
        ulimits: host.ulimits,
        security_opt: host.security_opt,
        memory: host.memory,
        pids_limit: host.pids_limit,
        runtime: host.runtime,
        cap_add: host.cap_add,
        cap_drop: host.cap_drop,
        ..HostConfig::default()
    };
    let mut hasher = DefaultHasher::new();
    // The engine's own words have an order; what can't be written is like nothing.
    serde_json::to_string(&limits).ok().hash(&mut hasher);
    body.user.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use bollard::models::ResourcesUlimits;

    use super::*;

    #[test]
    fn a_sandbox_with_other_limits_is_of_another_kind_and_one_with_other_mounts_is_not() {
        let of = |host: HostConfig| {
            limits_of(&ContainerCreateBody {
                host_config: Some(host),
                ..ContainerCreateBody::default()
            })
        };
        let stack = ResourcesUlimits {
            name: Some("stack".to_owned()),
            soft: Some(16384),
            hard: Some(16384),
        };
        let plain = of(HostConfig::default());
        assert_eq!(limits_of(&ContainerCreateBody::default()), plain);
        assert_eq!(
            of(HostConfig {
                binds: Some(vec!["/a:/b".to_owned()]),
                ..HostConfig::default()
            }),
            plain
        );
        assert_ne!(
            of(HostConfig {
                ulimits: Some(vec![stack]),
                ..HostConfig::default()
            }),
            plain
        );
    }

    #[test]
    fn one_failure_where_the_agent_has_worked_is_not_remembered_and_one_success_ends_what_was() {
        let fleet = super::super::Fleet::default();
        let why = "it was slow".into();
        let [works, failed] = [1, 2].map(|limits| SandboxKind {
            image: "a".to_owned(),
            limits,
        });
        fleet.remember_usable(&works);
        fleet.remember_unusable(&works, &why);
        assert_eq!(fleet.why_unusable(&works), None);
        fleet.remember_unusable(&failed, &why);
        assert_eq!(fleet.why_unusable(&failed), Some(why));
        assert_eq!(fleet.images_without(), ["`a` (it was slow)"]);
        // Another create of the same moment.
        fleet.remember_usable(&failed);
        assert_eq!(fleet.why_unusable(&failed), None);
        assert_eq!(fleet.images_without(), [] as [String; 0]);
    }
}
