//! A provider whose sandboxes have no file system of their own, as the conformance suite needs it: what the cases say of
//! `/tmp` and a few other places is put below a folder of each sandbox, and what comes back is put back.
//!
//! It changes texts and nothing else, so that every case runs over the provider below it as it is.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use gym_sandbox::provider::{FilesProvider, InspectProvider, PtyProvider, PtySession, SpawnProvider};
use gym_sandbox::{
    CapturedOutput, Command, DownloadOptions, DownloadTarget, ExecOptions, ExecResult, ExecSession,
    FileEntry, FileStat, RemoveMode, Result, SandboxDetail, SandboxHandle, SandboxId, SandboxProvider,
    SandboxPtySpec, SandboxSpec, SandboxStatus, TransferProgress, UploadOptions, UploadSource,
};
use tempfile::TempDir;

/// Where the cases write.
const PLACES: [&str; 3] = ["/tmp", "/made/by", "/at-the-root"];

/// The first digits of the long sleeps that cases look for among all processes of the machine.
const SLEEPS: &str = "987";

/// How many roots there were, those of another provider of this process among them.
static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// A provider that runs on this machine, with a root for each sandbox.
#[derive(Debug)]
pub(crate) struct Rooted {
    inner: Arc<dyn SandboxProvider>,
    /// Roots of sandboxes whose spec names a working directory are made here.
    folder: TempDir,
    roots: Mutex<HashMap<SandboxId, Root>>,
}

/// That of one sandbox.
#[derive(Debug)]
struct Root {
    path: PathBuf,
    /// Tells its long sleeps from those of all other sandboxes and processes.
    number: usize,
}

impl Rooted {
    /// Makes one around the provider that the closure makes, which may copy files below the given folder.
    pub(crate) fn new(make: impl FnOnce(&Path) -> Result<Arc<dyn SandboxProvider>>) -> Result<Self> {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let inner = make(folder.path())?;
        Ok(Self {
            inner,
            folder,
            roots: Mutex::default(),
        })
    }

    /// Removes what the cases have left below the folder.
    pub(crate) fn remove_folder(&self) {
        std::fs::remove_dir_all(self.folder.path()).expect("the folder of the cases can be removed");
    }

    fn root(&self, handle: &SandboxHandle) -> String {
        let roots = self.roots.lock().expect("no case panics in here");
        let root = roots
            .get(handle.sandbox_id())
            .map(|root| root.path.display().to_string());
        root.unwrap_or_default()
    }

    fn number(&self, handle: &SandboxHandle) -> usize {
        let roots = self.roots.lock().expect("no case panics in here");
        roots.get(handle.sandbox_id()).map_or(0, |root| root.number)
    }

    fn text(&self, handle: &SandboxHandle, text: &str) -> String {
        let root = self.root(handle);
        let own = format!("{}{:03}{SLEEPS}", std::process::id(), self.number(handle));
        let mut text = text.replace(SLEEPS, &own);
        for place in PLACES {
            text = text.replace(place, &format!("{root}{place}"));
        }
        text
    }

    fn command(&self, handle: &SandboxHandle, command: Command) -> Command {
        match command {
            Command::Shell(line) => Command::Shell(self.text(handle, &line)),
            Command::Argv(argv) => {
                Command::Argv(argv.iter().map(|argument| self.text(handle, argument)).collect())
            }
            other => other,
        }
    }

    fn options(&self, handle: &SandboxHandle, mut options: ExecOptions) -> ExecOptions {
        options.command = self.command(handle, options.command);
        options.cwd = options.cwd.map(|cwd| self.text(handle, &cwd));
        options
    }

    fn remote(&self, handle: &SandboxHandle, remote: &str) -> String {
        match remote.strip_prefix('/') {
            Some(below) => format!("{}/{below}", self.root(handle)),
            None => remote.to_owned(),
        }
    }

    fn output(&self, handle: &SandboxHandle, output: CapturedOutput) -> CapturedOutput {
        let root = self.root(handle);
        match std::str::from_utf8(output.head()) {
            Ok(text) if !output.is_truncated() && !root.is_empty() && text.contains(&root) => {
                CapturedOutput::complete(text.replace(&root, ""))
            }
            _ => output,
        }
    }

    fn files(&self) -> &dyn FilesProvider {
        self.inner.as_files().expect("offered only where it is there")
    }
}

