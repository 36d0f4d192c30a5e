//! Whole trees: what goes up comes down equal, and what else is done with files.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gym_sandbox::{
    DownloadOptions, DownloadTarget, ErrorKind, FileKind, FileOwner, PathProblem, RemoveMode, SetIdBits,
    SpecialFiles, UploadOptions,
};

use crate::common::{BUSYBOX, DEBIAN, STATIC};
use crate::sandboxes::{Box, NOT_A_DIRECTORY, Shape, bytes_of, problem};

/// Everything that a comparison of two trees looks at, by name.
fn snapshot(root: &Path) -> BTreeMap<PathBuf, (u32, i64, Vec<u8>, u64)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for child in fs::read_dir(folder).unwrap() {
            let path = child.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let content = if metadata.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else if metadata.is_dir() {
                folders.push(path.clone());
                b"/".to_vec()
            } else {
                fs::read(&path).unwrap()
            };
            let links = if metadata.is_dir() { 0 } else { metadata.nlink() };
            let name = path.strip_prefix(root).unwrap().to_owned();
            found.insert(name, (metadata.mode(), metadata.mtime(), content, links));
        }
    }
    found
}

fn plant(root: &Path) {
    let names: [&[u8]; 7] = [
        b"plain",
        b"with space",
        b"line\nfeed",
        b"\xff\xfe",
        b"-n",
        "ünïcode\nfeed".as_bytes(),
        &[b'l'; 255],
    ];
    fs::create_dir_all(root.join("empty/er")).unwrap();
    for (index, name) in names.into_iter().enumerate() {
        fs::write(root.join(OsStr::from_bytes(name)), bytes_of(index * 700)).unwrap();
    }
    let deep = root.join(format!(
        "{}/{}/{}",
        "d".repeat(90),
        "e".repeat(90),
        "f".repeat(120)
    ));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("ünï"), "deep").unwrap();
    fs::write(root.join("large"), bytes_of((3 << 20) + 5)).unwrap();
    fs::write(root.join("zeros"), vec![0; 2 << 20]).unwrap();
    fs::hard_link(root.join("large"), root.join("same")).unwrap();
    symlink("../outside//./x", root.join("empty/link")).unwrap();
    symlink("/etc/passwd", root.join("absolute")).unwrap();
    symlink("l".repeat(200), root.join("longlink")).unwrap();
    for (name, mode) in [
        ("plain", 0o600),
        ("with space", 0o6755),
        ("empty", 0o1777),
        ("empty/er", 0o555),
        ("-n", 0),
    ] {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_001);
    for name in ["plain", "large", "empty/er"] {
        fs::File::open(root.join(name))
            .unwrap()
            .set_modified(time)
            .unwrap();
    }
}

#[tokio::test]
async fn a_tree_comes_back_equal_from_every_kind_of_image() {
    let folder = tempfile::tempdir().unwrap();
    let planted = folder.path().join("planted");
    fs::create_dir(&planted).unwrap();
    plant(&planted);
    let expected = snapshot(&planted);
    for (image, user) in [(BUSYBOX, ""), (DEBIAN, "1000:1000"), (STATIC, "")] {
        let Some(sandbox) = Box::new(&Shape {
            image,
            user,
            ..Shape::default()
        })
        .await
        else {
            return;
        };
        for run in 0..2 {
            let remote = format!("/up/tree{run}");
            sandbox.upload(&planted, &remote).await.unwrap();
            let back = folder.path().join(format!("{}{run}", image.replace('/', "-")));
            let options = DownloadOptions::default().with_set_id_bits(SetIdBits::Keep);
            sandbox
                .files()
                .download(&sandbox.handle, &remote, DownloadTarget::Path(&back), &options)
                .await
                .unwrap();
            let found = snapshot(&back);
            for (name, seen) in &expected {
                let is_seen = found
                    .get(name)
                    .unwrap_or_else(|| panic!("{name:?} is missing from {image}"));
                assert_eq!(
                    (seen.0, seen.1, seen.3),
                    (is_seen.0, is_seen.1, is_seen.3),
                    "{name:?} of {image}"
                );
                assert!(seen.2 == is_seen.2, "the content of {name:?} of {image}");
            }
            assert_eq!(found.len(), expected.len(), "{image}");
        }
        sandbox.close().await;
    }
}

