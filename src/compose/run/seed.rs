//! Volumes that are filled before a service sees them, through containers that are never started (contract D20).

use std::path::Path;

use futures::future::try_join_all;

use crate::compose::plan::HelperStep;
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::Capability;
use crate::spec::{Ports, UploadOptions, UploadSource};

use super::crew::Crew;
use super::failure::in_volumes;

impl Crew {
    pub(super) async fn seed_volumes(&self) -> Result<()> {
        try_join_all(self.plan.helpers.iter().map(|helper| self.seed(helper)))
            .await
            .map(|_| ())
    }

    async fn seed(&self, helper: &HelperStep) -> Result<()> {
        let filled = self.fill_by(helper).await;
        filled.map_err(|error| in_volumes([(helper.key.as_str(), helper.service.as_str())], error))
    }

    async fn fill_by(&self, helper: &HelperStep) -> Result<()> {
        let containers = self.containers(Operation::ComposeUp)?;
        let id = containers.create_container(&helper.spec).await?;
        self.made.add_container(&id, None);
        self.fill(helper, &id).await?;
        containers.remove_container(&id).await?;
        self.made.forget_container(&id);
        Ok(())
    }

    async fn fill(&self, helper: &HelperStep, id: &str) -> Result<()> {
        let files = self.provider.as_files().ok_or_else(|| {
            Error::unsupported(
                Operation::ComposeUp,
                self.provider.name(),
                Capability::Files.as_str(),
            )
        })?;
        let handle = self
            .containers(Operation::ComposeUp)?
            .container_handle(id, &Ports::default())
            .await?;
        let options = UploadOptions {
            owner: helper.owner,
            ..UploadOptions::default()
        };
        // The volume's own folder gets its owner by an entry of an archive: a folder that is there is not made anew.
        if helper.owner.is_some() {
            let folder = empty_folder().await?;
            files
                .upload(&handle, UploadSource::Path(folder.path()), "/", &options)
                .await?;
        }
        if let Some(source) = &helper.source {
            let target = target_in(source, HelperStep::TARGET).await;
            files
                .upload(&handle, UploadSource::Path(source), &target, &options)
                .await?;
        }
        for folder in &helper.folders {
            let path = format!("{}/{}", HelperStep::TARGET, folder.trim_matches('/'));
            files.make_directory(&handle, &path, &options).await?;
        }
        Ok(())
    }
}

/// A folder of this machine that holds the volume's folder, empty, under its name.
async fn empty_folder() -> Result<tempfile::TempDir> {
    let made = tokio::task::spawn_blocking(|| {
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(folder.path().join(HelperStep::TARGET.trim_start_matches('/')))?;
        Ok::<_, std::io::Error>(folder)
    });
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        Error::new(
            ErrorKind::Io,
            Operation::ComposeUp,
            "a temporary folder could not be made",
        )
        .with_source(error)
    };
    match made.await {
        Ok(Ok(folder)) => Ok(folder),
        Ok(Err(error)) => Err(failed(error.into())),
        Err(error) => Err(failed(error.into())),
    }
}

/// Where in a folder of a sandbox: a folder is copied as its content, a file under its name.
pub(super) async fn target_in(source: &Path, folder: &str) -> String {
    let is_folder = tokio::fs::metadata(source)
        .await
        .is_ok_and(|metadata| metadata.is_dir());
    match source.file_name() {
        Some(name) if !is_folder => format!("{folder}/{}", name.to_string_lossy()),
        _ => folder.to_owned(),
    }
}
