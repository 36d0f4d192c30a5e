//! A sandbox for an agent, marked by `x-default`, beside what its task is about.

use gym_sandbox::compose::AsyncSandboxCompose;

use crate::common::Failure;
use crate::{Attempt, Bench};

/// What a model would come up with.
const SOLUTION: &str =
    "path=$(wget -qO- http://vault:8080/robots.txt | cut -d' ' -f2) && wget -qO- http://vault:8080$path";

pub(crate) async fn run(bench: &Bench, attempt: Attempt) -> Result<u8, Failure> {
    // What a sample says goes to the file as variables.
    let flag = format!("flag-{}", uuid::Uuid::new_v4().simple());
    let project = AsyncSandboxCompose::new(bench.provider.clone())
        .with_compose_file(Bench::folder("inspect").join("compose.yaml"))
        .with_variable("IMAGE", &bench.image)
        .with_variable("SAMPLE_METADATA_FLAG", &flag);
    project
        .scope(async |project| {
            let agent = project.default_service()?;
            let command = match attempt {
                Attempt::Solved => SOLUTION,
                Attempt::Untouched => "echo there is nothing to be found",
            };
            let answer = agent.exec(command).await?;
            let has_it = answer.stdout().is_some_and(|text| text.contains(&flag));
            Ok(u8::from(has_it))
        })
        .await
}
