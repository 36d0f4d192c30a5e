use std::os::unix::fs::symlink;

use tokio::sync::mpsc;

use super::super::entry::Reader;
use super::*;

fn stamp() -> Stamp {
    Stamp {
        owner: FileOwner::new(7, 8),
        mtime: None,
        special_files: SpecialFiles::Refuse,
    }
}

fn tree_of(source: &Path, special_files: SpecialFiles) -> Tree {
    Tree {
        source: source.to_owned(),
        name: b"up/here".to_vec(),
        own_entry: true,
        parents: Vec::new(),
        stamp: Stamp {
            special_files,
            ..stamp()
        },
        selection: None,
    }
}

/// Packs on another thread and gives what was sent, without what came after a cut.
fn packed(
    work: impl FnOnce(&mut ChunkWriter, &Moved) -> Result<(), PackError> + Send + 'static,
) -> (Result<(), PackError>, Vec<u8>) {
    let (sender, mut receiver) = mpsc::channel(4);
    let thread = std::thread::spawn(move || work(&mut ChunkWriter::new(sender), &Moved::new(None, None)));
    let mut bytes = Vec::new();
    let mut cut = false;
    while let Some(chunk) = receiver.blocking_recv() {
        match chunk {
            Ok(chunk) => bytes.extend_from_slice(&chunk),
            Err(_) => cut = true,
        }
    }
    let outcome = thread.join().unwrap();
    assert_eq!(outcome.is_err(), cut, "a failed source is cut, and no other");
    (outcome, bytes)
}

#[test]
fn a_tree_is_packed_in_order_with_links_and_owners() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir(root.join("empty")).unwrap();
    fs::write(root.join("a"), "content").unwrap();
    fs::hard_link(root.join("a"), root.join("b")).unwrap();
    symlink("../x//y", root.join("c")).unwrap();
    let long = "n".repeat(200);
    fs::write(root.join(&long), "").unwrap();
    fs::write(root.join(OsStr::from_bytes(b"\xff")), "odd").unwrap();
    fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o4750)).unwrap();
    let tree = tree_of(root, SpecialFiles::Refuse);
    let (outcome, bytes) = packed(move |writer, moved| pack_tree(&tree, writer, moved));
    outcome.unwrap();
    let mut reader = Reader::new(bytes.as_slice());
    let mut seen = Vec::new();
    while let Some(entry) = reader.next().unwrap() {
        assert_eq!((entry.uid, entry.gid), (7, 8));
        seen.push(entry);
    }
    let names: Vec<_> = seen
        .iter()
        .map(|entry| String::from_utf8_lossy(&entry.name).into_owned())
        .collect();
    let long = format!("up/here/{long}");
    let expected = [
        "up/here",
        "up/here/a",
        "up/here/b",
        "up/here/c",
        "up/here/empty",
        &long,
        "up/here/\u{fffd}",
    ];
    assert_eq!(names, expected);
    assert_eq!((seen[1].mode, seen[1].size), (0o4750, 7));
    assert_eq!(
        (seen[2].kind, seen[2].link.as_slice()),
        (Kind::HardLink, &b"up/here/a"[..])
    );
    assert_eq!(
        (seen[3].kind, seen[3].link.as_slice()),
        (Kind::Symlink, &b"../x//y"[..])
    );
    assert_eq!(seen[4].kind, Kind::Directory);
    assert_eq!(seen[6].name, b"up/here/\xff");
}

#[test]
fn special_files_are_refused_or_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("s")).unwrap();
    let tree = tree_of(folder.path(), SpecialFiles::Refuse);
    let (outcome, _) = packed(move |writer, moved| pack_tree(&tree, writer, moved));
    assert!(matches!(outcome, Err(PackError::Special(_))));
    let tree = tree_of(folder.path(), SpecialFiles::Skip);
    let (outcome, _) = packed(move |writer, moved| pack_tree(&tree, writer, moved));
    outcome.unwrap();
}

#[test]
fn b15_a_file_that_grows_or_shrinks_cuts_the_stream() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    fs::write(&path, vec![1; 3 << 20]).unwrap();
    for announced in [(3 << 20) - 1, (3 << 20) + 1] {
        let (path, file) = (path.clone(), File::open(&path).unwrap());
        let around = (b"before".to_vec(), b"after".to_vec());
        let (outcome, bytes) =
            packed(move |writer, moved| pack_file(&file, &path, announced, &around, writer, moved));
        assert!(matches!(outcome, Err(PackError::Changed(_))), "{announced}");
        assert!(!bytes.ends_with(b"after"));
    }
    let mut content = Vec::new();
    for announced in [2, 4] {
        fs::write(&path, "abc").unwrap();
        let mut file = File::open(&path).unwrap();
        let read = read_small(&mut file, &path, announced, &mut content);
        assert!(matches!(read, Err(PackError::Changed(_))));
    }
}

#[test]
fn a_cancelled_tree_ends_with_a_whole_archive() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "1").unwrap();
    let tree = tree_of(folder.path(), SpecialFiles::Refuse);
    let (outcome, bytes) = packed(move |writer, moved| {
        moved.cancel();
        pack_tree(&tree, writer, moved)
    });
    outcome.unwrap();
    let mut reader = Reader::new(bytes.as_slice());
    assert_eq!(reader.next().unwrap().unwrap().name, b"up/here");
    assert_eq!(reader.next().unwrap(), None);
}
