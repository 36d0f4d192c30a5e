//! `extends`: a service over the one it extends, in the same file or another.
//!
//! The base of another file has its paths made absolute first, so that they mean what they mean there.

use std::cell::RefCell;
use std::rc::Rc;

use super::load::{Load, Place};
use super::merge;
use super::node::{Map, Node, Position, Value};
use super::path::YamlPath;
use super::{paths, pathtext, unicity};

/// The services of a file that is extended, shared so that what one service resolves serves the next.
#[derive(Clone, Debug)]
pub(crate) struct BaseFile {
    services: Services,
    resets: Rc<[YamlPath]>,
}

type Services = Rc<RefCell<Map>>;

/// The longest chain of services that extend one another.
const LONGEST_CHAIN: usize = 64;

/// Replaces every service that extends another by what both say.
pub(crate) fn apply(load: &mut Load<'_>, root: &mut Node, place: &Place, resets: &[YamlPath]) {
    let Some(services) = root.as_map_mut().and_then(|map| map.get_mut("services")) else {
        return;
    };
    let Some(map) = services.as_map_mut() else {
        return;
    };
    let extending: Vec<String> = map
        .iter()
        .filter(|(_, service)| service.get("extends").is_some())
        .map(|(name, _)| name.clone())
        .collect();
    if extending.is_empty() {
        return;
    }
    let shared = Rc::new(RefCell::new(std::mem::take(map)));
    let file = place.ancestors.last().cloned().unwrap_or_default();
    let mut work = Work {
        load,
        place,
        chain: Vec::new(),
    };
    for name in extending {
        work.chain.clear();
        work.resolve(&name, &shared, &file, resets);
    }
    *map = shared.take();
}

struct Work<'a, 'b> {
    load: &'a mut Load<'b>,
    place: &'a Place,
    /// The services being resolved: file and name.
    chain: Vec<(String, String)>,
}

impl Work<'_, '_> {
    /// Resolves one service in place; what it extends is resolved first.
    fn resolve(&mut self, name: &str, services: &Services, file: &str, resets: &[YamlPath]) {
        let Some(extends) = services
            .borrow()
            .get(name)
            .and_then(|service| service.get("extends").cloned())
        else {
            return;
        };
        let place = YamlPath::of_keys(["services", name, "extends"]);
        let at = extends.key_at;
        let link = (file.to_owned(), name.to_owned());
        if self.chain.contains(&link) || self.chain.len() >= LONGEST_CHAIN {
            let mut chain: Vec<_> = self.chain.iter().map(|(_, name)| name.as_str()).collect();
            chain.push(name);
            self.load.sink.error(
                at,
                &place,
                format!("circular reference: {} extend one another", chain.join(" -> ")),
            );
            for (_, name) in &self.chain {
                self.load
                    .sink
                    .poison(&YamlPath::of_keys(["services", name.as_str()]));
            }
            drop_extends(services, name);
            return;
        }
        self.chain.push(link);
        let merged = self.merged(name, &extends, services, file, resets, &place);
        self.chain.pop();
        match merged {
            Some(merged) => {
                services.borrow_mut().insert(name.to_owned(), merged);
            }
            // The mistake is said; without the key no later stage meets it again.
            None if self.load.sink.is_poisoned(&place) => drop_extends(services, name),
            None => {}
        }
    }

    fn merged(
        &mut self,
        name: &str,
        extends: &Node,
        services: &Services,
        file: &str,
        resets: &[YamlPath],
        place: &YamlPath,
    ) -> Option<Node> {
        let (base_name, base_path) = self.target(name, extends, place)?;
        let (base_services, base_file, base_resets) = match base_path {
            Some(path) => {
                let base = self.base_file(&path, extends.at, place)?;
                (base.services, path, base.resets)
            }
            None => (services.clone(), file.to_owned(), Rc::from(Vec::new())),
        };
        if !base_services.borrow().contains_key(&base_name) {
            let message =
                format!("cannot extend service \"{name}\": service \"{base_name}\" not found in {base_file}");
            self.load.sink.error(extends.key_at, place, message);
            return None;
        }
        self.resolve(&base_name, &base_services, &base_file, &base_resets);
        let mut base = self.copy(&base_services, &base_name, extends.key_at, place)?;
        for path in resets {
            if path.key_at(0) == Some("services") && path.key_at(1) == Some(name) {
                base.remove(&path.segments()[2..]);
            }
        }
        let mut service = services.borrow().get(name)?.clone();
        if let Some(map) = service.as_map_mut() {
            map.shift_remove("extends");
        }
        let key_at = service.key_at;
        merge::merge_service(&mut base, service, name, &mut self.load.sink);
        if let Some(map) = base.as_map_mut() {
            map.shift_remove("extends");
        }
        base.key_at = key_at;
        Some(base)
    }

