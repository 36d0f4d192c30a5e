//! Small files, listings and stat by the agent: that it is used, and that nobody can tell by what comes out.

use std::time::{Duration, Instant, SystemTime};

use gym_sandbox::docker::{DockerConfig, DockerProvider, ExecPathPolicy};
use gym_sandbox::provider::FilesProvider;
use gym_sandbox::{
    DownloadOptions, DownloadTarget, Error, ErrorKind, ExecOptions, ExecPath, ExecReason, FileEntry,
    FileOwner, FileStat, SandboxHandle, SandboxProvider, SandboxReason, UploadOptions, UploadSource,
};

use tokio::io::AsyncRead;

use super::{Kept, common, docker, proxy};

/// One sandbox, as a provider that has its agent sees it, and as one without.
pub(super) struct Both {
    test: common::DockerTest,
    pub(super) near: Kept,
    far: (DockerProvider, SandboxHandle),
}

impl Both {
    pub(super) async fn new(spec: gym_sandbox::SandboxSpec) -> Option<Self> {
        let test = docker(ExecPathPolicy::Agent).await?;
        let near = Kept::new(&test, spec).await;
        near.line("true").await;
        near.assert_by(ExecPath::Agent);
        let mut config = DockerConfig::default();
        config.exec.exec_path = ExecPathPolicy::Engine;
        let provider = DockerProvider::connect(config).await.unwrap();
        let handle = provider.attach(near.handle.sandbox_id().as_str()).await.unwrap();
        Some(Self {
            test,
            near,
            far: (provider, handle),
        })
    }

    /// Both sides, the agent's first.
    pub(super) fn sides(&self) -> [Side<'_>; 2] {
        let near = self.test.provider.as_files().unwrap();
        let far = self.far.0.as_files().unwrap();
        [Side(near, &self.near.handle), Side(far, &self.far.1)]
    }

    pub(super) async fn close(self) {
        self.near.close().await;
        self.far.0.aclose().await.unwrap();
    }
}

pub(super) struct Side<'a>(&'a dyn FilesProvider, &'a SandboxHandle);

/// What can be compared of an error.
pub(super) type Told<T> = Result<T, ErrorKind>;

fn told<T>(result: Result<T, Error>) -> Told<T> {
    result.map_err(|error| error.kind())
}

impl Side<'_> {
    async fn stat(&self, path: &str) -> Told<Option<FileStat>> {
        told(self.0.stat(self.1, path).await)
    }

    async fn list(&self, path: &str) -> Told<Vec<FileEntry>> {
        told(self.0.list(self.1, path).await)
    }

    async fn read(&self, path: &str) -> Told<Vec<u8>> {
        let mut content = Vec::new();
        let target = DownloadTarget::Writer(&mut content);
        let read = self
            .0
            .download(self.1, path, target, &DownloadOptions::default())
            .await;
        told(read.map(|_| content))
    }

    /// Sends what a reader gives, which was announced with this size.
    pub(super) async fn send(
        &self,
        path: &str,
        reader: impl AsyncRead + Send + Unpin,
        size: u64,
    ) -> Told<()> {
        let source = UploadSource::reader(reader, Some(size));
        let options = UploadOptions::default();
        told(self.0.upload(self.1, source, path, &options).await.map(drop))
    }

    async fn write(&self, path: &str, content: &[u8], options: &UploadOptions) -> Told<()> {
        let source = UploadSource::Bytes(content.to_vec().into());
        told(self.0.upload(self.1, source, path, options).await.map(drop))
    }
}

