//! A base file and overlays, merged in order, with a project directory and an environment map.

use gym_sandbox::compose::{AsyncSandboxCompose, PlanOptions};

use crate::common::Failure;
use crate::{Attempt, Bench, succeeded};

const LOGS: &str = "/logs/verifier";

pub(crate) async fn run(bench: &Bench, attempt: Attempt) -> Result<u8, Failure> {
    let folder = Bench::folder("harbor");
    let task = folder.join("task");
    // The verifier's logs are a folder of this machine, which the policy has to allow.
    let logs = tempfile::tempdir()?;
    let logs_path = logs.path().canonicalize()?.display().to_string();
    let mut options = PlanOptions::default();
    options.policy.allow_host_binds = vec![logs_path.clone()];
    let project = AsyncSandboxCompose::new(bench.provider.clone())
        .with_plan_options(options)
        .with_project_directory(task.join("environment"))
        .with_compose_file(folder.join("base.yaml"))
        .with_compose_file(folder.join("prebuilt.yaml"))
        .with_compose_file(task.join("environment/docker-compose.yaml"))
        .with_compose_file(folder.join("no-network.yaml"))
        .with_variable("PREBUILT_IMAGE_NAME", &bench.image)
        .with_variable("CPUS", "1")
        .with_variable("MEMORY", "256M")
        .with_variable("HOST_VERIFIER_LOGS_PATH", logs_path)
        .with_variable("ENV_VERIFIER_LOGS_PATH", LOGS);
    project
        .scope(async |project| {
            let main = project.service("main")?;
            if attempt == Attempt::Solved {
                main.upload(task.join("solution"), "/solution").await?;
                succeeded(main.exec("sh /solution/solve.sh").await?)?;
            }
            main.upload(task.join("tests"), "/tests").await?;
            succeeded(main.exec("sh /tests/test.sh").await?)?;
            let reward = tokio::fs::read_to_string(logs.path().join("reward.txt")).await?;
            Ok(reward.trim().parse()?)
        })
        .await
}
