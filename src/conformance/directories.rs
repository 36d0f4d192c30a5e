//! Directories in and out (D13, capability `Files`).

use std::path::Path;

use crate::error::{ErrorKind, PathProblem};
use crate::provider::{Capability, FilesProvider, SandboxHandle};
use crate::spec::{DownloadOptions, DownloadTarget, UploadOptions, UploadSource};

use super::case::cases;
use super::check::{equal, equal_bytes, refused_with};
use super::{Context, Need, Outcome};

const FILES: Need = Need::Capability(Capability::Files);

fn files(context: &Context) -> crate::Result<&dyn FilesProvider> {
    context.provider().as_files().ok_or_else(|| {
        crate::Error::unsupported(
            crate::Operation::Files,
            context.provider().name(),
            "directories any more",
        )
    })
}

async fn upload(context: &Context, handle: &SandboxHandle, local: &Path, remote: &str) -> crate::Result<()> {
    let (source, options) = (UploadSource::Path(local), UploadOptions::default());
    files(context)?
        .upload(handle, source, remote, &options)
        .await
        .map(|_| ())
}

async fn download(
    context: &Context,
    handle: &SandboxHandle,
    remote: &str,
    local: &Path,
) -> crate::Result<()> {
    files(context)?
        .download(
            handle,
            remote,
            DownloadTarget::Path(local),
            &DownloadOptions::default(),
        )
        .await
        .map(|_| ())
}

/// Makes a tree with everything that a project holds.
fn plant(root: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(root.join("src/deep/er"))?;
    std::fs::create_dir_all(root.join("empty"))?;
    std::fs::write(root.join("README"), "read me\n")?;
    std::fs::write(root.join("src/nothing"), "")?;
    std::fs::write(root.join("src/deep/er/with space"), "deep")?;
    std::fs::write(root.join("src/big"), vec![b'b'; 300_000])
}

/// Lists a tree: directories and files with their sizes, sorted.
fn listing(root: &Path) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            if path.is_dir() {
                found.push(format!("{name}/"));
                folders.push(path);
            } else {
                found.push(format!("{name} {}", path.metadata()?.len()));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A tree goes in and comes back as it was: nested, empty and large parts (D13).
pub async fn a_tree_comes_back_as_it_was(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let folder = tempfile::tempdir()?;
    let (planted, back) = (folder.path().join("planted"), folder.path().join("back"));
    plant(&planted)?;
    upload(context, &handle, &planted, "/tmp/tree").await?;
    let inside = context
        .stdout(
            &handle,
            "cd /tmp/tree && cat README 'src/deep/er/with space' && ls -d empty",
        )
        .await?;
    equal("the tree inside", inside, "read me\ndeepempty\n")?;
    download(context, &handle, "/tmp/tree", &back).await?;
    equal("the tree here", listing(&back)?, listing(&planted)?)?;
    equal_bytes(
        "the large file",
        &std::fs::read(back.join("src/big"))?,
        &std::fs::read(planted.join("src/big"))?,
    )
}

/// A directory is copied as its content: the target is the directory that has it afterwards, there or not (D13).
pub async fn a_directory_is_copied_as_its_content(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("new"), "new")?;
    context
        .stdout(&handle, "mkdir -p /tmp/there && printf old > /tmp/there/old")
        .await?;
    upload(context, &handle, folder.path(), "/tmp/there").await?;
    upload(context, &handle, folder.path(), "/tmp/not/there").await?;
    let inside = context
        .stdout(
            &handle,
            "cd /tmp && ls there not/there && cat there/old there/new not/there/new",
        )
        .await?;
    equal(
        "the directories inside",
        inside,
        "not/there:\nnew\n\nthere:\nnew\nold\noldnewnew",
    )
}

/// A path that ends in `/` means "into this directory", which is made (D13).
pub async fn a_path_that_ends_in_a_slash_is_a_directory(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let folder = tempfile::tempdir()?;
    let local = folder.path().join("file.txt");
    std::fs::write(&local, "into")?;
    upload(context, &handle, &local, "/tmp/into/this/").await?;
    equal(
        "the file inside",
        context.stdout(&handle, "cat /tmp/into/this/file.txt").await?,
        "into",
    )
}

/// The capability copies single files, too.
pub async fn a_single_file_goes_both_ways(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let folder = tempfile::tempdir()?;
    let (local, back) = (folder.path().join("file"), folder.path().join("back/file"));
    std::fs::write(&local, "single")?;
    upload(context, &handle, &local, "/tmp/single").await?;
    equal(
        "the file inside",
        context.stdout(&handle, "cat /tmp/single").await?,
        "single",
    )?;
    download(context, &handle, "/tmp/single", &back).await?;
    equal_bytes("the file here", &std::fs::read(&back)?, b"single")
}

/// Links inside a tree stay links, and lead nowhere else (D13, D14).
#[cfg(unix)]
pub async fn links_stay_links(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let folder = tempfile::tempdir()?;
    let (planted, back) = (folder.path().join("planted"), folder.path().join("back"));
    std::fs::create_dir(&planted)?;
    std::fs::write(planted.join("file"), "linked")?;
    std::os::unix::fs::symlink("file", planted.join("link"))?;
    upload(context, &handle, &planted, "/tmp/linked").await?;
    let inside = context
        .stdout(&handle, "cd /tmp/linked && test -L link && cat link")
        .await?;
    equal("the link inside", inside, "linked")?;
    download(context, &handle, "/tmp/linked", &back).await?;
    equal(
        "the link here",
        std::fs::read_link(back.join("link"))?,
        Path::new("file"),
    )
}

/// Stands in where there are no links.
#[cfg(not(unix))]
pub async fn links_stay_links(_context: &Context) -> Outcome {
    Err(Failure::new("links can only be tested on unix"))
}

/// What is missing is told, on either side.
pub async fn what_is_missing_is_told(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let folder = tempfile::tempdir()?;
    let missing = folder.path().join("missing");
    let not_found = ErrorKind::Path(PathProblem::NotFound);
    refused_with(
        "an upload of nothing",
        upload(context, &handle, &missing, "/tmp/x").await,
        not_found,
    )?;
    refused_with(
        "a download of nothing",
        download(context, &handle, "/tmp/none", &missing).await,
        not_found,
    )?;
    equal("the files here", std::fs::read_dir(folder.path())?.count(), 0)
}

cases!("directories":
    a_tree_comes_back_as_it_was needs FILES,
    a_directory_is_copied_as_its_content needs FILES,
    a_path_that_ends_in_a_slash_is_a_directory needs FILES,
    a_single_file_goes_both_ways needs FILES,
    links_stay_links needs FILES,
    what_is_missing_is_told needs FILES,
);
