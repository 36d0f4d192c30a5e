//! Folders that several sandboxes share (capability `SharedStorage`).

use crate::error::{ErrorKind, PathProblem};
use crate::provider::{Capability, SandboxHandle, SharedAccess, SharedStorageProvider};
use crate::spec::ExecOptions;

use super::case::cases;
use super::check::{equal, holds, refused_with};
use super::{Context, Failure, Need, Outcome};

const SHARED: Need = Need::Capability(Capability::SharedStorage);

fn storage(context: &Context) -> Result<&dyn SharedStorageProvider, Failure> {
    context
        .provider()
        .as_shared_storage()
        .ok_or_else(|| Failure::new("the provider has lost the capability"))
}

/// A sandbox with folders of the storage.
async fn sharing(
    context: &Context,
    folders: &[(Option<&str>, &str, SharedAccess)],
) -> Result<SandboxHandle, Failure> {
    let mut spec = context.spec();
    for (name, value) in storage(context)?.shared_volume_metadata()? {
        spec = spec.with_metadata(name, value);
    }
    for &(source, target, access) in folders {
        spec = spec
            .with_added_provider_options(storage(context)?.shared_volume_options(source, target, access)?);
    }
    context.create(&spec).await
}

/// A sandbox with all of the storage, and the name of a folder in it that is the case's own.
async fn with_all(context: &Context) -> Result<(SandboxHandle, String), Failure> {
    let all = sharing(context, &[(None, "/shared", SharedAccess::ReadWrite)]).await?;
    let name = format!("case-{}", uuid::Uuid::new_v4().simple());
    context
        .stdout(&all, format!("mkdir -p /shared/{name}/data"))
        .await?;
    Ok((all, name))
}

async fn remove(context: &Context, all: &SandboxHandle, name: &str) -> Outcome {
    context
        .stdout(all, format!("rm -rf /shared/{name}"))
        .await
        .map(drop)
}

/// What is no name of a folder in the storage, or no place in a sandbox, is refused before anything is made.
pub async fn wrong_names_are_refused(context: &Context) -> Outcome {
    let storage = storage(context)?;
    for (source, target) in [
        (Some(""), "/data"),
        (Some("/outside"), "/data"),
        (Some("../outside"), "/data"),
        (Some("a/../../b"), "/data"),
        (Some("a:b"), "/data"),
        (Some("a\\b"), "/data"),
        (Some("a\0b"), "/data"),
        (Some("safe"), "data"),
        (Some("safe"), "/"),
        (Some("safe"), "/a/../b"),
        (Some("safe"), "/data:rw"),
    ] {
        refused_with(
            &format!("the folder {source:?} at `{}`", target.escape_debug()),
            storage.shared_volume_options(source, target, SharedAccess::ReadWrite),
            ErrorKind::InvalidArgument,
        )?;
    }
    Ok(())
}

/// What one sandbox writes another sees, and who may only read can't change it; it outlives both.
pub async fn what_one_writes_another_reads(context: &Context) -> Outcome {
    let (all, name) = with_all(context).await?;
    let data = format!("{name}/data");
    let writer = sharing(context, &[(Some(&data), "/data", SharedAccess::ReadWrite)]).await?;
    let reader = sharing(
        context,
        &[
            (Some(&data), "/data", SharedAccess::ReadOnly),
            (Some(&name), "/more/deep", SharedAccess::ReadOnly),
        ],
    )
    .await?;
    context.stdout(&writer, "echo written > /data/file").await?;
    equal(
        "what the reader sees",
        context
            .stdout(&reader, "cat /data/file /more/deep/data/file")
            .await?,
        "written\nwritten\n",
    )?;
    let result = context
        .exec(&reader, ExecOptions::new("echo no > /data/file"))
        .await?;
    holds("the reader can't write", !result.is_success())?;
    context.provider().close(&writer).await?;
    equal(
        "what is left when the writer is gone",
        context.stdout(&all, format!("cat /shared/{data}/file")).await?,
        "written\n",
    )?;
    remove(context, &all, &name).await
}

/// A folder that is not there, or is a file, is refused by the create and not made.
pub async fn a_folder_is_never_made(context: &Context) -> Outcome {
    let (all, name) = with_all(context).await?;
    context
        .stdout(&all, format!("echo x > /shared/{name}/file"))
        .await?;
    for source in ["missing", "file", "missing/below"] {
        let source = format!("{name}/{source}");
        let options =
            storage(context)?.shared_volume_options(Some(&source), "/data", SharedAccess::ReadWrite)?;
        let spec = context.spec().with_added_provider_options(options);
        if let Ok(handle) = context.provider().create(&spec).await {
            context.adopt(&handle);
            return Err(Failure::new(format!(
                "a sandbox was made with the folder `{source}`"
            )));
        }
    }
    equal(
        "what is in the storage",
        context.stdout(&all, format!("ls /shared/{name}")).await?,
        "data\nfile\n",
    )?;
    remove(context, &all, &name).await
}

/// A link that a sandbox has made in the storage leads no other out of it, nor to another folder of it.
pub async fn no_link_is_followed(context: &Context) -> Outcome {
    let (all, name) = with_all(context).await?;
    let make = format!(
        "cd /shared/{name} && ln -s / out && ln -s ../../.. up && ln -s data link && ln -s /etc data/etc"
    );
    context.stdout(&all, make).await?;
    for source in ["out", "out/etc", "up", "up/etc", "link", "data/etc"] {
        let source = format!("{name}/{source}");
        let options =
            storage(context)?.shared_volume_options(Some(&source), "/data", SharedAccess::ReadOnly)?;
        let spec = context.spec().with_added_provider_options(options);
        match context.provider().create(&spec).await {
            Ok(handle) => {
                context.adopt(&handle);
                return Err(Failure::new(format!(
                    "a sandbox was made with `{source}`, which is a link"
                )));
            }
            // An engine that follows nothing says so in its own way.
            Err(error) => holds(
                format!("`{error}` is about the folder"),
                matches!(
                    error.kind(),
                    ErrorKind::Path(PathProblem::Permission | PathProblem::NotFound)
                        | ErrorKind::CreateFailed
                ),
            )?,
        }
    }
    remove(context, &all, &name).await
}

cases! {
    "shared_storage":
    wrong_names_are_refused needs SHARED,
    what_one_writes_another_reads needs SHARED,
    a_folder_is_never_made needs SHARED,
    no_link_is_followed needs SHARED,
}
