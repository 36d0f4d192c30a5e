//! `cp`: files and directories into a sandbox and out of it.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gym_sandbox::docker::DockerProvider;
use gym_sandbox::provider::{FilesProvider, Traced};
use gym_sandbox::{
    DownloadOptions, DownloadTarget, Error, ErrorKind, Operation, ProgressCallback, Result, SandboxHandle,
    SandboxProvider, TransferProgress, UploadOptions, UploadSource,
};

use crate::cli::exit;
use crate::cli::output::{self, Format};
use crate::cli::resolve::{CopyEnd, CopyRequest};
use crate::cli::session::{Outcome, blocking, until_interrupted};
use crate::cli::stream;

/// How often the progress line is written.
const TICK: Duration = Duration::from_millis(200);

/// Copies. Nothing half-written is left when a signal ends it.
///
/// # Errors
/// There is no such sandbox, or a path is at fault.
pub(in crate::cli) async fn run(request: CopyRequest) -> Result<u8> {
    let format = request.format;
    let docker = DockerProvider::new(request.config.clone())?;
    let provider = Traced::new(std::sync::Arc::new(docker.clone()));
    let outcome = until_interrupted(Box::pin(copy(&docker, &provider, request))).await;
    output::progress_done();
    // What a signal cut off is cleaned up in the background: this waits for it.
    provider.aclose().await?;
    match outcome? {
        Outcome::Ended(progress) => {
            if format == Format::Json {
                blocking(move || output::json(&progress)).await?;
            }
            Ok(exit::SUCCESS)
        }
        Outcome::Interrupted(interrupt) => Ok(interrupt.exit_code()),
    }
}

async fn copy(docker: &DockerProvider, provider: &Traced, request: CopyRequest) -> Result<TransferProgress> {
    let files = provider
        .as_files()
        .ok_or_else(|| Error::unsupported(Operation::Files, provider.name(), "files"))?;
    match (request.source, request.target) {
        (CopyEnd::Local(local), CopyEnd::Sandbox { id, path }) => {
            let handle = docker.attach(&id).await?;
            let mut options = request.upload;
            options.progress = progress();
            up(files, &handle, &local, &path, &options).await
        }
        (CopyEnd::Sandbox { id, path }, CopyEnd::Local(local)) => {
            let handle = docker.attach(&id).await?;
            let mut options = DownloadOptions::default();
            options.progress = progress();
            down(files, &handle, &path, &local, &options).await
        }
        _ => Err(Error::new(
            ErrorKind::Internal,
            Operation::Files,
            "a copy needs one end in a sandbox and one on this machine",
        )),
    }
}

async fn up(
    files: &dyn FilesProvider,
    handle: &SandboxHandle,
    local: &str,
    path: &str,
    options: &UploadOptions,
) -> Result<TransferProgress> {
    let source = if local == "-" {
        UploadSource::reader(stream::standard_input()?, None)
    } else {
        UploadSource::Path(Path::new(local))
    };
    files.upload(handle, source, path, options).await
}

async fn down(
    files: &dyn FilesProvider,
    handle: &SandboxHandle,
    path: &str,
    local: &str,
    options: &DownloadOptions,
) -> Result<TransferProgress> {
    let mut stdout;
    let target = if local == "-" {
        stdout = stream::standard_output()?;
        DownloadTarget::Writer(&mut stdout)
    } else {
        DownloadTarget::Path(Path::new(local))
    };
    files.download(handle, path, target, options).await
}

/// Writes a line that is written over again, on a terminal only.
fn progress() -> Option<ProgressCallback> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let last = Mutex::new(None::<Instant>);
    Some(ProgressCallback::new(move |progress| {
        // A panic elsewhere can't have left half of it.
        let mut last = last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= TICK) {
            *last = Some(Instant::now());
            output::progress(&line(progress));
        }
    }))
}

fn line(progress: TransferProgress) -> String {
    let moved = size(progress.bytes);
    match progress.total_bytes {
        Some(total) if total > 0 => {
            let percent = progress.bytes.saturating_mul(100) / total;
            format!("{moved} of {} ({percent} %)", size(total))
        }
        _ => format!("{moved}, {} files", progress.entries),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} B"),
        10_240..10_485_760 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_line_says_how_much_of_how_much() {
        let mut progress = TransferProgress::default();
        progress.bytes = 5 << 20;
        progress.entries = 3;
        assert_eq!(line(progress), "5120 KiB, 3 files");
        progress.total_bytes = Some(20 << 20);
        assert_eq!(line(progress), "5120 KiB of 20 MiB (25 %)");
        progress.total_bytes = Some(0);
        assert_eq!(line(progress), "5120 KiB, 3 files");
    }
}
