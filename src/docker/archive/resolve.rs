//! From a path as it was typed to where it leads in a sandbox, and how that place is reached.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};

use crate::error::{Operation, PathProblem, Result};
use crate::spec::FileKind;

use super::super::{DockerProvider, DockerRaw};
use super::facts::{ContainerFacts, Reach};
use super::path::{RemotePath, absolute};
use super::path_error;
use super::stat::Head;

/// More links than this in a row are a circle.
const LINKS: usize = 40;

/// How many parents of one path are looked at together.
const LOOKS: usize = 8;

/// Whether a link that is the last name of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastLink {
    Follow,
    Keep,
}

/// Where a path leads.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The names of the path, links among its parents resolved. On a live mount only those above it are.
    pub(super) real: Vec<String>,
    /// What is there; None for nothing, and on a live mount, where the engine does not see it.
    pub(super) kind: Option<FileKind>,
    /// How many of the last parents do not exist.
    pub(super) missing_parents: usize,
    /// How many names of the path its mount has.
    pub(super) mount: usize,
    /// How it is reached.
    pub(super) reach: Reach,
    pub(super) facts: Arc<ContainerFacts>,
}

impl Place {
    fn new(
        facts: &Arc<ContainerFacts>,
        real: Vec<String>,
        kind: Option<FileKind>,
        missing_parents: usize,
    ) -> Self {
        let (mount, reach) = facts.mount_of(&real);
        Self {
            real,
            kind,
            missing_parents,
            mount,
            reach,
            facts: Arc::clone(facts),
        }
    }

    pub(super) fn is_live(&self) -> bool {
        matches!(self.reach, Reach::Live | Reach::Kernel)
    }

    /// The absolute path.
    pub(super) fn path(&self) -> String {
        absolute(&self.real)
    }

    /// How many names the path of an archive call has, below which the rest are names in the archive. Full names below
    /// `/` wherever the engine lets it: engines differ in how they follow links below another path (engine-facts S3).
    pub(super) fn base(&self) -> usize {
        if self.facts.root_is_writable() {
            0
        } else {
            self.mount
        }
    }
}

impl DockerProvider {
    /// Finds out where a path leads.
    pub(super) async fn resolve(
        &self,
        raw: &DockerRaw,
        operation: Operation,
        path: &RemotePath,
        last: LastLink,
    ) -> Result<Place> {
        let facts = self.facts(raw, operation).await?;
        let mut done: Vec<String> = Vec::new();
        let mut todo = path.parts();
        for _ in 0..LINKS {
            let run = take_names(&mut todo);
            if run.is_empty() {
                match todo.pop_front() {
                    Some(_dots) => {
                        done.pop();
                        continue;
                    }
                    None => return self.resolved_directory(raw, operation, &facts, done).await,
                }
            }
            let heads = self.heads(raw, operation, &facts, &done, &run).await?;
            match walk(&facts, done, run, heads, &todo, last) {
                Step::There(place) => return Ok(place),
                Step::Missing(place) if todo.is_empty() => {
                    self.check_present(raw, operation, &place).await?;
                    return Ok(place);
                }
                Step::Missing(_) => {
                    return Err(path_error(
                        operation,
                        PathProblem::NotFound,
                        format!("`{path}` leads through a directory that does not exist in the sandbox"),
                    ));
                }
                Step::Again { target, rest } => {
                    let mut again = target;
                    again.extend(rest);
                    again.append(&mut todo);
                    todo = again;
                    done = Vec::new();
                }
                Step::On(resolved) => done = resolved,
                Step::NotADirectory(at) => {
                    return Err(path_error(
                        operation,
                        PathProblem::NotADirectory,
                        format!(
                            "`{}` is not a directory, and `{path}` leads through it",
                            at.escape_debug()
                        ),
                    ));
                }
            }
        }
        Err(path_error(
            operation,
            PathProblem::NotFound,
            format!("`{path}` leads through too many links in the sandbox"),
        ))
    }

    /// The root, or what `..` led to.
    async fn resolved_directory(
        &self,
        raw: &DockerRaw,
        operation: Operation,
        facts: &Arc<ContainerFacts>,
        done: Vec<String>,
    ) -> Result<Place> {
        self.head(raw, operation, "/").await?;
        Ok(Place::new(facts, done, Some(FileKind::Directory), 0))
    }

    /// Nothing at all on the way may mean that there is no container any more.
    async fn check_present(&self, raw: &DockerRaw, operation: Operation, place: &Place) -> Result<()> {
        if place.missing_parents + 1 == place.real.len() {
            self.head(raw, operation, "/").await?;
        }
        Ok(())
    }

