//! Files through the agent.

mod common;

use std::fs;
use std::net::Shutdown;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use common::{Agent, Client, connect, is_root, unique_name, wait_until};
use gym_sandbox_agent::protocol::{
    AgentMessage, ClientMessage, FileFailure, FileInfo, FileKind, ListRequest, ReadRequest, RenameRequest,
    Stream, WriteRequest,
};

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(unique_name());
        fs::create_dir(&path).expect("made");
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("read").flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().into_string().expect("text"))
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn agent() -> (Agent, Client) {
    let (agent, mut client) = Agent::init(&[]);
    client.greet();
    (agent, client)
}

fn bytes(path: &Path) -> Vec<u8> {
    path.to_str().expect("text").as_bytes().to_vec()
}

/// Everything that is said on one channel until it is over.
fn collect(client: &mut Client, channel: u32) -> (Vec<FileInfo>, Vec<u8>, Result<u64, FileFailure>) {
    let (mut infos, mut data) = (Vec::new(), Vec::new());
    loop {
        let (from, message) = client.next();
        assert_eq!(from, channel);
        match message {
            AgentMessage::FileInfo(info) => infos.push(info),
            AgentMessage::FileEntries(entries) => infos.extend(entries),
            AgentMessage::Output(Stream::Stdout, bytes) => data.extend(bytes),
            AgentMessage::InputCredit(_) => {}
            AgentMessage::FileDone(count) => return (infos, data, Ok(count)),
            AgentMessage::FileFailed(failure) => return (infos, data, Err(failure)),
            other => panic!("{other:?}"),
        }
    }
}

fn write(client: &mut Client, request: WriteRequest, content: &[u8]) -> Result<u64, FileFailure> {
    let channel = client.channel();
    client.send(channel, &ClientMessage::WriteFile(request));
    for part in content.chunks(60_000) {
        client.send(channel, &ClientMessage::Input(part.to_vec()));
    }
    client.send(channel, &ClientMessage::InputEnd);
    collect(client, channel).2
}

fn read(client: &mut Client, path: &Path, max_bytes: u64) -> (Vec<u8>, Result<u64, FileFailure>) {
    let channel = client.channel();
    let request = ReadRequest {
        path: bytes(path),
        max_bytes,
        credit: u32::MAX,
    };
    client.send(channel, &ClientMessage::ReadFile(request));
    let (_, data, outcome) = collect(client, channel);
    (data, outcome)
}

fn request(path: &Path) -> WriteRequest {
    WriteRequest {
        path: bytes(path),
        mode: 0o640,
        uid: u32::MAX,
        gid: u32::MAX,
        modified_ns: i64::MIN,
        ..WriteRequest::default()
    }
}

fn errno<T: std::fmt::Debug>(result: Result<T, FileFailure>) -> i32 {
    result.expect_err("fails").errno
}

#[test]
fn a_file_is_written_with_all_it_has_and_read_back() {
    let (_agent, mut client) = agent();
    let folder = Folder::new();
    let path = folder.at("a/b/file");
    let content: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    let (uid, gid) = if is_root() {
        (1234, 77)
    } else {
        (u32::MAX, u32::MAX)
    };
    let wanted = WriteRequest {
        mode: 0o4751,
        uid,
        gid,
        modified_ns: 1_000_000_000_000_000_001,
        make_parents: true,
        ..request(&path)
    };
    assert_eq!(write(&mut client, wanted, &content), Ok(200_000));
    let found = fs::metadata(&path).expect("there");
    assert_eq!(
        (found.mode() & 0o7777, found.mtime(), found.mtime_nsec()),
        (0o4751, 1_000_000_000, 1)
    );
    if is_root() {
        assert_eq!((found.uid(), found.gid()), (1234, 77));
        let parent = fs::metadata(folder.at("a/b")).expect("there");
        assert_eq!((parent.uid(), parent.mode() & 0o7777), (1234, 0o755));
    }
    assert_eq!(read(&mut client, &path, 200_000), (content, Ok(200_000)));
    assert_eq!(errno(read(&mut client, &path, 199_999).1), 27);
}

