//! Small files, listings and stat, a piece at a time. The agent has the sandbox's view of its files: mounts and links are
//! what they are for its processes.

use std::ffi::OsString;
use std::fs::{self, File, FileTimes, OpenOptions, Permissions, ReadDir};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown, lchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::Server;
use super::client::{Channel, ClientId};
use super::commands::framed;
use crate::protocol::{
    AgentMessage, ClientMessage, FileFailure, FileInfo, FileKind, HEADER_BYTES, INPUT_WINDOW_BYTES,
    ListRequest, MAX_PAYLOAD_BYTES, ReadRequest, Stream, WriteRequest,
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
}

/// A file under way to its place.
struct Writing {
    request: WriteRequest,
    file: File,
    /// Where it is written, to be renamed. None when it is written in its place.
    temporary: Option<PathBuf>,
    done: u64,
    failure: Option<FileFailure>,
}

type Outcome<T> = Result<T, FileFailure>;

/// Names what was tried.
fn trying<T>(what: &str, result: std::io::Result<T>) -> Outcome<T> {
    result.map_err(|error| failure(what, error.raw_os_error().unwrap_or(0)))
}

fn failure(what: &str, errno: i32) -> FileFailure {
    FileFailure {
        errno,
        what: what.to_owned(),
    }
}

fn path_of(bytes: &[u8]) -> Outcome<PathBuf> {
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
            (Work::Write(_), ClientMessage::InputEnd) => {
                if let Some(FileTask {
                    work: Work::Write(writing),
                    client,
                    channel,
                }) = self.files.remove(&number)
                {
                    let message = match writing.finish() {
                        Ok(count) => AgentMessage::FileDone(count),
                        Err(failure) => AgentMessage::FileFailed(failure),
                    };
                    self.close_file(client, channel, &message);
                }
            }
            _ => {}
        }
    }

    fn close_file(&mut self, client: ClientId, channel: u32, message: &AgentMessage) {
        if let Some(client) = self.clients.get_mut(&client) {
            client.channels.remove(&channel);
            client.tell_in_order(channel, message);
        }
    }

    fn forget_file(&mut self, number: u64) {
        if let Some(task) = self.files.remove(&number)
            && let Some(client) = self.clients.get_mut(&task.client)
        {
            client.channels.remove(&task.channel);
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
            Work::Write(_) => false,
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
                Work::Write(_) => None,
            };
            if let Some(outcome) = outcome {
                let message = outcome.map_or_else(AgentMessage::FileFailed, AgentMessage::FileDone);
                let id = task.client;
                self.files.remove(&number);
                self.close_file(id, channel, &message);
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

impl Writing {
    fn begin(request: WriteRequest) -> Outcome<Self> {
        let path = path_of(&request.path)?;
        let (Some(parent), Some(_)) = (path.parent(), path.file_name()) else {
            return Err(failure("path", errno::EISDIR));
        };
        if request.make_parents {
            make_directories(parent, &request)?;
        }
        if request.in_place {
            let file = trying("open", open_in_place(&path))?;
            return Ok(Self {
                request,
                file,
                temporary: None,
                done: 0,
                failure: None,
            });
        }
        // Said before a single byte is sent, instead of when it is renamed.
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
            return Err(failure("open", errno::EISDIR));
        }
        let (file, temporary) = create_beside(parent)?;
        Ok(Self {
            request,
            file,
            temporary: Some(temporary),
            done: 0,
            failure: None,
        })
    }

    /// Goes on taking bytes after a failure, so that the client's credit is right.
    fn add(&mut self, bytes: &[u8]) {
        if self.failure.is_none() {
            self.failure = trying("write", self.file.write_all(bytes)).err();
            self.done += bytes.len() as u64;
        }
    }

    fn finish(mut self) -> Outcome<u64> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let path = path_of(&self.request.path)?;
        let Some(temporary) = self.temporary.clone() else {
            return Ok(self.done);
        };
        self.dress()?;
        match fs::rename(&temporary, &path) {
            Ok(()) => self.temporary = None,
            // A file that is itself a mount, such as /etc/hosts, can't be replaced, only filled.
            Err(error) if error.raw_os_error() == Some(errno::EBUSY) => {
                let copied = File::open(&temporary).and_then(|mut from| {
                    let mut to = open_in_place(&path)?;
                    std::io::copy(&mut from, &mut to)
                });
                trying("write", copied)?;
            }
            Err(error) => return trying("rename", Err(error)),
        }
        Ok(self.done)
    }

    /// Owner before mode: a change of owner takes the set-id bits away.
    fn dress(&self) -> Outcome<()> {
        let WriteRequest {
            uid,
            gid,
            mode,
            modified_ns,
            ..
        } = self.request;
        let given = |id: u32| (id != u32::MAX).then_some(id);
        if given(uid).or(given(gid)).is_some() {
            trying("chown", fchown(&self.file, given(uid), given(gid)))?;
        }
        trying(
            "chmod",
            self.file.set_permissions(Permissions::from_mode(mode & 0o7777)),
        )?;
        if modified_ns != i64::MIN {
            let since = Duration::from_nanos(modified_ns.unsigned_abs());
            let time = if modified_ns < 0 {
                SystemTime::UNIX_EPOCH.checked_sub(since)
            } else {
                SystemTime::UNIX_EPOCH.checked_add(since)
            };
            let time = time.ok_or_else(|| failure("utimes", errno::EINVAL))?;
            trying("utimes", self.file.set_times(FileTimes::new().set_modified(time)))?;
        }
        Ok(())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Never through a link, and never waiting for the other side of a pipe.
fn open_in_place(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new()
        .write(true)
        .truncate(true)
        .custom_flags(sys::O_NOFOLLOW | sys::O_NONBLOCK)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(std::io::Error::from_raw_os_error(errno::EOPNOTSUPP))
    }
}

fn create_beside(parent: &Path) -> Outcome<(File, PathBuf)> {
    let mut attempt = sys::now_ms();
    loop {
        attempt = attempt.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
        let path = parent.join(format!(".gym-sandbox-{}-{attempt:016x}", std::process::id()));
        // The name is new or the call fails, so that nobody's link is followed.
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
        {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.raw_os_error() == Some(errno::EEXIST) => {}
            Err(error) => return trying("create", Err(error)),
        }
    }
}

/// Makes what is missing, each with the file's owner.
fn make_directories(path: &Path, request: &WriteRequest) -> Outcome<()> {
    if fs::metadata(path).is_ok_and(|found| found.is_dir()) || path.as_os_str().as_bytes() == b"/" {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make_directories(parent, request)?;
    }
    match fs::create_dir(path) {
        Ok(()) => {}
        // Somebody else may have made it meanwhile.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => return Ok(()),
        Err(error) => return trying("mkdir", Err(error)),
    }
    trying("chmod", fs::set_permissions(path, Permissions::from_mode(0o755)))?;
    let given = |id: u32| (id != u32::MAX).then_some(id);
    trying("chown", lchown(path, given(request.uid), given(request.gid)))
}
