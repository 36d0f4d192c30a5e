//! Content from memory and streams, and looking at, making and removing files (D13, D14, capability `Files`).

use bytes::Bytes;

use crate::error::{ErrorKind, PathProblem, Result};
use crate::provider::{Capability, FilesProvider, SandboxHandle};
use crate::spec::{
    DownloadOptions, DownloadTarget, FileKind, ProgressCallback, RemoveMode, UploadOptions, UploadSource,
};

use super::case::cases;
use super::check::{equal, equal_bytes, holds, refused_with};
use super::{Context, Need, Outcome};

const FILES: Need = Need::Capability(Capability::Files);

fn files(context: &Context) -> Result<&dyn FilesProvider> {
    context.provider().as_files().ok_or_else(|| {
        crate::Error::unsupported(
            crate::Operation::Files,
            context.provider().name(),
            "files any more",
        )
    })
}

async fn write(context: &Context, handle: &SandboxHandle, path: &str, bytes: &[u8]) -> Result<()> {
    let source = UploadSource::Bytes(Bytes::copy_from_slice(bytes));
    files(context)?
        .upload(handle, source, path, &UploadOptions::default())
        .await
        .map(|_| ())
}

async fn read(context: &Context, handle: &SandboxHandle, path: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let target = DownloadTarget::Writer(&mut bytes);
    files(context)?
        .download(handle, path, target, &DownloadOptions::default())
        .await?;
    Ok(bytes)
}

/// Bytes, readers with and without a size, and writers carry the same content (D13).
pub async fn content_goes_through_memory_and_streams(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    for length in [0, 1, 1_048_576, 1_048_577, 3_000_000] {
        let bytes: Vec<u8> = (0..length)
            .map(|place: usize| u8::try_from(place % 251).unwrap_or_default())
            .collect();
        write(context, &handle, "/tmp/bytes", &bytes).await?;
        equal_bytes("bytes", &read(context, &handle, "/tmp/bytes").await?, &bytes)?;
        for size in [Some(length as u64), None] {
            let source = UploadSource::reader(bytes.as_slice(), size);
            let sent = files(context)?
                .upload(&handle, source, "/tmp/reader", &UploadOptions::default())
                .await?;
            equal("the count", sent.bytes, length as u64)?;
            equal_bytes(
                "what the reader gave",
                &read(context, &handle, "/tmp/reader").await?,
                &bytes,
            )?;
        }
    }
    Ok(())
}

/// A source that is not what it announced leaves the target as it was, and nothing beside it.
pub async fn a_source_that_changes_leaves_the_target_as_it_was(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    write(context, &handle, "/tmp/d/target", b"old").await?;
    let bytes = vec![1; 2_000_000];
    for announced in [1_999_999, 2_000_001, 1] {
        let source = UploadSource::reader(bytes.as_slice(), Some(announced));
        let sent = files(context)?
            .upload(&handle, source, "/tmp/d/target", &UploadOptions::default())
            .await;
        refused_with(
            "an upload of another size",
            sent,
            ErrorKind::Path(PathProblem::Changed),
        )?;
    }
    equal_bytes(
        "the target",
        &read(context, &handle, "/tmp/d/target").await?,
        b"old",
    )?;
    let left = files(context)?.list(&handle, "/tmp/d").await?;
    equal("the files beside it", left.len(), 1)
}

/// A file never replaces a directory, nor a directory a file; a link that is the target is replaced.
pub async fn nothing_is_replaced_by_another_kind(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    context
        .stdout(&handle, "cd /tmp && mkdir d && printf old > f && ln -s f l")
        .await?;
    let onto = write(context, &handle, "/tmp/d", b"x").await;
    refused_with(
        "a file onto a directory",
        onto,
        ErrorKind::Path(PathProblem::IsADirectory),
    )?;
    let below = write(context, &handle, "/tmp/f/x", b"x").await;
    refused_with(
        "a file below a file",
        below,
        ErrorKind::Path(PathProblem::NotADirectory),
    )?;
    let folder = tempfile::tempdir()?;
    let options = UploadOptions::default();
    let tree = files(context)?
        .upload(&handle, UploadSource::Path(folder.path()), "/tmp/f", &options)
        .await;
    refused_with(
        "a directory onto a file",
        tree,
        ErrorKind::Path(PathProblem::NotADirectory),
    )?;
    let taken = read(context, &handle, "/tmp/d").await;
    refused_with(
        "a directory as a file",
        taken,
        ErrorKind::Path(PathProblem::IsADirectory),
    )?;
    write(context, &handle, "/tmp/l", b"new").await?;
    let inside = context
        .stdout(&handle, "cd /tmp && cat f l && test ! -L l")
        .await?;
    equal("the file and what was a link to it", inside, "oldnew")
}

