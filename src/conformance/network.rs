//! Addresses of sandboxes and names for them (capability `Network`).

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::error::ErrorKind;
use crate::provider::{Capability, NetworkProvider, SandboxHandle};

use super::case::cases;
use super::check::{equal, holds, refused, refused_with};
use super::{Context, Failure, Need, Outcome};

const NETWORK: Need = Need::Capability(Capability::Network);

pub(super) fn network(context: &Context) -> Result<&dyn NetworkProvider, Failure> {
    context
        .provider()
        .as_network()
        .ok_or_else(|| Failure::new("the provider has lost the capability"))
}

/// Sandboxes have addresses of their own, and the provider says that they can reach each other.
pub async fn every_sandbox_has_an_address_of_its_own(context: &Context) -> Outcome {
    network(context)?.validate_networking()?;
    let (first, second) = futures::future::try_join(context.sandbox(), context.sandbox()).await?;
    let first_address = network(context)?.network_address(&first).await?;
    let second_address = network(context)?.network_address(&second).await?;
    holds(
        "two sandboxes have two addresses",
        first_address != second_address,
    )?;
    holds("an address is not the loopback", !first_address.is_loopback())?;
    equal(
        "the address the second time",
        network(context)?.network_address(&first).await?,
        first_address,
    )
}

/// Names are known once they are set, more can be set, and a name that is set again has the new address.
pub async fn names_can_be_set_and_set_again(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let address = |text: &str| {
        text.parse::<IpAddr>()
            .map_err(|error| Failure::new(error.to_string()))
    };
    let hosts = |name: &str, address: IpAddr| BTreeMap::from([(name.to_owned(), address)]);
    let network = network(context)?;
    let before = context.stdout(&handle, "cat /etc/hosts").await?;
    let mut both = hosts("db", address("10.9.8.7")?);
    both.insert("cache.internal".to_owned(), address("10.9.8.6")?);
    network.set_hosts(&handle, &both).await?;
    network
        .set_hosts(&handle, &hosts("web", address("fd00::7")?))
        .await?;
    network
        .set_hosts(&handle, &hosts("db", address("10.9.8.5")?))
        .await?;
    network.set_hosts(&handle, &BTreeMap::new()).await?;
    let after = context.stdout(&handle, "cat /etc/hosts").await?;
    holds("what was there stays", after.starts_with(before.trim_end()))?;
    let found = |name: &str| {
        after
            .lines()
            .filter(|line| line.split_whitespace().nth(1) == Some(name))
            .filter_map(|line| line.split_whitespace().next())
            .collect::<Vec<_>>()
            .join(" ")
    };
    equal("the address of db", found("db"), "10.9.8.5")?;
    equal(
        "the address of cache.internal",
        found("cache.internal"),
        "10.9.8.6",
    )?;
    equal("the address of web", found("web"), "fd00::7")
}

/// What is no host name is refused and changes nothing; a removed sandbox has no address; a foreign handle is refused.
pub async fn what_can_not_be_named_or_reached_is_refused(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let address: IpAddr = [10, 9, 8, 7].into();
    for name in ["", "a b", "a\n10.0.0.1 b", "#"] {
        let hosts = BTreeMap::from([("good".to_owned(), address), (name.to_owned(), address)]);
        refused_with(
            &format!("the name {name:?}"),
            network(context)?.set_hosts(&handle, &hosts).await,
            ErrorKind::InvalidArgument,
        )?;
    }
    let file = context.stdout(&handle, "cat /etc/hosts").await?;
    holds("nothing was changed", !file.contains("good"))?;
    let foreign = SandboxHandle::new(handle.sandbox_id().clone(), "some-other-provider");
    refused_with(
        "the address of a foreign handle",
        network(context)?.network_address(&foreign).await,
        ErrorKind::ForeignHandle,
    )?;
    context.provider().close(&handle).await?;
    let error = refused(
        "the address of a removed sandbox",
        network(context)?.network_address(&handle).await,
    )?;
    holds(
        format!("{:?} says that it is gone", error.kind()),
        matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Sandbox(_)),
    )
}

cases!("network":
    every_sandbox_has_an_address_of_its_own needs NETWORK,
    names_can_be_set_and_set_again needs NETWORK,
    what_can_not_be_named_or_reached_is_refused needs NETWORK,
);
