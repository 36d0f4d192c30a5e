//! What happens in each copy of the project: up, a failing check, the candidate, a second check, down.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gym_sandbox::compose::{AsyncSandboxCompose, PlanOptions, ProjectNetworks, VolumeSource};
use gym_sandbox::{AsyncSandbox, ExecOptions, SandboxProvider, SandboxStatus};
use serde::Deserialize;

use crate::common::Failure;
use crate::expected::{Expected, is_expected};

/// How long one run of the tests may take; each of their questions has a time-out of its own.
const CHECK: Duration = Duration::from_secs(300);

/// How long an engine may take to know that an application has ended.
const ENDS: Duration = Duration::from_secs(20);

/// What marks everything of a project on the engine.
const PROJECT: &str = "com.docker.compose.project";

/// What is judged, and with what.
pub(crate) struct Task {
    pub(crate) folder: PathBuf,
    pub(crate) image: String,
    pub(crate) shared_network: Option<String>,
}

/// Judges candidates, each in a copy of the project.
pub(crate) struct Judge {
    provider: Arc<dyn SandboxProvider>,
    task: Task,
    /// The names of all copies that were made.
    copies: Mutex<Vec<String>>,
}

/// What came of one candidate.
pub(crate) struct Judgement {
    name: String,
    expected: f64,
    /// The reward and why, or why none could be given: then it is the judge that failed, and not the candidate.
    outcome: Result<(f64, String), Failure>,
    up: Duration,
    all: Duration,
}

/// What `check.py` prints.
#[derive(Deserialize)]
struct Report {
    tests: usize,
    failed: Vec<String>,
    /// How many questions were not answered at all.
    silent: usize,
    /// Whether the orders of the store are others than the seeded ones.
    altered: bool,
}

impl Judge {
    pub(crate) fn new(provider: Arc<dyn SandboxProvider>, task: Task) -> Self {
        Self {
            provider,
            task,
            copies: Mutex::default(),
        }
    }

    /// The project, as every copy of it: its name is its own, and its folders become volumes of its own, so that a
    /// candidate writes into none of another one, and engines on other machines can have them.
    fn project(&self) -> AsyncSandboxCompose {
        let folder = self.task.folder.join("project");
        let mut options = PlanOptions::default();
        if let Some(network) = &self.task.shared_network {
            options.networks = ProjectNetworks::Shared(network.clone());
        }
        let mut project = AsyncSandboxCompose::new(Arc::clone(&self.provider))
            .with_plan_options(options)
            .with_compose_file(folder.join("compose.yaml"))
            .with_variable("IMAGE", &self.task.image);
        for part in ["app", "store", "tester"] {
            project = project.with_volume_source(format!("./{part}"), VolumeSource::new(folder.join(part)));
        }
        project
    }

    /// Judges one candidate. Its copy is removed on every way out.
    pub(crate) async fn judge(&self, candidate: &Expected) -> Judgement {
        let start = Instant::now();
        let mut up = Duration::ZERO;
        let outcome = self
            .project()
            .scope(async |project| {
                up = start.elapsed();
                self.copies
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend(project.project());
                rollout(project, candidate).await
            })
            .await;
        Judgement {
            name: candidate.name.clone(),
            expected: candidate.reward,
            outcome,
            up,
            all: start.elapsed(),
        }
    }

    /// What the engine still has of the copies.
    pub(crate) async fn left(&self) -> Result<Vec<String>, Failure> {
        let engine = self
            .provider
            .as_containers()
            .ok_or("the provider can't say what is left")?;
        let copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut left = Vec::new();
        for copy in copies {
            let labels = BTreeMap::from([(PROJECT.to_owned(), copy)]);
            let containers = engine.list_containers(&labels).await?;
            left.extend(containers.into_iter().map(|container| container.name));
            let networks = engine.list_networks(&labels).await?;
            let volumes = engine.list_volumes(&labels).await?;
            left.extend(networks.into_iter().chain(volumes).map(|object| object.name));
        }
        Ok(left)
    }
}

async fn rollout(project: &AsyncSandboxCompose, candidate: &Expected) -> Result<(f64, String), Failure> {
    let tester = project.default_service()?;
    let app = project.service("app")?;
    let before = check(&tester).await?;
    if before.failed.is_empty() || before.altered {
        return Err("the project's tests did not fail before the candidate".into());
    }
    app.upload(&candidate.file, "/app/answer.py").await?;
    let after = check(&tester).await?;
    let worthless = |story: String| Ok((0.0, story));
    if after.altered {
        return worthless("the store's orders are others than before".to_owned());
    }
    if is_gone(&app, &after).await? {
        return worthless("the application is gone".to_owned());
    }
    let (failed, tests) = (after.failed.len(), after.tests);
    match after.failed.first() {
        Some(first) => {
            let silent = match after.silent {
                0 => String::new(),
                silent => format!(", {silent} of them without any answer"),
            };
            worthless(format!(
                "{failed} of {tests} tests fail, the first is \"{first}\"{silent}"
            ))
        }
        None if tests == before.tests => Ok((1.0, format!("all {tests} tests pass"))),
        None => worthless(format!("{tests} tests ran, {} did before", before.tests)),
    }
}

/// Whether the application has ended. Where it has left questions without an answer that is waited for: an engine knows of
/// an end a moment later.
async fn is_gone(app: &AsyncSandbox, report: &Report) -> Result<bool, Failure> {
    let waits_until = Instant::now() + if report.silent > 0 { ENDS } else { Duration::ZERO };
    loop {
        if app.status().await? != SandboxStatus::Running {
            return Ok(true);
        }
        if Instant::now() >= waits_until {
            return Ok(false);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Runs the tests where no candidate has been.
async fn check(tester: &AsyncSandbox) -> Result<Report, Failure> {
    let run = ExecOptions::new(["python3", "/tester/check.py"]).with_timeout(CHECK);
    let result = tester.exec_with(run).await?;
    let text = result.stdout().unwrap_or_default();
    serde_json::from_str(&text).map_err(|_| format!("the tests gave no report: {result:?}").into())
}

impl Judgement {
    pub(crate) fn reward(&self) -> Option<f64> {
        self.outcome.as_ref().ok().map(|(reward, _)| *reward)
    }

    /// Says whether the candidate got what it is worth.
    pub(crate) fn is_right(&self) -> bool {
        self.reward()
            .is_some_and(|reward| is_expected(reward, self.expected))
    }

    /// Its line of the table.
    pub(crate) fn row(&self) -> Vec<String> {
        let (reward, mut story) = match &self.outcome {
            Ok((reward, story)) => (format!("{reward:.1}"), story.clone()),
            Err(failure) => {
                let failure: &(dyn std::error::Error + 'static) = &**failure;
                let told = failure.downcast_ref::<gym_sandbox::Error>();
                let text = told.map_or_else(|| failure.to_string(), |error| error.report().to_string());
                (
                    "none".to_owned(),
                    format!("not judged: {}", text.replace('\n', "; ")),
                )
            }
        };
        if !self.is_right() {
            story = format!("WRONG, {:.1} is expected: {story}", self.expected);
        }
        vec![
            self.name.clone(),
            reward,
            format!("{:.1} s", self.up.as_secs_f64()),
            format!("{:.1} s", self.all.as_secs_f64()),
            story,
        ]
    }
}
