use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::entry::{TRAILER, header_bytes, padding};
use super::*;
use crate::error::ErrorKind;
use crate::spec::SetIdBits;

fn entry(name: &str, kind: Kind) -> Entry {
    Entry {
        name: name.as_bytes().to_vec(),
        kind,
        size: 0,
        mode: if kind == Kind::Directory { 0o755 } else { 0o644 },
        mtime: 1_000_000_000,
        uid: 0,
        gid: 0,
        link: Vec::new(),
    }
}

fn link(name: &str, kind: Kind, to: &str) -> (Entry, Vec<u8>) {
    (
        Entry {
            link: to.as_bytes().to_vec(),
            ..entry(name, kind)
        },
        Vec::new(),
    )
}

fn file(name: &str, content: &str) -> (Entry, Vec<u8>) {
    (
        Entry {
            size: content.len() as u64,
            ..entry(name, Kind::File)
        },
        content.as_bytes().to_vec(),
    )
}

fn directory(name: &str) -> (Entry, Vec<u8>) {
    (entry(name, Kind::Directory), Vec::new())
}

fn archive(entries: &[(Entry, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (entry, content) in entries {
        bytes.extend(header_bytes(entry));
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len() + padding(content.len() as u64), 0);
    }
    bytes.extend_from_slice(&TRAILER);
    bytes
}

/// Unpacks an archive whose first entry is the directory `t` into a directory beside a canary, and gives what is there.
fn unpack_with(entries: &[(Entry, Vec<u8>)], options: &DownloadOptions) -> Result<BTreeMap<String, String>> {
    let outer = tempfile::tempdir().unwrap();
    fs::write(outer.path().join("canary"), "alive").unwrap();
    let inner = outer.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let all = [&[directory("t/")], entries].concat();
    let bytes = archive(&all);
    let mut reader = Reader::new(bytes.as_slice());
    let first = reader.next().unwrap().unwrap();
    let moved = Moved::new(None, None);
    let outcome = unpack_tree(&mut reader, &first, &inner, options, &moved);
    assert_eq!(fs::read_to_string(outer.path().join("canary")).unwrap(), "alive");
    let mut beside: Vec<_> = fs::read_dir(outer.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    beside.sort();
    assert_eq!(
        beside,
        ["canary", "inner"],
        "something was made beside the directory"
    );
    outcome?;
    let mut found = BTreeMap::new();
    collect(&inner, &inner, &mut found);
    Ok(found)
}

fn collect(root: &Path, directory: &Path, found: &mut BTreeMap<String, String>) {
    for child in fs::read_dir(directory).unwrap() {
        let path = child.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        let metadata = fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            found.insert(name, "/".to_owned());
            collect(root, &path, found);
        } else if metadata.is_symlink() {
            found.insert(name, format!("-> {}", fs::read_link(&path).unwrap().display()));
        } else {
            found.insert(
                name,
                String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
            );
        }
    }
}

fn unpack(entries: &[(Entry, Vec<u8>)]) -> Result<BTreeMap<String, String>> {
    unpack_with(entries, &DownloadOptions::default())
}

fn is_unsafe<T: std::fmt::Debug>(result: Result<T>) -> bool {
    result.unwrap_err().kind() == ErrorKind::Path(PathProblem::UnsafeArchive)
}

#[test]
fn an_ordinary_tree_is_made_as_it_is() {
    let found = unpack(&[
        directory("t/d"),
        file("t/d/f", "content"),
        link("t/d/hard", Kind::HardLink, "t/d/f"),
        link("t/l", Kind::Symlink, "d/f"),
        file("./t/x/y/implicit", "parents"),
        file("t/f", "first"),
        file("t/f", "second"),
    ])
    .unwrap();
    let expected = [
        ("d", "/"),
        ("d/f", "content"),
        ("d/hard", "content"),
        ("l", "-> d/f"),
        ("x", "/"),
        ("x/y", "/"),
        ("x/y/implicit", "parents"),
        ("f", "second"),
    ];
    assert_eq!(
        found,
        expected
            .map(|(name, content)| (name.to_owned(), content.to_owned()))
            .into()
    );
}

#[test]
fn what_would_leave_the_target_is_refused() {
    for entries in [
        vec![file("../canary", "dead")],
        vec![file("t/../../canary", "dead")],
        vec![file("/t/../canary", "dead")],
        vec![file("canary", "dead")],
        vec![file("/canary", "dead")],
        vec![file("t", "dead")],
        vec![link("t", Kind::Symlink, "/etc")],
        vec![link("t/l", Kind::Symlink, ".."), file("t/l/canary", "dead")],
        vec![
            link("t/l", Kind::Symlink, "../canary"),
            link("t/h", Kind::HardLink, "t/l"),
            file("t/h/x", "dead"),
        ],
        vec![link("t/l", Kind::Symlink, "/"), directory("t/l/d")],
        vec![link("t/l", Kind::Symlink, "/"), link("t/l/d", Kind::Symlink, "x")],
        vec![
            link("t/l", Kind::Symlink, ".."),
            directory("t/l"),
            file("t/l/canary", "dead"),
        ],
        vec![
            directory("t/d"),
            link("t/d", Kind::Symlink, ".."),
            file("t/d/canary", "dead"),
        ],
        vec![link("t/h", Kind::HardLink, "../canary")],
        vec![link("t/h", Kind::HardLink, "/etc/passwd")],
        vec![link("t/h", Kind::HardLink, "t/missing")],
        vec![
            link("t/l", Kind::Symlink, ".."),
            link("t/h", Kind::HardLink, "t/l/canary"),
        ],
        vec![directory("t/d"), link("t/h", Kind::HardLink, "t/d")],
        vec![link("t/h", Kind::HardLink, "t")],
        vec![file("t/f", ""), file("t/f/x", "")],
        vec![file("t/f", ""), directory("t/f")],
    ] {
        let names: Vec<_> = entries
            .iter()
            .map(|(entry, _)| String::from_utf8_lossy(&entry.name).into_owned())
            .collect();
        let result = unpack(&entries);
        assert!(result.is_err(), "{names:?}");
        assert!(is_unsafe(result), "{names:?}");
    }
    assert!(
        unpack(&[file(&format!("t/{}", "n/".repeat(3000)), "")]).is_err(),
        "no path is that long"
    );
}

#[test]
fn a_link_that_is_replaced_by_a_file_is_not_written_through() {
    let found = unpack(&[link("t/l", Kind::Symlink, "../canary"), file("t/l", "own")]).unwrap();
    assert_eq!(found["l"], "own");
}

#[test]
fn limits_and_choices_are_kept() {
    let many = [file("t/a", "12345"), file("t/b", "12345"), file("t/c", "")];
    let kind = |options: DownloadOptions| unpack_with(&many, &options).unwrap_err().kind();
    assert_eq!(
        kind(DownloadOptions::default().with_max_entries(2)),
        ErrorKind::Path(PathProblem::TooLarge)
    );
    assert_eq!(
        kind(DownloadOptions::default().with_max_bytes(9)),
        ErrorKind::Path(PathProblem::TooLarge)
    );
    let options = DownloadOptions::default().with_max_entries(3).with_max_bytes(10);
    assert_eq!(unpack_with(&many, &options).unwrap().len(), 3);

    let device = [(entry("t/dev", Kind::Special), Vec::new()), file("t/f", "x")];
    // A header of this kind can't be written by our own writer.
    let mut bytes = archive(&[directory("t/")]);
    bytes.truncate(512);
    let mut header = tar::Header::new_gnu();
    header.set_path("t/dev").unwrap();
    header.set_entry_type(tar::EntryType::Char);
    header.set_size(0);
    header.set_cksum();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(&archive(&device[1..]));
    for (choice, made) in [(SpecialFiles::Refuse, false), (SpecialFiles::Skip, true)] {
        let folder = tempfile::tempdir().unwrap();
        let mut reader = Reader::new(bytes.as_slice());
        let first = reader.next().unwrap().unwrap();
        let options = DownloadOptions::default().with_special_files(choice);
        let outcome = unpack_tree(
            &mut reader,
            &first,
            folder.path(),
            &options,
            &Moved::new(None, None),
        );
        assert_eq!(outcome.is_ok(), made);
        assert_eq!(folder.path().join("f").exists(), made);
        assert!(!folder.path().join("dev").exists());
    }

    let collision = [directory("t/Dir"), file("t/Dir/A", "1"), file("t/dir/a", "2")];
    assert_eq!(unpack(&collision).unwrap().len(), 4);
    let options = DownloadOptions::default().with_case_collisions(CaseCollisions::Refuse);
    assert!(is_unsafe(unpack_with(&collision, &options)));
}

#[test]
fn links_that_lead_out_are_told_by_their_text() {
    for (depth, text, out) in [
        (0, "a", false),
        (0, "..", true),
        (1, "..", false),
        (1, "../x", false),
        (1, "../../x", true),
        (1, "x/..", true),
        (2, "./../../x", false),
        (0, "/etc", true),
        (0, "", false),
    ] {
        assert_eq!(leads_out(depth, text.as_bytes()), out, "{depth} {text}");
    }
    let entries = [
        directory("t/d"),
        link("t/d/in", Kind::Symlink, "../f"),
        link("t/out", Kind::Symlink, "/etc/passwd"),
    ];
    assert_eq!(unpack(&entries).unwrap()["out"], "-> /etc/passwd");
    let skip = DownloadOptions::default().with_outward_links(OutwardLinks::Skip);
    let found = unpack_with(&entries, &skip).unwrap();
    assert!(found.contains_key("d/in") && !found.contains_key("out"));
    assert!(is_unsafe(unpack_with(
        &entries,
        &DownloadOptions::default().with_outward_links(OutwardLinks::Refuse)
    )));
}

#[test]
fn modes_and_times_are_set_also_on_directories_and_links() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let mut entries = vec![
        directory("t/"),
        directory("t/d"),
        file("t/d/f", "x"),
        link("t/d/l", Kind::Symlink, "f"),
    ];
    entries[1].0.mode = 0o1555;
    entries[2].0.mode = 0o4755;
    let bytes = archive(&entries);
    for (bits, mode) in [(SetIdBits::Clear, 0o755), (SetIdBits::Keep, 0o4755)] {
        let target = folder.path().join(format!("{bits:?}"));
        fs::create_dir(&target).unwrap();
        let mut reader = Reader::new(bytes.as_slice());
        let first = reader.next().unwrap().unwrap();
        let options = DownloadOptions::default().with_set_id_bits(bits);
        unpack_tree(&mut reader, &first, &target, &options, &Moved::new(None, None)).unwrap();
        for (name, mode) in [("d", 0o1555), ("d/f", mode)] {
            let metadata = fs::symlink_metadata(target.join(name)).unwrap();
            assert_eq!(
                (metadata.mode() & 0o7777, metadata.mtime()),
                (mode, 1_000_000_000),
                "{name}"
            );
        }
        assert_eq!(
            fs::symlink_metadata(target.join("d/l")).unwrap().mtime(),
            1_000_000_000
        );
    }
}

