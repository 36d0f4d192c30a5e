//! D36: the names in JSON are stable, and what is written can be read again.

use serde_json::json;

use crate::error::SandboxReason;

use super::super::{
    CapturedOutput, ExecErrorType, ExecPath, ExecReason, ExecResult, SandboxDetail, SandboxEndpoint,
    SandboxHealth, SandboxId, SandboxResources, SandboxSpec, SandboxStatus, StartProblem, Value,
};
use super::sandbox::full;

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn d36_the_fields_of_a_spec() {
    let written = serde_json::to_value(full()).unwrap();
    assert_eq!(
        keys(&written),
        [
            "image",
            "ttl_s",
            "ready_timeout_s",
            "workdir",
            "env",
            "files",
            "metadata",
            "resources",
            "entrypoint",
            "provider_options",
            "ports"
        ]
    );
    assert_eq!(written["ttl_s"], json!(1.5));
    assert_eq!(written["env"], json!({"TOKEN": "hunter2"}));
    assert_eq!(written["ports"], json!([8080, 22]));
    assert_eq!(SandboxSpec::from_value(written).unwrap(), full());
    let empty = serde_json::to_value(SandboxSpec::default()).unwrap();
    assert_eq!(SandboxSpec::from_value(empty).unwrap(), SandboxSpec::default());
}

#[test]
fn d36_a_spec_as_the_reference_writes_it_is_read() {
    // Unset fields are null there, an unset entrypoint and unset resources among them.
    let spec = SandboxSpec::from_value(json!({
        "image": "a", "ttl_s": null, "ready_timeout_s": 30, "workdir": null, "env": {}, "files": {}, "metadata": {},
        "resources": {"cpu": null, "memory_mib": null, "disk_gib": null, "gpu": null, "gpu_type": null},
        "entrypoint": null, "provider_options": {}, "ports": [],
    }))
    .unwrap();
    assert_eq!(
        spec,
        SandboxSpec::new("a").with_ready_timeout(std::time::Duration::from_secs(30))
    );
}

#[test]
fn d36_the_fields_of_resources() {
    let written = serde_json::to_value(full().resources()).unwrap();
    assert_eq!(
        written,
        json!({"cpu": 0.5, "memory_mib": 256, "disk_gib": null, "gpu": null, "gpu_type": null})
    );
    assert_eq!(
        &serde_json::from_value::<SandboxResources>(written).unwrap(),
        full().resources()
    );
}

#[test]
fn d36_the_fields_of_an_endpoint() {
    let endpoint = SandboxEndpoint::new("http://a:1")
        .unwrap()
        .with_header("X-A", "b");
    let written = serde_json::to_value(&endpoint).unwrap();
    assert_eq!(
        written,
        json!({"endpoint": "http://a:1", "headers": {"X-A": "b"}})
    );
    assert_eq!(
        serde_json::from_value::<SandboxEndpoint>(written).unwrap(),
        endpoint
    );
}

#[test]
fn d36_the_fields_of_a_result() {
    let ordinary = ExecResult::new(3, ExecPath::Engine)
        .with_output(CapturedOutput::complete("out"), CapturedOutput::complete("err"));
    assert_eq!(
        serde_json::to_value(&ordinary).unwrap(),
        json!({
            "return_code": 3, "error_type": null, "reason": null, "stdout": "out", "stderr": "err",
            "partial_stdout": null, "partial_stderr": null, "truncated": {"stdout": false, "stderr": false},
            "bytes": {"stdout": 3, "stderr": 3}, "duration_s": 0.0, "killed": null, "survivors": null,
            "background_output_open": false, "exec_path": "engine", "hint": null,
        })
    );
    let timed_out = ExecResult::timed_out("late", ExecPath::Agent);
    let written = serde_json::to_value(&timed_out).unwrap();
    assert_eq!(written["stdout"], Value::Null);
    assert_eq!(written["error_type"], json!("timeout"));
    assert_eq!(written["exec_path"], json!("agent"));
    let lost = ExecResult::sandbox_failure(SandboxReason::OomKilled, "", ExecPath::Host);
    assert_eq!(
        serde_json::to_value(&lost).unwrap()["reason"],
        json!("oom_killed")
    );
}

