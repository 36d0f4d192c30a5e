//! Networks that a container is to be in: whether each is named once, connecting to those that did not go with the create,
//! and what a refusal has to do with them.

use std::collections::BTreeMap;

use bollard::models::{ContainerCreateBody, Network, NetworkConnectRequest};
use bollard::query_parameters::ListNetworksOptions;

use crate::error::{Error, ErrorKind, Operation, Result};

use super::super::DockerProvider;
use super::super::failure::{EngineFailure, QUICK, call};
use super::{NetworkJoin, invalid};

/// The engine is slow here only under many calls at once.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(120);

/// The digits of an id.
const ID: usize = 64;

/// The networks of a create call and of those that are connected after it, as they are named.
pub(in crate::docker) fn networks_of<'a>(
    body: &'a ContainerCreateBody,
    joins: &'a [NetworkJoin],
) -> Vec<&'a str> {
    let with_create = body.networking_config.iter();
    let with_create = with_create.flat_map(|config| config.endpoints_config.iter().flatten());
    let later = joins.iter().map(|join| join.network.as_str());
    with_create.map(|(name, _)| name.as_str()).chain(later).collect()
}

impl DockerProvider {
    /// Refuses a network that is named twice in different words, by its name and by its id. The engine is asked only where
    /// that can be.
    pub(in crate::docker) async fn check_named_once(&self, networks: &[&str]) -> Result<()> {
        let is_id = |name: &&&str| name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let ids = networks.iter().filter(is_id).count();
        let whole = networks.iter().filter(is_id).filter(|id| id.len() == ID).count();
        if networks.len() < 2 || ids == 0 || whole == networks.len() {
            return Ok(());
        }
        let client = &self.engine().await?.client;
        let listed = call(QUICK, client.list_networks(None::<ListNetworksOptions>)).await;
        let listed = listed.map_err(|failure| {
            failure.into_error(
                Operation::Create,
                "the engine did not list its networks",
                ErrorKind::CreateFailed,
            )
        })?;
        match named_twice(networks, &listed) {
            None => Ok(()),
            Some((one, other)) => Err(invalid(format!(
                "`{one}` and `{other}` are the same network, which a container is in once"
            ))
            .with_hint("name it once; all its aliases can stand there")),
        }
    }

    /// Connects a created container to a network. Succeeds again when it is connected already.
    ///
    /// # Errors
    /// [`ErrorKind::CreateFailed`] or what the engine's answer says, naming the network.
    pub(in crate::docker) async fn join_network(&self, container: &str, join: &NetworkJoin) -> Result<()> {
        let client = &self.engine().await?.client;
        let request = NetworkConnectRequest {
            container: container.to_owned(),
            endpoint_config: Some(join.endpoint.clone()),
        };
        let joined = call(CONNECT, client.connect_network(&join.network, request)).await;
        joined.map_err(|failure| {
            no_such_network([join.network.as_str()], &failure).unwrap_or_else(|| {
                failure.into_error(
                    Operation::Create,
                    format!(
                        "the container was not connected to the network `{}`",
                        join.network
                    ),
                    ErrorKind::CreateFailed,
                )
            })
        })
    }
}

/// Two words for one network.
fn named_twice<'a>(names: &[&'a str], listed: &[Network]) -> Option<(&'a str, &'a str)> {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for &name in names {
        let Some(id) = id_of(name, listed) else { continue };
        if let Some(other) = seen.insert(id, name) {
            return Some((other, name));
        }
    }
    None
}

/// The network that an engine takes a word for: an id, else a name, else the beginning of one id.
fn id_of<'a>(name: &str, listed: &'a [Network]) -> Option<&'a str> {
    let ids = || listed.iter().filter_map(|network| network.id.as_deref());
    let by_name = || {
        listed
            .iter()
            .find(|network| network.name.as_deref() == Some(name))
    };
    ids()
        .find(|&id| id == name)
        .or_else(|| by_name()?.id.as_deref())
        .or_else(|| {
            let mut beginning = ids().filter(|id| id.starts_with(name));
            beginning.next().filter(|_| beginning.next().is_none())
        })
}

/// The error for a network that is not there, if that is why the engine refused: these are the ones it was asked for.
pub(in crate::docker) fn no_such_network<'a>(
    networks: impl IntoIterator<Item = &'a str>,
    failure: &EngineFailure,
) -> Option<Error> {
    let text = failure.text().filter(|_| failure.is_status(404))?.to_lowercase();
    // Moby says `network NAME not found`, podman `unable to find network with name or ID NAME: network not found`.
    if !(text.contains("network") && text.contains("not found")) {
        return None;
    }
    let missing = networks
        .into_iter()
        .find(|name| text.contains(&name.to_lowercase()))?;
    Some(
        Error::new(
            ErrorKind::CreateFailed,
            Operation::Create,
            format!("the engine has no network `{}`", missing.escape_debug()),
        )
        .with_hint(format!(
            "make it first, as with `docker network create {}`, or correct its name; without one a sandbox is on the engine's \
             default bridge",
            missing.escape_debug()
        ))
        .with_source(failure.clone()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(id: &str, name: &str) -> Network {
        Network {
            id: Some(id.to_owned()),
            name: Some(name.to_owned()),
            ..Network::default()
        }
    }

    #[test]
    fn a_network_is_told_by_its_id_its_name_and_a_beginning() {
        let listed = [
            network("abc1", "front"),
            network("abd2", "back"),
            network("0123", "abc"),
        ];
        for (names, twice) in [
            (vec!["front", "abc1"], Some(("front", "abc1"))),
            (vec!["back", "front", "abd"], Some(("back", "abd"))),
            // A name goes before a beginning, and one of two ids is none.
            (vec!["front", "abc"], None),
            (vec!["abc", "01"], Some(("abc", "01"))),
            (vec!["front", "back", "ab"], None),
            (vec!["gone", "gone-too"], None),
        ] {
            assert_eq!(named_twice(&names, &listed), twice, "{names:?}");
        }
    }

    #[test]
    fn only_a_network_that_was_asked_for_is_told_to_be_missing() {
        let refused = |status, text: &str| EngineFailure::Refused {
            status,
            text: text.to_owned(),
        };
        let missing = |failure| no_such_network(["Front", "back"], &failure);
        for text in [
            "network front not found",
            "unable to find network with name or ID front: network not found",
        ] {
            let error = missing(refused(404, text)).unwrap();
            assert_eq!(error.kind(), ErrorKind::CreateFailed);
            assert!(error.to_string().contains("no network `Front`"), "{error}");
            assert!(error.hint().is_some());
        }
        for failure in [
            refused(404, "network other not found"),
            refused(404, "No such image: front"),
            refused(500, "network front not found"),
            EngineFailure::Deadline(QUICK),
        ] {
            assert!(missing(failure.clone()).is_none(), "{failure}");
        }
    }
}
