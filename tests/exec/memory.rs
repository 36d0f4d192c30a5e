//! The OOM killer (contract D6, bugs B08 e and f).

use gym_sandbox::{ExecReason, SandboxReason, SandboxResources, SandboxSpec};

use super::{common, start};

const EAT: &str = "python3 -c 'x = b\"x\" * (300 << 20); print(len(x))'";

fn small() -> SandboxSpec {
    SandboxSpec::new(common::DEBIAN).with_resources(SandboxResources::default().with_memory_mib(64))
}

#[tokio::test]
async fn b08_a_command_that_runs_out_of_memory_is_an_ordinary_137_with_a_hint() {
    let Some(started) = start(small()).await else {
        return;
    };
    let result = started.exec(EAT).await;
    assert_eq!((result.return_code, result.error_type), (137, None), "{result:?}");
    assert!(
        result.hint.as_deref().is_some_and(|hint| hint.contains("OOM")),
        "{result:?}"
    );
    assert!(started.exec(["true"]).await.is_success());
    let killed = started.exec("kill -9 $$").await;
    assert_eq!(
        (killed.return_code, killed.error_type, killed.hint),
        (137, None, None),
        "no OOM here"
    );
    started.close().await;
}

#[tokio::test]
async fn b08_a_main_process_that_runs_out_of_memory_is_the_reason() {
    let main = format!("while [ ! -e /go ]; do sleep 0.1; done; exec {EAT}");
    let Some(started) = start(small().with_entrypoint(["sh", "-c", main.as_str()])).await else {
        return;
    };
    let result = started.exec("touch /go; sleep 60").await;
    assert_eq!(
        result.reason,
        Some(ExecReason::Sandbox(SandboxReason::OomKilled)),
        "{result:?}"
    );
    let detail = started.sandbox.inspect().await.unwrap();
    assert_eq!((detail.exit_code, detail.oom_killed), (Some(137), true));
    started.close().await;
}

#[tokio::test]
async fn d06_a_main_process_that_ends_by_itself_after_a_child_ran_out_of_memory_is_not_the_reason() {
    let main = format!("while [ ! -e /go ]; do sleep 0.1; done; {EAT}; exit 3");
    let Some(started) = start(small().with_entrypoint(["sh", "-c", main.as_str()])).await else {
        return;
    };
    let result = started.exec("touch /go; sleep 60").await;
    assert_eq!(
        result.reason,
        Some(ExecReason::Sandbox(SandboxReason::NotRunning)),
        "{result:?}"
    );
    started.close().await;
}

/// One kill of the kernel may be seen at the end of another command.
#[tokio::test]
async fn b08_commands_that_run_out_of_memory_at_once_have_all_the_hint() {
    let Some(started) = start(small()).await else {
        return;
    };
    let eaters = (0..6).map(|_| started.exec(EAT));
    for result in futures::future::join_all(eaters).await {
        assert_eq!((result.return_code, result.error_type), (137, None), "{result:?}");
        assert!(
            result.hint.as_deref().is_some_and(|hint| hint.contains("OOM")),
            "{result:?}"
        );
    }
    started.close().await;
}
