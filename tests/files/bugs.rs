//! Public bug reports about files (bugs.md), each by its number.

use std::time::{Duration, Instant, SystemTime};

use gym_sandbox::{ErrorKind, FileOwner, SandboxProvider, SandboxReason, UploadOptions};

use crate::common::BUSYBOX;
use crate::sandboxes::{
    Box, IS_A_DIRECTORY, NOT_A_DIRECTORY, NOT_FOUND, READ_ONLY, Shape, bytes_of, problem,
};

/// Tells a call that ends from one that waits for a time-out of the transport.
const BOUNDED: Duration = Duration::from_secs(60);

#[tokio::test]
async fn b10_files_of_every_size_and_name_are_written_whole() {
    let Some(sandbox) = Box::busybox().await else {
        return;
    };
    for (size, name) in [
        (0, "empty"),
        (100 << 10, "100 KiB"),
        (300 << 10, "quote ' \" and $HOME"),
        (8 << 20, "line\nfeed"),
        ((1 << 20) + 1, "ünï-*-;"),
    ] {
        let content = bytes_of(size);
        let path = format!("/data/{name}");
        sandbox.write(&path, content.clone()).await.unwrap();
        assert!(sandbox.read(&path).await.unwrap() == content, "{name}");
    }
    assert_eq!(
        sandbox.sh("ls -A /data | wc -l").await.trim(),
        "5",
        "no part is left"
    );
    sandbox.close().await;
}

#[tokio::test]
async fn b11_links_are_followed_inside_and_never_written_through() {
    let Some(sandbox) = Box::busybox().await else {
        return;
    };
    sandbox
        .sh("mkdir /data; ln -s /data /link; ln -s ../../../../data /up; echo old >/data/f; ln -s /data/f /flink; ln -s /data /dlink")
        .await;
    let folder = tempfile::tempdir().unwrap();
    let local = folder.path().join("a.txt");
    std::fs::write(&local, "a").unwrap();
    sandbox.upload(&local, "/link/a.txt").await.unwrap();
    sandbox.upload(&local, "/up/b.txt").await.unwrap();
    sandbox.write("/flink", "new").await.unwrap();
    sandbox.upload(&local, "/link/").await.unwrap();
    assert_eq!(
        sandbox
            .sh("cat /data/a.txt /data/b.txt /data/f /flink; ls /data | tr '\\n' ' '; test ! -L /flink")
            .await,
        "aaold\nnewa.txt b.txt f "
    );
    assert!(!std::path::Path::new("/data/a.txt").exists() && !std::path::Path::new("/data/b.txt").exists());
    // A large file and a directory go by other ways, and by the same rule.
    sandbox.sh("ln -sf /data/f /flink").await;
    sandbox.write("/flink", bytes_of(3 << 20)).await.unwrap();
    assert_eq!(
        sandbox
            .sh("cat /data/f; test ! -L /flink; wc -c </flink")
            .await
            .trim(),
        "old\n3145728"
    );
    let tree = folder.path().join("tree");
    std::fs::create_dir(&tree).unwrap();
    for (name, target) in [
        ("relative", "a.txt"),
        ("absolute", "/etc/passwd"),
        ("dangling", "../../no//such/."),
    ] {
        std::os::unix::fs::symlink(target, tree.join(name)).unwrap();
    }
    sandbox.upload(&tree, "/dlink").await.unwrap();
    assert_eq!(
        sandbox.sh("test ! -L /dlink; cd /dlink; for l in relative absolute dangling; do readlink $l; done; ls /data | wc -l").await.trim(),
        "a.txt\n/etc/passwd\n../../no//such/.\n3"
    );
    sandbox.upload(&tree, "/link/").await.unwrap();
    assert_eq!(
        sandbox.sh("readlink /link; readlink /data/dangling").await,
        "/data\n../../no//such/.\n"
    );
    sandbox.close().await;
}