#[async_trait]
impl SandboxProvider for Rooted {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<SandboxHandle> {
        let own = spec.workdir().map(|workdir| {
            let root = self.folder.path().join(uuid::Uuid::new_v4().simple().to_string());
            let workdir = format!("{}{workdir}", root.display());
            (root, workdir)
        });
        let spec = match &own {
            Some((_, workdir)) => spec.clone().with_workdir(workdir),
            None => spec.clone(),
        };
        let handle = self.inner.create(&spec).await?;
        let root = if let Some((root, _)) = own {
            root
        } else {
            let result = self.inner.exec(&handle, ExecOptions::new("pwd")).await?;
            PathBuf::from(result.stdout().unwrap_or_default().trim_end())
        };
        std::fs::create_dir_all(root.join("tmp")).expect("a folder can be made");
        let path = root.canonicalize().expect("a folder that was made is there");
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        self.roots
            .lock()
            .expect("no case panics in here")
            .insert(handle.sandbox_id().clone(), Root { path, number });
        Ok(handle)
    }

    async fn exec(&self, handle: &SandboxHandle, options: ExecOptions) -> Result<ExecResult> {
        let mut result = self.inner.exec(handle, self.options(handle, options)).await?;
        result.captured_stdout = self.output(handle, result.captured_stdout);
        Ok(result)
    }

    async fn upload_file(&self, handle: &SandboxHandle, local: &Path, remote: &str) -> Result<()> {
        self.inner
            .upload_file(handle, local, &self.remote(handle, remote))
            .await
    }

    async fn download_file(&self, handle: &SandboxHandle, remote: &str, local: &Path) -> Result<()> {
        self.inner
            .download_file(handle, &self.remote(handle, remote), local)
            .await
    }

    async fn status(&self, handle: &SandboxHandle) -> Result<SandboxStatus> {
        self.inner.status(handle).await
    }

    async fn close(&self, handle: &SandboxHandle) -> Result<()> {
        self.inner.close(handle).await
    }

    async fn aclose(&self) -> Result<()> {
        self.inner.aclose().await
    }

    fn as_spawn(&self) -> Option<&dyn SpawnProvider> {
        self.inner.as_spawn().map(|_| self as &dyn SpawnProvider)
    }

    fn as_inspect(&self) -> Option<&dyn InspectProvider> {
        self.inner.as_inspect().map(|_| self as &dyn InspectProvider)
    }

    fn as_files(&self) -> Option<&dyn FilesProvider> {
        self.inner.as_files().map(|_| self as &dyn FilesProvider)
    }

    fn as_pty(&self) -> Option<&dyn PtyProvider> {
        self.inner.as_pty().map(|_| self as &dyn PtyProvider)
    }
}

#[async_trait]
impl PtyProvider for Rooted {
    async fn create_pty(&self, handle: &SandboxHandle, spec: &SandboxPtySpec) -> Result<Arc<dyn PtySession>> {
        let mut spec = spec.clone();
        spec.command = spec.command.map(|command| self.command(handle, command));
        spec.cwd = spec.cwd.map(|cwd| self.text(handle, &cwd));
        let pty = self.inner.as_pty().expect("offered only where it is there");
        pty.create_pty(handle, &spec).await
    }
}

#[async_trait]
impl SpawnProvider for Rooted {
    async fn spawn(&self, handle: &SandboxHandle, options: ExecOptions) -> Result<Box<dyn ExecSession>> {
        let spawn = self.inner.as_spawn().expect("offered only where it is there");
        spawn.spawn(handle, self.options(handle, options)).await
    }
}

#[async_trait]
impl InspectProvider for Rooted {
    async fn inspect(&self, handle: &SandboxHandle) -> Result<SandboxDetail> {
        let inspect = self.inner.as_inspect().expect("offered only where it is there");
        inspect.inspect(handle).await
    }
}

#[async_trait]
impl FilesProvider for Rooted {
    async fn upload(
        &self,
        handle: &SandboxHandle,
        source: UploadSource<'_>,
        remote: &str,
        options: &UploadOptions,
    ) -> Result<TransferProgress> {
        self.files()
            .upload(handle, source, &self.remote(handle, remote), options)
            .await
    }

    async fn download(
        &self,
        handle: &SandboxHandle,
        remote: &str,
        target: DownloadTarget<'_>,
        options: &DownloadOptions,
    ) -> Result<TransferProgress> {
        self.files()
            .download(handle, &self.remote(handle, remote), target, options)
            .await
    }

    async fn stat(&self, handle: &SandboxHandle, remote: &str) -> Result<Option<FileStat>> {
        self.files().stat(handle, &self.remote(handle, remote)).await
    }

    async fn list(&self, handle: &SandboxHandle, remote: &str) -> Result<Vec<FileEntry>> {
        self.files().list(handle, &self.remote(handle, remote)).await
    }

    async fn remove(&self, handle: &SandboxHandle, remote: &str, mode: RemoveMode) -> Result<bool> {
        self.files()
            .remove(handle, &self.remote(handle, remote), mode)
            .await
    }

    async fn make_directory(
        &self,
        handle: &SandboxHandle,
        remote: &str,
        options: &UploadOptions,
    ) -> Result<()> {
        self.files()
            .make_directory(handle, &self.remote(handle, remote), options)
            .await
    }
}
