//! What the engine's archive calls do not see, or not now: tmpfs, the kernel's trees, paused and stopped sandboxes.

use std::fs;

use gym_sandbox::{
    ErrorKind, ExecOptions, FileKind, RemoveMode, SandboxProvider, SandboxReason, UploadOptions,
};

use crate::common::{BUSYBOX, DEBIAN};
use crate::sandboxes::{Box, IS_A_DIRECTORY, NOT_A_DIRECTORY, NOT_FOUND, Shape, bytes_of, problem};

#[tokio::test]
async fn files_on_a_tmpfs_are_those_that_programs_see() {
    for (image, user) in [(BUSYBOX, ""), (DEBIAN, "1000:1000")] {
        let shape = Shape {
            image,
            user,
            tmpfs: &["/mnt/t"],
            ..Shape::default()
        };
        let Some(sandbox) = Box::new(&shape).await else {
            return;
        };
        let (files, handle) = (sandbox.files(), &sandbox.handle);
        sandbox
            .sh("ln -s /mnt/t /through; mkdir /mnt/t/dir; ln -s dir /mnt/t/dlink")
            .await;
        for (size, path) in [
            (0, "/mnt/t/a/empty"),
            (5, "/through/small"),
            (3 << 20, "/dev/shm/large name"),
            (7, "/mnt/t/dir/../up"),
        ] {
            let content = bytes_of(size);
            sandbox.write(path, content.clone()).await.unwrap();
            let seen = sandbox.sh(&format!("wc -c <'{path}'")).await;
            assert_eq!(seen.trim(), size.to_string(), "{path} in {image}");
            assert!(sandbox.read(path).await.unwrap() == content, "{path} in {image}");
        }
        let owner = if user.is_empty() { "0 0" } else { "1000 1000" };
        assert_eq!(
            sandbox.sh("stat -c '%u %g %a' /mnt/t/a /mnt/t/small").await,
            format!("{owner} 755\n{owner} 644\n")
        );
        assert_eq!(problem(sandbox.write("/mnt/t/dir", "x").await), IS_A_DIRECTORY);
        assert_eq!(
            problem(sandbox.write("/mnt/t/small/x", "x").await),
            NOT_A_DIRECTORY
        );
        assert_eq!(problem(sandbox.read("/mnt/t/dir").await), IS_A_DIRECTORY);
        assert_eq!(problem(sandbox.read("/mnt/t/none").await), NOT_FOUND);
        sandbox.write("/mnt/t/dlink", "replaced").await.unwrap();
        assert_eq!(
            sandbox
                .sh("test ! -L /mnt/t/dlink; cat /mnt/t/dlink; ls -A /mnt/t/dir /dev/shm")
                .await,
            "replaced/dev/shm:\nlarge name\n\n/mnt/t/dir:\n"
        );

        let folder = tempfile::tempdir().unwrap();
        let (tree, back) = (folder.path().join("tree"), folder.path().join("back"));
        fs::create_dir_all(tree.join("sub/empty")).unwrap();
        fs::write(tree.join("sub/file"), bytes_of(100_000)).unwrap();
        std::os::unix::fs::symlink("sub/file", tree.join("link")).unwrap();
        sandbox.upload(&tree, "/mnt/t/tree").await.unwrap();
        assert_eq!(
            sandbox
                .sh("wc -c </mnt/t/tree/link; stat -c %u /mnt/t/tree/sub/file")
                .await
                .replace('\n', " "),
            format!("100000 {} ", &owner[..owner.len() / 2])
        );
        sandbox.download("/mnt/t/tree", &back).await.unwrap();
        assert!(fs::read(back.join("link")).unwrap() == bytes_of(100_000));
        assert!(back.join("sub/empty").is_dir());
        // The tmpfs lies below what is copied.
        let outer = folder.path().join("outer");
        fs::create_dir_all(outer.join("t")).unwrap();
        fs::write(outer.join("t/below"), "below").unwrap();
        fs::write(outer.join("beside"), "beside").unwrap();
        sandbox.upload(&outer, "/mnt").await.unwrap();
        assert_eq!(sandbox.sh("cat /mnt/t/below /mnt/beside").await, "belowbeside");
        sandbox
            .download("/mnt", &folder.path().join("mnt"))
            .await
            .unwrap();
        assert_eq!(
            fs::read_to_string(folder.path().join("mnt/t/below")).unwrap(),
            "below"
        );

        assert_eq!(
            files
                .stat(handle, "/mnt/t/small")
                .await
                .unwrap()
                .unwrap()
                .size_bytes,
            5
        );
        assert_eq!(files.stat(handle, "/mnt/t/none").await.unwrap(), None);
        let listed = files.list(handle, "/mnt/t/tree").await.unwrap();
        let seen: Vec<_> = listed
            .iter()
            .map(|entry| (entry.name.to_str().unwrap(), entry.stat.kind))
            .collect();
        assert_eq!(seen, [("link", FileKind::Symlink), ("sub", FileKind::Directory)]);
        files
            .make_directory(handle, "/mnt/t/x/y", &UploadOptions::default().with_mode(0o700))
            .await
            .unwrap();
        assert_eq!(sandbox.sh("stat -c %a /mnt/t/x /mnt/t/x/y").await, "755\n700\n");
        assert!(
            files
                .remove(handle, "/mnt/t/x", RemoveMode::Recursive)
                .await
                .unwrap()
        );
        assert!(
            !files
                .remove(handle, "/mnt/t/x", RemoveMode::Recursive)
                .await
                .unwrap()
        );
        sandbox.close().await;
    }
}