fn any_entry() -> impl Strategy<Value = (Entry, Vec<u8>)> {
    let part = prop_oneof![
        Just("a"),
        Just("b"),
        Just("l"),
        Just(".."),
        Just("."),
        Just(""),
        Just("canary"),
        Just("t")
    ];
    let path = prop::collection::vec(part, 0..4).prop_map(|parts| parts.join("/"));
    let prefix =
        prop_oneof![4 => Just("t/"), 1 => Just(""), 1 => Just("/"), 1 => Just("../"), 1 => Just("t/../")];
    let kind = prop_oneof![
        Just(Kind::File),
        Just(Kind::Directory),
        Just(Kind::Symlink),
        Just(Kind::HardLink)
    ];
    let target = (prefix.clone(), path.clone()).prop_map(|(prefix, path)| format!("{prefix}{path}"));
    (prefix, path, kind, target).prop_map(|(prefix, path, kind, target)| {
        let name = format!("{prefix}{path}");
        match kind {
            Kind::File => file(&name, "dead"),
            Kind::Directory => directory(&name),
            kind => link(&name, kind, &target),
        }
    })
}

proptest! {
    /// The assertions are in [`unpack_with`]: whatever the archive says, nothing beside the directory changes.
    #[test]
    fn no_archive_leaves_its_target(entries in prop::collection::vec(any_entry(), 0..12)) {
        let _refused_or_made = unpack(&entries).is_ok();
    }
}
