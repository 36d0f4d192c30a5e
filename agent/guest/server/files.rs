//! Small files, listings and stat, a piece at a time. The agent has the sandbox's view of its files: mounts and links are
//! what they are for its processes.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, ReadDir};
use std::io::{ErrorKind, PipeReader, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Server;
use super::client::{Channel, ClientId};
use super::naming::Naming;
use super::streams::framed;
use super::writing::Writing;
use crate::protocol::{
    AgentMessage, ClientMessage, FileFailure, FileInfo, FileKind, HEADER_BYTES, INPUT_WINDOW_BYTES,
    ListRequest, MAX_PAYLOAD_BYTES, ReadRequest, RenameRequest, Stream, WriteRequest,
};
use crate::sys::{self, errno};

/// How many entries of a directory are sent at once.
const BATCH_ENTRIES: usize = 100;
/// How many files may be open for one agent at once.
const MOST_FILES: usize = 1024;

/// A file that is being read, written or listed.
pub(super) struct FileTask {
    pub(super) client: ClientId,
    channel: u32,
    work: Work,
}

enum Work {
    Read {
        file: File,
        left: u64,
        credit: u64,
        done: u64,
    },
    Write(Box<Writing>),
    List {
        entries: ReadDir,
        left: u64,
        done: u64,
    },
    Name(Naming),
}

pub(super) type Outcome<T> = Result<T, FileFailure>;

/// Names what was tried.
pub(super) fn trying<T>(what: &str, result: std::io::Result<T>) -> Outcome<T> {
    result.map_err(|error| failure(what, error.raw_os_error().unwrap_or(0)))
}

pub(super) fn failure(what: &str, errno: i32) -> FileFailure {
    FileFailure {
        errno,
        what: what.to_owned(),
    }
}

pub(super) fn path_of(bytes: &[u8]) -> Outcome<PathBuf> {
    if bytes.first() != Some(&b'/') || bytes.contains(&0) {
        return Err(failure("path", errno::EINVAL));
    }
    Ok(PathBuf::from(OsString::from_vec(bytes.to_vec())))
}

impl Server {
    pub(super) fn open_file(&mut self, client: ClientId, channel: u32, request: &ReadRequest) {
        match open_to_read(request) {
            Ok((file, info)) => {
                self.tell(client, channel, &AgentMessage::FileInfo(info));
                let work = Work::Read {
                    file,
                    left: request.max_bytes,
                    credit: request.credit.into(),
                    done: 0,
                };
                self.add_file(client, channel, work);
            }
            Err(failure) => self.tell(client, channel, &AgentMessage::FileFailed(failure)),
        }
    }

    pub(super) fn create_file(&mut self, client: ClientId, channel: u32, request: WriteRequest) {
        match Writing::begin(request) {
            Ok(writing) => self.add_file(client, channel, Work::Write(Box::new(writing))),
            // What the client sends of it before it hears of this has no channel and is dropped.
            Err(failure) => self.tell(client, channel, &AgentMessage::FileFailed(failure)),
        }
    }

    pub(super) fn stat(&mut self, client: ClientId, channel: u32, path: Vec<u8>) {
        let info = path_of(&path).and_then(|found| {
            let metadata = trying("stat", fs::symlink_metadata(&found))?;
            Ok(describe(path, &found, &metadata))
        });
        match info {
            Ok(info) => {
                self.tell(client, channel, &AgentMessage::FileInfo(info));
                self.tell(client, channel, &AgentMessage::FileDone(0));
            }
            Err(failure) => self.tell(client, channel, &AgentMessage::FileFailed(failure)),
        }
    }

    pub(super) fn expect_name(&mut self, client: ClientId, channel: u32, request: &RenameRequest) {
        match Naming::begin(request) {
            Ok(naming) => self.add_file(client, channel, Work::Name(naming)),
            Err(failure) => self.tell(client, channel, &AgentMessage::FileFailed(failure)),
        }
    }

    pub(super) fn list(&mut self, client: ClientId, channel: u32, request: &ListRequest) {
        let entries = path_of(&request.path).and_then(|path| trying("open", fs::read_dir(path)));
        match entries {
            Ok(entries) => {
                let work = Work::List {
                    entries,
                    left: request.max_entries.into(),
                    done: 0,
                };
                self.add_file(client, channel, work);
            }
            Err(failure) => self.tell(client, channel, &AgentMessage::FileFailed(failure)),
        }
    }

    fn add_file(&mut self, client: ClientId, channel: u32, work: Work) {
        if self.files.len() >= MOST_FILES {
            let refused = AgentMessage::FileFailed(failure("open", errno::EMFILE));
            return self.tell(client, channel, &refused);
        }
        let number = self.number();
        self.files.insert(
            number,
            FileTask {
                client,
                channel,
                work,
            },
        );
        if let Some(client) = self.clients.get_mut(&client) {
            client.channels.insert(channel, Channel::File(number));
        }
    }

    pub(super) fn obey_for_file(&mut self, number: u64, message: ClientMessage) {
        let Some(task) = self.files.get_mut(&number) else {
            return;
        };
        match (&mut task.work, message) {
            (_, ClientMessage::Detach) => self.forget_file(number),
            (Work::Read { credit, .. }, ClientMessage::Credit(Stream::Stdout, bytes)) => {
                *credit = credit.saturating_add(bytes.into());
            }
            (Work::Write(writing), ClientMessage::Input(bytes)) => {
                writing.add(&bytes);
                let count = u32::try_from(bytes.len()).unwrap_or(INPUT_WINDOW_BYTES);
                let (client, channel) = (task.client, task.channel);
                self.tell(client, channel, &AgentMessage::InputCredit(count));
            }
            (Work::Write(_), ClientMessage::InputEnd) => self.finish_file(number),
            (Work::Name(naming), ClientMessage::InputEnd) => {
                if let Err(error) = naming.start(&self.null) {
                    let failure = failure("rename", error.raw_os_error().unwrap_or(0));
                    self.end_file(number, Err(failure));
                }
            }
            _ => {}
        }
    }

    fn finish_file(&mut self, number: u64) {
        let Some(task) = self.files.remove(&number) else {
            return;
        };
        if let Work::Write(writing) = task.work {
            let message = writing
                .finish()
                .map_or_else(AgentMessage::FileFailed, AgentMessage::FileDone);
            self.close_file(task.client, task.channel, &message);
        }
    }

    /// What came of a file that gets its name.
    pub(super) fn hear_name(&mut self, number: u64) {
        if let Some(FileTask {
            work: Work::Name(naming),
            ..
        }) = self.files.get_mut(&number)
        {
            let outcome = naming.answer().map(|()| 0);
            self.end_file(number, outcome);
        }
    }

    /// The files whose names are being given, each with what is to be waited for.
    pub(super) fn names_under_way(&self) -> impl Iterator<Item = (u64, &PipeReader)> {
        self.files.iter().filter_map(|(number, task)| match &task.work {
            Work::Name(naming) => naming.worker().map(|worker| (*number, worker)),
            Work::Read { .. } | Work::Write(_) | Work::List { .. } => None,
        })
    }

    fn end_file(&mut self, number: u64, outcome: Outcome<u64>) {
        if let Some(task) = self.files.remove(&number) {
            let message = outcome.map_or_else(AgentMessage::FileFailed, AgentMessage::FileDone);
            self.close_file(task.client, task.channel, &message);
        }
    }

    fn close_file(&mut self, client: ClientId, channel: u32, message: &AgentMessage) {
        if let Some(client) = self.clients.get_mut(&client) {
            client.channels.remove(&channel);
            client.tell_in_order(channel, message);
        }
    }

    fn forget_file(&mut self, number: u64) {
        let Some(task) = self.files.remove(&number) else {
            return;
        };
        if let Some(client) = self.clients.get_mut(&task.client) {
            client.channels.remove(&task.channel);
        }
        if let Work::Name(naming) = task.work {
            self.give_up_name(naming);
        }
    }

    /// Their client is gone.
    pub(super) fn give_up_files(&mut self, client: ClientId) {
        let theirs = self.files.iter().filter(|(_, task)| task.client == client);
        let theirs: Vec<u64> = theirs.map(|(number, _)| *number).collect();
        for number in theirs {
            self.forget_file(number);
        }
    }

    fn can_go_on(&self, task: &FileTask) -> bool {
        let has_room = || {
            self.clients
                .get(&task.client)
                .is_some_and(|client| !client.outbox.is_full())
        };
        match &task.work {
            Work::Read { credit, .. } => *credit > 0 && has_room(),
            Work::List { .. } => has_room(),
            Work::Write(_) | Work::Name(_) => false,
        }
    }

    /// Says whether there is something to be read from files at once: they are always ready.
    pub(super) fn can_read_files(&self) -> bool {
        self.files.values().any(|task| self.can_go_on(task))
    }

    /// One piece of each file that is read or listed.
    pub(super) fn read_files(&mut self) {
        let ready: Vec<u64> = self
            .files
            .iter()
            .filter(|(_, task)| self.can_go_on(task))
            .map(|(number, _)| *number)
            .collect();
        for number in ready {
            let Some(task) = self.files.get_mut(&number) else {
                continue;
            };
            let Some(client) = self.clients.get_mut(&task.client) else {
                continue;
            };
            let channel = task.channel;
            let outcome = match &mut task.work {
                Work::Read {
                    file,
                    left,
                    credit,
                    done,
                } => {
                    let most = usize::try_from(*credit)
                        .unwrap_or(usize::MAX)
                        .min(MAX_PAYLOAD_BYTES);
                    match file.read(&mut self.buffer[HEADER_BYTES..HEADER_BYTES + most]) {
                        Ok(0) => Some(Ok(*done)),
                        Ok(count) if count as u64 > *left => Some(Err(failure("read", errno::EFBIG))),
                        Ok(count) => {
                            *left -= count as u64;
                            *credit -= count as u64;
                            *done += count as u64;
                            let frame = framed(&mut self.buffer, channel, Stream::Stdout, count);
                            client.outbox.add(channel, frame);
                            None
                        }
                        Err(error) if error.kind() == ErrorKind::Interrupted => None,
                        Err(error) => Some(Err(failure("read", error.raw_os_error().unwrap_or(0)))),
                    }
                }
                Work::List { entries, left, done } => match next_entries(entries, left, done) {
                    Ok(batch) if batch.is_empty() => Some(Ok(*done)),
                    Ok(batch) => {
                        client.tell_in_order(channel, &AgentMessage::FileEntries(batch));
                        None
                    }
                    Err(failure) => Some(Err(failure)),
                },
                Work::Write(_) | Work::Name(_) => None,
            };
            if let Some(outcome) = outcome {
                self.end_file(number, outcome);
            }
        }
    }
}

fn open_to_read(request: &ReadRequest) -> Outcome<(File, FileInfo)> {
    let path = path_of(&request.path)?;
    // A pipe or device must not keep the agent waiting.
    let file = trying(
        "open",
        OpenOptions::new()
            .read(true)
            .custom_flags(sys::O_NONBLOCK)
            .open(&path),
    )?;
    let metadata = trying("stat", file.metadata())?;
    if metadata.is_dir() {
        return Err(failure("open", errno::EISDIR));
    }
    if !metadata.is_file() {
        return Err(failure("open", errno::EOPNOTSUPP));
    }
    if metadata.len() > request.max_bytes {
        return Err(failure("open", errno::EFBIG));
    }
    Ok((file, describe(request.path.clone(), &path, &metadata)))
}

fn describe(name: Vec<u8>, path: &Path, metadata: &fs::Metadata) -> FileInfo {
    let kind = metadata.file_type();
    let kind = if kind.is_file() {
        FileKind::File
    } else if kind.is_dir() {
        FileKind::Directory
    } else if kind.is_symlink() {
        FileKind::Link
    } else {
        FileKind::Other
    };
    let target = match kind {
        FileKind::Link => fs::read_link(path)
            .map(|target| target.into_os_string().into_vec())
            .unwrap_or_default(),
        _ => Vec::new(),
    };
    FileInfo {
        name,
        kind,
        mode: metadata.mode() & 0o7777,
        uid: metadata.uid(),
        gid: metadata.gid(),
        size: metadata.size(),
        modified_ns: metadata
            .mtime()
            .saturating_mul(1_000_000_000)
            .saturating_add(metadata.mtime_nsec()),
        target,
    }
}

fn next_entries(entries: &mut ReadDir, left: &mut u64, done: &mut u64) -> Outcome<Vec<FileInfo>> {
    let mut batch = Vec::new();
    while batch.len() < BATCH_ENTRIES
        && let Some(entry) = entries.next()
    {
        let entry = trying("read", entry)?;
        // One that has gone meanwhile is none.
        let Ok(metadata) = entry.metadata() else { continue };
        *left = left
            .checked_sub(1)
            .ok_or_else(|| failure("read", errno::EOVERFLOW))?;
        *done += 1;
        batch.push(describe(entry.file_name().into_vec(), &entry.path(), &metadata));
    }
    Ok(batch)
}