#[test]
fn a_link_is_replaced_and_a_linked_parent_followed() {
    let (_agent, mut client) = agent();
    let folder = Folder::new();
    fs::write(folder.at("victim"), "old").expect("written");
    symlink(folder.at("victim"), folder.at("link")).expect("made");
    fs::create_dir(folder.at("real")).expect("made");
    symlink("real", folder.at("parent")).expect("made");
    assert_eq!(write(&mut client, request(&folder.at("link")), b"new"), Ok(3));
    assert_eq!(fs::read(folder.at("victim")).expect("read"), b"old");
    assert!(fs::symlink_metadata(folder.at("link")).expect("there").is_file());
    assert_eq!(
        write(&mut client, request(&folder.at("parent/file")), b"x"),
        Ok(1)
    );
    assert_eq!(fs::read(folder.at("real/file")).expect("read"), b"x");
}

#[test]
fn what_fails_leaves_nothing() {
    let (_agent, mut client) = agent();
    let folder = Folder::new();
    fs::create_dir(folder.at("directory")).expect("made");
    assert_eq!(
        errno(write(&mut client, request(&folder.at("directory")), b"x")),
        21
    );
    assert_eq!(
        errno(write(&mut client, request(&folder.at("no/such/file")), b"x")),
        2
    );
    assert_eq!(
        errno(write(&mut client, request(Path::new("relative")), b"x")),
        22
    );
    assert_eq!(
        errno(write(&mut client, request(Path::new("/proc/version")), b"x")),
        2
    );
    // Given up half way, by the client and by its end.
    let channel = client.channel();
    client.send(channel, &ClientMessage::WriteFile(request(&folder.at("half"))));
    client.send(channel, &ClientMessage::Input(b"x".to_vec()));
    assert!(matches!(client.next(), (_, AgentMessage::InputCredit(1))));
    assert_eq!(folder.names().len(), 2);
    client.send(channel, &ClientMessage::Detach);
    client.send(channel + 1000, &ClientMessage::Ping(Vec::new()));
    client.next();
    assert_eq!(folder.names(), ["directory"]);
}

#[test]
fn a_file_can_be_written_in_its_place() {
    let (_agent, mut client) = agent();
    let folder = Folder::new();
    let path = folder.at("file");
    fs::write(&path, "longer than before").expect("written");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o604)).expect("set");
    let before = fs::metadata(&path).expect("there").ino();
    assert_eq!(
        write(
            &mut client,
            WriteRequest {
                in_place: true,
                ..request(&path)
            },
            b"new"
        ),
        Ok(3)
    );
    let after = fs::metadata(&path).expect("there");
    assert_eq!(
        (after.ino(), after.mode() & 0o777, after.len()),
        (before, 0o604, 3)
    );
    symlink(&path, folder.at("link")).expect("made");
    assert_eq!(
        errno(write(
            &mut client,
            WriteRequest {
                in_place: true,
                ..request(&folder.at("link"))
            },
            b"x"
        )),
        40
    );
}

#[test]
fn files_without_a_size_are_read_and_others_refused() {
    let (_agent, mut client) = agent();
    let (data, outcome) = read(&mut client, Path::new("/proc/version"), 10_000);
    assert_eq!(data.len() as u64, outcome.expect("read"));
    assert!(data.starts_with(b"Linux"));
    assert_eq!(errno(read(&mut client, Path::new("/dev/zero"), 10).1), 95);
    assert_eq!(errno(read(&mut client, Path::new("/tmp"), 10).1), 21);
    assert_eq!(errno(read(&mut client, Path::new("/no/such"), 10).1), 2);
}

/// Asks for a name, and gives it when the file is there.
fn expect_name(client: &mut Client, from: &Path, to: &Path) -> u32 {
    let channel = client.channel();
    let request = RenameRequest {
        from: bytes(from),
        to: bytes(to),
    };
    client.send(channel, &ClientMessage::Rename(request));
    channel
}

