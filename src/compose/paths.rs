//! Makes the relative file paths of a tree absolute. Text only; nothing is looked up on disk.

use super::diagnostic::Sink;
use super::node::{Node, Value};
use super::path::{Pattern, YamlPath, lookup};
use super::pathtext;

/// What relative paths are relative to, and what `~` stands for.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    pub(crate) folder: String,
    pub(crate) home: Option<String>,
}

/// Makes every path of the table absolute.
pub(crate) fn resolve(root: &mut Node, base: &Base, sink: &mut Sink) {
    Walk {
        base,
        sink,
        path: YamlPath::new(),
    }
    .node(root);
}

/// What kind of path a key holds.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A folder, or a URL or another service.
    Context,
    /// A file or folder.
    Plain,
    /// A file or folder that may be a Windows path.
    MaybeWindows,
    /// A mount; only the source of a bind is a path.
    Mount,
    /// A volume; only the device of a local bind is a path.
    Volume,
}

static PATHS: &[(Pattern, Kind)] = &[
    (&["services", "*", "build", "context"], Kind::Context),
    (
        &["services", "*", "build", "additional_contexts", "*"],
        Kind::Context,
    ),
    (&["services", "*", "build", "ssh", "*"], Kind::MaybeWindows),
    (&["services", "*", "env_file", "*", "path"], Kind::Plain),
    (&["services", "*", "label_file", "*"], Kind::Plain),
    (&["services", "*", "extends", "file"], Kind::Plain),
    (&["services", "*", "develop", "watch", "*", "path"], Kind::Plain),
    (&["services", "*", "volumes", "*"], Kind::Mount),
    (&["configs", "*", "file"], Kind::MaybeWindows),
    (&["secrets", "*", "file"], Kind::MaybeWindows),
    (&["volumes", "*"], Kind::Volume),
];

struct Walk<'a> {
    base: &'a Base,
    sink: &'a mut Sink,
    path: YamlPath,
}

impl Walk<'_> {
    fn node(&mut self, node: &mut Node) {
        if let Some(kind) = lookup(PATHS, &self.path) {
            self.resolve(*kind, node);
            return;
        }
        match &mut node.value {
            Value::Map(map) => {
                for (key, child) in map.iter_mut() {
                    self.path.push_key(key);
                    self.node(child);
                    self.path.pop();
                }
            }
            Value::Seq(items) => {
                for (index, child) in items.iter_mut().enumerate() {
                    self.path.push_index(index);
                    self.node(child);
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    fn resolve(&mut self, kind: Kind, node: &mut Node) {
        match kind {
            Kind::Mount => {
                if node.get("type").and_then(Node::as_str) != Some("bind") {
                    return;
                }
                let at = node.key_at;
                let Some(map) = node.as_map_mut() else { return };
                if let Some(source) = map.get_mut("source") {
                    self.text(Kind::MaybeWindows, source);
                } else {
                    let message = "invalid mount config for type \"bind\": field Source must not be empty";
                    self.sink.error(at, &self.path, message);
                }
            }
            Kind::Volume => {
                let is_local = node.get("driver").and_then(Node::as_str) == Some("local");
                let options = node.as_map_mut().and_then(|map| map.get_mut("driver_opts"));
                if let Some(options) = options.filter(|_| is_local)
                    && options.get("o").and_then(Node::as_str) == Some("bind")
                    && let Some(device) = options.as_map_mut().and_then(|map| map.get_mut("device"))
                {
                    self.text(Kind::MaybeWindows, device);
                }
            }
            kind => self.text(kind, node),
        }
    }

    fn text(&mut self, kind: Kind, node: &mut Node) {
        let Value::Str(text) = &mut node.value else {
            return;
        };
        let stays = match kind {
            Kind::Context => is_remote(text),
            Kind::MaybeWindows => pathtext::is_windows_absolute(text),
            Kind::Plain => text.is_empty(),
            Kind::Mount | Kind::Volume => true,
        };
        if stays {
            return;
        }
        let mut expanded = std::mem::take(text);
        if let Some(rest) = expanded.strip_prefix('~') {
            if let Some(home) = &self.base.home {
                expanded = pathtext::join(home, rest);
            } else {
                let hint = "write the path in full, or give the loader a home folder";
                self.sink.warning(
                    node.at,
                    &self.path,
                    "cannot expand `~`: no home folder is known",
                    hint,
                );
            }
        }
        let empty_context = matches!(kind, Kind::Context) && expanded.is_empty();
        *text = if empty_context {
            expanded
        } else {
            pathtext::absolute(&self.base.folder, &expanded)
        };
    }
}

/// Tells whether a build context is no local folder.
pub(crate) fn is_remote(context: &str) -> bool {
    const PREFIXES: &[&str] = &[
        "https://",
        "http://",
        "git://",
        "ssh://",
        "github.com/",
        "git@",
        "service:",
    ];
    context.contains("://") || PREFIXES.iter().any(|prefix| context.starts_with(prefix))
}
