use std::sync::Arc;

use crate::provider::{Capability, CapabilitySet, SandboxProvider, Traced, capabilities};

use super::scripted::{Capabilities, Scripted};

#[test]
fn capabilities_are_what_the_accessors_give() {
    let all: CapabilitySet = [
        Capability::Spawn,
        Capability::Endpoint,
        Capability::Inspect,
        Capability::Files,
        Capability::Containers,
        Capability::Images,
        Capability::Snapshot,
        Capability::Pause,
        Capability::Connect,
        Capability::List,
        Capability::Sweep,
        Capability::Logs,
        Capability::Stats,
        Capability::Network,
        Capability::Services,
        Capability::PortForwarding,
        Capability::RuntimeRequirements,
        Capability::SharedStorage,
    ]
    .into();
    assert_eq!(capabilities(&*Scripted::new()), all);
    assert_eq!(
        capabilities(&*Scripted::with(Capabilities::None)),
        CapabilitySet::new()
    );
}

#[test]
fn a_decorator_offers_what_the_inner_provider_offers() {
    for offered in [Capabilities::All, Capabilities::None] {
        let inner = Scripted::with(offered);
        let outer = Traced::new(Arc::clone(&inner) as Arc<dyn SandboxProvider>);
        assert_eq!(capabilities(&outer), capabilities(&*inner));
    }
}

#[test]
fn every_capability_has_words_of_its_own() {
    let all = [
        Capability::Spawn,
        Capability::Endpoint,
        Capability::Inspect,
        Capability::Files,
        Capability::Containers,
        Capability::Images,
        Capability::Snapshot,
        Capability::Pause,
        Capability::Connect,
        Capability::List,
        Capability::Sweep,
        Capability::Logs,
        Capability::Stats,
        Capability::Network,
        Capability::Services,
        Capability::PortForwarding,
        Capability::RuntimeRequirements,
        Capability::SharedStorage,
    ];
    let words: std::collections::HashSet<&str> = all.iter().map(|capability| capability.as_str()).collect();
    assert_eq!(words.len(), all.len());
    assert_eq!(Capability::Endpoint.to_string(), "endpoints");
}