#[tokio::test]
async fn looking_making_and_removing() {
    let Some(sandbox) = Box::new(&Shape {
        image: BUSYBOX,
        user: "1000:1000",
        ..Shape::default()
    })
    .await
    else {
        return;
    };
    let (files, handle) = (sandbox.files(), &sandbox.handle);
    files
        .make_directory(handle, "/a/b/c", &UploadOptions::default())
        .await
        .unwrap();
    files
        .make_directory(handle, "/a/b/c", &UploadOptions::default())
        .await
        .unwrap();
    sandbox.write("/a/f", "12345").await.unwrap();
    sandbox.sh("ln -s /a/f /a/l; ln -s 'odd\nlink' /a/odd; touch '/a/new\nline'; mkfifo /a/pipe; mkdir /none; ln -s /a /la").await;
    for path in ["/a", "/la", "/a/."] {
        let listed = files.list(handle, path).await.unwrap();
        let seen: Vec<_> = listed
            .iter()
            .map(|entry| {
                (
                    entry.name.to_str().unwrap(),
                    entry.stat.kind,
                    entry.stat.size_bytes,
                )
            })
            .collect();
        let expected = [
            ("b", FileKind::Directory, 0),
            ("f", FileKind::File, 5),
            ("l", FileKind::Symlink, 0),
            ("new\nline", FileKind::File, 0),
            ("odd", FileKind::Symlink, 0),
            ("pipe", FileKind::Special, 0),
        ];
        assert_eq!(seen, expected, "{path}");
        assert_eq!(listed[1].stat.owner, FileOwner::new(1000, 1000));
        assert_eq!(listed[4].stat.link_target, Some("odd\nlink".into()));
    }
    assert_eq!(files.list(handle, "/none").await.unwrap(), []);
    let stat = files.stat(handle, "/a/f").await.unwrap().unwrap();
    assert_eq!(
        (stat.kind, stat.size_bytes, stat.mode),
        (FileKind::File, 5, 0o644)
    );
    assert_eq!(stat.owner, FileOwner::new(1000, 1000));
    let link = files.stat(handle, "/a/l").await.unwrap().unwrap();
    assert_eq!(
        (link.kind, link.link_target),
        (FileKind::Symlink, Some("/a/f".into()))
    );
    assert_eq!(
        files.stat(handle, "/la/").await.unwrap().unwrap().kind,
        FileKind::Directory
    );
    assert_eq!(
        files.stat(handle, "/").await.unwrap().unwrap().kind,
        FileKind::Directory
    );
    assert_eq!(files.stat(handle, "/a/none").await.unwrap(), None);
    assert_eq!(files.stat(handle, "/x/y/z").await.unwrap(), None);
    assert_eq!(problem(files.stat(handle, "/a/f/x").await), NOT_A_DIRECTORY);
    assert_eq!(
        problem(
            files
                .make_directory(handle, "/a/f", &UploadOptions::default())
                .await
        ),
        NOT_A_DIRECTORY
    );
    let exists = ErrorKind::Path(PathProblem::Exists);
    assert_eq!(problem(files.remove(handle, "/a", RemoveMode::One).await), exists);
    assert!(files.remove(handle, "/la", RemoveMode::Recursive).await.unwrap());
    assert!(files.remove(handle, "/a/l", RemoveMode::One).await.unwrap());
    assert_eq!(
        sandbox.read("/a/f").await.unwrap(),
        b"12345",
        "links were removed, not what they lead to"
    );
    assert!(files.remove(handle, "/a", RemoveMode::Recursive).await.unwrap());
    assert!(!files.remove(handle, "/a", RemoveMode::Recursive).await.unwrap());
    assert_eq!(
        problem(files.remove(handle, "/", RemoveMode::Recursive).await),
        ErrorKind::InvalidArgument
    );
    sandbox.close().await;
}

