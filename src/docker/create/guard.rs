//! What becomes of a create that ends in any other way than with a container that is handed out.

use std::collections::HashMap;
use std::time::Duration;

use bollard::errors::Error as BollardError;
use bollard::models::{
    ContainerCreateBody, ContainerCreateResponse, Mount, MountType, MountVolumeOptions, Volume,
};
use bollard::query_parameters::RemoveVolumeOptionsBuilder;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::docker::DockerProvider;
use crate::docker::container::is_volume_name;
use crate::docker::failure::{EngineFailure, QUICK, call};
use crate::docker::lease::give_up;
use crate::docker::owner::LABEL;
use crate::docker::status::Looked;
use crate::error::{Error, ErrorKind, Operation};
use crate::provider::Reaper;
use crate::spec::SandboxId;

type CreateCall = JoinHandle<Result<ContainerCreateResponse, BollardError>>;

/// How long the error of a failed create is held back for the removal of what it made.
const UNDO: Duration = Duration::from_secs(10);

/// How long a container whose create was cut off is looked for.
const ABANDONED: Duration = Duration::from_secs(100);

/// How often, over about 30 s, a container has to be absent before it counts as never made. A busy engine takes 20 s for one.
const ABSENT_LOOKS: u32 = 32;

/// How often, and with which pause, the removal of a volume is tried that another cut-off container still has.
const TRIES_IN_USE: u32 = 60;
const IN_USE: Duration = Duration::from_secs(1);

/// What a create has made that is not handed out yet, as far as that is known.
pub(super) enum Made {
    /// Nothing.
    Nothing,
    /// The call is under way.
    Calling(CreateCall),
    /// The call's answer was lost: the engine may have made the container, or be at it.
    Unknown,
    /// A container.
    Container,
    /// A container that is the caller's by now.
    HandedOut,
}

/// Removes what a create has made, unless it was handed out. Dropped in the middle of anything it hands the removal to
/// the clean-up thread.
pub(in crate::docker) struct CreateGuard {
    provider: DockerProvider,
    pub(super) id: SandboxId,
    pub(super) made: Made,
    /// On a label of what is made: a container of that name may be somebody else's, where the caller chose the name.
    pub(super) token: String,
}

impl CreateGuard {
    /// Guards a container of that name, of which nothing is made yet.
    pub(in crate::docker) fn new(provider: &DockerProvider, id: SandboxId) -> Self {
        Self {
            provider: provider.clone(),
            id,
            made: Made::Nothing,
            token: uuid::Uuid::new_v4().simple().to_string(),
        }
    }

    /// Marks the named volumes that the engine would make for the container, where they are gone by then: as made by this
    /// create, and as the project's, so that they go with it. A mount in the short form has no place for that, so that these
    /// are put in the long one; a relabelled one has no long form.
    pub(in crate::docker) fn mark_volumes(&self, body: &mut ContainerCreateBody) {
        let mut marks = of_a_volume(body.labels.iter().flatten());
        marks.insert(token_label(), self.token.clone());
        let Some(host) = &mut body.host_config else { return };
        let (volumes, binds): (Vec<String>, Vec<String>) = host
            .binds
            .take()
            .unwrap_or_default()
            .into_iter()
            .partition(|bind| long_form(bind).is_some());
        host.binds = (!binds.is_empty()).then_some(binds);
        let mounts = host.mounts.get_or_insert_default();
        mounts.extend(volumes.iter().filter_map(|bind| long_form(bind)));
        for mount in mounts.iter_mut() {
            if mount.typ == Some(MountType::VOLUME) && mount.source.is_some() {
                let options = mount.volume_options.get_or_insert_default();
                let labels = options.labels.get_or_insert_default();
                labels.extend(marks.clone());
            }
        }
        if mounts.is_empty() {
            host.mounts = None;
        }
    }

    /// What was made is somebody else's now.
    pub(in crate::docker) fn disarm(mut self) {
        self.made = Made::HandedOut;
    }

    /// Removes what was made, and attaches to the error what kept it from that.
    pub(in crate::docker) async fn undo(mut self, error: Error) -> Error {
        // What may still be in the making is not there to be removed yet, and the error is not held back for it.
        if !matches!(self.made, Made::Container) {
            return error;
        }
        let undoing = self.provider.remove_if_made(self.id.as_str(), &self.token);
        match tokio::time::timeout(UNDO, undoing).await {
            Ok(Ok(_)) => {
                self.made = Made::Nothing;
                error
            }
            // The guard keeps what was made: its drop tries again in the background.
            Ok(Err(cleanup)) => error.with_cleanup_error(cleanup),
            Err(_) => error,
        }
    }
}

/// The long form of a mount of a named volume.
fn long_form(bind: &str) -> Option<Mount> {
    const KNOWN: [&str; 4] = ["", "rw", "ro", "nocopy"];
    let mut parts = bind.splitn(3, ':');
    let (source, target) = (parts.next()?, parts.next()?);
    let options: Vec<&str> = parts.next().unwrap_or_default().split(',').collect();
    if !is_volume_name(source) || !options.iter().all(|option| KNOWN.contains(option)) {
        return None;
    }
    Some(Mount {
        typ: Some(MountType::VOLUME),
        source: Some(source.to_owned()),
        target: Some(target.to_owned()),
        read_only: options.contains(&"ro").then_some(true),
        volume_options: Some(MountVolumeOptions {
            no_copy: options.contains(&"nocopy").then_some(true),
            ..MountVolumeOptions::default()
        }),
        ..Mount::default()
    })
}

