//! The project's folder of the shared storage: made by a sandbox that has all of it, and filled (contract 4.7).

use std::sync::Arc;
use std::time::Duration;

use crate::compose::plan::{HELPER_ROOT, SEED_TARGET, StorageStep, VolumeFolder};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::provider::Capability;
use crate::sandbox::AsyncSandbox;
use crate::spec::{SandboxSpec, UploadOptions, UploadSource};

use super::super::failure::in_volumes;
use super::super::teardown::VolumeFate;
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
        let all = || {
            let volumes = step.volumes.iter();
            volumes.map(|volume| (volume.key.as_str(), volume.service.as_str()))
        };
        let helper = self.new_sandbox(step.helper.clone());
        self.made().helper = Some(Arc::clone(&helper));
        let made = async {
            helper.start().await?;
            self.make_folders(&helper, step).await
        };
        made.await.map_err(|error| in_volumes(all(), error))?;
        for volume in &step.volumes {
            let filled = self.fill(&helper, volume).await;
            filled.map_err(|error| in_volumes([(volume.key.as_str(), volume.service.as_str())], error))?;
        }
        for seed in &step.seeds {
            let copied = self.copy(seed.spec.clone(), &seed.folder).await;
            copied.map_err(|error| in_volumes([(seed.volume.as_str(), seed.service.as_str())], error))?;
        }
        Ok(())
    }

    async fn make_folders(&self, helper: &AsyncSandbox, step: &StorageStep) -> Result<()> {
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
        )
        .map(drop)
    }

    /// Removes the project's folder, and then the helper. One that was killed has its work done by another one.
    pub(super) async fn end_storage(&self, helper: Arc<AsyncSandbox>, fate: VolumeFate) -> Result<()> {
        // It is wanted for another try as long as the folder is there.
        let mut helper = helper;
        if fate == VolumeFate::Remove
            && let Err(error) = self.remove_folder(&helper).await
        {
            // One whose own removal has begun and failed runs nothing any more, either.
            let (ErrorKind::Sandbox(_) | ErrorKind::Stopped, Some(step)) = (error.kind(), &self.plan.storage)
            else {
                return Err(error);
            };
            tracing::debug!(%error, "the folder is removed by another sandbox");
            let other = self.new_sandbox(step.helper.clone());
            other.start().await?;
            let killed = std::mem::replace(&mut helper, other);
            {
                let mut made = self.made();
                made.helper = Some(Arc::clone(&helper));
                made.seeds.push(Arc::clone(&killed));
            }
            self.remove_folder(&helper).await?;
            self.end_seed(&killed).await?;
        }
        helper.stop().await?;
        self.made().helper = None;
        Ok(())
    }

    /// Removes the project's folder, as root.
    async fn remove_folder(&self, helper: &AsyncSandbox) -> Result<()> {
        // One that never started has made nothing.
        if helper.handle().is_none() {
            return Ok(());
        }
        let options = script(REMOVE, &[&self.project_folder(), &self.start]).with_timeout(COPY);
        let what = "the project's folder of the shared storage could not be removed";
        run_short(helper, what, options).await.map(drop)
    }

    /// Where the helper has the project's folder.
    fn project_folder(&self) -> String {
        format!("{HELPER_ROOT}/{}", self.plan.project)
    }

    /// Gives a volume to its owner, and puts files of this machine into it (contract D20).
    async fn fill(&self, helper: &AsyncSandbox, volume: &VolumeFolder) -> Result<()> {
        let target = format!("{}/{}", self.project_folder(), volume.name);
        if let Some(owner) = volume.owner {
            let owner = format!("{}:{}", owner.uid, owner.gid);
            let options = script(r#"chown "$1" "$2""#, &[&owner, &target]);
            run_short(helper, "it could not be given to its owner", options).await?;
        }
        let Some(source) = &volume.source else {
            return Ok(());
        };
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
        let uploaded = files.upload(&handle, UploadSource::Path(source), &target, &options);
        uploaded.await.map(drop)
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
        // It has done its work; the stop of the project tries again.
        if let Err(error) = self.end_seed(&seed).await {
            tracing::warn!(%error, "a sandbox that filled a volume could not be removed yet");
        }
        Ok(())
    }

    /// Removes a sandbox that copied; one that can't be removed stays noted.
    pub(super) async fn end_seed(&self, seed: &Arc<AsyncSandbox>) -> Result<()> {
        seed.stop().await?;
        self.made().seeds.retain(|other| !Arc::ptr_eq(other, seed));
        Ok(())
    }
}