    /// Copies a base, within the budget; an empty one has nothing to give.
    fn copy(&mut self, services: &Services, name: &str, at: Position, place: &YamlPath) -> Option<Node> {
        let services = services.borrow();
        let base = services.get(name).filter(|base| !base.is_null())?;
        if base.as_map().is_none() {
            self.load.sink.error(
                base.at,
                &YamlPath::of_keys(["services", name]),
                "must be a mapping",
            );
            return None;
        }
        let size = count(base);
        if let Some(rest) = self.load.budget.copied_nodes.checked_sub(size) {
            self.load.budget.copied_nodes = rest;
        } else {
            self.load
                .sink
                .error(at, place, "`extends` copies too many values");
            return None;
        }
        Some(base.clone())
    }

    /// Reads what `extends` says: the service, and the file when it is another.
    fn target(&mut self, name: &str, extends: &Node, place: &YamlPath) -> Option<(String, Option<String>)> {
        if let Some(service) = extends.as_str() {
            return Some((service.to_owned(), None));
        }
        let Some(service) = extends.get("service").and_then(Node::as_str) else {
            self.load.sink.error(
                extends.key_at,
                place,
                format!("extends.{name}.service is required"),
            );
            return None;
        };
        let file = match extends.get("file").filter(|file| !file.is_null()) {
            None => None,
            Some(file) => match &file.value {
                Value::Str(path) if paths::is_remote(path) || path.starts_with("oci:") => {
                    let place = place.key("file");
                    self.load
                        .sink
                        .error(file.at, &place, "remote files cannot be extended");
                    return None;
                }
                Value::Str(path) => Some(pathtext::absolute(&self.place.folder, path)),
                _ => {
                    self.load
                        .sink
                        .error(file.at, &place.key("file"), "must be a string");
                    return None;
                }
            },
        };
        Some((service.to_owned(), file))
    }

    /// Reads the services of another file, canonical and with absolute paths.
    fn base_file(&mut self, path: &str, at: Position, place: &YamlPath) -> Option<BaseFile> {
        if let Some(known) = self.load.bases.get(path) {
            return known.clone();
        }
        let base = self.read_base(path, at, place);
        self.load.bases.insert(path.to_owned(), base.clone());
        base
    }

    fn read_base(&mut self, path: &str, at: Position, place: &YamlPath) -> Option<BaseFile> {
        let parsed = self.load.parse_within(path, at, place)?;
        let mut root = Node::map(Map::new(), Position::default());
        let mut resets = Vec::new();
        for document in parsed.documents {
            let Some(over) = self.load.prepare(document.root, self.place) else {
                continue;
            };
            for path in &document.resets {
                root.remove(path.segments());
            }
            resets.extend(document.resets);
            merge::merge_files(&mut root, over, &mut self.load.sink);
            unicity::enforce(&mut root, self.load.traps, &mut self.load.sink);
            self.load.canonicalize(&mut root);
        }
        let base = paths::Base {
            folder: pathtext::folder(path),
            home: self.load.home.clone(),
        };
        paths::resolve(&mut root, &base, &mut self.load.sink);
        let services = root
            .as_map_mut()
            .and_then(|map| map.get_mut("services"))
            .and_then(Node::as_map_mut);
        let Some(services) = services else {
            self.load.sink.error(
                at,
                place,
                format!("cannot extend a service of {path}: it has no services section"),
            );
            return None;
        };
        let services = Rc::new(RefCell::new(std::mem::take(services)));
        Some(BaseFile {
            services,
            resets: resets.into(),
        })
    }
}

fn drop_extends(services: &Services, name: &str) {
    if let Some(map) = services.borrow_mut().get_mut(name).and_then(Node::as_map_mut) {
        map.shift_remove("extends");
    }
}

fn count(node: &Node) -> usize {
    1 + match &node.value {
        Value::Map(map) => map.values().map(count).sum(),
        Value::Seq(items) => items.iter().map(count).sum(),
        _ => 0,
    }
}
