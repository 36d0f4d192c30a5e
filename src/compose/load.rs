//! The loader: takes files through all stages, in compose-go's order, to a typed project.
//!
//! Each stage is a file of its own; here is only who comes when, and what is done per file and what per project.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::canonical::{self, Variables};
use super::diagnostic::{Diagnostics, Sink};
use super::extends::BaseFile;
use super::model::Project;
use super::node::{Node, Position, Value};
use super::options::{Interpolation, LoadOptions};
use super::path::YamlPath;
use super::source::{DiskFiles, ProjectFiles, Reader};
use super::yaml::{Budget, Document};
use super::{
    consistency, defaults, envfile, include, interpolate, merge, names, normalize, paths, profile, schema,
    trap, unicity, yaml,
};

/// Loads a Compose project.
///
/// # Examples
///
/// ```
/// use gym_sandbox::compose::{ComposeLoader, LoadOptions, Source};
///
/// let text = "services: {web: {image: nginx, ports: ['80']}}";
/// let options = LoadOptions::new().with_file(Source::text("compose.yaml", text)).with_project_name("demo");
/// let loaded = ComposeLoader::new(options).load()?;
/// assert_eq!(loaded.project.services["web"].ports[0].target, 80);
/// # Ok::<(), gym_sandbox::compose::Diagnostics>(())
/// ```
#[derive(Clone, Debug)]
pub struct ComposeLoader {
    options: LoadOptions,
    files: Arc<dyn ProjectFiles>,
}

/// A loaded project and what there is to say about it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// The project.
    pub project: Project,
    /// What its author probably did not mean.
    pub warnings: Diagnostics,
}

impl ComposeLoader {
    /// Makes a loader that reads files of this machine.
    pub fn new(options: LoadOptions) -> Self {
        Self {
            options,
            files: Arc::new(DiskFiles),
        }
    }

    /// Makes a loader that reads other files, for example [`super::MemoryFiles`].
    pub fn with_files(options: LoadOptions, files: impl ProjectFiles + 'static) -> Self {
        Self {
            options,
            files: Arc::new(files),
        }
    }

    /// Returns the options.
    pub fn options(&self) -> &LoadOptions {
        &self.options
    }

    /// Loads the project: reads files and nothing else, blocks while it reads, and takes bounded time and memory.
    ///
    /// # Errors
    ///
    /// All mistakes of all files, in file order.
    pub fn load(&self) -> Result<Loaded, Diagnostics> {
        let mut load = Load::new(&self.options, self.files.as_ref());
        let project = load
            .model()
            .and_then(|(model, place)| load.project(&model, place));
        let (errors, warnings) = load.sink.finish(load.reader.names());
        match project {
            Some(project) if errors.is_empty() => Ok(Loaded { project, warnings }),
            _ => Err(errors),
        }
    }

    /// Loads the merged tree without making it typed; with variables kept there is nothing more to have.
    ///
    /// # Errors
    ///
    /// As [`Self::load`].
    pub(crate) fn load_tree(&self) -> Result<(Node, Diagnostics), Diagnostics> {
        let mut load = Load::new(&self.options, self.files.as_ref());
        let model = load.model();
        let (errors, warnings) = load.sink.finish(load.reader.names());
        match model {
            Some((model, _)) if errors.is_empty() => Ok((model, warnings)),
            _ => Err(errors),
        }
    }
}

/// Variables by name.
pub(crate) type Environment = BTreeMap<String, String>;

/// One load.
pub(crate) struct Load<'a> {
    pub(crate) options: &'a LoadOptions,
    pub(crate) reader: Reader<'a>,
    pub(crate) sink: Sink,
    pub(crate) budget: Budget,
    pub(crate) traps: trap::Policy,
    pub(crate) home: Option<String>,
    /// Files that were extended, by path, so that a file many services extend is read once.
    pub(crate) bases: HashMap<String, Option<BaseFile>>,
    interpolate: bool,
}

/// A file that was read and parsed.
#[derive(Debug)]
pub(crate) struct ParsedFile {
    pub(crate) path: String,
    pub(crate) documents: Vec<Document>,
}

/// Where a group of files stands: what relative paths and variables mean in it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) folder: String,
    pub(crate) environment: Environment,
    /// The files that include this one, outermost first, to find cycles.
    pub(crate) ancestors: Vec<String>,
}

impl<'a> Load<'a> {
    fn new(options: &'a LoadOptions, files: &'a dyn ProjectFiles) -> Self {
        let home = options.home.clone().or_else(std::env::home_dir);
        Self {
            options,
            reader: Reader::new(files, options.outside_paths),
            sink: Sink::default(),
            budget: Budget::default(),
            traps: trap::Policy {
                strictness: options.strictness,
            },
            home: home.map(|home| home.to_string_lossy().into_owned()),
            bases: HashMap::new(),
            interpolate: options.interpolation == Interpolation::Apply,
        }
    }