#[test]
fn d36_the_words_of_a_result() {
    for (value, word) in [
        (json!(ExecErrorType::Timeout), "timeout"),
        (json!(ExecErrorType::Sandbox), "sandbox"),
        (json!(ExecErrorType::Start), "start"),
        (json!(ExecErrorType::Pty), "pty"),
        (json!(ExecPath::Host), "host"),
    ] {
        assert_eq!(value, json!(word));
    }
    for (reason, word) in [
        (ExecReason::Sandbox(SandboxReason::NotRunning), "not_running"),
        (ExecReason::Sandbox(SandboxReason::Paused), "paused"),
        (ExecReason::Sandbox(SandboxReason::Removed), "removed"),
        (ExecReason::Sandbox(SandboxReason::OomKilled), "oom_killed"),
        (
            ExecReason::Sandbox(SandboxReason::DaemonUnreachable),
            "daemon_unreachable",
        ),
        (ExecReason::Sandbox(SandboxReason::AgentLost), "agent_lost"),
        (ExecReason::Start(StartProblem::NotFound), "not_found"),
        (ExecReason::Start(StartProblem::NotExecutable), "not_executable"),
        (ExecReason::Start(StartProblem::Cwd), "cwd"),
        (ExecReason::Start(StartProblem::User), "user"),
        (ExecReason::Start(StartProblem::TooLong), "too_long"),
        (ExecReason::Start(StartProblem::BadFormat), "bad_format"),
        (ExecReason::Start(StartProblem::Other), "other"),
    ] {
        assert_eq!(json!(reason), json!(word));
        assert_eq!(serde_json::from_value::<ExecReason>(json!(word)).unwrap(), reason);
    }
}

#[test]
fn d07_the_words_of_a_status() {
    for (status, word) in [
        (SandboxStatus::Starting, "starting"),
        (SandboxStatus::Running, "running"),
        (SandboxStatus::Paused, "paused"),
        (SandboxStatus::Stopped, "stopped"),
        (SandboxStatus::Error, "error"),
        (SandboxStatus::Unknown, "unknown"),
    ] {
        assert_eq!(json!(status), json!(word));
        assert_eq!(status.to_string(), word);
        assert_eq!(
            serde_json::from_value::<SandboxStatus>(json!(word)).unwrap(),
            status
        );
    }
}

#[test]
fn d36_the_fields_of_a_detail() {
    let id = SandboxId::new("gym-sandbox-1").unwrap();
    let mut detail = SandboxDetail::new(id, "docker", SandboxStatus::Running, ExecPath::Engine);
    detail.health = Some(SandboxHealth::Healthy);
    detail
        .endpoints
        .insert(8080, SandboxEndpoint::new("http://a:1").unwrap());
    let written = serde_json::to_value(&detail).unwrap();
    assert_eq!(
        keys(&written),
        [
            "sandbox_id",
            "provider",
            "image",
            "status",
            "exit_code",
            "oom_killed",
            "error",
            "health",
            "last_log_lines",
            "endpoints",
            "limits",
            "labels",
            "exec_path",
            "created",
            "started",
            "finished"
        ]
    );
    assert_eq!(written["health"], json!("healthy"));
    assert_eq!(written["sandbox_id"], json!("gym-sandbox-1"));
    assert_eq!(written["endpoints"]["8080"]["endpoint"], json!("http://a:1"));
    assert_eq!(serde_json::from_value::<SandboxDetail>(written).unwrap(), detail);
}

#[test]
fn d17_an_id_is_checked_also_when_it_is_read() {
    for right in [
        "a",
        "gym-sandbox-0123456789abcdef0123456789abcdef",
        "A_b.c-9",
        &"x".repeat(128),
    ] {
        assert_eq!(SandboxId::new(right).unwrap().as_str(), right);
        assert_eq!(
            serde_json::from_value::<SandboxId>(json!(right))
                .unwrap()
                .as_str(),
            right
        );
    }
    for wrong in ["", "-a", ".a", "_a", "a/b", "a b", "a\n", "ä", &"x".repeat(129)] {
        super::invalid(SandboxId::new(wrong));
        serde_json::from_value::<SandboxId>(json!(wrong)).unwrap_err();
    }
}
