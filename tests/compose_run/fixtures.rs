//! Every folder of compose-fixtures/run: it starts, behaves as its `expect.json` says, and leaves nothing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bollard::query_parameters::ListImagesOptionsBuilder;
use futures::StreamExt;
use gym_sandbox::compose::{AsyncSandboxCompose, LoadOptions, Source};
use serde_json::Value;

use crate::common::{DockerTest, docker};
use crate::support::{assert_gone, engine, left_of, provider, story, unique};

/// How many projects are up at once.
const AT_ONCE: usize = 3;

/// How long it may take until a line of a service is in its log.
const LOGGED: Duration = Duration::from_secs(120);

/// The folders.
pub(crate) fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("compose-fixtures/run");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    // For work on some of them.
    if let Ok(only) = std::env::var("COMPOSE_FIXTURES_ONLY") {
        cases.retain(|case| only.split(',').any(|part| case.to_string_lossy().contains(part)));
    }
    cases
}

/// Waits until no other test of this program has this case up: a subnet that a case names can be on an engine once.
pub(crate) async fn alone(case: &Path) -> tokio::sync::OwnedMutexGuard<()> {
    static CASES: Mutex<Option<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>> = Mutex::new(None);
    let case = {
        let mut cases = CASES.lock().unwrap();
        let cases = cases.get_or_insert_with(HashMap::new);
        Arc::clone(cases.entry(case.to_owned()).or_default())
    };
    case.lock_owned().await
}

pub(crate) fn are_all() -> bool {
    std::env::var_os("COMPOSE_FIXTURES_ONLY").is_none()
}

pub(crate) fn json(file: &Path) -> Value {
    std::fs::read_to_string(file).map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
}

pub(crate) fn strings(value: &Value) -> Vec<String> {
    let items = value.as_array().cloned().unwrap_or_default();
    items
        .iter()
        .map(|item| item.as_str().unwrap().to_owned())
        .collect()
}

/// The files of a case.
pub(crate) fn files(case: &Path) -> Vec<PathBuf> {
    let named = strings(&json(&case.join("case.json"))["files"]);
    if named.is_empty() {
        return vec![case.join("compose.yaml")];
    }
    named.iter().map(|name| case.join(name)).collect()
}

fn options(case: &Path, project: &str) -> LoadOptions {
    let described = json(&case.join("case.json"));
    let mut options = LoadOptions::new()
        .with_project_directory(case)
        .with_project_name(project);
    for file in files(case) {
        options = options.with_file(Source::path(file));
    }
    for profile in strings(&described["profiles"]) {
        options = options.with_profile(profile);
    }
    for (name, value) in described["env"].as_object().into_iter().flatten() {
        options = options.with_variable(name, value.as_str().unwrap());
    }
    options
}

pub(crate) fn project_of(test: &DockerTest, case: &Path, name: &str) -> AsyncSandboxCompose {
    let project = AsyncSandboxCompose::new(provider(test)).with_load_options(options(case, name));
    match &json(&case.join("case.json"))["policy"] {
        Value::Null => project,
        policy => project.with_policy(serde_json::from_value(policy.clone()).unwrap()),
    }
}

/// Why a case cannot run here.
pub(crate) enum Lacks {
    /// The engine speaks no such API; the start must say so.
    Api(String),
    /// It is for machines with this, which few have.
    Machine(String),
}

/// Names what this machine has of what fixtures need and few machines have, separated by commas.
const HAS: &str = "GYM_SANDBOX_TEST_HAS";

pub(crate) async fn lacks(case: &Path) -> Option<Lacks> {
    let described = json(&case.join("case.json"));
    if let Some(arch) = described["arch"]
        .as_str()
        .filter(|arch| *arch != std::env::consts::ARCH)
    {
        return Some(Lacks::Machine(arch.to_owned()));
    }
    if let Some(need) = described["needs"].as_str() {
        let has = std::env::var(HAS).unwrap_or_default();
        if !has.split(',').any(|has| has == need) {
            return Some(Lacks::Machine(need.to_owned()));
        }
    }
    let wanted = described["api"].as_str()?;
    let version = engine().version().await.unwrap().api_version.unwrap();
    let number =
        |version: &str| -> Vec<u32> { version.split('.').map(|part| part.parse().unwrap()).collect() };
    (number(&version) < number(wanted)).then(|| Lacks::Api(wanted.to_owned()))
}

