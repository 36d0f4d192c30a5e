//! The two archive calls as streams: a body in, or a tar reader on a blocking thread out.

use std::io;

use bollard::query_parameters::{DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder};
use bytes::Bytes;
use futures::StreamExt;
use tokio::sync::mpsc;

use crate::error::{Error, ErrorKind, Operation, Result};
use crate::spec::DEFAULT_STALL_TIMEOUT;

use super::super::failure::EngineFailure;
use super::super::{DockerProvider, DockerRaw};
use super::entry::{Kind, Reader};
use super::stat::failure_error;
use super::stream::{CHUNKS, Chunk, ChunkReader, Moved};

/// Far longer than any transfer: the client's deadline is on the answer, which comes after the whole body. Stalls are
/// watched for instead.
const NO_DEADLINE: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 3600);

/// What happens where a file and a directory have the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clash {
    /// The engine refuses.
    Refuse,
    /// What is there is replaced; only right where that is a link.
    Replace,
}

/// Unpacks an archive in a container.
pub(super) async fn put(
    client: bollard::Docker,
    container_id: String,
    base: String,
    clash: Clash,
    body: Body,
) -> Result<(), EngineFailure> {
    let mut options = UploadToContainerOptionsBuilder::new().path(&base);
    if clash == Clash::Refuse {
        options = options.no_overwrite_dir_non_dir("true");
    }
    let client = client.with_timeout(NO_DEADLINE);
    let body = match body {
        Body::Whole(bytes) => bollard::body_full(bytes.into()),
        Body::Streamed(receiver, moved) => {
            let chunks = futures::stream::unfold((receiver, moved), |(mut receiver, moved)| async move {
                let chunk = receiver.recv().await?;
                moved.step();
                Some((chunk, (receiver, moved)))
            });
            bollard::body_try_stream(chunks)
        }
    };
    client
        .upload_to_container(&container_id, Some(options.build()), body)
        .await
        .map_err(EngineFailure::from)
}

/// What an archive call sends.
pub(super) enum Body {
    /// All of it at once.
    Whole(Vec<u8>),
    /// Chunks as they come.
    Streamed(mpsc::Receiver<io::Result<Bytes>>, Moved),
}

impl DockerProvider {
    /// Reads what the archive call gives of a path, on a blocking thread. The reader may stop before the end.
    pub(super) async fn read_archive<T: Send + 'static>(
        &self,
        raw: &DockerRaw,
        operation: Operation,
        path: &str,
        stalls: (&Moved, std::time::Duration),
        read: impl FnOnce(&mut Reader<ChunkReader>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let client = self.engine().await?.client.clone().with_timeout(NO_DEADLINE);
        let options = DownloadFromContainerOptionsBuilder::new().path(path).build();
        let (sender, receiver) = mpsc::channel(CHUNKS);
        let reading = tokio::task::spawn_blocking(move || read(&mut Reader::new(ChunkReader::new(receiver))));
        let (moved, stall_timeout) = stalls;
        let pump = async {
            let mut stream = std::pin::pin!(client.download_from_container(&raw.container_id, Some(options)));
            loop {
                let chunk = match stream.next().await {
                    Some(Ok(chunk)) => Chunk::Data(chunk),
                    None => Chunk::End,
                    Some(Err(error)) => return Some(EngineFailure::from(error)),
                };
                let ended = matches!(chunk, Chunk::End);
                moved.step();
                // A reader that has gone has what it wanted, or an error of its own.
                if sender.send(chunk).await.is_err() || ended {
                    return None;
                }
            }
        };
        let pumped = moved.unless_stalled(stall_timeout, operation, pump).await;
        drop(sender);
        let read = reading.await.map_err(|error| {
            Error::new(ErrorKind::Internal, operation, "reading an archive did not end").with_source(error)
        })?;
        match (read, pumped) {
            (Ok(value), _) => Ok(value),
            (Err(_), Ok(Some(failure))) => Err(failure_error(operation, path, failure)),
            (Err(_), Err(stalled)) => Err(stalled),
            (Err(error), Ok(None)) => Err(error),
        }
    }

    /// The content of a small file; None where there is none. More than the limit is left out.
    pub(super) async fn small_file(
        &self,
        raw: &DockerRaw,
        operation: Operation,
        path: &str,
        limit: u64,
    ) -> Result<Option<Vec<u8>>> {
        let moved = Moved::new(None, None);
        let read = self.read_archive(
            raw,
            operation,
            path,
            (&moved, DEFAULT_STALL_TIMEOUT),
            move |reader| {
                let broken = |error| {
                    Error::new(ErrorKind::Io, operation, "an archive can't be read").with_source(error)
                };
                let mut content = Vec::new();
                if let Some(entry) = reader.next().map_err(broken)?
                    && entry.kind == Kind::File
                {
                    let mut left = usize::try_from(entry.size.min(limit)).unwrap_or_default();
                    let mut buffer = [0; 4096];
                    while left > 0 {
                        let most = left.min(buffer.len());
                        let read = reader.read(&mut buffer[..most]).map_err(broken)?;
                        content.extend_from_slice(&buffer[..read]);
                        left -= read;
                    }
                }
                Ok(content)
            },
        );
        match read.await {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == ErrorKind::Path(crate::error::PathProblem::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