#[tokio::test]
async fn an_image_without_a_shell_has_files_too() {
    let Some(sandbox) = Box::new(&Shape {
        image: STATIC,
        ..Shape::default()
    })
    .await
    else {
        return;
    };
    let (files, handle) = (sandbox.files(), &sandbox.handle);
    let large = bytes_of(5 << 20);
    sandbox.write("/deep/er/small", "small").await.unwrap();
    sandbox.write("/deep/er/large", large.clone()).await.unwrap();
    assert_eq!(sandbox.read("/deep/er/small").await.unwrap(), b"small");
    assert!(sandbox.read("/deep/er/large").await.unwrap() == large);
    let listed = files.list(handle, "/deep/er").await.unwrap();
    let seen: Vec<_> = listed
        .iter()
        .map(|entry| (entry.name.to_str().unwrap(), entry.stat.size_bytes))
        .collect();
    assert_eq!(
        seen,
        [("large", 5 << 20), ("small", 5)],
        "no part lies beside the file"
    );
    files
        .make_directory(handle, "/made/here", &UploadOptions::default())
        .await
        .unwrap();
    assert_eq!(
        files.stat(handle, "/made/here").await.unwrap().unwrap().kind,
        FileKind::Directory
    );
    assert_eq!(
        problem(files.remove(handle, "/made", RemoveMode::Recursive).await),
        ErrorKind::Unsupported
    );
    assert_eq!(
        problem(sandbox.write("/dev/shm/x", "x").await),
        ErrorKind::Path(PathProblem::NotServable)
    );
    assert_eq!(
        problem(sandbox.read("/proc/1/status").await),
        ErrorKind::Path(PathProblem::NotServable)
    );
    sandbox.close().await;
}

#[tokio::test]
async fn a_download_is_merged_whole_or_not_at_all() {
    let Some(sandbox) = Box::busybox().await else {
        return;
    };
    sandbox.sh("mkdir -p /t/d/e; echo 1 >/t/d/one; echo 2 >/t/two; mkdir /t2 /t3; echo x >/t2/d; mkfifo /t3/pipe; echo y >/t3/file").await;
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    fs::create_dir_all(target.join("d")).unwrap();
    fs::write(target.join("kept"), "kept").unwrap();
    fs::write(target.join("two"), "old").unwrap();
    sandbox.download("/t", &target).await.unwrap();
    let names: Vec<_> = snapshot(&target).into_keys().collect();
    assert_eq!(names, ["d", "d/e", "d/one", "kept", "two"].map(PathBuf::from));
    assert_eq!(fs::read_to_string(target.join("two")).unwrap(), "2\n");
    assert_eq!(
        problem(sandbox.download("/t2", &target).await),
        ErrorKind::Path(PathProblem::IsADirectory)
    );
    let refused = ErrorKind::Path(PathProblem::UnsafeArchive);
    assert_eq!(problem(sandbox.download("/t3", &target).await), refused);
    assert_eq!(
        problem(sandbox.download("/t3", &folder.path().join("not/there")).await),
        refused
    );
    let options = DownloadOptions::default().with_max_bytes(1);
    let small = sandbox
        .files()
        .download(&sandbox.handle, "/t", DownloadTarget::Path(&target), &options)
        .await;
    assert_eq!(problem(small), ErrorKind::Path(PathProblem::TooLarge));
    assert_eq!(
        snapshot(&target).into_keys().collect::<Vec<_>>(),
        names,
        "a failure changed the target"
    );
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "a failure left something"
    );
    let options = DownloadOptions::default().with_special_files(SpecialFiles::Skip);
    let back = folder.path().join("t3/");
    sandbox
        .files()
        .download(&sandbox.handle, "/t3", DownloadTarget::Path(&back), &options)
        .await
        .unwrap();
    assert_eq!(
        snapshot(&back).into_keys().collect::<Vec<_>>(),
        [PathBuf::from("file")]
    );
    sandbox.close().await;
}