#[tokio::test]
async fn files_that_are_mounts_are_written_in_place() {
    let Some(sandbox) = Box::busybox().await else {
        return;
    };
    sandbox.write("/etc/hosts", "127.0.0.1 own\n").await.unwrap();
    assert_eq!(sandbox.sh("cat /etc/hosts").await, "127.0.0.1 own\n");
    assert_eq!(sandbox.read("/etc/hosts").await.unwrap(), b"127.0.0.1 own\n");
    assert!(sandbox.write("/proc/version", "x").await.is_err());
    sandbox.close().await;
}

#[tokio::test]
async fn without_capabilities_files_are_the_users_own() {
    let shape = Shape {
        image: DEBIAN,
        user: "1000:1000",
        tmpfs: &["/t"],
        cap_drop: &["ALL"],
        ..Shape::default()
    };
    let Some(sandbox) = Box::new(&shape).await else {
        return;
    };
    sandbox.write("/work/dir/small", "s").await.unwrap();
    sandbox.write("/work/dir/large", bytes_of(3 << 20)).await.unwrap();
    sandbox.write("/t/x/y", "tmpfs").await.unwrap();
    let line = "stat -c '%u %a' /work/dir/small /work/dir/large /t/x/y; ls -A /work/dir; cat /t/x/y";
    let seen = sandbox
        .test
        .provider
        .exec(&sandbox.handle, ExecOptions::new(line))
        .await
        .unwrap()
        .stdout()
        .unwrap();
    assert_eq!(seen, "1000 644\n1000 644\n1000 644\nlarge\nsmall\ntmpfs");
    sandbox.close().await;
}

#[tokio::test]
async fn paused_and_stopped_sandboxes_have_files() {
    let Some(sandbox) = Box::new(&Shape {
        image: BUSYBOX,
        tmpfs: &["/t"],
        ..Shape::default()
    })
    .await
    else {
        return;
    };
    let large = bytes_of(3 << 20);
    sandbox.write("/d/before", "before").await.unwrap();
    sandbox.pause().await;
    sandbox.write("/d/small", "small").await.unwrap();
    sandbox.write("/d/large", large.clone()).await.unwrap();
    assert!(sandbox.read("/d/large").await.unwrap() == large);
    assert_eq!(
        problem(sandbox.write("/t/x", "x").await),
        ErrorKind::Sandbox(SandboxReason::Paused)
    );
    assert_eq!(
        problem(sandbox.read("/t/x").await),
        ErrorKind::Sandbox(SandboxReason::Paused)
    );
    sandbox.kill().await;
    sandbox.write("/d/stopped", large.clone()).await.unwrap();
    assert!(sandbox.read("/d/stopped").await.unwrap() == large);
    let names = sandbox.files().list(&sandbox.handle, "/d").await.unwrap();
    let names: Vec<_> = names.iter().map(|entry| entry.name.to_str().unwrap()).collect();
    assert_eq!(
        names,
        ["before", "large", "small", "stopped"],
        "no part lies beside the files"
    );
    assert_eq!(
        problem(sandbox.write("/t/x", "x").await),
        ErrorKind::Sandbox(SandboxReason::NotRunning)
    );
    sandbox.close().await;
}
