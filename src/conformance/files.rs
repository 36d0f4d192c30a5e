//! One file in, one file out (U1-U5, D13, D14).

use crate::error::{ErrorKind, PathProblem};

use super::case::cases;
use super::check::{equal, equal_bytes, holds, refused, refused_with};
use super::{Context, Outcome};

fn bytes(length: usize) -> Vec<u8> {
    (0..length)
        .map(|place| u8::try_from(place * 31 % 256).unwrap_or_default())
        .collect()
}

/// Files of all sizes come back byte for byte, and commands see the same (U5).
pub async fn bytes_are_kept(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    for length in [0, 1, 511, 512, 513, 65_536, 65_537, 1_048_576] {
        let planted = bytes(length);
        context.write(&handle, "/tmp/file", &planted).await?;
        let counted = context.stdout(&handle, "wc -c < /tmp/file").await?;
        equal("the size inside", counted.trim(), length.to_string())?;
        equal_bytes(
            "what came back",
            &context.read(&handle, "/tmp/file").await?,
            &planted,
        )?;
    }
    Ok(())
}

/// Names are taken as they are: spaces, quotes, line ends, signs of a shell (U3).
pub async fn names_are_taken_as_they_are(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    for name in [
        "with space",
        "'single'",
        "\"double\"",
        "line\nend",
        "$HOME",
        "`id`",
        "back\\slash",
        "*",
        "-n",
        "ünïcode",
        ".hidden",
        "semi;colon",
        "a&b",
        "trailing ",
        "100%",
    ] {
        let path = format!("/tmp/names/{name}/{name}");
        context
            .write(&handle, &path, name.as_bytes())
            .await
            .map_err(|failure| failure.at(format!("{name:?}")))?;
        equal(
            &format!("{name:?} inside"),
            context.stdout(&handle, ["cat", &path]).await?,
            name,
        )?;
        equal_bytes(
            &format!("{name:?}"),
            &context.read(&handle, &path).await?,
            name.as_bytes(),
        )?;
    }
    Ok(())
}

/// A long path arrives whole.
pub async fn long_paths_arrive_whole(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let path = format!("/tmp/{}/{}", "d".repeat(200), "f".repeat(250));
    context.write(&handle, &path, b"long").await?;
    equal(
        "the file inside",
        context.stdout(&handle, ["cat", &path]).await?,
        "long",
    )?;
    equal_bytes("what came back", &context.read(&handle, &path).await?, b"long")
}

/// Missing parents are made, in the sandbox and here (U1, U4).
pub async fn missing_parents_are_made(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    context.write(&handle, "/made/by/upload/file", b"deep").await?;
    equal(
        "the file inside",
        context.stdout(&handle, "cat /made/by/upload/file").await?,
        "deep",
    )?;
    let folder = tempfile::tempdir()?;
    let local = folder.path().join("made/by/download");
    context
        .provider()
        .download_file(&handle, "/made/by/upload/file", &local)
        .await?;
    equal_bytes("the file here", &tokio::fs::read(&local).await?, b"deep")
}

/// A relative path is relative to the spec's working directory, else to `/` (D13).
pub async fn relative_paths_are_relative_to_the_working_directory(context: &Context) -> Outcome {
    let with = context.create(&context.spec().with_workdir("/tmp/work")).await?;
    context.write(&with, "sub/file", b"relative").await?;
    equal(
        "the file inside",
        context.stdout(&with, "cat /tmp/work/sub/file").await?,
        "relative",
    )?;
    equal_bytes(
        "what came back",
        &context.read(&with, "sub/file").await?,
        b"relative",
    )?;
    let without = context.sandbox().await?;
    context.write(&without, "at-the-root", b"root").await?;
    equal(
        "the file inside",
        context.stdout(&without, "cat /at-the-root").await?,
        "root",
    )
}

/// An upload replaces what is there (U1).
pub async fn an_upload_replaces_the_file(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    context
        .stdout(&handle, "echo something that is longer > /tmp/file")
        .await?;
    context.write(&handle, "/tmp/file", b"new").await?;
    equal(
        "the file inside",
        context.stdout(&handle, "cat /tmp/file").await?,
        "new",
    )?;
    context.write(&handle, "/tmp/file", b"").await?;
    equal(
        "the file inside",
        context.stdout(&handle, "cat /tmp/file").await?,
        "",
    )
}

/// A download replaces what is there, and leaves nothing else beside it (D14).
pub async fn a_download_replaces_the_file(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    context.stdout(&handle, "printf new > /tmp/file").await?;
    let folder = tempfile::tempdir()?;
    let local = folder.path().join("file");
    tokio::fs::write(&local, "something that is longer").await?;
    context
        .provider()
        .download_file(&handle, "/tmp/file", &local)
        .await?;
    equal_bytes("the file here", &tokio::fs::read(&local).await?, b"new")?;
    equal(
        "the files beside it",
        std::fs::read_dir(folder.path())?.count(),
        1,
    )
}

