//! What a project must do on any provider without containers, as cases that say what is wrong instead of panicking: the
//! same run over a right provider and over ones with a fault.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gym_sandbox::compose::{
    AsyncSandboxCompose, ComposeEvent, ProgressCallback, ServiceProgress, Source, VolumeSource,
};
use gym_sandbox::{Error, ErrorKind, ExecOptions, FileOwner, SandboxProvider};

use crate::plain::Plain;

pub(crate) type Outcome = Result<(), String>;

/// How long anything may take that a case waits for.
const LIMIT: Duration = Duration::from_secs(180);

pub(crate) fn holds(what: &str, is_so: bool) -> Outcome {
    if is_so {
        Ok(())
    } else {
        Err(format!("not so: {what}"))
    }
}

pub(crate) fn equal(what: &str, seen: &str, wanted: &str) -> Outcome {
    if seen == wanted {
        return Ok(());
    }
    Err(format!("{what} is {seen:?} and not {wanted:?}"))
}

#[expect(clippy::needless_pass_by_value, reason = "it is what errors are mapped with")]
pub(crate) fn told(error: Error) -> String {
    error.report().to_string()
}

pub(crate) fn project(provider: &Arc<Plain>, yaml: &str) -> AsyncSandboxCompose {
    AsyncSandboxCompose::new(Arc::clone(provider) as Arc<dyn SandboxProvider>).with_source(Source::text(
        "compose.yaml",
        yaml.replace("BUSYBOX", crate::common::BUSYBOX),
    ))
}

