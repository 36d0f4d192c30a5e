//! Networks, and how a container is in them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

use super::Subnets;

/// The networks of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NetworkAttachment {
    /// The engine's default bridge.
    #[default]
    Default,
    /// Only a loopback of its own. The one mode that isolates from the host's services.
    None,
    /// The host's network namespace. Needs a policy that allows it.
    Host,
    /// Another container's network namespace, by id or name.
    Container(String),
    /// These networks; the first is the primary one.
    Networks(Vec<EndpointSpec>),
}

/// A container's place in a network (Engine API `EndpointSettings`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EndpointSpec {
    /// The network, by id or name.
    pub network: String,
    /// Names under which others in the network find it.
    pub aliases: Vec<String>,
    /// Its IPv4 address.
    pub ipv4_address: Option<String>,
    /// Its IPv6 address.
    pub ipv6_address: Option<String>,
    /// Its link-local addresses.
    pub link_local_ips: Vec<String>,
    /// Its MAC address. API 1.44.
    pub mac_address: Option<String>,
    /// Links to other containers, as in `container:alias`.
    pub links: Vec<String>,
    /// Options of the driver.
    pub driver_options: BTreeMap<String, String>,
    /// Which network gives the default route: the highest. API 1.48.
    pub gateway_priority: Option<i64>,
    /// The name of the interface.
    pub interface_name: Option<String>,
}

impl EndpointSpec {
    /// Describes a place in a network without anything special.
    pub fn new(network: impl Into<String>) -> Self {
        Self {
            network: network.into(),
            ..Self::default()
        }
    }
}

/// A transport protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// The word of the engine.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }
}

/// A port that is published on the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PublishedPort {
    /// The port in the container.
    pub target: u16,
    /// Its protocol.
    pub protocol: Protocol,
    /// The address of the host. None for the provider's publish address, 127.0.0.1 by default.
    pub host_ip: Option<IpAddr>,
    /// The port of the host, or a range of which the engine chooses. None for any free one.
    pub published: Option<String>,
}

impl PublishedPort {
    /// Publishes a TCP port on a host port that the engine chooses.
    pub fn ephemeral(target: u16) -> Self {
        Self {
            target,
            protocol: Protocol::Tcp,
            host_ip: None,
            published: None,
        }
    }
}

/// A network to make (Engine API `NetworkCreate`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NetworkSpec {
    /// The name.
    pub name: String,
    /// The driver. None for `bridge`.
    pub driver: Option<String>,
    /// Options of the driver.
    pub driver_options: BTreeMap<String, String>,
    /// Whether it has no way out. Services of the host on the bridge's own address stay reachable from it.
    pub internal: bool,
    /// Whether containers that are not part of a service may join (overlay networks).
    pub attachable: bool,
    /// Whether it has IPv4. API 1.48 can say no.
    pub enable_ipv4: Option<bool>,
    /// Whether it has IPv6.
    pub enable_ipv6: Option<bool>,
    /// The driver that gives out addresses.
    pub ipam_driver: Option<String>,
    /// Options of that driver.
    pub ipam_options: BTreeMap<String, String>,
    /// Its subnets. Without one of IPv4 addresses [`subnets`](Self::subnets) says where it has that from.
    pub pools: Vec<IpPool>,
    /// Where its IPv4 subnet comes from when [`pools`](Self::pools) has none. Networks of other drivers than `bridge`, with an
    /// IPAM driver of their own or without IPv4 have theirs from their driver.
    #[serde(skip_serializing_if = "Subnets::is_planned")]
    pub subnets: Subnets,
    /// How many containers must fit into a subnet that is chosen. One always holds 29 at least.
    #[serde(skip_serializing_if = "is_few")]
    pub containers: u32,
    /// Labels.
    pub labels: BTreeMap<String, String>,
}

/// Any subnet that is chosen holds them.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands fields over by reference"
)]
fn is_few(containers: &u32) -> bool {
    *containers <= 29
}

impl NetworkSpec {
    /// Describes a bridge network.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}

/// A subnet of a network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IpPool {
    /// The subnet, as in `10.5.0.0/24`.
    pub subnet: Option<String>,
    /// The part of it that addresses are given out from.
    pub ip_range: Option<String>,
    /// The gateway.
    pub gateway: Option<String>,
    /// Addresses that are taken, by name.
    pub auxiliary_addresses: BTreeMap<String, String>,
}