    /// Loads the merged, normalized tree of the project.
    fn model(&mut self) -> Option<(Node, Place)> {
        let start = names::find_start(self)?;
        let errors = self.sink.error_count();
        let files: Vec<ParsedFile> = start
            .files
            .iter()
            .filter_map(|file| self.parse_named(file))
            .collect();
        if self.sink.error_count() > errors {
            return None;
        }
        let name = names::project_name(self, &start, &files);
        let mut environment = start.environment;
        environment.insert(
            names::PROJECT_NAME_VARIABLE.to_owned(),
            name.clone().unwrap_or_default(),
        );
        let place = Place {
            folder: start.folder,
            environment,
            ancestors: Vec::new(),
        };
        let mut root = self.group(files, &place);
        if root.as_map().is_none_or(super::node::Map::is_empty) && !self.sink.has_errors() {
            self.sink
                .error(Position::default(), &YamlPath::new(), "empty compose file");
        }
        if let Some(name) = name {
            normalize::normalize(&mut root, &name, &place.environment);
        }
        Some((root, place))
    }

    /// Makes the tree a typed project and checks it.
    fn project(&mut self, model: &Node, place: Place) -> Option<Project> {
        let mut project = names::decode_project(self, model, place);
        profile::apply(&mut project, &self.options.profiles);
        consistency::check(&mut project, model, &mut self.sink);
        envfile::apply(self, &mut project, model);
        (!self.sink.has_errors()).then_some(project)
    }

    fn parse_named(&mut self, file: &names::NamedFile) -> Option<ParsedFile> {
        let text = match &file.text {
            Some(text) => self.reader.count(text.len(), &file.path).map(|()| text.clone()),
            None => self.reader.read_named(&file.path),
        };
        let number = self.reader.register(&file.path);
        match text {
            Ok(text) => Some(self.parse(&file.path, &text, number)),
            Err(message) => {
                // The message names the file itself.
                self.sink.error(Position::default(), &YamlPath::new(), message);
                None
            }
        }
    }

    /// Reads and parses a file that another file names.
    pub(crate) fn parse_within(&mut self, path: &str, at: Position, place: &YamlPath) -> Option<ParsedFile> {
        let text = self.reader.read_within(path, at, place, &mut self.sink)?;
        let number = self.reader.register(path);
        let errors = self.sink.error_count();
        let parsed = self.parse(path, &text, number);
        (self.sink.error_count() == errors).then_some(parsed)
    }

    fn parse(&mut self, path: &str, text: &str, number: u16) -> ParsedFile {
        let documents = yaml::parse(text, number, &mut self.budget, &mut self.sink);
        ParsedFile {
            path: path.to_owned(),
            documents,
        }
    }

    /// Loads files that go over one another: those of the project, or those of one include.
    pub(crate) fn group(&mut self, files: Vec<ParsedFile>, place: &Place) -> Node {
        let mut root = Node::map(super::node::Map::new(), Position::default());
        for file in files {
            let mut place = place.clone();
            place.ancestors.push(file.path.clone());
            for document in file.documents {
                self.document(&mut root, document, &place);
            }
        }
        defaults::set_defaults(&mut root);
        defaults::check(&mut root, &mut self.sink);
        let base = paths::Base {
            folder: place.folder.clone(),
            home: self.home.clone(),
        };
        paths::resolve(&mut root, &base, &mut self.sink);
        normalize::resolve_environment(&mut root, &place.environment);
        root
    }

    /// Puts one document over what was loaded before.
    fn document(&mut self, root: &mut Node, document: Document, place: &Place) {
        let Some(mut over) = self.prepare(document.root, place) else {
            return;
        };
        super::extends::apply(self, &mut over, place, &document.resets);
        for path in &document.resets {
            root.remove(path.segments());
        }
        include::apply(self, &mut over, place);
        if root.at.line == 0 {
            root.at = over.at;
        }
        merge::merge_files(root, over, &mut self.sink);
        unicity::enforce(root, self.traps, &mut self.sink);
        schema::validate(root, &mut self.sink);
        if let Some(version) = root.as_map_mut().and_then(|map| map.shift_remove("version")) {
            let message = "the attribute `version` is obsolete, it will be ignored";
            self.sink.warning(
                version.key_at,
                &YamlPath::of_keys(["version"]),
                message,
                "remove it",
            );
        }
        self.canonicalize(root);
    }

    /// Interpolates a document, if it is a mapping at all.
    pub(crate) fn prepare(&mut self, mut root: Node, place: &Place) -> Option<Node> {
        if !matches!(root.value, Value::Map(_)) {
            self.sink
                .error(root.at, &YamlPath::new(), "top-level object must be a mapping");
            return None;
        }
        if self.interpolate {
            let variables = |name: &str| place.environment.get(name).cloned();
            interpolate::interpolate(&mut root, &variables, &mut self.sink);
        }
        Some(root)
    }

    pub(crate) fn canonicalize(&mut self, root: &mut Node) {
        let variables = if self.interpolate {
            Variables::Replaced
        } else {
            Variables::Kept
        };
        canonical::canonicalize(root, variables, self.traps, &mut self.budget, &mut self.sink);
        // Long forms can show duplicates that short ones hid.
        unicity::enforce(root, self.traps, &mut self.sink);
    }
}
