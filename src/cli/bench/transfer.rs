//! Copies of every size into a sandbox and out of it: by the library, by the bare archive calls, and by `docker cp`.

use std::path::Path;

use bytes::Bytes;
use gym_sandbox::{DownloadOptions, DownloadTarget, Operation, Result, UploadOptions, UploadSource};

use super::context::{Context, Target, baseline_failed, succeeded};
use super::raw::RawArchive;
use super::scratch::{Scratch, What, on_disk, packed, remove, unpack};

/// Which way it is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Way {
    /// Into the sandbox.
    Up,
    /// Out of it.
    Down,
}

/// A copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct Transfer {
    pub(super) way: Way,
    pub(super) what: What,
}

/// Who copies. Each has places of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Side {
    /// The library.
    Ours,
    /// The archive calls.
    Raw,
    /// The docker CLI.
    Cli,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Raw => "raw",
            Self::Cli => "cli",
        }
    }
}

impl Transfer {
    /// Makes ready what one run needs, and takes away what the one before left: no part of what is measured.
    pub(super) async fn ready(self, context: &Context<'_>, target: &Target<'_>, side: Side) -> Result<()> {
        let (scratch, what) = (&context.scratch, self.what);
        scratch.make(what).await?;
        if self.way == Way::Up {
            return Ok(());
        }
        let mut sent = scratch.sent.lock().await;
        let copy = (target.container.clone(), what);
        if !sent.contains(&copy) {
            let (source, remote) = (scratch.source(what), Scratch::remote("source", what));
            target.sandbox.upload(source, remote).await?;
            sent.insert(copy);
        }
        drop(sent);
        let path = scratch.target(side.name());
        on_disk(move || remove(&path)).await
    }

    /// By the library. The answer is how many bytes were copied.
    pub(super) async fn ours(self, context: &Context<'_>, target: &Target<'_>) -> Result<u64> {
        let (scratch, what) = (&context.scratch, self.what);
        let progress = match self.way {
            Way::Up => {
                let source = scratch.source(what);
                let (source, remote) = (UploadSource::Path(&source), Scratch::remote("ours", what));
                let options = UploadOptions::default();
                target.sandbox.upload_with(source, remote, &options).await?
            }
            Way::Down => {
                let path = scratch.target(Side::Ours.name());
                let (path, remote) = (DownloadTarget::Path(&path), Scratch::remote("source", what));
                let options = DownloadOptions::default();
                target.sandbox.download_with(remote, path, &options).await?
            }
        };
        Ok(progress.bytes)
    }

    /// By the archive call alone. A file's archive is ready, and stays one when it comes out; a directory's is made
    /// here, and is unpacked.
    pub(super) async fn raw(self, context: &Context<'_>, target: &Target<'_>) -> Result<()> {
        let (scratch, what) = (&context.scratch, self.what);
        match self.way {
            Way::Up => {
                let archive = match what {
                    What::Kibibyte | What::Small | What::Mebibyte => {
                        let path = scratch.archive(what);
                        RawArchive::Whole(on_disk(move || std::fs::read(path)).await?.into())
                    }
                    What::Tree => {
                        let source = scratch.source(what);
                        let pack = move || packed(&source, &Scratch::remote("raw", what));
                        RawArchive::Whole(Bytes::from(on_disk(pack).await?))
                    }
                    What::Large => RawArchive::File(scratch.archive(what)),
                };
                let sent = context.raw.put(&target.container, archive).await;
                sent.map_err(|error| baseline_failed(Operation::Upload, error))
            }
            Way::Down => {
                let path = scratch.target(Side::Raw.name());
                let remote = Scratch::remote("source", what);
                let failed = |error| baseline_failed(Operation::Download, error);
                if what == What::Tree {
                    let archive = context.raw.get(&target.container, &remote).await;
                    let archive = archive.map_err(failed)?;
                    return on_disk(move || unpack(archive.as_slice(), &path)).await;
                }
                let taken = context.raw.get_to(&target.container, &remote, &path).await;
                taken.map_err(failed)
            }
        }
    }

    /// By `docker cp`.
    pub(super) async fn docker_cli(self, context: &Context<'_>, target: &Target<'_>) -> Result<()> {
        let (scratch, what) = (&context.scratch, self.what);
        let inside = |name: &str| format!("{}:{}", target.container, Scratch::remote(name, what));
        let (from, to) = match self.way {
            Way::Up => (local(&scratch.source(what)), inside(Side::Cli.name())),
            Way::Down => (inside("source"), local(&scratch.target(Side::Cli.name()))),
        };
        // Its own way to say that the content goes to the target, which may be there.
        let from = if what == What::Tree {
            format!("{from}/.")
        } else {
            from
        };
        context.docker(&["cp", &from, &to]).await
    }

    /// By the library, as one run of a row of times.
    pub(super) async fn ours_whole(self, context: &Context<'_>, target: &Target<'_>) -> Result<()> {
        let bytes = self.ours(context, target).await?;
        succeeded(
            bytes == self.what.bytes(),
            "the library's copy did not have all bytes",
        )
    }
}

fn local(path: &Path) -> String {
    path.display().to_string()
}