/// An agent that is slow on a busy machine is not waited for, and the engine is asked, which is not there.
async fn patiently<T>(attempt: impl AsyncFn() -> Told<T>) -> T {
    let deadline = Instant::now() + super::LIMIT;
    loop {
        match attempt().await {
            Ok(done) => return done,
            Err(kind) => assert!(
                kind == ErrorKind::Unavailable && Instant::now() < deadline,
                "{kind:?}"
            ),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What is in a sandbox is seen by its agent without the engine, so that an engine that is away is not missed.
#[tokio::test(flavor = "multi_thread")]
async fn small_files_need_no_engine() {
    let Some(proxy) = proxy::Proxy::start().await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    let mut config = common::config();
    config.exec.exec_path = ExecPathPolicy::Agent;
    config.host = Some(proxy.address());
    let Some(test) = common::docker_with(config).await else {
        return;
    };
    let sandbox = Kept::new(&test, common::busybox()).await;
    let side = Side(test.provider.as_files().unwrap(), &sandbox.handle);
    // What the container is like is asked once.
    let options = UploadOptions::default();
    side.write("/first", b"x", &options).await.unwrap();
    proxy.go_down();
    for size in [0, 1, 65_536, 65_537, 262_144] {
        let content: Vec<u8> = (0..size).map(|at: u32| at.to_le_bytes()[0]).collect();
        patiently(async || side.write("/dev/shm/made/file", &content, &options).await).await;
        let counted = patiently(async || {
            let result = sandbox.exec(ExecOptions::new("wc -c < /dev/shm/made/file")).await;
            let is_unknown = result.reason == Some(ExecReason::Sandbox(SandboxReason::DaemonUnreachable));
            if is_unknown {
                Err(ErrorKind::Unavailable)
            } else {
                Ok(result)
            }
        })
        .await;
        assert_eq!(
            counted.stdout().unwrap_or_default().trim(),
            size.to_string(),
            "{counted:?}"
        );
        let read = patiently(async || side.read("/dev/shm/made/file").await).await;
        assert!(read == content, "{size} bytes");
        let stat = patiently(async || side.stat("/dev/shm/made/file").await).await;
        let stat = stat.unwrap();
        assert_eq!((stat.size_bytes, stat.mode), (u64::from(size), 0o644));
    }
    let none = patiently(async || side.stat("/dev/shm/none").await).await;
    assert_eq!(none, None);
    let names = patiently(async || side.list("/dev/shm").await).await;
    assert_eq!(names.len(), 1);
    // What is large goes by the engine, which is not there.
    let large = vec![0; 300_000];
    let refused = side.write("/large", &large, &options).await;
    assert_eq!(refused, Err(ErrorKind::Unavailable));
    proxy.come_up();
    side.write("/large", &large, &options).await.unwrap();
    sandbox.close().await;
}

const PLANT: &str = r"
mkdir -p /t/dir /t/empty && cd /t && printf abc > file && printf x > 'odd name' && chmod 4751 file
ln -s file link; ln -s /nowhere dangling; ln -s dir dirlink; ln -s self self; mkfifo pipe; printf in > dir/inner
chown 12:34 dir/inner; touch -d '2001-02-03 04:05:06' dir/inner; head -c 70000 /dev/zero > large; mknod null c 1 3
";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_is_the_same_by_both_ways() {
    let Some(both) = Both::new(common::busybox()).await else {
        return;
    };
    both.near.line(PLANT).await;
    let [near, far] = both.sides();
    for path in [
        "/t/file",
        "/t/odd name",
        "/t/link",
        "/t/dangling",
        "/t/dirlink",
        "/t/dirlink/",
        "/t/dirlink/inner",
        "/t/dir",
        "/t/dir/",
        "/t/dir/inner",
        "/t/dir/../file",
        "/t/none",
        "/t/none/below",
        "/t/none/../file",
        "/t/file/below",
        "/t/file/",
        "/t/self",
        "/t/self/below",
        "/t/pipe",
        "/t/large",
        "/t/empty",
        "/t",
        "t/file",
        "/etc/hostname",
    ] {
        if path != "/t/self" {
            assert_eq!(near.stat(path).await, far.stat(path).await, "stat of {path}");
        }
        assert_eq!(near.list(path).await, far.list(path).await, "list of {path}");
        assert_eq!(near.read(path).await, far.read(path).await, "content of {path}");
    }
    // The engine can't look at a link that leads to itself.
    let link = near.stat("/t/self").await.unwrap().unwrap();
    assert_eq!(link.link_target, Some("self".into()));
    both.close().await;
}

/// The mode, time and content of a file on this machine, and how many are beside it.
#[tokio::test(flavor = "multi_thread")]
async fn d14_what_is_downloaded_is_the_same_by_both_ways() {
    let Some(both) = Both::new(common::busybox()).await else {
        return;
    };
    both.near.line(PLANT).await;
    let mut seen = Vec::new();
    for side in both.sides() {
        let folder = tempfile::tempdir().unwrap();
        for (remote, local) in [
            ("/t/file", "plain"),
            ("/t/dir/inner", "deep/er/file"),
            ("/t/link", "by-a-link"),
            ("/t/file", "into/"),
            ("/t/none", "none"),
            ("/t/dir", "directory/"),
        ] {
            let target = folder.path().join(local);
            let target = if local.ends_with('/') {
                format!("{}/", target.display()).into()
            } else {
                target
            };
            let options = DownloadOptions::default().with_max_bytes(1000);
            let taken = side
                .0
                .download(side.1, remote, DownloadTarget::Path(&target), &options)
                .await;
            seen.push(format!("{remote} {local}: {:?}", told(taken)));
        }
        let small = DownloadOptions::default().with_max_bytes(2);
        let target = folder.path().join("refused");
        let refused = side
            .0
            .download(side.1, "/t/file", DownloadTarget::Path(&target), &small)
            .await;
        seen.push(format!("{:?}", told(refused)));
        let listed = tokio::process::Command::new("sh")
            .args([
                "-c",
                "find . -type f -exec stat -c '%n %a %Y %s' {} + | sort; find . | wc -l",
            ])
            .current_dir(folder.path())
            .output()
            .await
            .unwrap();
        seen.push(String::from_utf8(listed.stdout).unwrap());
    }
    let (near, far) = seen.split_at(seen.len() / 2);
    assert_eq!(near, far);
    both.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_what_is_uploaded_is_the_same_by_both_ways() {
    let spec = common::busybox().with_workdir("/w");
    let Some(both) = Both::new(spec).await else { return };
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let marked = UploadOptions::default()
        .with_mode(0o4711)
        .with_owner(FileOwner::new(12, 34))
        .with_mtime(old);
    let plain = UploadOptions::default().with_mtime(old);
    let mut seen = Vec::new();
    for side in both.sides() {
        both.near.line(&format!("rm -rf /t /w/*; {PLANT}")).await;
        for (path, options) in [
            ("/t/new", &plain),
            ("/t/marked", &marked),
            ("/t/made/by/upload", &marked),
            ("relative/file", &plain),
            ("/t/file", &plain),
            ("/t/link", &plain),
            ("/t/dirlink", &plain),
            ("/t/dangling", &plain),
            ("/t/dir", &plain),
            ("/t/dir/../dots", &plain),
            ("/t/none/../dots", &plain),
            ("/t/file/below", &plain),
            ("/t/self/below", &plain),
            ("/t/into/", &plain),
            ("/proc/1/nothing", &plain),
            ("/etc/hosts", &plain),
        ] {
            let written = side.write(path, b"content", options).await;
            seen.push(format!("{path}: {written:?}"));
        }
        // Names, marks and contents, but for the times of directories, which are those of now.
        let look = "cd / && find t w -exec stat -c '%N %F %a %u %g %s' {} + | sort; \
                    find t w -type f -newermt 1970-01-20 2>/dev/null | sort; cat t/link etc/hosts; test -c /dev/null";
        seen.push(both.near.line(look).await);
    }
    let (near, far) = seen.split_at(seen.len() / 2);
    assert_eq!(near, far);
    both.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_an_ordinary_user_and_a_read_only_root() {
    let user = gym_sandbox::SandboxSpec::new("gym-sandbox/user:test");
    let read_only = common::busybox().with_provider_option("read_only", true);
    let hardened = common::busybox().with_provider_option("preset", "hardened");
    for spec in [user, read_only, hardened] {
        let Some(both) = Both::new(spec.clone()).await else {
            return;
        };
        let mut seen = Vec::new();
        for side in both.sides() {
            let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
            let options = UploadOptions::default().with_mtime(old);
            for path in [
                "/root/made/file",
                "/tmp/made/file",
                "/dev/shm/made/file",
                "/home/file",
            ] {
                let written = side.write(path, b"content", &options).await;
                let look = format!("stat -c '%a %u %g %s %Y' {path} 2>&1; true");
                seen.push(format!("{path}: {written:?} {}", both.near.line(&look).await));
                seen.push(format!("{:?} {:?}", side.read(path).await, side.stat(path).await));
            }
            let owner = UploadOptions::default().with_owner(FileOwner::new(7, 8));
            let written = side.write("/tmp/given/away", b"content", &owner).await;
            let look = "stat -c '%u %g' /tmp/given /tmp/given/away 2>&1; true";
            seen.push(format!("{written:?} {}", both.near.line(look).await));
            both.far
                .0
                .as_files()
                .unwrap()
                .remove(&both.far.1, "/tmp/given", gym_sandbox::RemoveMode::Recursive)
                .await
                .ok();
        }
        let (near, far) = seen.split_at(seen.len() / 2);
        assert_eq!(near, far, "{spec:?}");
        both.close().await;
    }
}

/// A sandbox that is paused can't answer, and its files are still had.
#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_paused_sandbox_go_by_the_engine() {
    let Some(both) = Both::new(common::busybox()).await else {
        return;
    };
    let client = common::client().await.unwrap();
    let container = &both.near.raw().container_id;
    client.pause_container(container).await.unwrap();
    let [near, _] = both.sides();
    near.write("/while/paused", b"frozen", &UploadOptions::default())
        .await
        .unwrap();
    assert_eq!(near.read("/while/paused").await.unwrap(), b"frozen");
    client.unpause_container(container).await.unwrap();
    assert_eq!(both.near.line("cat /while/paused").await, "frozen");
    both.close().await;
}