#[tokio::test]
async fn b13_read_only_roots_and_what_the_archive_cannot_see() {
    let shape = Shape {
        image: BUSYBOX,
        read_only: true,
        tmpfs: &["/tmp"],
        volumes: &["/work"],
        ..Shape::default()
    };
    let Some(sandbox) = Box::new(&shape).await else {
        return;
    };
    assert_eq!(problem(sandbox.write("/etc/x", "x").await), READ_ONLY);
    assert_eq!(
        problem(sandbox.write("/etc/x", bytes_of(3 << 20)).await),
        READ_ONLY
    );
    sandbox.write("/work/x", "volume").await.unwrap();
    sandbox.write("/work/deep/er/x", bytes_of(3 << 20)).await.unwrap();
    assert_eq!(
        sandbox
            .sh("cat /work/x; wc -c </work/deep/er/x; ls -A /work/deep/er")
            .await,
        "volume3145728\nx\n"
    );
    sandbox.write("/tmp/a/b", "tmpfs").await.unwrap();
    assert_eq!(sandbox.sh("cat /tmp/a/b").await, "tmpfs");
    assert_eq!(sandbox.read("/tmp/a/b").await.unwrap(), b"tmpfs");
    for path in [
        "/proc/self/status",
        "/proc/cpuinfo",
        "/sys/kernel/ostype",
        "/etc/hosts",
        "/etc/resolv.conf",
    ] {
        match sandbox.read(path).await {
            Ok(content) => {
                let empty_is_right = path == "/etc/resolv.conf";
                assert!(empty_is_right || !content.is_empty(), "{path} is empty");
            }
            Err(error) => assert_eq!(
                (error.kind(), path),
                (NOT_FOUND, "/sys/kernel/ostype"),
                "{error:?}"
            ),
        }
    }
    assert!(
        String::from_utf8(sandbox.read("/proc/self/status").await.unwrap())
            .unwrap()
            .starts_with("Name:")
    );
    sandbox.close().await;
}

#[tokio::test]
async fn b17_a_bad_place_is_told_alike_for_small_and_large() {
    let Some(sandbox) = Box::busybox().await else {
        return;
    };
    for size in [20, 20 << 20] {
        let began = Instant::now();
        assert_eq!(
            problem(sandbox.write("/etc/hostname/x", bytes_of(size)).await),
            NOT_A_DIRECTORY
        );
        sandbox
            .write(&format!("/no/such/dir/{size}"), bytes_of(size))
            .await
            .unwrap();
        assert!(began.elapsed() < BOUNDED);
        assert_eq!(
            sandbox.sh(&format!("wc -c </no/such/dir/{size}")).await.trim(),
            size.to_string()
        );
    }
    assert_eq!(sandbox.sh("stat -c '%u %a' /no/such/dir").await.trim(), "0 755");
    sandbox.test.provider.close(&sandbox.handle).await.unwrap();
    for size in [20, 20 << 20] {
        let began = Instant::now();
        let error = problem(sandbox.write("/tmp/x", bytes_of(size)).await);
        assert_eq!(error, ErrorKind::Sandbox(SandboxReason::Removed));
        assert!(began.elapsed() < BOUNDED);
    }
    sandbox.close().await;
}

#[tokio::test]
async fn b18_owner_mode_and_time() {
    for (user, image, owner) in [
        ("1000:1000", BUSYBOX, "1000 1000"),
        ("1000", BUSYBOX, "1000 0"),
        ("", BUSYBOX, "0 0"),
        ("", "gym-sandbox/user:test", ""),
    ] {
        let shape = Shape {
            image,
            user,
            ..Shape::default()
        };
        let Some(sandbox) = Box::new(&shape).await else {
            return;
        };
        let owner = if owner.is_empty() {
            let result = sandbox
                .test
                .provider
                .exec(&sandbox.handle, "echo $(id -u) $(id -g)".into())
                .await
                .unwrap();
            result.stdout().unwrap().trim().to_owned()
        } else {
            owner.to_owned()
        };
        sandbox.write("/made/by/us", "x").await.unwrap();
        sandbox.write("/made/large", bytes_of(2 << 20)).await.unwrap();
        let found = sandbox
            .sh("stat -c '%u %g %a' /made /made/by /made/by/us /made/large")
            .await;
        assert_eq!(
            found,
            format!("{owner} 755\n{owner} 755\n{owner} 644\n{owner} 644\n"),
            "{user} {image}"
        );
        let result = sandbox
            .test
            .provider
            .exec(&sandbox.handle, "cat /made/by/us && echo y >/made/by/us".into())
            .await;
        assert!(result.unwrap().is_success(), "{user} can't use its file");
        let options = UploadOptions::default()
            .with_owner(FileOwner::new(1000, 1000))
            .with_mtime(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000));
        for (path, mode) in [
            ("/made/m", 0o750),
            ("/made/setuid", 0o4755),
            ("/made/sticky", 0o1644),
        ] {
            for size in [3, 2 << 20] {
                let options = options.clone().with_mode(mode);
                sandbox.write_with(path, bytes_of(size), &options).await.unwrap();
                let found = sandbox.sh(&format!("stat -c '%u %g %a %Y' {path}")).await;
                assert_eq!(found, format!("1000 1000 {mode:o} 1000000000\n"), "{path} {size}");
            }
        }
        sandbox
            .files()
            .make_directory(&sandbox.handle, "/made/dir", &options.clone().with_mode(0o1777))
            .await
            .unwrap();
        assert_eq!(sandbox.sh("stat -c '%u %a' /made/dir").await, "1000 1777\n");
        sandbox.close().await;
    }
}

