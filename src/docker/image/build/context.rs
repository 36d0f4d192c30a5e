//! Reads what a build is sent: the Dockerfile, the `.dockerignore` and which files of the context. Blocks; for a thread
//! that may.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Operation, PathProblem, Result};
use crate::spec::{BuildSpec, Dockerfile};

use super::super::super::archive::{Choice, Context, Selection};
use super::super::file::read_small;
use super::ignore::{Ignore, Verdict, clean};

/// The longest Dockerfile and `.dockerignore` that are read.
const MAX_BYTES: u64 = 4 << 20;

const IGNORE_FILE: &str = ".dockerignore";

/// What a build sends.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The Dockerfile's path in the context.
    pub(super) dockerfile: String,
    pub(super) text: String,
    pub(super) context: Context,
}

/// What of a context is sent.
struct Chosen {
    ignore: Ignore,
    /// A file that is sent in another form.
    replaced: Option<&'static str>,
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chosen")
    }
}

impl Selection for Chosen {
    fn choose(&self, name: &[u8], is_directory: bool) -> Choice {
        let name = String::from_utf8_lossy(name);
        if self.replaced == Some(&*name) {
            return Choice::LeaveOut;
        }
        match self.ignore.verdict(&name, is_directory) {
            Verdict::Sent => Choice::Pack,
            Verdict::LeftOut => Choice::LeaveOut,
            Verdict::LookedInto => Choice::LookInside,
        }
    }
}

/// Reads the files and decides what is sent.
///
/// # Errors
/// A path that can't be used, named; a `.dockerignore` with a pattern that is none.
pub(super) fn prepare(spec: &BuildSpec) -> Result<Prepared> {
    if let Some(folder) = &spec.context {
        let metadata = std::fs::metadata(folder).map_err(|error| unreadable(folder, error))?;
        if !metadata.is_dir() {
            return Err(Error::new(
                ErrorKind::Path(PathProblem::NotADirectory),
                Operation::Build,
                format!("the context `{}` is not a directory", folder.display()),
            ));
        }
    }
    let ignore_path = spec.context.as_deref().map(|folder| folder.join(IGNORE_FILE));
    let ignore_text = match &ignore_path {
        Some(path) => read_optional(path)?,
        None => None,
    };
    let mut ignore = Ignore::parse(ignore_text.as_deref().unwrap_or_default()).map_err(|problem| {
        Error::invalid(
            Operation::Build,
            format!("`{IGNORE_FILE}` of the context, {problem}"),
        )
    })?;
    let (inline, name) = match &spec.dockerfile {
        Dockerfile::Inline(text) => (Some(text.clone()), None),
        Dockerfile::Path(path) => match in_context(spec.context.as_deref(), path) {
            Place::Inside(name) => (None, Some(name)),
            Place::Outside(path) => (Some(read(&path)?), None),
            Place::Nowhere => {
                return Err(Error::invalid(
                    Operation::Build,
                    format!("the Dockerfile `{}` is in no context", path.escape_debug()),
                )
                .with_hint("name the context, or give the Dockerfile as text"));
            }
        },
    };
    if let Some(text) = inline {
        return Ok(beside(spec.context.clone(), ignore, ignore_text, text));
    }
    let name = name.unwrap_or_default();
    let folder = spec.context.clone().unwrap_or_default();
    let text = read(&folder.join(&name))?;
    ignore.always_send(&name);
    ignore.always_send(IGNORE_FILE);
    Ok(Prepared {
        dockerfile: name,
        text,
        context: Context {
            source: Some(folder),
            selection: Box::new(Chosen {
                ignore,
                replaced: None,
            }),
            files: Vec::new(),
        },
    })
}

/// A Dockerfile that is no file of the context is sent under a name of its own, which the ignore file leaves out again:
/// `COPY . .` does not copy it.
fn beside(source: Option<PathBuf>, ignore: Ignore, ignore_text: Option<String>, text: String) -> Prepared {
    let name = format!(".dockerfile.{}", uuid::Uuid::new_v4().simple());
    let mut lines = match ignore_text {
        Some(text) => text,
        // It would be copied, and the context has none.
        None => IGNORE_FILE.to_owned(),
    };
    lines.push('\n');
    lines.push_str(&name);
    lines.push('\n');
    Prepared {
        dockerfile: name.clone(),
        context: Context {
            source,
            selection: Box::new(Chosen {
                ignore,
                replaced: Some(IGNORE_FILE),
            }),
            files: vec![
                (name, text.clone().into_bytes()),
                (IGNORE_FILE.to_owned(), lines.into_bytes()),
            ],
        },
        text,
    }
}