#[test]
fn a_file_gets_another_name_and_replaces_what_is_no_directory() {
    let (_agent, mut client) = agent();
    let folder = Folder::new();
    fs::create_dir(folder.at("directory")).expect("made");
    symlink("directory", folder.at("link")).expect("made");
    fs::write(folder.at("old"), "old").expect("written");
    let part = folder.at("part");
    let mut rename = |from: &Path, to: &Path, content: &str| {
        let channel = expect_name(&mut client, from, to);
        fs::write(&part, content).expect("written");
        client.send(channel, &ClientMessage::InputEnd);
        collect(&mut client, channel).2
    };
    for name in ["new", "old", "link"] {
        assert_eq!(rename(&part, &folder.at(name), name), Ok(0), "{name}");
        assert!(!part.exists(), "{name}");
        assert_eq!(fs::read_to_string(folder.at(name)).expect("read"), name);
        assert!(!folder.at(name).is_symlink(), "{name}");
    }
    assert_eq!(errno(rename(&part, &folder.at("directory"), "part")), 21);
    assert_eq!(errno(rename(&folder.at("none"), &folder.at("new"), "part")), 2);
    // The file of a name that could not be given is its client's.
    assert_eq!(fs::read_to_string(&part).expect("read"), "part");
    assert_eq!(fs::read_to_string(folder.at("new")).expect("read"), "new");
    let channel = expect_name(&mut client, &part, Path::new("relative"));
    assert_eq!(errno(collect(&mut client, channel).2), 22);
}

#[test]
fn a_file_whose_name_is_given_up_is_removed_and_so_is_what_comes_after() {
    let (agent, _client) = agent();
    let folder = Folder::new();
    let (part, target) = (folder.at("part"), folder.at("target"));
    fs::write(&target, "target").expect("written");
    let is_removed = |give_up: &mut dyn FnMut(&mut Client, u32)| {
        let (mut connecting, mut other) = connect(&agent.name, &["--no-start"]);
        other.greet();
        let channel = expect_name(&mut other, &part, &target);
        fs::write(&part, "half").expect("written");
        give_up(&mut other, channel);
        wait_until("the part is removed", || !part.exists());
        // What the writer had on its way.
        fs::write(&part, "more").expect("written");
        wait_until("the part is removed once more", || !part.exists());
        drop(other);
        connecting.wait().expect("ended");
    };
    is_removed(&mut |other, channel| other.send(channel, &ClientMessage::Detach));
    is_removed(&mut |other, _| other.stream.shutdown(Shutdown::Both).expect("ended"));
    assert_eq!(fs::read_to_string(&target).expect("read"), "target");
}

#[test]
fn stat_and_list_tell_of_links_and_directories() {
    let (_agent, mut client) = agent();
    let folder = Folder::new();
    fs::write(folder.at("file"), "12345").expect("written");
    symlink("/no/such", folder.at("link")).expect("made");
    fs::create_dir(folder.at("directory")).expect("made");
    let channel = client.channel();
    client.send(channel, &ClientMessage::Stat(bytes(&folder.at("link"))));
    let (infos, ..) = collect(&mut client, channel);
    assert_eq!(
        (infos[0].kind, infos[0].target.as_slice()),
        (FileKind::Link, &b"/no/such"[..])
    );
    let mut list = |max_entries| {
        let channel = client.channel();
        client.send(
            channel,
            &ClientMessage::List(ListRequest {
                path: bytes(&folder.0),
                max_entries,
            }),
        );
        collect(&mut client, channel)
    };
    let (mut infos, _, outcome) = list(3);
    assert_eq!(outcome, Ok(3));
    infos.sort_by(|one, other| one.name.cmp(&other.name));
    let seen: Vec<_> = infos
        .iter()
        .map(|info| (info.name.as_slice(), info.kind))
        .collect();
    let expected: [(&[u8], _); 3] = [
        (b"directory", FileKind::Directory),
        (b"file", FileKind::File),
        (b"link", FileKind::Link),
    ];
    assert_eq!(seen, expected);
    assert_eq!(infos[1].size, 5);
    assert_eq!(errno(list(2).2), 75);
}

#[test]
fn a_mounted_file_is_filled_instead_of_replaced() {
    if !is_root() {
        return;
    }
    let (_agent, mut client) = Agent::first_process(&[]);
    client.greet();
    let folder = Folder::new();
    fs::write(folder.at("source"), "old").expect("written");
    fs::write(folder.at("target"), "").expect("written");
    let line = format!("mount --bind {0}/source {0}/target", folder.0.display());
    assert_eq!(client.sh(&line).code(), 0);
    assert_eq!(write(&mut client, request(&folder.at("target")), b"new"), Ok(3));
    assert_eq!(fs::read(folder.at("source")).expect("read"), b"new");
    assert_eq!(
        client.sh(&format!("ls {}", folder.0.display())).text(),
        "source\ntarget\n"
    );
}