#[tokio::test]
async fn b19_file_or_directory() {
    let Some(sandbox) = Box::busybox().await else {
        return;
    };
    sandbox
        .sh("mkdir /d; echo keep >/d/kept; echo f >/f; ln -s /nowhere /dangling")
        .await;
    let folder = tempfile::tempdir().unwrap();
    let (file, tree) = (folder.path().join("file"), folder.path().join("tree"));
    std::fs::write(&file, "content").unwrap();
    std::fs::create_dir_all(tree.join("sub")).unwrap();
    std::fs::write(tree.join("sub/leaf"), "leaf").unwrap();
    assert_eq!(problem(sandbox.write("/d", "x").await), IS_A_DIRECTORY);
    assert_eq!(
        problem(sandbox.write("/d", bytes_of(2 << 20)).await),
        IS_A_DIRECTORY
    );
    assert_eq!(problem(sandbox.upload(&tree, "/f").await), NOT_A_DIRECTORY);
    assert_eq!(problem(sandbox.upload(&file, "/f/").await), NOT_A_DIRECTORY);
    assert_eq!(
        problem(sandbox.write("/d/", "bytes have no name").await),
        ErrorKind::InvalidArgument
    );
    sandbox.upload(&file, "/d/").await.unwrap();
    sandbox.upload(&file, "/newdir/").await.unwrap();
    sandbox.upload(&tree, "/d").await.unwrap();
    sandbox.upload(&tree.join("."), "/t1").await.unwrap();
    sandbox.upload(&tree, "/t2/").await.unwrap();
    assert_eq!(
        sandbox
            .sh("cat /f /d/kept /d/file /newdir/file /d/sub/leaf /t1/sub/leaf /t2/sub/leaf")
            .await,
        "f\nkeep\ncontentcontentleafleafleaf"
    );
    for (path, kind) in [
        ("/d", IS_A_DIRECTORY),
        ("/missing", NOT_FOUND),
        ("/missing/x", NOT_FOUND),
        ("/f/x", NOT_A_DIRECTORY),
        ("/f/", NOT_A_DIRECTORY),
        ("/", IS_A_DIRECTORY),
        ("/dangling", NOT_FOUND),
    ] {
        assert_eq!(problem(sandbox.read(path).await), kind, "{path}");
    }
    assert_eq!(
        problem(sandbox.files().list(&sandbox.handle, "/f").await),
        NOT_A_DIRECTORY
    );
    assert_eq!(
        problem(sandbox.files().list(&sandbox.handle, "/missing").await),
        NOT_FOUND
    );
    sandbox.sh("mkdir /empty").await;
    let empty = folder.path().join("empty");
    sandbox.download("/empty", &empty).await.unwrap();
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0);
    assert_eq!(problem(sandbox.download("/f", &tree).await), IS_A_DIRECTORY);
    assert_eq!(problem(sandbox.download("/d", &file).await), NOT_A_DIRECTORY);
    sandbox
        .download("/f", &folder.path().join("into/"))
        .await
        .unwrap();
    assert_eq!(
        std::fs::read_to_string(folder.path().join("into/f")).unwrap(),
        "f\n"
    );
    assert_eq!(sandbox.read("/d/../f").await.unwrap(), b"f\n");
    sandbox.close().await;
}