    /// Looks at every prefix of the path, up to the first one that the engine does not see.
    async fn heads(
        &self,
        raw: &DockerRaw,
        operation: Operation,
        facts: &ContainerFacts,
        done: &[String],
        run: &[String],
    ) -> Result<Vec<Looked>> {
        let mut prefix = done.to_vec();
        let mut paths = Vec::new();
        for name in run {
            prefix.push(name.clone());
            if facts.is_live(&prefix) {
                break;
            }
            paths.push(absolute(&prefix));
        }
        let looks = paths.into_iter().map(|path| async move {
            match self.head(raw, operation, &path).await {
                Ok(head) => Ok(Looked::Head(head)),
                // Only what is above it says whether this matters.
                Err(error) if matches!(error.kind(), crate::error::ErrorKind::Path(_)) => {
                    Ok(Looked::Refused(error))
                }
                Err(error) => Err(error),
            }
        });
        let heads: Vec<Looked> = futures::stream::iter(looks).buffered(LOOKS).try_collect().await?;
        if let [Looked::Refused(_), ..] = heads.as_slice() {
            // The first one has nothing above it that could explain the refusal.
            return Err(heads.into_iter().find_map(Looked::refusal).unwrap_or_else(|| {
                path_error(
                    operation,
                    PathProblem::NotFound,
                    "the path can't be followed".to_owned(),
                )
            }));
        }
        Ok(heads)
    }
}

/// What came of a look at a prefix.
enum Looked {
    Head(Option<Head>),
    Refused(crate::error::Error),
}

impl Looked {
    fn refusal(self) -> Option<crate::error::Error> {
        match self {
            Self::Refused(error) => Some(error),
            Self::Head(_) => None,
        }
    }
}

enum Step {
    /// The end of the path.
    There(Place),
    /// Nothing is there.
    Missing(Place),
    /// To be begun again from the root.
    Again {
        target: VecDeque<String>,
        rest: VecDeque<String>,
    },
    /// The names lead here; `..` follows.
    On(Vec<String>),
    NotADirectory(String),
}

fn take_names(todo: &mut VecDeque<String>) -> Vec<String> {
    let mut run = Vec::new();
    while todo.front().is_some_and(|name| name != "..") {
        run.extend(todo.pop_front());
    }
    run
}

/// Goes along the names by what was seen of each.
fn walk(
    facts: &Arc<ContainerFacts>,
    mut done: Vec<String>,
    run: Vec<String>,
    heads: Vec<Looked>,
    todo: &VecDeque<String>,
    last: LastLink,
) -> Step {
    let mut heads = heads.into_iter().peekable();
    let count = run.len();
    let mut names = run.into_iter().enumerate();
    while let Some((index, name)) = names.next() {
        let is_last = index + 1 == count && todo.is_empty();
        done.push(name);
        let rest = |names: std::iter::Enumerate<std::vec::IntoIter<String>>| names.map(|(_, name)| name);
        if facts.is_live(&done) {
            done.extend(rest(names));
            // The sandbox itself knows what `..` means there.
            done.extend(todo.iter().cloned());
            return Step::There(Place::new(facts, done, None, 0));
        }
        let head = match heads.next() {
            Some(Looked::Head(head)) => head,
            // Below a link that leads in a circle, or to a file.
            Some(Looked::Refused(_)) | None => return Step::NotADirectory(absolute(&done)),
        };
        match head {
            None => {
                let missing_parents = count - index - 1;
                done.extend(rest(names));
                return Step::Missing(Place::new(facts, done, None, missing_parents));
            }
            Some(Head {
                kind: FileKind::Symlink,
                link_target,
            }) => {
                if is_last && last == LastLink::Keep {
                    return Step::There(Place::new(facts, done, Some(FileKind::Symlink), 0));
                }
                let target = super::path::split(link_target.as_deref().unwrap_or("/"));
                let seen_below = matches!(heads.peek(), Some(Looked::Head(Some(_))));
                if seen_below && !facts.is_live(target.clone().make_contiguous()) {
                    done = target.into();
                } else {
                    return Step::Again {
                        target,
                        rest: rest(names).collect(),
                    };
                }
            }
            Some(Head {
                kind: FileKind::Directory,
                ..
            }) if is_last => {
                return Step::There(Place::new(facts, done, Some(FileKind::Directory), 0));
            }
            Some(Head {
                kind: FileKind::Directory,
                ..
            }) => {}
            Some(Head { kind, .. }) if is_last => return Step::There(Place::new(facts, done, Some(kind), 0)),
            Some(_) => return Step::NotADirectory(absolute(&done)),
        }
    }
    Step::On(done)
}