/// Files are listed, looked at, made and removed.
pub async fn files_are_listed_made_and_removed(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let provider = files(context)?;
    provider
        .make_directory(&handle, "/tmp/l/a/b", &UploadOptions::default())
        .await?;
    provider
        .make_directory(&handle, "/tmp/l/a/b", &UploadOptions::default())
        .await?;
    write(context, &handle, "/tmp/l/file", b"12345").await?;
    context.stdout(&handle, "ln -s file /tmp/l/link").await?;
    let listed = provider.list(&handle, "/tmp/l").await?;
    let seen: Vec<_> = listed
        .iter()
        .map(|entry| {
            (
                entry.name.to_string_lossy().into_owned(),
                entry.stat.kind,
                entry.stat.size_bytes,
            )
        })
        .collect();
    let expected = [
        ("a".to_owned(), FileKind::Directory, 0),
        ("file".to_owned(), FileKind::File, 5),
        ("link".to_owned(), FileKind::Symlink, 0),
    ];
    equal("the listing", seen, expected.to_vec())?;
    let stat = provider.stat(&handle, "/tmp/l/link").await?;
    equal(
        "the link's text",
        stat.and_then(|stat| stat.link_target),
        Some("file".into()),
    )?;
    equal("nothing", provider.stat(&handle, "/tmp/l/none").await?, None)?;
    let full = provider.remove(&handle, "/tmp/l", RemoveMode::One).await;
    refused_with(
        "removing a full directory",
        full,
        ErrorKind::Path(PathProblem::Exists),
    )?;
    holds(
        "the link was there",
        provider.remove(&handle, "/tmp/l/link", RemoveMode::One).await?,
    )?;
    equal_bytes(
        "what it led to",
        &read(context, &handle, "/tmp/l/file").await?,
        b"12345",
    )?;
    holds(
        "the directory was there",
        provider.remove(&handle, "/tmp/l", RemoveMode::Recursive).await?,
    )?;
    holds(
        "it is gone",
        !provider.remove(&handle, "/tmp/l", RemoveMode::Recursive).await?,
    )
}

/// Limits and progress hold (D14).
pub async fn limits_and_progress_hold(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    write(context, &handle, "/tmp/p/one", &[1; 3000]).await?;
    write(context, &handle, "/tmp/p/two", &[2; 3000]).await?;
    let folder = tempfile::tempdir()?;
    let target = folder.path().join("p");
    for options in [
        DownloadOptions::default().with_max_bytes(5999),
        DownloadOptions::default().with_max_entries(1),
    ] {
        let taken = files(context)?
            .download(&handle, "/tmp/p", DownloadTarget::Path(&target), &options)
            .await;
        refused_with("too much", taken, ErrorKind::Path(PathProblem::TooLarge))?;
        equal("the files here", std::fs::read_dir(folder.path())?.count(), 0)?;
    }
    let (sender, receiver) = std::sync::mpsc::sync_channel(100);
    let progress = ProgressCallback::new(move |progress| {
        // A full channel has enough to compare.
        let _full = sender.try_send(progress.bytes).is_err();
    });
    let options = DownloadOptions::default()
        .with_max_bytes(6000)
        .with_progress(progress);
    let taken = files(context)?
        .download(&handle, "/tmp/p", DownloadTarget::Path(&target), &options)
        .await?;
    equal("the count", taken.bytes, 6000)?;
    let told: Vec<u64> = receiver.try_iter().collect();
    holds("progress only grows", told.is_sorted())?;
    equal("the last progress", told.last().copied(), Some(6000))
}

cases!("transfers":
    content_goes_through_memory_and_streams needs FILES,
    a_source_that_changes_leaves_the_target_as_it_was needs FILES,
    nothing_is_replaced_by_another_kind needs FILES,
    files_are_listed_made_and_removed needs FILES,
    limits_and_progress_hold needs FILES,
);
