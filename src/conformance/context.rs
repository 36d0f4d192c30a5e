//! What the cases run over: a provider, a spec to start from, and what the image brings.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;

use crate::error::Result;
use crate::provider::{Reaper, SandboxHandle, SandboxProvider};
use crate::spec::{ExecOptions, ExecResult, SandboxSpec};

use super::check::{Failure, Outcome, equal};

/// The label that the sandboxes of a case carry; its value is different for every run of a case.
const MARKER: &str = "conformance-case";

/// How long what a case has left may stay until it counts as left: a provider may clean up in the background, and what
/// it has asked for may come late.
const SETTLE: Duration = Duration::from_secs(120);

/// Lists what the provider holds with a label: key and value to what was found. See [`Context::with_survey`].
pub type Survey = Arc<
    dyn Fn(String, String) -> BoxFuture<'static, std::result::Result<Vec<String>, Failure>> + Send + Sync,
>;

/// What the cases run over.
pub struct Context {
    provider: Arc<dyn SandboxProvider>,
    base: SandboxSpec,
    user: Option<(String, u32)>,
    server: Option<String>,
    survey: Option<Survey>,
    exemptions: Vec<(&'static str, &'static str)>,
    deadline: Duration,
    pub(super) settle: Duration,
    marker: Option<String>,
    made: Mutex<Vec<SandboxHandle>>,
    reaper: Reaper,
}

impl Context {
    /// Tests a provider. Every sandbox is made from the given spec, to which a case adds what it is about.
    ///
    /// The sandbox must have a POSIX shell and the standard tools of one (`cat`, `sleep`, `wc`, `head`, `tr`, `id`,
    /// `mkdir`, `touch`, `chmod`, `test`), a `/tmp` that everybody can write, and a default user who can write to `/`.
    pub fn new(provider: Arc<dyn SandboxProvider>, base: SandboxSpec) -> Self {
        Self {
            provider,
            base,
            user: None,
            server: None,
            survey: None,
            exemptions: Vec::new(),
            deadline: Duration::from_secs(300),
            settle: SETTLE,
            marker: None,
            made: Mutex::default(),
            reaper: Reaper::new(),
        }
    }

    /// Names a user that the sandbox knows beside its default one. Without it, cases about users are skipped.
    pub fn with_user(mut self, name: impl Into<String>, uid: u32) -> Self {
        self.user = Some((name.into(), uid));
        self
    }

    /// Gives a shell line that serves HTTP on a port, `{port}` standing for its number, and does not end. Without it,
    /// cases that connect to a sandbox are skipped.
    pub fn with_server(mut self, line: impl Into<String>) -> Self {
        self.server = Some(line.into());
        self
    }

    /// Gives a way to see what exists: it is called with the key and the value of a label that every sandbox of a case
    /// carries as metadata, and lists what has it. With it, every case also checks that it leaves nothing.
    pub fn with_survey(mut self, survey: Survey) -> Self {
        self.survey = Some(survey);
        self
    }

    /// Leaves a case out, or a theme with all of its cases, with the reason why the provider does something else there
    /// on purpose. Names are those of [`Case`](super::Case), such as `inspect::limits_are_shown` or `inspect`.
    pub fn with_exemption(mut self, case_or_theme: &'static str, reason: &'static str) -> Self {
        self.exemptions.push((case_or_theme, reason));
        self
    }

    /// Sets how long one case may take; 300 s by default.
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The provider.
    pub fn provider(&self) -> &Arc<dyn SandboxProvider> {
        &self.provider
    }

    /// A spec to start from, marked so that what is made with it can be found.
    pub fn spec(&self) -> SandboxSpec {
        match &self.marker {
            Some(marker) => self.base.clone().with_metadata(MARKER, marker),
            None => self.base.clone(),
        }
    }

    /// Makes a sandbox that is removed when the case ends.
    ///
    /// # Errors
    /// A failure that says why it could not be made.
    ///
    /// # Cancel safety
    /// As [`SandboxProvider::create`].
    pub async fn create(&self, spec: &SandboxSpec) -> std::result::Result<SandboxHandle, Failure> {
        let handle = self.provider.create(spec).await?;
        self.adopt(&handle);
        Ok(handle)
    }

    /// Makes a sandbox from the spec as it is.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    ///
    /// # Cancel safety
    /// As [`create`](Self::create).
    pub async fn sandbox(&self) -> std::result::Result<SandboxHandle, Failure> {
        self.create(&self.spec()).await
    }

    /// Has a sandbox removed when the case ends.
    pub fn adopt(&self, handle: &SandboxHandle) {
        self.made
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(handle.clone());
    }

    /// Runs a command.
    pub(super) async fn exec(
        &self,
        handle: &SandboxHandle,
        options: impl Into<ExecOptions> + Send,
    ) -> Result<ExecResult> {
        self.provider.exec(handle, options.into()).await
    }

    /// Runs a command that must succeed, and gives its output.
    pub(super) async fn stdout(
        &self,
        handle: &SandboxHandle,
        options: impl Into<ExecOptions> + Send,
    ) -> std::result::Result<String, Failure> {
        let options = options.into();
        let shown = format!("{:?}", options.command);
        let result = self.provider.exec(handle, options).await?;
        if !result.is_success() {
            return Err(Failure::new(format!(
                "a command that must succeed did not: {shown}: {result:?}"
            )));
        }
        Ok(result.stdout().unwrap_or_default())
    }