/// The mode of an uploaded file is kept, so that a program can be run (D13).
#[cfg(unix)]
pub async fn the_mode_is_kept(context: &Context) -> Outcome {
    use std::os::unix::fs::PermissionsExt;
    let handle = context.sandbox().await?;
    let local = tempfile::NamedTempFile::new()?;
    tokio::fs::write(local.path(), "#!/bin/sh\necho it runs\n").await?;
    tokio::fs::set_permissions(local.path(), std::fs::Permissions::from_mode(0o755)).await?;
    context.upload(&handle, local.path(), "/tmp/program").await?;
    equal(
        "the output",
        context.stdout(&handle, ["/tmp/program"]).await?,
        "it runs\n",
    )?;
    let folder = tempfile::tempdir()?;
    let back = folder.path().join("program");
    context
        .provider()
        .download_file(&handle, "/tmp/program", &back)
        .await?;
    equal(
        "the mode here",
        tokio::fs::metadata(&back).await?.permissions().mode() & 0o777,
        0o755,
    )
}

/// A file that is missing in the sandbox is told as that, and the local path stays as it was (D14).
pub async fn a_missing_remote_file_is_told(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let folder = tempfile::tempdir()?;
    for remote in ["/tmp/no-such-file", "/no/such/directory/file"] {
        let local = folder.path().join("new");
        let result = context.provider().download_file(&handle, remote, &local).await;
        let error = refused("a download of a missing file", result)?;
        equal("the kind", error.kind(), ErrorKind::Path(PathProblem::NotFound))?;
        holds("the error names the path", error.to_string().contains(remote))?;
        let existing = folder.path().join("existing");
        tokio::fs::write(&existing, "as before").await?;
        refused(
            "a download of a missing file",
            context.provider().download_file(&handle, remote, &existing).await,
        )?;
        equal_bytes("the local file", &tokio::fs::read(&existing).await?, b"as before")?;
        equal("the files here", std::fs::read_dir(folder.path())?.count(), 1)?;
    }
    Ok(())
}

/// A file that is missing here is told as that, and nothing is made in the sandbox.
pub async fn a_missing_local_file_is_told(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let folder = tempfile::tempdir()?;
    let result = context
        .upload(&handle, &folder.path().join("missing"), "/tmp/target")
        .await;
    refused_with(
        "an upload of a missing file",
        result,
        ErrorKind::Path(PathProblem::NotFound),
    )?;
    equal(
        "the target",
        context
            .stdout(&handle, "ls -d /tmp/target 2>/dev/null || echo none")
            .await?,
        "none\n",
    )
}

/// A directory where a file is needed is told as that.
pub async fn a_directory_is_no_file(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let folder = tempfile::tempdir()?;
    let uploaded = context.upload(&handle, folder.path(), "/tmp/target").await;
    refused_with(
        "an upload of a directory as a file",
        uploaded,
        ErrorKind::Path(PathProblem::IsADirectory),
    )?;
    let downloaded = context
        .provider()
        .download_file(&handle, "/tmp", &folder.path().join("target"))
        .await;
    refused_with(
        "a download of a directory as a file",
        downloaded,
        ErrorKind::Path(PathProblem::IsADirectory),
    )?;
    equal("the files here", std::fs::read_dir(folder.path())?.count(), 0)
}

/// A file where a directory is needed is told, not written through.
pub async fn a_file_is_no_directory(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    context.stdout(&handle, "printf kept > /tmp/file").await?;
    let local = tempfile::NamedTempFile::new()?;
    let error = refused(
        "an upload below a file",
        context.upload(&handle, local.path(), "/tmp/file/below").await,
    )?;
    holds(
        format!("{:?} is a problem of a path", error.kind()),
        matches!(error.kind(), ErrorKind::Path(_)),
    )?;
    equal(
        "the file",
        context.stdout(&handle, "cat /tmp/file").await?,
        "kept",
    )
}

/// An empty path, or one with NUL, is refused before the call.
pub async fn wrong_paths_are_refused(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let local = tempfile::NamedTempFile::new()?;
    for remote in ["", "/tmp/a\0b"] {
        let what = format!("the remote path {remote:?}");
        let error = refused(&what, context.upload(&handle, local.path(), remote).await)?;
        holds(
            format!("{:?} is the kind of {what}", error.kind()),
            matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::Path(_)),
        )?;
        refused(
            &what,
            context
                .provider()
                .download_file(&handle, remote, local.path())
                .await,
        )?;
    }
    Ok(())
}

/// Many transfers at once don't mix.
pub async fn transfers_at_once_are_apart(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let transfers = (1..=12).map(|number: usize| {
        let handle = &handle;
        async move {
            let path = format!("/tmp/at-once/{number}");
            let planted = bytes(number * 10_000);
            context.write(handle, &path, &planted).await?;
            equal_bytes("what came back", &context.read(handle, &path).await?, &planted)
        }
    });
    futures::future::try_join_all(transfers).await.map(|_| ())?;
    equal(
        "the files inside",
        context.stdout(&handle, "ls /tmp/at-once | wc -l").await?.trim(),
        "12",
    )
}

/// Stands in where there are no modes.
#[cfg(not(unix))]
pub async fn the_mode_is_kept(_context: &Context) -> Outcome {
    Err(super::Failure::new("file modes can only be tested on unix"))
}

cases!("files":
    bytes_are_kept,
    names_are_taken_as_they_are,
    long_paths_arrive_whole,
    missing_parents_are_made,
    relative_paths_are_relative_to_the_working_directory,
    an_upload_replaces_the_file,
    a_download_replaces_the_file,
    the_mode_is_kept,
    a_missing_remote_file_is_told,
    a_missing_local_file_is_told,
    a_directory_is_no_file,
    a_file_is_no_directory,
    wrong_paths_are_refused,
    transfers_at_once_are_apart,
);
