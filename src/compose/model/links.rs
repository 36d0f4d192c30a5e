//! What a service needs and joins: dependencies, networks, models, providers.

use super::codec::FromText;
use super::mount::words;
use super::{Named, mapping};

mapping! {
    /// A dependency on another service.
    pub struct Dependency {
        /// What the other service must have reached.
        "condition" => condition: DependencyCondition,
        /// Whether an explicit restart of the other one restarts this one.
        "restart" => restart: bool,
        /// Whether this one cannot go without.
        "required" always => required: bool,
    }
}

words! {
    /// What a dependency must have reached.
    pub enum DependencyCondition {
        /// It was started.
        #[default]
        Started = "service_started",
        /// Its health check passes.
        Healthy = "service_healthy",
        /// It ended with exit code 0.
        CompletedSuccessfully = "service_completed_successfully",
    }
}

mapping! {
    /// A service in a network.
    pub struct ServiceNetwork {
        /// More names it has there.
        "aliases" => aliases: Vec<String>,
        /// Options of the driver.
        "driver_opts" => driver_opts: Named<String>,
        /// Which network has the default route: the highest.
        "gw_priority" => gw_priority: i64,
        /// The name of the interface.
        "interface_name" => interface_name: String,
        /// The IPv4 address.
        "ipv4_address" => ipv4_address: String,
        /// The IPv6 address.
        "ipv6_address" => ipv6_address: String,
        /// Link-local addresses.
        "link_local_ips" => link_local_ips: Vec<String>,
        /// The MAC address.
        "mac_address" => mac_address: String,
        /// Which network is the primary one: the highest.
        "priority" => priority: i64,
    }
}

impl FromText for Option<ServiceNetwork> {}

mapping! {
    /// A model a service uses.
    pub struct ServiceModel {
        /// The variable that gets the endpoint.
        "endpoint_var" => endpoint_var: String,
        /// The variable that gets the name.
        "model_var" => model_var: String,
    }
}

impl FromText for Option<ServiceModel> {}

mapping! {
    /// Credentials, on Windows.
    pub struct CredentialSpec {
        /// The config that holds them.
        "config" => config: String,
        /// The file that holds them.
        "file" => file: String,
        /// The registry value that holds them.
        "registry" => registry: String,
    }
}

mapping! {
    /// A program that provides a service.
    pub struct Provider {
        /// Its kind.
        "type" => kind: String,
        /// Its options.
        "options" => options: Named<Vec<String>>,
    }
}
