//! What transfers are measured with: files of this machine, and the archives of them for the baseline. Made outside of
//! what is measured; knows no engine.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use gym_sandbox::{Error, ErrorKind, Operation, Result};
use tempfile::TempDir;
use tokio::sync::{Mutex, OnceCell};

/// What is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::cli) enum What {
    /// A file of 1 KiB.
    Kibibyte,
    /// A file of 64 KiB.
    Small,
    /// A file of 1 MiB.
    Mebibyte,
    /// A directory of 5,000 files of 1 KiB in 50 directories.
    Tree,
    /// A file of 256 MiB.
    Large,
}

const TREE_FILES: u16 = 5_000;
const TREE_DIRECTORY_FILES: u16 = 100;
const PIECE_BYTES: usize = 1 << 20;
const LARGE_PIECES: usize = 256;

impl What {
    /// How many bytes all its files have.
    pub(super) const fn bytes(self) -> u64 {
        match self {
            Self::Kibibyte => 1 << 10,
            Self::Small => 1 << 16,
            Self::Mebibyte => 1 << 20,
            Self::Tree => TREE_FILES as u64 * (1 << 10),
            Self::Large => (LARGE_PIECES * PIECE_BYTES) as u64,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Kibibyte => "kibibyte",
            Self::Small => "small",
            Self::Mebibyte => "mebibyte",
            Self::Tree => "tree",
            Self::Large => "large",
        }
    }
}

/// A directory of this machine that is removed with it, and a directory's name in the sandbox.
#[derive(Debug)]
pub(in crate::cli) struct Scratch {
    directory: TempDir,
    made: [OnceCell<()>; 5],
    /// Which containers have what downloads are measured with: each preset has one of its own.
    pub(super) sent: Mutex<HashSet<(String, What)>>,
}

impl Scratch {
    /// Makes an empty one.
    ///
    /// # Errors
    /// This machine has no room for temporary files.
    pub(in crate::cli) async fn new() -> Result<Self> {
        let directory = on_disk(tempfile::tempdir).await?;
        Ok(Self {
            directory,
            made: [const { OnceCell::const_new() }; 5],
            sent: Mutex::default(),
        })
    }

    /// Makes something to copy, once.
    ///
    /// # Errors
    /// This machine has no room for it.
    pub(super) async fn make(&self, what: What) -> Result<()> {
        let making = || {
            let (source, archive) = (self.source(what), self.archive(what));
            on_disk(move || {
                fill(&source, what)?;
                // A directory is packed while it is measured: nobody has its archive ready.
                if what == What::Tree {
                    return Ok(());
                }
                let name = Self::remote("raw", what);
                let mut builder = tar::Builder::new(io::BufWriter::new(File::create(archive)?));
                builder.append_path_with_name(source, name.trim_start_matches('/'))?;
                builder.into_inner()?.flush()
            })
        };
        self.made[what as usize].get_or_try_init(making).await.map(drop)
    }

    /// Writes a small file, and gives its folder.
    ///
    /// # Errors
    /// This machine has no room for it.
    pub(super) async fn file(&self, name: &str, text: String) -> Result<PathBuf> {
        let folder = self.directory.path().to_owned();
        let path = folder.join(name);
        on_disk(move || fs::write(path, text)).await?;
        Ok(folder)
    }

    /// Where it is on this machine.
    pub(super) fn source(&self, what: What) -> PathBuf {
        self.directory.path().join(what.name())
    }

    /// Where its archive is on this machine, under the names that the baseline uses in the sandbox.
    pub(super) fn archive(&self, what: What) -> PathBuf {
        self.directory.path().join(what.name()).with_extension("tar")
    }

    /// Where a method downloads to.
    pub(super) fn target(&self, method: &str) -> PathBuf {
        self.directory.path().join(format!("down-{method}"))
    }

    /// Where a method has its own copy in the sandbox.
    pub(super) fn remote(method: &str, what: What) -> String {
        format!("/bench-{method}-{}", what.name())
    }
}

/// Does something with files of this machine on a thread that may block.
pub(super) async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T> {
    let failed = |kind| Error::new(kind, Operation::Files, "a file to measure with could not be used");
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| failed(ErrorKind::Io).with_source(error)),
        Err(error) => Err(failed(ErrorKind::Internal).with_source(error)),
    }
}

/// The archive of a directory, as a program makes it that calls the engine itself.
pub(super) fn packed(source: &Path, name: &str) -> io::Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    builder.append_dir_all(name.trim_start_matches('/'), source)?;
    builder.into_inner()
}

/// Unpacks it, without the name of its directory.
pub(super) fn unpack(archive: impl Read, target: &Path) -> io::Result<()> {
    tar::Archive::new(archive).unpack(target)
}

/// Removes what is there.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn fill(path: &Path, what: What) -> io::Result<()> {
    match what {
        What::Kibibyte => fs::write(path, content(1 << 10)),
        What::Small => fs::write(path, content(1 << 16)),
        What::Mebibyte => fs::write(path, content(PIECE_BYTES)),
        What::Tree => (0..TREE_FILES).try_for_each(|index| {
            let directory = path.join(format!("directory-{}", index / TREE_DIRECTORY_FILES));
            if index % TREE_DIRECTORY_FILES == 0 {
                fs::create_dir_all(&directory)?;
            }
            fs::write(directory.join(format!("file-{index}")), content(1 << 10))
        }),
        What::Large => {
            let mut file = File::create(path)?;
            let piece = content(PIECE_BYTES);
            (0..LARGE_PIECES).try_for_each(|_| file.write_all(&piece))
        }
    }
}

/// Bytes that are no zeros: those may be left out as holes.
fn content(length: usize) -> Vec<u8> {
    (1..=251).cycle().take(length).collect()
}
