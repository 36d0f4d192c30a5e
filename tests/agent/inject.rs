//! How the agent gets into sandboxes, and what happens where it can't.

use gym_sandbox::docker::ExecPathPolicy;
use gym_sandbox::{ExecOptions, ExecPath, SandboxSpec};

use super::{Kept, common, docker};

#[tokio::test]
async fn a_kept_sandbox_has_the_agent_as_its_main_process() {
    let Some(test) = docker(ExecPathPolicy::Agent).await else {
        return;
    };
    let sandbox = Kept::new(&test, common::busybox()).await;
    sandbox.assert_by(ExecPath::Agent);
    let result = sandbox
        .exec(ExecOptions::new("tr '\\0' ' ' < /proc/1/cmdline"))
        .await;
    assert_eq!(result.exec_path, ExecPath::Agent);
    assert!(
        result.stdout().unwrap().starts_with("/.gym-sandbox/agent init "),
        "{result:?}"
    );
    sandbox.close().await;
}

#[tokio::test]
async fn an_entrypoint_stays_the_main_process() {
    let Some(test) = docker(ExecPathPolicy::Agent).await else {
        return;
    };
    let sandbox = Kept::new(&test, common::busybox().with_entrypoint(["sleep", "1000"])).await;
    let result = sandbox
        .exec(ExecOptions::new(
            "tr '\\0' ' ' < /proc/1/cmdline; cat /proc/1/comm",
        ))
        .await;
    assert_eq!(result.exec_path, ExecPath::Agent, "{result:?}");
    sandbox.close().await;
}

#[tokio::test]
async fn an_image_without_a_shell_runs_argument_lists() {
    let Some(test) = docker(ExecPathPolicy::Agent).await else {
        return;
    };
    let sandbox = Kept::new(&test, SandboxSpec::new(common::STATIC)).await;
    let result = sandbox.exec(ExecOptions::new(["/nope"])).await;
    assert_eq!(
        (result.return_code, result.exec_path),
        (127, ExecPath::Agent),
        "{result:?}"
    );
    sandbox.close().await;
}
