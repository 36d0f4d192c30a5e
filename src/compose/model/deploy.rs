//! `deploy` and what resources a service gets.

use serde_json::Value as Json;

use super::codec::{Context, Decode, Encode, Style};
use super::{ByteSize, Named, mapping};
use crate::compose::node::{Node, Value};
use crate::compose::units::ComposeDuration;

mapping! {
    /// `services.*.deploy`.
    pub struct Deploy {
        /// `replicated` or `global`.
        "mode" => mode: String,
        /// How many containers.
        "replicas" => replicas: Option<i64>,
        /// Labels of the service, not of its containers.
        "labels" => labels: Named<String>,
        /// How updates go.
        "update_config" => update_config: Option<RolloutConfig>,
        /// How rollbacks go.
        "rollback_config" => rollback_config: Option<RolloutConfig>,
        /// Limits and reservations.
        "resources" => resources: Resources,
        /// When to start a container again.
        "restart_policy" => restart_policy: Option<RestartPolicy>,
        /// Where containers may run.
        "placement" => placement: Placement,
        /// How clients reach the service.
        "endpoint_mode" => endpoint_mode: String,
    }
}

mapping! {
    /// How an update or a rollback goes.
    pub struct RolloutConfig {
        /// How many containers at once.
        "parallelism" => parallelism: Option<u64>,
        /// Time between them.
        "delay" => delay: ComposeDuration,
        /// What to do when one fails.
        "failure_action" => failure_action: String,
        /// How long each is watched.
        "monitor" => monitor: ComposeDuration,
        /// The share that may fail.
        "max_failure_ratio" => max_failure_ratio: f32,
        /// Whether the new one starts before the old one stops.
        "order" => order: String,
    }
}

mapping! {
    /// Limits and reservations.
    pub struct Resources {
        /// The most a container may use.
        "limits" => limits: Option<Resource>,
        /// What a container is sure to get.
        "reservations" => reservations: Option<Resource>,
    }
}

mapping! {
    /// An amount of resources.
    pub struct Resource {
        /// Processors.
        "cpus" => cpus: f32,
        /// Memory.
        "memory" => memory: ByteSize,
        /// Processes.
        "pids" => pids: i64,
        /// Devices, for example graphics cards.
        "devices" => devices: Vec<DeviceRequest>,
        /// Resources the engine was told of.
        "generic_resources" => generic_resources: Vec<GenericResource>,
    }
}

mapping! {
    /// A request for devices.
    pub struct DeviceRequest {
        /// What they must be able to do.
        "capabilities" => capabilities: Vec<String>,
        /// The driver that knows them.
        "driver" => driver: String,
        /// How many; -1 stands for all.
        "count" => count: DeviceCount,
        /// Which ones, instead of how many.
        "device_ids" => device_ids: Vec<String>,
        /// Options of the driver.
        "options" => options: Named<String>,
    }
}

/// A number of devices; -1 stands for all, 0 for not given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCount(i64);

impl DeviceCount {
    /// Returns the number.
    pub const fn get(self) -> i64 {
        self.0
    }
}

mapping! {
    /// A resource the engine was told of.
    pub struct GenericResource {
        /// A countable one.
        "discrete_resource_spec" => discrete_resource_spec: Option<DiscreteResource>,
    }
}

mapping! {
    /// A countable resource.
    pub struct DiscreteResource {
        /// Its kind.
        "kind" always => kind: String,
        /// How many.
        "value" always => value: i64,
    }
}

mapping! {
    /// When a container is started again.
    pub struct RestartPolicy {
        /// `none`, `on-failure` or `any`.
        "condition" => condition: String,
        /// Time between attempts.
        "delay" => delay: Option<ComposeDuration>,
        /// How often.
        "max_attempts" => max_attempts: Option<u64>,
        /// How long a start must hold to count.
        "window" => window: Option<ComposeDuration>,
    }
}

mapping! {
    /// Where containers may run.
    pub struct Placement {
        /// What nodes must have.
        "constraints" => constraints: Vec<String>,
        /// What nodes should have.
        "preferences" => preferences: Vec<PlacementPreference>,
        /// The most containers a node may run.
        "max_replicas_per_node" => max_replicas_per_node: u64,
    }
}

mapping! {
    /// What nodes should have.
    pub struct PlacementPreference {
        /// The label to spread over.
        "spread" => spread: String,
    }
}

impl Decode for DeviceCount {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        let count = match &node.value {
            Value::Int(count) => Some(*count),
            Value::Str(text) if text.eq_ignore_ascii_case("all") => Some(-1),
            Value::Str(text) => text.parse().ok(),
            _ => None,
        };
        Self(count.unwrap_or_else(|| {
            let text = node.to_text();
            context.error(
                node,
                format!("invalid value \"{text}\", the only value allowed is 'all' or a number"),
            );
            0
        }))
    }
}

impl Encode for DeviceCount {
    fn encode(&self, _style: Style) -> Json {
        Json::from(self.0)
    }

    fn omit(&self, _style: Style) -> bool {
        self.0 == 0
    }
}