    /// The command lines of running processes that hold a pattern. The pattern must not match its own text, as
    /// `sleep 9[9]` does not.
    pub(super) async fn processes(
        &self,
        handle: &SandboxHandle,
        pattern: &str,
    ) -> std::result::Result<String, Failure> {
        let line = "for file in /proc/[0-9]*/cmdline; do tr '\\000' ' ' < \"$file\"; echo; done 2>/dev/null";
        self.stdout(handle, format!("{line} | grep '{pattern}'; true"))
            .await
    }

    /// Writes bytes to a file of the sandbox.
    pub(super) async fn write(&self, handle: &SandboxHandle, path: &str, bytes: &[u8]) -> Outcome {
        let local = tempfile::NamedTempFile::new()?;
        tokio::fs::write(local.path(), bytes).await?;
        Ok(self.provider.upload_file(handle, local.path(), path).await?)
    }

    /// Reads a file of the sandbox.
    pub(super) async fn read(
        &self,
        handle: &SandboxHandle,
        path: &str,
    ) -> std::result::Result<Vec<u8>, Failure> {
        let folder = tempfile::tempdir()?;
        let local = folder.path().join("downloaded");
        self.provider.download_file(handle, path, &local).await?;
        Ok(tokio::fs::read(&local).await?)
    }

    /// Copies a file into the sandbox from a path of this machine.
    pub(super) async fn upload(&self, handle: &SandboxHandle, local: &Path, remote: &str) -> Result<()> {
        self.provider.upload_file(handle, local, remote).await
    }

    pub(super) fn image(&self) -> Option<&str> {
        self.base.image()
    }

    pub(super) fn user(&self) -> Option<(&str, u32)> {
        self.user.as_ref().map(|(name, uid)| (name.as_str(), *uid))
    }

    pub(super) fn has_server(&self) -> bool {
        self.server.is_some()
    }

    pub(super) fn server(&self, port: u16) -> String {
        self.server
            .as_deref()
            .unwrap_or_default()
            .replace("{port}", &port.to_string())
    }

    pub(super) fn exemption(&self, case: &str) -> Option<&'static str> {
        let theme = case.split("::").next();
        self.exemptions
            .iter()
            .find(|(name, _)| *name == case || Some(*name) == theme)
            .map(|(_, reason)| *reason)
    }

    /// The names that exemptions were given for.
    pub fn exemptions(&self) -> impl Iterator<Item = &'static str> {
        self.exemptions.iter().map(|(name, _)| *name)
    }

    pub(super) fn has_survey(&self) -> bool {
        self.survey.is_some()
    }

    pub(super) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// A context of its own for one run of one case.
    pub(super) fn for_case(&self, theme: &str, name: &str) -> Self {
        Self {
            provider: Arc::clone(&self.provider),
            base: self.base.clone(),
            user: self.user.clone(),
            server: self.server.clone(),
            survey: self.survey.clone(),
            exemptions: self.exemptions.clone(),
            deadline: self.deadline,
            settle: self.settle,
            marker: Some(format!("{theme}-{name}-{}", uuid::Uuid::new_v4().simple())),
            made: Mutex::default(),
            reaper: Reaper::new(),
        }
    }

    /// Removes what the case has made, and looks whether something else is left.
    pub(super) async fn clean_up(&self) -> Outcome {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        let mut outcome = Ok(());
        for handle in made {
            let closed = self.provider.close(&handle).await.map_err(Failure::from);
            outcome = outcome.and(closed.map_err(|failure| failure.at("cleaning up after the case")));
        }
        outcome.and(self.nothing_left().await)
    }

    /// Fails when the survey finds something of this case at this moment.
    pub(super) async fn nothing_left_now(&self) -> Outcome {
        let (Some(survey), Some(marker)) = (&self.survey, &self.marker) else {
            return Ok(());
        };
        equal(
            "what is still there",
            survey(MARKER.to_owned(), marker.clone()).await?,
            Vec::<String>::new(),
        )
    }

    /// Fails unless the survey finds nothing of this case any more, within a while.
    pub(super) async fn nothing_left(&self) -> Outcome {
        let (Some(survey), Some(marker)) = (&self.survey, &self.marker) else {
            return Ok(());
        };
        let deadline = tokio::time::Instant::now() + self.settle;
        loop {
            let left = survey(MARKER.to_owned(), marker.clone()).await?;
            if left.is_empty() {
                return Ok(());
            }
            if tokio::time::Instant::now() >= deadline {
                return equal("what the case left behind", left, Vec::<String>::new());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Drop for Context {
    /// A case that was dropped in the middle has its sandboxes removed by the clean-up thread.
    fn drop(&mut self) {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        for handle in made {
            let provider = Arc::clone(&self.provider);
            self.reaper
                .submit("remove a sandbox of a conformance case", async move {
                    if let Err(error) = provider.close(&handle).await {
                        tracing::warn!(%error, "a sandbox of a conformance case could not be removed");
                    }
                });
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("provider", &self.provider)
            .field("marker", &self.marker)
            .finish_non_exhaustive()
    }
}