/// What a shell line prints in a service; it is tried again until it succeeds: servers take a moment.
pub(crate) async fn printed(
    project: &AsyncSandboxCompose,
    service: &str,
    line: &str,
) -> Result<String, String> {
    let sandbox = project.service(service).map_err(told)?;
    let deadline = Instant::now() + LIMIT;
    loop {
        let result = sandbox.exec(line).await.map_err(told)?;
        if result.is_success() {
            return Ok(result.stdout().unwrap_or_default().trim_end().to_owned());
        }
        if Instant::now() >= deadline {
            return Err(format!("`{line}` in `{service}`: {result:?}"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Runs a case with a started project, which is stopped in any case.
async fn started(
    project: AsyncSandboxCompose,
    case: impl AsyncFnOnce(&AsyncSandboxCompose) -> Outcome,
) -> Outcome {
    project.start().await.map_err(told)?;
    let outcome = case(&project).await;
    project.stop().await.map_err(told)?;
    outcome
}

/// A start that fails; the text of the error has these parts, and nothing is left.
async fn fails(project: AsyncSandboxCompose, kind: ErrorKind, parts: &[&str]) -> Outcome {
    let Err(error) = project.start().await else {
        project.stop().await.map_err(told)?;
        return Err("the start did not fail".to_owned());
    };
    let seen = error.kind();
    let story = told(error);
    holds(&format!("{seen:?} is {kind:?}: {story}"), seen == kind)?;
    for part in parts {
        holds(&format!("`{part}` is in: {story}"), story.contains(part))?;
    }
    Ok(())
}

pub(crate) const TWO: &str = "
services:
  db:
    image: BUSYBOX
    command: [sh, -c, 'mkdir -p /tmp/www; echo stored >/tmp/www/data; exec httpd -f -p 5432 -h /tmp/www']
    expose: ['5432']
    networks: {default: {aliases: [storage]}}
    healthcheck: {test: 'wget -qO- http://127.0.0.1:5432/data', interval: 1s, retries: 300}
  web:
    image: BUSYBOX
    entrypoint: [sh, -c]
    command: ['mkdir -p /tmp/www; echo \"$$URL\" >/tmp/www/url; exec httpd -f -p 8080 -h /tmp/www']
    environment: {URL: 'http://me:pw@db:5432/data?x=1', PLAIN: 'http://db:5432'}
    depends_on: {db: {condition: service_healthy}}
    ports: ['8080']
    labels: {team: blue}
    x-sandbox: {resolve_environment: [URL]}
  apart:
    image: BUSYBOX
    command: sleep 600
    x-sandbox: {hosts: []}
";

/// Services find each other by names and aliases, all of them or none; the program runs beside what keeps the sandbox
/// alive; a selected variable holds an address, for the program only.
pub(crate) async fn names(provider: Arc<Plain>) -> Outcome {
    started(project(&provider, TWO), async |project| {
        for name in ["db", "storage"] {
            let line = format!("wget -qO- http://{name}:5432/data");
            equal(name, &printed(project, "web", &line).await?, "stored")?;
        }
        let hosts = printed(project, "apart", "cat /etc/hosts").await?;
        holds(&format!("no names in: {hosts}"), !hosts.contains("storage"))?;
        holds(
            "the program is not the main process",
            printed(project, "db", "cat /proc/1/comm").await? != "httpd",
        )?;
        let address = project
            .service("db")
            .map_err(told)?
            .network_address()
            .await
            .map_err(told)?;
        let url = printed(project, "web", "wget -qO- http://127.0.0.1:8080/url").await?;
        equal(
            "the variable of the program",
            &url,
            &format!("http://me:pw@{address}:5432/data?x=1"),
        )?;
        equal(
            "that of a command",
            &printed(project, "web", "echo $URL").await?,
            "http://me:pw@db:5432/data?x=1",
        )?;
        let endpoint = project
            .service("web")
            .map_err(told)?
            .endpoint(8080)
            .await
            .map_err(told)?;
        holds(
            endpoint.endpoint(),
            endpoint.endpoint().starts_with("http://127.0.0.1:"),
        )?;
        let labels = project
            .service("web")
            .map_err(told)?
            .inspect()
            .await
            .map_err(told)?
            .labels;
        equal("the label", labels.get("team").map_or("", String::as_str), "blue")
    })
    .await
}

/// The program has the user, the directory, the variables and the arguments of the file, empty ones, too.
pub(crate) async fn program(provider: Arc<Plain>) -> Outcome {
    let yaml = "
services:
  a:
    image: BUSYBOX
    entrypoint: [sh, -c, 'echo \"$$(id -u) $$PWD $$A $$#\" >/tmp/seen; exec sleep 600', zero]
    command: ['', 'two words', '']
    user: '1234'
    working_dir: /work
    environment: {A: 'one; $$x'}
    healthcheck: {test: 'test -s /tmp/seen && id -u >/tmp/checked', interval: 1s, retries: 300}
";
    started(project(&provider, yaml), async |project| {
        equal(
            "what the program saw",
            &printed(project, "a", "cat /tmp/seen").await?,
            "1234 /work one; $x 3",
        )?;
        equal(
            "the user of the check",
            &printed(project, "a", "cat /tmp/checked").await?,
            "1234",
        )
    })
    .await
}

/// A program that has to end first is waited for; one that fails ends the start with its code and its last output.
pub(crate) async fn one_shots(provider: Arc<Plain>) -> Outcome {
    let chain = |first: &str| {
        format!(
            "
services:
  first: {{image: BUSYBOX, command: [sh, -c, '{first}']}}
  then:
    image: BUSYBOX
    command: [sh, -c, 'date +%s >/tmp/began; exec sleep 600']
    depends_on: {{first: {{condition: service_completed_successfully}}}}
"
        )
    };
    let good = chain("sleep 1; date +%s >/tmp/ended");
    started(project(&provider, &good), async |project| {
        let ended = printed(project, "first", "cat /tmp/ended").await?;
        let began = printed(project, "then", "test -s /tmp/began && cat /tmp/began").await?;
        holds(&format!("{ended} is not after {began}"), ended <= began)
    })
    .await?;
    let bad = chain("echo to-stdout; echo boom >&2; exit 3");
    fails(
        project(&provider, &bad),
        ErrorKind::NotReady,
        &["`first`", "exited with 3", "to-stdout", "boom"],
    )
    .await
}

/// What ends the start: an end before health, too many failed probes, a program that is not there, and time.
pub(crate) async fn failures(provider: Arc<Plain>) -> Outcome {
    let one = |command: &str, check: &str| {
        format!(
            "services: {{a: {{image: BUSYBOX, command: [sh, -c, '{command}'], healthcheck: {{test: 'false', {check}}}}}}}"
        )
    };
    let slow = "interval: 30s";
    fails(
        project(&provider, &one("echo bye", slow)),
        ErrorKind::NotReady,
        &["`a`", "exited with 0", "bye"],
    )
    .await?;
    // Between the first and the last failure the program has its time to print.
    let fast = "interval: 2s, retries: 2";
    let began = Instant::now();
    fails(
        project(&provider, &one("echo up; exec sleep 600", fast)),
        ErrorKind::NotReady,
        &["`a`", "is unhealthy", "up"],
    )
    .await?;
    holds("it was seen soon", began.elapsed() < LIMIT)?;
    let missing = "services: {a: {image: BUSYBOX, command: [/no/such/program]}}";
    fails(
        project(&provider, missing),
        ErrorKind::NotReady,
        &["`a`", "exited with 127"],
    )
    .await?;
    let late = one("exec sleep 600", "interval: 30s, start_period: 600s");
    // A slow machine gets more time until the program has begun.
    let mut limit = Duration::from_secs(4);
    loop {
        let has_begun = Arc::new(AtomicBool::new(false));
        let begins = Arc::clone(&has_begun);
        let late = project(&provider, &late)
            .with_progress(ProgressCallback::new(move |event| {
                if let ComposeEvent::Service { progress, .. } = event
                    && *progress == ServiceProgress::Started
                {
                    begins.store(true, Ordering::Relaxed);
                }
            }))
            .with_timeout(limit)
            .map_err(told)?;
        let outcome = fails(late, ErrorKind::Timeout, &["`a` is not healthy"]).await;
        if outcome.is_ok() || has_begun.load(Ordering::Relaxed) || limit > LIMIT {
            return outcome;
        }
        limit *= 2;
    }
}

/// `network_mode: service:x`: the other one's ports on the own loopback address.
pub(crate) async fn relays(provider: Arc<Plain>) -> Outcome {
    let yaml = "
services:
  web:
    image: BUSYBOX
    command: [sh, -c, 'mkdir -p /tmp/www; echo page >/tmp/www/page; exec httpd -f -p 8080 -h /tmp/www']
    expose: ['8080']
    healthcheck: {test: 'wget -qO- http://127.0.0.1:8080/page', interval: 1s, retries: 300}
  side:
    image: BUSYBOX
    command: [sh, -c, 'wget -qO- http://127.0.0.1:8080/page >/tmp/got || exit 9; exec sleep 600']
    network_mode: service:web
    depends_on: {web: {condition: service_healthy}}
    healthcheck: {test: 'test -s /tmp/got', interval: 1s, retries: 300}
";
    started(project(&provider, yaml), async |project| {
        equal(
            "what came through the relay",
            &printed(project, "side", "cat /tmp/got").await?,
            "page",
        )
    })
    .await
}

/// Volumes: content of the image, shared between services, read-only where asked, for a user that is not root, with files
/// of the caller; nothing of the project is left, and what is not the project's stays.
pub(crate) async fn volumes(provider: Arc<Plain>, storage: &Path) -> Outcome {
    let given = storage.join("given/set");
    std::fs::create_dir_all(&given).unwrap();
    std::fs::write(given.join("there"), "before").unwrap();
    let files = tempfile::tempdir().unwrap();
    std::fs::write(files.path().join("file"), "mine").unwrap();
    let yaml = "
services:
  writer:
    image: BUSYBOX
    command: [sh, -c, 'echo written >/data/file; exec sleep 600']
    volumes: ['data:/data', 'seeded:/etc', 'own:/own', './files:/files', 'sets:/sets']
    healthcheck: {test: 'test -s /data/file', interval: 1s, retries: 300}
  reader:
    image: BUSYBOX
    command: sleep 600
    user: '1234'
    depends_on: {writer: {condition: service_healthy}}
    volumes: ['data:/other:ro', {type: volume, source: seeded, target: /plain, volume: {nocopy: true}}, 'own:/own']
volumes: {data: , seeded: , own: , sets: {external: true}}
";
    let project = project(&provider, yaml)
        .with_volume_source("files", VolumeSource::new(files.path()))
        .with_volume_source("own", VolumeSource::owned_by(FileOwner { uid: 1234, gid: 1234 }))
        .with_shared_folder("sets", "given/set");
    let outcome = started(project, async |project| {
        equal(
            "what the other one wrote",
            &printed(project, "reader", "cat /other/file").await?,
            "written",
        )?;
        let reader = project.service("reader").map_err(told)?;
        let write = ExecOptions::new("echo no >/other/no").with_user("0");
        let written = reader.exec_with(write).await.map_err(told)?;
        holds("a read-only volume takes nothing", !written.is_success())?;
        let users = printed(project, "reader", "head -n1 /plain/passwd").await?;
        holds(
            &format!("the image's content is in: {users}"),
            users.starts_with("root:"),
        )?;
        let touch = ExecOptions::new("touch /own/x").with_user("1234");
        let touched = reader.exec_with(touch).await.map_err(told)?;
        holds("a volume is its owner's", touched.is_success())?;
        equal(
            "the caller's file",
            &printed(project, "writer", "cat /files/file").await?,
            "mine",
        )?;
        equal(
            "what was there",
            &printed(project, "writer", "cat /sets/there").await?,
            "before",
        )
    })
    .await;
    let left: Vec<_> = std::fs::read_dir(storage)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    outcome?;
    equal("what is left in the storage", &left.join(" "), "given")?;
    equal(
        "what was there",
        &std::fs::read_to_string(given.join("there")).unwrap(),
        "before",
    )
}

/// Hooks run as the service, after the start and before the stop, and not where there is nothing to be stopped any more;
/// one that fails after the start ends it.
pub(crate) async fn hooks(provider: Arc<Plain>, storage: &Path) -> Outcome {
    let given = storage.join("given");
    std::fs::create_dir_all(&given).unwrap();
    std::fs::set_permissions(&given, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let yaml = "
services:
  a:
    image: BUSYBOX
    command: sleep 600
    user: '1234'
    working_dir: /tmp
    environment: {OWN: of-the-service}
    volumes: ['given:/given']
    depends_on: {once: {condition: service_completed_successfully}}
    post_start:
      - {command: [sh, -c, 'echo $$(id -u) $$PWD $$OWN $$WHO >/tmp/hooked'], environment: {WHO: me}}
      - {command: [sh, -c, 'echo $$(id -u) $$PWD >/hooked'], user: '0', working_dir: /etc}
    pre_stop: [{command: [sh, -c, 'echo $$(id -u) $$PWD >>/given/end']}]
  once:
    image: BUSYBOX
    command: 'true'
    volumes: ['given:/given']
    pre_stop: [{command: [sh, -c, 'echo it has ended >>/given/end']}]
volumes: {given: {external: true}}
";
    let project = self::project(&provider, yaml).with_shared_folder("given", "given");
    let outcome = started(project, async |project| {
        equal(
            "the first hook",
            &printed(project, "a", "cat /tmp/hooked").await?,
            "1234 /tmp of-the-service me",
        )?;
        equal(
            "the second hook",
            &printed(project, "a", "cat /hooked").await?,
            "0 /etc",
        )?;
        holds("nothing is stopped yet", !given.join("end").exists())
    })
    .await;
    let end = std::fs::read_to_string(given.join("end"));
    std::fs::remove_dir_all(&given).unwrap();
    outcome?;
    equal(
        "the hook before the stop",
        &end.unwrap_or_default(),
        "1234 /tmp\n",
    )?;
    let bad = "
services:
  a: {image: BUSYBOX, command: sleep 600, post_start: [{command: [sh, -c, 'echo boom >&2; exit 3']}]}
";
    fails(
        self::project(&provider, bad),
        ErrorKind::NotReady,
        &["post_start", "`a`", "3", "boom"],
    )
    .await
}

/// Programs are gone before their sandboxes, which go in the reverse of the order in which they were made.
pub(crate) async fn stops(provider: Arc<Plain>) -> Outcome {
    let yaml = "
services:
  c: {image: BUSYBOX, command: sleep 600, depends_on: [b]}
  b: {image: BUSYBOX, command: sleep 600, depends_on: [a]}
  a: {image: BUSYBOX, command: sleep 600}
";
    let project = project(&provider, yaml);
    project.start().await.map_err(told)?;
    let mut ids = Vec::new();
    let mut handles = Vec::new();
    for service in ["c", "b", "a"] {
        let handle = project
            .service(service)
            .map_err(told)?
            .handle()
            .ok_or("no handle")?;
        ids.push(format!("close {}", handle.sandbox_id()));
        handles.push(handle);
    }
    project.stop().await.map_err(told)?;
    let closed: Vec<String> = provider
        .notes()
        .into_iter()
        .filter(|note| note.starts_with("close"))
        .collect();
    let order = equal("the order", &closed.join(", "), &ids.join(", "));
    let mut left = Ok(());
    for handle in &handles {
        let status = provider.status(handle).await.map_err(told)?;
        left = left.and(equal("a closed sandbox", status.as_str(), "stopped"));
    }
    provider.tidy(&handles).await;
    order.and(left)
}
