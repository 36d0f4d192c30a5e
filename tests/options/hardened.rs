//! The preset `hardened` is good for real work as a user that is not root, over both paths.

use gym_sandbox::{ExecOptions, SandboxProvider, SandboxSpec};
use serde_json::json;

use crate::common::{DockerTest, docker};
use crate::{inspect, stdout};

const DEBIAN_USER: &str = "gym-sandbox/debian-user:test";

async fn works(test: &DockerTest, spec: &SandboxSpec) {
    let handle = test.provider.create(spec).await.unwrap();
    let status = stdout(
        test,
        &handle,
        "grep -E 'Cap(Eff|Bnd)|NoNewPrivs' /proc/self/status",
    )
    .await;
    assert!(status.contains("CapEff:\t0000000000000000"), "{status}");
    assert!(status.contains("CapBnd:\t0000000000000000"), "{status}");
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    assert_eq!(stdout(test, &handle, "id -un").await, "agent\n");
    // git-like: an index of small files, links, modes.
    let git = "cd ~ && git init -q repo && cd repo && echo hi > a && ln -s a b && chmod 755 a && git add . \
               && git -c user.name=me -c user.email=me@example.test commit -qm one && git log --format=%s \
               && git checkout -q -b side && git status --porcelain | wc -l";
    assert_eq!(stdout(test, &handle, git).await, "one\n0\n");
    // pip-like: a package is built into an archive, unpacked into a folder of the user's, and imported from there.
    let pip = "cd ~ && mkdir -p src/pkg site && echo 'VALUE = 42' > src/pkg/__init__.py \
               && python3 -c 'import shutil; shutil.make_archive(\"/tmp/pkg-1\", \"zip\", \"src\")' \
               && python3 -m zipfile -e /tmp/pkg-1.zip site \
               && PYTHONPATH=site python3 -c 'import pkg; print(pkg.VALUE)'";
    assert_eq!(stdout(test, &handle, pip).await, "42\n");
    // Processes, sockets of its own, programs that it made itself.
    let python = "import subprocess, socket, threading, tempfile, os, stat\n\
                  server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen()\n\
                  threading.Thread(target=lambda: server.accept()[0].sendall(b'pong')).start()\n\
                  client = socket.create_connection(server.getsockname()); print(client.recv(4).decode())\n\
                  path = tempfile.mktemp(); open(path, 'w').write('#!/bin/sh\\necho made\\n'); os.chmod(path, 0o700)\n\
                  print(subprocess.run([path], capture_output=True, text=True).stdout.strip())\n";
    let result = test
        .provider
        .exec(&handle, ExecOptions::new(["python3", "-c", python]))
        .await
        .unwrap();
    assert_eq!(result.stdout().as_deref(), Some("pong\nmade\n"), "{result:?}");
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d9_the_preset_hardened_is_good_for_real_work_over_the_engine() {
    let Some(test) = docker().await else { return };
    let spec = SandboxSpec::new(DEBIAN_USER)
        .with_provider_option("preset", "hardened")
        .with_provider_option("exec_path", "engine");
    works(&test, &spec).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d9_the_preset_hardened_is_good_for_real_work_by_the_agent() {
    let Some(test) = docker().await else { return };
    let spec = SandboxSpec::new(DEBIAN_USER)
        .with_provider_option("preset", "hardened")
        .with_provider_option("exec_path", "agent");
    works(&test, &spec).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d9_a_read_only_hardened_sandbox_has_memory_to_write_to() {
    let Some(test) = docker().await else { return };
    let spec = SandboxSpec::new(DEBIAN_USER)
        .with_provider_option("preset", "hardened")
        .with_provider_option("read_only", true)
        .with_provider_option("tmpfs", json!({"/home/agent": "uid=1000,gid=1000,mode=700,exec"}));
    works(&test, &spec).await;
    let handle = test.provider.create(&spec).await.unwrap();
    let write = test
        .provider
        .exec(&handle, ExecOptions::new("touch /var/x"))
        .await
        .unwrap();
    assert!(!write.is_success(), "the root can be written to");
    let host = inspect(&handle).await.host_config.unwrap();
    assert_eq!((host.readonly_rootfs, host.pids_limit), (Some(true), Some(512)));
    assert_eq!(host.memory, Some(2 << 30));
    test.provider.close(&handle).await.unwrap();
}
