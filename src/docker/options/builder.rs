//! A container in the making: what the layers of options say, one over the other.

use crate::error::{Error, Operation, Result};
use crate::spec::container::{ContainerSpec, EndpointSpec, NetworkAttachment};

/// What relative paths of volume strings are relative to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::docker) struct LocalBase {
    /// The folder that `.` means.
    pub(in crate::docker) here: String,
    /// The folder that `~` means.
    pub(in crate::docker) home: Option<String>,
}

impl LocalBase {
    /// Those of this process.
    pub(in crate::docker) fn of_process() -> Self {
        let here = std::env::current_dir();
        Self {
            here: here.map_or_else(|_| "/".to_owned(), |path| path.display().to_string()),
            home: std::env::var("HOME").ok().filter(|home| home.starts_with('/')),
        }
    }
}

/// A container in the making.
#[derive(Debug)]
pub(super) struct Builder {
    pub(super) container: ContainerSpec,
    pub(super) base: LocalBase,
    networks: Vec<NetworkAttachment>,
    /// The next network takes the place of those of the layer below.
    is_new_layer: bool,
    /// What is said of the first network beside its name.
    pub(super) endpoint: EndpointSpec,
}

impl Builder {
    pub(super) fn new(container: ContainerSpec, base: LocalBase) -> Self {
        Self {
            container,
            base,
            networks: Vec::new(),
            is_new_layer: true,
            endpoint: EndpointSpec::default(),
        }
    }

    /// What follows is of a layer that wins over those before it.
    pub(super) fn begin_layer(&mut self) {
        self.is_new_layer = true;
    }

    pub(super) fn add_network(&mut self, network: NetworkAttachment) {
        if std::mem::take(&mut self.is_new_layer) {
            self.networks.clear();
        }
        self.networks.push(network);
    }

    /// Puts the networks together.
    pub(super) fn finish(self) -> Result<ContainerSpec> {
        let mut container = self.container;
        let mut networks = self.networks;
        container.network = match networks.len() {
            0 => NetworkAttachment::Default,
            1 => networks.remove(0),
            _ => {
                let mut all = Vec::new();
                for network in networks {
                    match network {
                        NetworkAttachment::Networks(named) => all.extend(named),
                        NetworkAttachment::Default => all.push(EndpointSpec::new("bridge")),
                        _ => {
                            return Err(invalid(
                                "a sandbox in a network mode such as `none` can't be in other networks",
                            ));
                        }
                    }
                }
                NetworkAttachment::Networks(all)
            }
        };
        let beside = self.endpoint;
        if beside != EndpointSpec::default() {
            let NetworkAttachment::Networks(named) = &mut container.network else {
                return Err(invalid(
                    "network aliases and addresses need a network with a name, see `network`",
                ));
            };
            if let Some(first) = named.first_mut() {
                first.aliases.extend(beside.aliases);
                first.link_local_ips.extend(beside.link_local_ips);
                first.ipv4_address = beside.ipv4_address.or(first.ipv4_address.take());
                first.ipv6_address = beside.ipv6_address.or(first.ipv6_address.take());
            }
        }
        Ok(container)
    }
}

fn invalid(problem: &'static str) -> Error {
    Error::invalid(Operation::Create, problem)
}
