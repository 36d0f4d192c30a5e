//! Where Compose files come from: the one place that reads, and refuses to read.
//!
//! Everything else works on text. Tests put a folder in memory in place of the disk.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::diagnostic::Sink;
use super::node::Position;
use super::path::YamlPath;
use super::pathtext;

/// A Compose file to load.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// A file, relative to the working folder.
    Path(PathBuf),
    /// Text that is in no file, for example from standard input.
    Text {
        /// What diagnostics call it.
        name: String,
        /// The YAML or JSON text.
        text: String,
    },
}

impl Source {
    /// Names a file.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        Self::Path(path.into())
    }

    /// Takes text.
    pub fn text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Text {
            name: name.into(),
            text: text.into(),
        }
    }
}

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// Anything else: a pipe, a socket, a device. Never read.
    Special,
}

/// The files a project can be read from.
pub trait ProjectFiles: fmt::Debug + Send + Sync {
    /// Tells what a path is; none when there is nothing.
    ///
    /// # Errors
    ///
    /// The path cannot be looked at, for example for lack of permission.
    fn kind(&self, path: &Path) -> io::Result<Option<FileKind>>;

    /// Returns where a path leads when symbolic links are followed.
    ///
    /// # Errors
    ///
    /// There is nothing at the path, or it cannot be looked at.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;

    /// Reads a file, but not more than `limit` bytes and one.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>>;
}

/// The files of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskFiles;

impl ProjectFiles for DiskFiles {
    fn kind(&self, path: &Path) -> io::Result<Option<FileKind>> {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => Ok(Some(FileKind::File)),
            Ok(metadata) if metadata.is_dir() => Ok(Some(FileKind::Folder)),
            Ok(_) => Ok(Some(FileKind::Special)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        std::fs::canonicalize(path)
    }

    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        std::fs::File::open(path)?
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Files that are only in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles(BTreeMap<PathBuf, Vec<u8>>);

impl MemoryFiles {
    /// Makes an empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file by its absolute path.
    pub fn with(mut self, path: impl Into<PathBuf>, text: impl Into<Vec<u8>>) -> Self {
        self.0.insert(path.into(), text.into());
        self
    }
}

impl ProjectFiles for MemoryFiles {
    fn kind(&self, path: &Path) -> io::Result<Option<FileKind>> {
        if self.0.contains_key(path) {
            return Ok(Some(FileKind::File));
        }
        let is_folder = self.0.keys().any(|known| known.starts_with(path));
        Ok(is_folder.then_some(FileKind::Folder))
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(PathBuf::from(pathtext::clean(&path.to_string_lossy())))
    }

    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let bytes = self.0.get(path).ok_or(io::ErrorKind::NotFound)?;
        let end = bytes
            .len()
            .min(usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1));
        Ok(bytes[..end].to_vec())
    }
}

/// What a project may read outside of its folders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutsidePaths {
    /// Nothing: `include`, `extends`, `env_file` and `label_file` stay in the project.
    #[default]
    Refuse,
    /// Anything, as docker compose does.
    Allow,
}

/// The largest file that is read, in bytes.
pub const LARGEST_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// The most bytes of one project.
const MOST_BYTES: u64 = 32 * 1024 * 1024;
/// The most files of one project.
const MOST_FILES: usize = 1_000;

/// Reads files for one load, within its bounds.
pub(crate) struct Reader<'a> {
    files: &'a dyn ProjectFiles,
    outside: OutsidePaths,
    /// The folders files may be read from, as written and with links followed.
    roots: Vec<String>,
    names: Vec<PathBuf>,
    bytes: u64,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(files: &'a dyn ProjectFiles, outside: OutsidePaths) -> Self {
        Self {
            files,
            outside,
            roots: Vec::new(),
            names: Vec::new(),
            bytes: 0,
        }
    }

    /// Allows reading below a folder.
    pub(crate) fn allow(&mut self, folder: &str) {
        self.roots.push(pathtext::clean(folder));
        if let Ok(real) = self.files.canonical(Path::new(folder)) {
            self.roots.push(real.to_string_lossy().into_owned());
        }
    }

    /// Gives a text a file number for positions.
    pub(crate) fn register(&mut self, name: &str) -> u16 {
        self.names.push(PathBuf::from(name));
        u16::try_from(self.names.len()).unwrap_or(u16::MAX)
    }

    /// Returns the names of all files, by their number less one.
    pub(crate) fn names(&self) -> &[PathBuf] {
        &self.names
    }

    /// Tells whether there is a regular file.
    pub(crate) fn is_file(&self, path: &str) -> bool {
        matches!(self.files.kind(Path::new(path)), Ok(Some(FileKind::File)))
    }

    /// Tells whether there is anything.
    pub(crate) fn exists(&self, path: &str) -> bool {
        !matches!(self.files.kind(Path::new(path)), Ok(None))
    }

    /// Reads a file the caller named, which may be anywhere.
    pub(crate) fn read_named(&mut self, path: &str) -> Result<String, String> {
        let path = Path::new(path);
        match self.files.kind(path) {
            Ok(Some(FileKind::File)) => {}
            Ok(Some(FileKind::Folder)) => return Err(format!("{} is a folder", path.display())),
            Ok(Some(FileKind::Special)) => {
                return Err(format!("{} is no regular file", path.display()));
            }
            Ok(None) => return Err(format!("{} not found: no such file", path.display())),
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        }
        if self.names.len() >= MOST_FILES {
            return Err(format!("the project has more than {MOST_FILES} files"));
        }
        let bytes = self
            .files
            .read(path, LARGEST_FILE_BYTES)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        self.count(bytes.len(), &path.display().to_string())?;
        String::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8 text", path.display()))
    }

    /// Counts text against the bounds.
    pub(crate) fn count(&mut self, length: usize, name: &str) -> Result<(), String> {
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(length);
        if length > LARGEST_FILE_BYTES {
            return Err(format!("{name} is larger than {LARGEST_FILE_BYTES} bytes"));
        }
        if self.bytes > MOST_BYTES {
            return Err(format!(
                "the files of the project are larger than {MOST_BYTES} bytes together"
            ));
        }
        Ok(())
    }

    /// Reads a file that a Compose file names; what is wrong is said at `at`.
    pub(crate) fn read_within(
        &mut self,
        path: &str,
        at: Position,
        place: &YamlPath,
        sink: &mut Sink,
    ) -> Option<String> {
        if !self.is_within(path) {
            let message = format!("{path} is outside of the project");
            sink.error_with_hint(
                at,
                place,
                message,
                "move it into the project, or allow paths outside",
            );
            return None;
        }
        match self.read_named(path) {
            Ok(text) => Some(text),
            Err(message) => {
                sink.error(at, place, message);
                None
            }
        }
    }

    fn is_within(&self, path: &str) -> bool {
        if self.outside == OutsidePaths::Allow {
            return true;
        }
        let inside = |path: &str| self.roots.iter().any(|root| pathtext::is_within(path, root));
        let real = self.files.canonical(Path::new(path));
        // What does not exist cannot lead elsewhere; its text decides, and reading it then says "not found".
        inside(&pathtext::clean(path)) && real.is_ok_and(|real| inside(&real.to_string_lossy())) || {
            !self.exists(path) && inside(&pathtext::clean(path))
        }
    }
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Reader")
            .field("roots", &self.roots)
            .field("files", &self.names.len())
            .finish_non_exhaustive()
    }
}
