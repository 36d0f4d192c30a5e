//! A task with one container, in the variables of its harness.

use gym_sandbox::compose::{AsyncSandboxCompose, PlanOptions};

use crate::common::Failure;
use crate::{Attempt, Bench, succeeded};

const TESTS: &str = "/tests";

pub(crate) async fn run(bench: &Bench, attempt: Attempt) -> Result<u8, Failure> {
    let folder = Bench::folder("terminal-bench");
    let logs = tempfile::tempdir()?;
    let logs_path = logs.path().canonicalize()?.display().to_string();
    let mut options = PlanOptions::default();
    options.policy.allow_host_binds = vec![logs_path.clone()];
    let project = AsyncSandboxCompose::new(bench.provider.clone())
        .with_plan_options(options)
        .with_compose_file(folder.join("docker-compose.yaml"))
        // An image of this name is there: it is not built.
        .with_variable("T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME", &bench.image)
        // Both attempts have the same: here it is an alias in each one's own network.
        .with_variable(
            "T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME",
            "terminal-bench-client",
        )
        .with_variable("T_BENCH_TEST_DIR", TESTS)
        .with_variable("T_BENCH_TASK_LOGS_PATH", &logs_path)
        .with_variable("T_BENCH_CONTAINER_LOGS_PATH", "/logs")
        .with_variable("T_BENCH_TASK_AGENT_LOGS_PATH", &logs_path)
        .with_variable("T_BENCH_CONTAINER_AGENT_LOGS_PATH", "/agent-logs");
    project
        .scope(async |project| {
            let client = project.service("client")?;
            for day in ["monday", "tuesday", "wednesday"] {
                let path = format!("/logs-of-the-week/{day}.log");
                client
                    .write_file(path, format!("what happened on {day}\n"))
                    .await?;
            }
            if attempt == Attempt::Solved {
                client.upload(folder.join("solution.sh"), "/solution.sh").await?;
                succeeded(client.exec("sh /solution.sh").await?)?;
            }
            // After the agent has had its turn, so that it has not seen them.
            client.upload(folder.join("tests"), TESTS).await?;
            client
                .upload(folder.join("run-tests.sh"), "/run-tests.sh")
                .await?;
            let run = succeeded(client.exec("sh /run-tests.sh | tee /logs/tests.log").await?)?;
            let text = run.stdout().unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let passed = lines.iter().filter(|line| line.starts_with("PASSED ")).count();
            Ok(u8::from(!lines.is_empty() && passed == lines.len()))
        })
        .await
}