enum Place {
    Inside(String),
    Outside(PathBuf),
    Nowhere,
}

fn in_context(context: Option<&Path>, path: &str) -> Place {
    let Some(folder) = context else {
        return if path.starts_with('/') {
            Place::Outside(path.into())
        } else {
            Place::Nowhere
        };
    };
    if path.starts_with('/') {
        return match Path::new(path).strip_prefix(folder) {
            Ok(inside) => Place::Inside(clean(&inside.to_string_lossy())),
            Err(_) => Place::Outside(path.into()),
        };
    }
    let name = clean(path);
    if name == ".." || name.starts_with("../") {
        Place::Outside(folder.join(path))
    } else {
        Place::Inside(name)
    }
}

fn read(path: &Path) -> Result<String> {
    read_optional(path)?.ok_or_else(|| {
        unreadable(path, std::io::Error::from(std::io::ErrorKind::NotFound))
            .with_hint("name the Dockerfile by its path in the context")
    })
}

/// None: there is no such file.
fn read_optional(path: &Path) -> Result<Option<String>> {
    let read = read_small(path, MAX_BYTES + 1).map_err(|error| unreadable(path, error))?;
    let Some(bytes) = read else { return Ok(None) };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Error::new(
            ErrorKind::Path(PathProblem::TooLarge),
            Operation::Build,
            format!("`{}` is over {} MiB", path.display(), MAX_BYTES >> 20),
        ));
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn unreadable(path: &Path, error: std::io::Error) -> Error {
    super::super::super::archive::local_error(Operation::Build, path, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    /// The names in the stream that is sent.
    async fn sent(prepared: Prepared) -> Vec<String> {
        let (mut receiver, packing) = prepared.context.send();
        let mut bytes = Vec::new();
        while let Some(chunk) = receiver.recv().await {
            bytes.extend_from_slice(&chunk.unwrap());
        }
        packing.await.unwrap().unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let names = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().to_string_lossy().into_owned());
        names.collect()
    }

    #[tokio::test]
    async fn what_is_ignored_is_not_sent_but_the_dockerfile_is() {
        let folder = context(&[
            (".dockerignore", "**\n!src\nsrc/*.o\n"),
            ("Dockerfile", "FROM a"),
            ("src/a.c", ""),
            ("src/a.o", ""),
            (".git/HEAD", ""),
        ]);
        let prepared = prepare(&BuildSpec::new(folder.path())).unwrap();
        assert_eq!(
            (prepared.dockerfile.as_str(), prepared.text.as_str()),
            ("Dockerfile", "FROM a")
        );
        assert_eq!(
            sent(prepared).await,
            [".dockerignore", "Dockerfile", "src", "src/a.c"]
        );
    }

    #[tokio::test]
    async fn a_dockerfile_that_is_no_file_of_the_context_is_sent_beside_it() {
        let folder = context(&[
            ("c/.dockerignore", "b\n"),
            ("c/a", ""),
            ("c/b", ""),
            ("other", "FROM b"),
        ]);
        let inside = folder.path().join("c");
        for spec in [
            BuildSpec::new(&inside).with_inline_dockerfile("FROM b"),
            BuildSpec::new(&inside).with_dockerfile("../other"),
        ] {
            let prepared = prepare(&spec).unwrap();
            assert_eq!(prepared.text, "FROM b");
            let name = prepared.dockerfile.clone();
            let ignored = String::from_utf8(prepared.context.files[1].1.clone()).unwrap();
            assert_eq!(ignored, format!("b\n\n{name}\n"));
            assert_eq!(sent(prepared).await, [name.as_str(), ".dockerignore", "a"]);
        }
        let prepared = prepare(&BuildSpec::inline("FROM c")).unwrap();
        assert_eq!(sent(prepared).await.len(), 2);
    }

    #[test]
    fn what_can_not_be_read_is_named() {
        let folder = context(&[(".dockerignore", "[")]);
        let missing = folder.path().join("missing");
        for (spec, part) in [
            (BuildSpec::new(&missing), "missing"),
            (
                BuildSpec::new(folder.path().join(".dockerignore")),
                "not a directory",
            ),
            (BuildSpec::new(folder.path()), "line 1"),
            (BuildSpec::default(), "in no context"),
        ] {
            let error = prepare(&spec).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
        std::fs::remove_file(folder.path().join(".dockerignore")).unwrap();
        let error = prepare(&BuildSpec::new(folder.path())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Path(PathProblem::NotFound));
        assert!(error.to_string().contains("Dockerfile"), "{error}");
    }
}
