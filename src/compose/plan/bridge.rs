//! One bridge for many projects: names that lead to the services of the same project only.
//!
//! On a network that projects share, `db` would be the database of any of them. So there a service is called
//! `SERVICE.PROJECT`, and each container has links that lead from the short names to those: a link is seen by its
//! container alone, and goes before the names of the network.

use super::network::aliases;
use super::{Planner, ProjectNetworks};
use crate::compose::model::Network;
use crate::provider::is_alias;
use crate::spec::container::EndpointSpec;

impl Planner<'_> {
    /// The shared network that stands for a network of the project. None for one that asks for more than a plain bridge.
    pub(super) fn bridge_of(&self, network: &Network) -> Option<&str> {
        let ProjectNetworks::Shared(bridge) = &self.options.networks else {
            return None;
        };
        let is_plain = !network.external
            && !network.internal
            && !network.enable_ipv6.unwrap_or(false)
            && network.enable_ipv4.unwrap_or(true)
            && matches!(network.driver.as_str(), "" | "bridge" | "default")
            && network.driver_opts.is_empty()
            && network.ipam.driver.is_empty()
            && network.ipam.config.is_empty()
            && network.ipam.options.is_empty();
        is_plain.then_some(bridge)
    }

    /// Gives an endpoint in the shared network the names of the project, and links to all services that are in the same
    /// network of the project.
    pub(super) fn scope_names(&self, key: &str, endpoint: &mut EndpointSpec) {
        for alias in &mut endpoint.aliases {
            *alias = self.scoped(alias);
        }
        endpoint.aliases.retain(|alias| is_alias(alias));
        for (name, service) in &self.project.services {
            let Some(settings) = service.networks.get(key) else {
                continue;
            };
            for alias in aliases(self, name, service, settings.as_ref()) {
                let scoped = self.scoped(&alias);
                let link = format!("{scoped}:{alias}");
                if is_alias(&scoped) && !endpoint.links.contains(&link) {
                    endpoint.links.push(link);
                }
            }
        }
    }

    fn scoped(&self, name: &str) -> String {
        format!("{name}.{}", self.project.name)
    }
}

/// Puts two networks of the project that are the same shared one into one endpoint. The first one's settings stay.
pub(super) fn join(known: &mut EndpointSpec, more: EndpointSpec) {
    for alias in more.aliases {
        if !known.aliases.contains(&alias) {
            known.aliases.push(alias);
        }
    }
    for link in more.links {
        if !known.links.contains(&link) {
            known.links.push(link);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::{ComposeLoader, LoadOptions, Plan, PlanOptions, Source};
    use crate::spec::container::NetworkAttachment;

    fn plan(text: &str) -> Plan {
        let options = LoadOptions::new()
            .with_file(Source::text("compose.yaml", text))
            .with_project_name("p");
        let loaded = ComposeLoader::new(options).load().unwrap();
        let options = PlanOptions {
            networks: ProjectNetworks::Shared("all".to_owned()),
            ..PlanOptions::default()
        };
        Plan::new(&loaded.project, &options).unwrap()
    }

    fn endpoints(plan: &Plan, service: &str) -> Vec<EndpointSpec> {
        let service = plan.services.iter().find(|step| step.name == service).unwrap();
        match &service.containers[0].spec.network {
            NetworkAttachment::Networks(endpoints) => endpoints.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn b33_names_on_a_shared_bridge_are_the_projects_own() {
        let plan = plan(
            "
services:
  web: {image: i, container_name: front, networks: {default: {aliases: [www]}}}
  db: {image: i}
",
        );
        assert_eq!(plan.networks.len(), 1);
        assert!(plan.networks[0].external && plan.networks[0].spec.name == "all");
        let web = endpoints(&plan, "web");
        assert_eq!(web.len(), 1);
        assert_eq!(web[0].network, "all");
        assert_eq!(web[0].aliases, ["p-web-1", "web.p", "www.p", "front.p"]);
        let mut links = web[0].links.clone();
        links.sort();
        assert_eq!(links, ["db.p:db", "front.p:front", "web.p:web", "www.p:www"]);
        assert_eq!(endpoints(&plan, "db")[0].aliases, ["p-db-1", "db.p"]);
    }

    #[test]
    fn networks_that_ask_for_more_stay_and_plain_ones_are_one() {
        let plan = plan(
            "
services:
  a: {image: i, networks: [one, two, inside]}
  b: {image: i, networks: [two]}
  c: {image: i, networks: [inside]}
networks:
  one:
  two: {driver: bridge}
  inside: {internal: true}
",
        );
        let names: Vec<(&str, bool)> = plan
            .networks
            .iter()
            .map(|step| (step.spec.name.as_str(), step.external))
            .collect();
        assert_eq!(names, [("p_inside", false), ("all", true)]);
        let of_a = endpoints(&plan, "a");
        let networks: Vec<&str> = of_a.iter().map(|endpoint| endpoint.network.as_str()).collect();
        assert_eq!(networks, ["p_inside", "all"]);
        assert!(of_a[0].links.is_empty() && of_a[0].aliases.contains(&"a".to_owned()));
        assert!(of_a[1].links.contains(&"b.p:b".to_owned()));
        // Who has no network in common has no name for it.
        let of_b = endpoints(&plan, "b");
        assert!(!of_b[0].links.iter().any(|link| link.ends_with(":c")), "{of_b:?}");
    }
}
