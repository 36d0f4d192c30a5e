//! The project's folder of the shared storage: made by a sandbox that has all of it, and filled (contract 4.7).

use std::sync::Arc;
use std::time::Duration;

use crate::compose::plan::{HELPER_ROOT, SEED_TARGET, StorageStep};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::Capability;
use crate::sandbox::AsyncSandbox;
use crate::spec::{SandboxSpec, UploadOptions, UploadSource};

use super::super::failure::in_service;
use super::{GenericCrew, checked, run_short, script};

/// How long a copy may take (contract 4.7).
const COPY: Duration = Duration::from_secs(300);

const SEED: &str = include_str!("seed.sh");

/// The script's exit code for what is no folder.
const NO_FOLDER: i32 = 121;

/// Makes the project's folder `$1` and the volumes in it, after `$2`. Whose the folder is, is written down first: one that
/// is there already is not this start's, and stays. 122: it is there already.
const MAKE: &str = r#"d=$1 start=$2
shift 2
mkdir "$d" 2>/dev/null || { [ -e "$d" ] && exit 122; mkdir "$d"; } || exit 1
echo "$start" >"$d/.start" && cd "$d" && mkdir "$@""#;

/// Removes what [`MAKE`] has made; the mark goes last, so that this can be done again.
const REMOVE: &str = r#"[ "$(cat "$1/.start" 2>/dev/null)" = "$2" ] || exit 0
rm -rf "$1"/* && rm -rf "$1""#;

/// The exit code of [`MAKE`] for a folder that is there.
const THERE: i32 = 122;

impl GenericCrew {
    /// Makes the volumes and fills them.
    pub(super) async fn make_storage(&self) -> Result<()> {
        let Some(step) = &self.plan.storage else {
            return Ok(());
        };
        let helper = self.new_sandbox(step.helper.clone());
        self.made().helper = Some(Arc::clone(&helper));
        helper.start().await?;
        let folder = self.project_folder();
        let mut arguments = vec![folder.as_str(), self.start.as_str()];
        arguments.extend(step.volumes.iter().map(|volume| volume.name.as_str()));
        let made = helper.exec_with(script(MAKE, &arguments)).await?;
        if made.error_type.is_none() && made.return_code == THERE {
            return Err(Error::new(
                ErrorKind::Conflict,
                Operation::ComposeUp,
                format!("the shared storage has a folder `{}` already", self.plan.project),
            )
            .with_hint("take that project down first, or start this one under another name"));
        }
        checked(
            "the project's folder of the shared storage could not be made",
            made,
        )?;
        self.fill(&helper, step).await?;
        for seed in &step.seeds {
            let copied = self.copy(seed.spec.clone(), &seed.folder).await;
            copied.map_err(|error| in_service(&seed.service, error))?;
        }
        Ok(())
    }

    /// Removes the project's folder, as root.
    pub(super) async fn remove_folder(&self, helper: &AsyncSandbox) -> Result<()> {
        // One that never started has made nothing.
        if helper.handle().is_none() {
            return Ok(());
        }
        let options = script(REMOVE, &[&self.project_folder(), &self.start]).with_timeout(COPY);
        let what = "the project's folder of the shared storage could not be removed";
        run_short(helper, what, options).await.map(drop)
    }

    /// Where the helper has the project's folder.
    pub(super) fn project_folder(&self) -> String {
        format!("{HELPER_ROOT}/{}", self.plan.project)
    }

    /// Puts files of this machine into volumes (contract D20).
    async fn fill(&self, helper: &AsyncSandbox, step: &StorageStep) -> Result<()> {
        for volume in &step.volumes {
            let target = format!("{}/{}", self.project_folder(), volume.name);
            if let Some(owner) = volume.owner {
                let owner = format!("{}:{}", owner.uid, owner.gid);
                let options = script(r#"chown "$1" "$2""#, &[&owner, &target]);
                run_short(helper, "a volume could not be given to its owner", options).await?;
            }
            let Some(source) = &volume.source else { continue };
            let (files, handle) = self.provider.as_files().zip(helper.handle()).ok_or_else(|| {
                Error::unsupported(
                    Operation::ComposeUp,
                    self.provider.name(),
                    Capability::Files.as_str(),
                )
            })?;
            let options = UploadOptions {
                owner: volume.owner,
                ..UploadOptions::default()
            };
            let target = super::super::seed::target_in(source, &target).await;
            files
                .upload(&handle, UploadSource::Path(source), &target, &options)
                .await?;
        }
        Ok(())
    }

    /// Copies a folder of an image into a volume that is empty.
    async fn copy(&self, spec: SandboxSpec, folder: &str) -> Result<()> {
        let seed = self.new_sandbox(spec);
        self.made().seeds.push(Arc::clone(&seed));
        seed.start().await?;
        let options = script(SEED, &[folder, SEED_TARGET]).with_timeout(COPY);
        let result = seed.exec_with(options).await?;
        if result.error_type.is_none() && result.return_code == NO_FOLDER {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                Operation::ComposeUp,
                format!("a volume is mounted at `{folder}`, which is a file in the image"),
            ));
        }
        checked("the image's files could not be copied into a volume", result)?;
        match seed.stop().await {
            Ok(()) => self.made().seeds.retain(|other| !Arc::ptr_eq(other, &seed)),
            // It has done its work; the stop of the project tries again.
            Err(error) => tracing::warn!(%error, "a sandbox that filled a volume could not be removed yet"),
        }
        Ok(())
    }
}
