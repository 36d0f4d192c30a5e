//! Which providers there are by name, and how one is made from a configuration block.
//! Reaches the built-in ones only through `builtin`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use crate::builtin;
use crate::error::{Error, Operation, Result};
use crate::spec::{Mapping, Value};

use super::{ConfigBlock, SandboxProvider};

/// Makes a provider from its settings. It checks them and does no I/O (contract D26, D34).
pub type ProviderFactory = Arc<dyn Fn(&Mapping) -> Result<Arc<dyn SandboxProvider>> + Send + Sync>;

type Registered = RwLock<BTreeMap<String, ProviderFactory>>;

fn registered() -> &'static Registered {
    static REGISTERED: OnceLock<Registered> = OnceLock::new();
    REGISTERED.get_or_init(Registered::default)
}

/// What to do when the name to register is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnExisting {
    /// Refuse.
    Refuse,
    /// Replace it; a built-in provider is shadowed.
    Replace,
}

/// Registers a provider under a name (contract G1).
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an empty name;
/// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) when the name is taken and is not to be replaced.
pub fn register_provider(name: &str, factory: ProviderFactory, on_existing: OnExisting) -> Result<()> {
    if name.trim().is_empty() {
        return Err(Error::invalid(
            Operation::Configure,
            "a provider's name can't be empty",
        ));
    }
    let mut providers = registered().write().unwrap_or_else(PoisonError::into_inner);
    let taken = providers.contains_key(name) || builtin::factory(name).is_some();
    if taken && on_existing == OnExisting::Refuse {
        return Err(Error::new(
            crate::error::ErrorKind::Conflict,
            Operation::Configure,
            format!("a provider called `{name}` exists already"),
        )
        .with_hint("register it with `OnExisting::Replace` to shadow the other one"));
    }
    providers.insert(name.to_owned(), factory);
    Ok(())
}

/// The names of all providers, sorted (contract G3).
pub fn list_providers() -> Vec<String> {
    let providers = registered().read().unwrap_or_else(PoisonError::into_inner);
    let names: BTreeSet<String> = builtin::names()
        .map(str::to_owned)
        .chain(providers.keys().cloned())
        .collect();
    names.into_iter().collect()
}

/// Makes the provider that a configuration block names (contract G2, G5). Does no I/O: the provider connects at its
/// first call.
///
/// ```no_run
/// # fn main() -> gym_sandbox::Result<()> {
/// let config = gym_sandbox::provider::config_from_yaml("docker: {exec: {concurrency: 8}}")?;
/// let provider = gym_sandbox::provider::create_provider(&config)?;
/// # drop(provider);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for anything but a map with one provider, for an
/// unknown provider (the known ones are listed), and for settings that the provider refuses.
pub fn create_provider(config: &Value) -> Result<Arc<dyn SandboxProvider>> {
    let block = ConfigBlock::from_value(config)?;
    let factory = {
        let providers = registered().read().unwrap_or_else(PoisonError::into_inner);
        providers
            .get(block.provider())
            .cloned()
            .or_else(|| builtin::factory(block.provider()))
    };
    let factory = factory.ok_or_else(|| {
        let mut known = list_providers().join(", ");
        if known.is_empty() {
            "<none>".clone_into(&mut known);
        }
        Error::invalid(
            Operation::Configure,
            format!("unknown provider `{}`", block.provider()),
        )
        .with_hint(format!("known providers are {known}"))
    })?;
    factory(block.settings())
}