impl Drop for CreateGuard {
    fn drop(&mut self) {
        let made = std::mem::replace(&mut self.made, Made::Nothing);
        match made {
            Made::HandedOut => return,
            Made::Nothing => return give_up(self.id.as_str()),
            Made::Calling(_) | Made::Unknown | Made::Container => {}
        }
        let provider = self.provider.clone();
        let id = self.id.clone();
        let token = std::mem::take(&mut self.token);
        self.provider
            .reaper()
            .submit("remove a cancelled create", async move {
                provider.remove_abandoned(&id, &token, made).await;
                give_up(id.as_str());
            });
    }
}

impl DockerProvider {
    /// Removes a container whose create was cut off at an unknown point.
    async fn remove_abandoned(&self, id: &SandboxId, token: &str, made: Made) {
        let deadline = Instant::now() + ABANDONED;
        let mut exists = matches!(made, Made::Container);
        let mut call = match made {
            Made::Calling(call) => Some(call),
            _ => None,
        };
        let mut absent_looks = 0;
        let mut pause = Duration::from_millis(50);
        loop {
            match self.remove_if_made(id.as_str(), token).await {
                Ok(true) => return,
                Ok(false) if exists => return,
                // When the answer was lost, the engine may still be making the container.
                Ok(false) if call.is_none() => {
                    absent_looks += 1;
                    if absent_looks >= ABSENT_LOOKS {
                        return;
                    }
                }
                Err(error) if Instant::now() >= deadline => {
                    tracing::warn!(sandbox_id = %id, %error, "a cancelled create could not be removed; it is left to a sweep");
                    return;
                }
                _ if Instant::now() >= deadline => return,
                _ => {}
            }
            // The call runs on the caller's runtime, which may stand still or be gone: it is never waited for alone.
            let ended = if let Some(running) = &mut call {
                tokio::time::timeout(pause, running).await.ok()
            } else {
                tokio::time::sleep(pause).await;
                None
            };
            pause = (pause * 2).min(Duration::from_secs(1));
            if let Some(ended) = ended {
                call = None;
                match ended.map(|answer| answer.map_err(EngineFailure::from)) {
                    Ok(Ok(_)) => exists = true,
                    Ok(Err(failure)) if failure.began_nothing() => return,
                    Ok(Err(_)) | Err(_) => {}
                }
            }
        }
    }

    /// Removes a container of that name if this very create has made it. Says whether there was one.
    async fn remove_if_made(&self, name: &str, token: &str) -> Result<bool, Error> {
        let failed = |failure: EngineFailure| {
            failure.into_error(
                Operation::Close,
                "a cancelled create could not be looked for",
                ErrorKind::Internal,
            )
        };
        let Looked::There(inspected) = self.look(name).await.map_err(failed)? else {
            return Ok(false);
        };
        let labels = inspected
            .config
            .as_ref()
            .and_then(|config| config.labels.as_ref());
        let made_by = labels.and_then(|labels| labels.get(&token_label()));
        let is_ours = made_by.is_some_and(|made_by| made_by == token);
        let inspected = *inspected;
        let volumes = inspected.mounts.into_iter().flatten();
        let volumes = volumes.filter_map(|mount| mount.name);
        match inspected.id {
            // By its id: the name may be another's in the next moment.
            Some(container_id) if is_ours => {
                let was_there = self.remove_if_present(&container_id).await?;
                self.remove_made_with(volumes, token).await;
                Ok(was_there)
            }
            _ => Ok(false),
        }
    }

    /// Removes the volumes that the engine has made with a container of this create: those of a project that was removed
    /// while it was on its way.
    async fn remove_made_with(&self, volumes: impl Iterator<Item = String>, token: &str) {
        let Ok(engine) = self.engine().await else { return };
        let options = RemoveVolumeOptionsBuilder::new().force(true).build();
        for name in volumes {
            let volume = call(QUICK, engine.client.inspect_volume(&name)).await;
            let is_ours = |volume: &Volume| {
                volume
                    .labels
                    .get(&token_label())
                    .is_some_and(|made_by| made_by == token)
            };
            if !volume.as_ref().is_ok_and(is_ours) {
                continue;
            }
            let mut tries = 0;
            let removed = loop {
                let removed = call(QUICK, engine.client.remove_volume(&name, Some(options.clone()))).await;
                match &removed {
                    Err(failure) if failure.is_status(409) && tries < TRIES_IN_USE => tries += 1,
                    _ => break removed,
                }
                // Its removal may wait for this job's place.
                Reaper::aside(tokio::time::sleep(IN_USE)).await;
            };
            if let Err(failure) = removed {
                tracing::warn!(volume = name, %failure, "a volume of a cancelled create could not be removed");
            }
        }
    }
}

/// Of a container's labels those that say whose it is, for a volume of its.
fn of_a_volume<'a>(labels: impl Iterator<Item = (&'a String, &'a String)>) -> HashMap<String, String> {
    let says_whose = |key: &str| {
        key == LABEL
            || key == "com.docker.compose.project"
            || key.strip_prefix(LABEL).is_some_and(|key| WHOSE.contains(&key))
    };
    let of_it = labels.filter(|(key, _)| says_whose(key));
    let mut marks: HashMap<String, String> = of_it.map(|(key, value)| (key.clone(), value.clone())).collect();
    marks.insert(format!("{LABEL}.kind"), "volume".to_owned());
    marks
}

/// The ends of the labels that say whose something is.
const WHOSE: [&str; 7] = [
    ".owner", ".run", ".created", ".lease", ".renewal", ".project", ".kept",
];

/// The label with the token of the create that made a container.
pub(in crate::docker) fn token_label() -> String {
    format!("{LABEL}.create")
}
