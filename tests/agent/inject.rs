//! How the agent gets into sandboxes, and what happens where it can't.

use gym_sandbox::docker::ExecPathPolicy;
use gym_sandbox::{ExecErrorType, ExecOptions, ExecPath, SandboxSpec};

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

/// What keeps the agent from running may be the limits of the sandbox and not its image.
#[tokio::test]
async fn a_sandbox_that_is_too_narrow_for_the_agent_says_nothing_of_others_of_its_image() {
    let Some(test) = docker(ExecPathPolicy::Auto).await else {
        return;
    };
    // Too little for the agent, and enough for a shell, of whose stack the kernel leaves out up to 8 KiB by chance.
    let narrow = common::busybox().with_provider_option("ulimits", serde_json::json!({"stack": 65536}));
    let narrow = Kept::new(&test, narrow).await;
    narrow.assert_by(ExecPath::Engine);
    let usual = Kept::new(&test, common::busybox()).await;
    usual.assert_by(ExecPath::Agent);
    narrow.close().await;
    usual.close().await;
}

/// A limit of files that is too low for any command is named.
#[tokio::test]
async fn d27_a_limit_of_open_files_that_is_too_low_is_said_to_be() {
    let Some(test) = docker(ExecPathPolicy::Auto).await else {
        return;
    };
    let few = common::busybox().with_provider_option("ulimits", serde_json::json!({"nofile": 12}));
    let sandbox = Kept::new(&test, few).await;
    sandbox.assert_by(ExecPath::Agent);
    let result = sandbox.exec(ExecOptions::new("true")).await;
    assert_eq!(result.error_type, Some(ExecErrorType::Start), "{result:?}");
    assert!(
        result.hint.as_ref().is_some_and(|hint| hint.contains("nofile")),
        "{result:?}"
    );
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