/// Removes the images that a project has built.
pub(crate) async fn remove_images_of(project: &str) {
    let filter = HashMap::from([("reference", vec![format!("{project}-*")])]);
    let options = ListImagesOptionsBuilder::new().filters(&filter).build();
    for image in engine().list_images(Some(options)).await.unwrap() {
        for tag in image.repo_tags {
            let options = None::<bollard::query_parameters::RemoveImageOptions>;
            engine().remove_image(&tag, options, None).await.unwrap();
        }
    }
}

#[tokio::test]
async fn d18_every_fixture_starts_behaves_and_leaves_nothing() {
    let Some(test) = docker().await else { return };
    let cases = cases();
    assert!(cases.len() >= 40 || !are_all(), "{} fixtures", cases.len());
    let test = &test;
    let problems: Vec<String> = futures::stream::iter(cases)
        .map(|case| async move {
            let name = case.file_name().unwrap().to_string_lossy().into_owned();
            run(test, &case)
                .await
                .err()
                .map(|problem| format!("{name}: {problem}"))
        })
        .buffer_unordered(AT_ONCE)
        .filter_map(|problem| async move { problem })
        .collect()
        .await;
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// What a case finds on the engine: the project of its `before`, called `NAME-before`, which is up.
pub(crate) async fn before(test: &DockerTest, case: &Path, name: &str) -> Option<AsyncSandboxCompose> {
    let described = json(&case.join("case.json"));
    let file = described["before"].as_str()?;
    let options = LoadOptions::new()
        .with_project_directory(case)
        .with_project_name(format!("{name}-before"))
        .with_file(Source::path(case.join(file)));
    let project = AsyncSandboxCompose::new(provider(test)).with_load_options(options);
    project.start().await.unwrap();
    Some(project)
}

async fn run(test: &DockerTest, case: &Path) -> Result<(), String> {
    let _alone = alone(case).await;
    let name = unique();
    let Some(before) = before(test, case, &name).await else {
        return run_alone(test, case, &name).await;
    };
    let name_before = format!("{name}-before");
    let there = left_of(&name_before).await;
    let ran = run_alone(test, case, &name).await;
    let still_there = left_of(&name_before).await;
    before.stop().await.map_err(|error| story(&error))?;
    ran?;
    if still_there == there && left_of(&name_before).await.is_empty() {
        Ok(())
    } else {
        Err(format!("of what was there, {there:?}, it left {still_there:?}"))
    }
}

async fn run_alone(test: &DockerTest, case: &Path, name: &str) -> Result<(), String> {
    let project = project_of(test, case, name);
    match lacks(case).await {
        None => {}
        Some(Lacks::Machine(need)) => {
            eprintln!(
                "skipped: {} needs {need}; {HAS} can say that it is here",
                case.display()
            );
            return Ok(());
        }
        Some(Lacks::Api(version)) => {
            let told = project
                .start()
                .await
                .map_or_else(|error| story(&error), |_| String::new());
            eprintln!("skipped: {} needs an engine with API {version}", case.display());
            assert_gone(name).await;
            return if told.contains(&version) {
                Ok(())
            } else {
                Err(format!("no word of {version}: {told}"))
            };
        }
    }
    project.start().await.map_err(|error| story(&error))?;
    let checked = check(&project, &json(&case.join("expect.json"))).await;
    project.stop().await.map_err(|error| story(&error))?;
    let left = left_of(name).await;
    remove_images_of(name).await;
    checked?;
    if left.is_empty() {
        Ok(())
    } else {
        Err(format!("left: {left:?}"))
    }
}

async fn check(project: &AsyncSandboxCompose, expected: &Value) -> Result<(), String> {
    assert!(expected.is_object(), "every case has an expect.json");
    let list = |key: &str| expected[key].as_array().cloned().unwrap_or_default();
    let text = |value: &Value, key: &str| value[key].as_str().unwrap().to_owned();
    if expected["services"].is_array() {
        let there: Vec<String> = project.services().keys().cloned().collect();
        if there != strings(&expected["services"]) {
            return Err(format!("the services are {there:?}"));
        }
    }
    for step in list("exec") {
        let sandbox = project
            .service(&text(&step, "service"))
            .map_err(|error| story(&error))?;
        let result = sandbox
            .exec(text(&step, "run"))
            .await
            .map_err(|error| story(&error))?;
        let printed = result
            .stdout()
            .unwrap_or_default()
            .trim_end_matches('\n')
            .to_owned();
        if printed != text(&step, "prints") {
            return Err(format!(
                "`{}` printed {printed:?}: {result:?}",
                text(&step, "run")
            ));
        }
    }
    for step in list("inspect") {
        let inspected = inspect(project, &text(&step, "service")).await;
        let found = inspected.pointer(&text(&step, "at")).cloned().unwrap_or_default();
        if found != step["is"] {
            return Err(format!("{} is {found} and not {}", text(&step, "at"), step["is"]));
        }
    }
    for step in list("network") {
        let name = format!("{}_{}", project.project().unwrap(), text(&step, "key"));
        let inspected = engine().inspect_network(&name, None).await.unwrap();
        let inspected = serde_json::to_value(inspected).unwrap();
        let found = inspected.pointer(&text(&step, "at")).cloned().unwrap_or_default();
        if found != step["is"] {
            return Err(format!("{} is {found} and not {}", text(&step, "at"), step["is"]));
        }
    }
    for step in list("log") {
        let service = text(&step, "service");
        // What a process prints is in the log a moment later.
        let deadline = Instant::now() + LOGGED;
        let sandbox = project.service(&service).map_err(|error| story(&error))?;
        let lines = loop {
            let detail = sandbox.inspect().await.map_err(|error| story(&error))?;
            if !detail.last_log_lines.is_empty() || Instant::now() >= deadline {
                break detail.last_log_lines;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        if lines != [text(&step, "prints")] {
            return Err(format!("the log of `{service}` is {lines:?}"));
        }
    }
    Ok(())
}

async fn inspect(project: &AsyncSandboxCompose, service: &str) -> Value {
    let id = project.service(service).unwrap().sandbox_id().unwrap();
    let inspected = engine().inspect_container(id.as_str(), None).await.unwrap();
    serde_json::to_value(inspected).unwrap()
}

#[tokio::test]
async fn pre_stop_hooks_and_stop_signals_have_their_say() {
    let Some(test) = docker().await else { return };
    let cases_of = [("hooks", "pre\n"), ("stop-signal-and-grace", "bye\n")];
    for ((case, expected), by_name) in cases_of
        .into_iter()
        .flat_map(|case| [(case, false), (case, true)])
    {
        let case = cases().into_iter().find(|path| path.ends_with(case)).unwrap();
        let _alone = alone(&case).await;
        let name = unique();
        let project = project_of(&test, &case, &name);
        project.start().await.unwrap();
        let keep =
            gym_sandbox::compose::DownOptions::default().with_volumes(gym_sandbox::compose::VolumeFate::Keep);
        if by_name {
            // As another process does, which knows the project by its labels only.
            let removed = gym_sandbox::compose::compose_down(&*provider(&test), &name, &keep).await;
            assert_eq!(removed.unwrap(), 2);
        }
        project.stop_with(&keep).await.unwrap();
        // The volume outlives the stop; another project finds in it what the stop left.
        let look = format!(
            "services: {{a: {{image: 'gym-sandbox/busybox:test', command: sleep 300, volumes: ['kept:/data']}}}}\n\
             volumes: {{kept: {{external: true, name: {name}_data}}}}"
        );
        let look = crate::support::project(&test, &look);
        look.start().await.unwrap();
        let end = look.service("a").unwrap().read_file("/data/end").await.unwrap();
        assert_eq!(String::from_utf8_lossy(&end), expected);
        look.stop().await.unwrap();
        // An external volume is not the project's to remove.
        assert_eq!(left_of(&name).await, [format!("volume {name}_data")]);
        let left = gym_sandbox::compose::compose_down(
            &*provider(&test),
            &name,
            &gym_sandbox::compose::DownOptions::default(),
        )
        .await
        .unwrap();
        assert_eq!(left, 1);
        assert_eq!(left_of(&name).await, Vec::<String>::new());
    }
}
