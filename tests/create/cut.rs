//! An engine that is lost in the middle: the real one behind a proxy that cuts connections at chosen moments (C16, C18,
//! D6, Q1, T2).

use std::time::{Duration, Instant};

use gym_sandbox::docker::{DockerConfig, DockerProvider, DockerRaw, ExecPathPolicy};
use gym_sandbox::provider::InspectProvider;
use gym_sandbox::{
    ErrorKind, ExecErrorType, ExecOptions, ExecPath, ExecReason, SandboxProvider, SandboxReason,
    SandboxStatus,
};

use crate::common::long_tests_are_wanted;
use crate::proxy::{Cut, Proxy};
use crate::support::{LIMIT, behind_proxy, container_id, failed, nothing_is_left, settled, stdout, until};

/// The engine runs the commands, so that each of them needs it.
fn by_engine() -> DockerConfig {
    let mut config = DockerConfig::default();
    config.exec.exec_path = ExecPathPolicy::Engine;
    config
}

const CREATE: &str = "/containers/create";

/// Prints something as long as a command with this number in its line lives, and nothing afterwards. Its own line does
/// not hold the number.
fn look_for(number: u32) -> String {
    format!(
        "grep -l '{}[{}]' /proc/[0-9]*/cmdline 2>/dev/null; true",
        number / 10,
        number % 10
    )
}

/// The engine works on after the client's connection broke, and makes the container when nobody waits for it any more.
#[tokio::test(flavor = "multi_thread")]
async fn c18_a_create_whose_answer_is_lost_leaves_nothing() {
    for cut in [Cut::AfterRequest, Cut::AfterAnswer] {
        let Some((proxy, test)) = behind_proxy(DockerConfig::default()).await else {
            return;
        };
        proxy.cut(CREATE, cut);
        let error = failed(&test, &crate::common::busybox()).await;
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{cut:?}: {error:?}");
        assert!(error.is_retryable());
        nothing_is_left(&test).await;
        // The connection was cut, not the engine: the next one works.
        let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
        test.provider.close(&handle).await.unwrap();
    }
}

/// Nothing can be removed while the engine is away; it is when the engine is back.
#[tokio::test(flavor = "multi_thread")]
async fn c18_an_engine_that_is_lost_during_a_create_is_cleaned_up_when_it_is_back() {
    for lost_at in ["/start HTTP", "/exec HTTP"] {
        let Some((proxy, test)) = behind_proxy(by_engine()).await else {
            return;
        };
        proxy.cut(lost_at, Cut::GoDown);
        let spec = crate::common::busybox();
        let (error, lost) = tokio::join!(failed(&test, &spec), asked(&proxy, lost_at));
        assert_eq!(
            error.kind(),
            ErrorKind::Unavailable,
            "lost at {lost_at}: {error:?}"
        );
        assert!(
            lost.elapsed() < Duration::from_secs(60),
            "told after {:?}",
            lost.elapsed()
        );
        assert_eq!(
            test.containers().await.len(),
            1,
            "the engine has one that it can't be told to remove"
        );
        proxy.come_up();
        nothing_is_left(&test).await;
    }
}

/// When such a request came.
async fn asked(proxy: &Proxy, request: &'static str) -> Instant {
    until("the request comes", || async { proxy.requests(request) > 0 }).await;
    Instant::now()
}

/// An engine that takes the request and never answers.
#[tokio::test(flavor = "multi_thread")]
async fn c16_a_create_that_gets_no_answer_ends_in_time_and_leaves_nothing() {
    let mut config = DockerConfig::default();
    config.create.start_timeout = Some(Duration::from_secs(3));
    let Some((proxy, test)) = behind_proxy(config).await else {
        return;
    };
    proxy.cut(CREATE, Cut::HoldAnswer);
    let began = Instant::now();
    let error = failed(&test, &crate::common::busybox()).await;
    assert_eq!(error.kind(), ErrorKind::CreateFailed, "{error:?}");
    // The call itself has minutes.
    assert!(
        began.elapsed() < Duration::from_secs(90),
        "told after {:?}",
        began.elapsed()
    );
    // Its removal does not wait for the answer that never comes.
    nothing_is_left(&test).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d15_a_start_or_a_probe_that_gets_no_answer_ends_in_time_and_leaves_nothing() {
    // The agent dials by itself: nothing is asked of the engine after the start.
    for (request, path, kind) in [
        ("/start HTTP", "engine", ErrorKind::CreateFailed),
        ("/start HTTP", "auto", ErrorKind::CreateFailed),
        ("/exec HTTP", "engine", ErrorKind::NotReady),
    ] {
        for hold in [Cut::Hold, Cut::HoldAnswer] {
            // A busy engine takes seconds to come so far: where it was not in time, it gets more.
            for seconds in [4, 16, 64] {
                let bound = Duration::from_secs(seconds);
                let mut config = DockerConfig::default();
                let mut spec = crate::common::busybox().with_provider_option("exec_path", path);
                if kind == ErrorKind::NotReady {
                    spec = spec.with_ready_timeout(bound);
                } else {
                    config.create.start_timeout = Some(bound);
                }
                let Some((proxy, test)) = behind_proxy(config).await else {
                    return;
                };
                proxy.cut(request, hold);
                let began = Instant::now();
                let error = failed(&test, &spec).await;
                assert_eq!(error.kind(), kind, "{request} {path}: {error:?}");
                assert!(
                    error.report().to_string().contains(&format!("{bound:?}")),
                    "{request} {path}: {}",
                    error.report()
                );
                assert!(
                    began.elapsed() < bound + Duration::from_secs(90),
                    "{request} {path}: told after {:?}",
                    began.elapsed()
                );
                nothing_is_left(&test).await;
                if proxy.requests(request) > 0 {
                    break;
                }
                assert!(seconds < 64, "{request} {path}: it never came");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d6_an_engine_lost_under_a_command_is_told_and_the_command_killed_when_it_is_back() {
    let Some((proxy, test)) = behind_proxy(by_engine()).await else {
        return;
    };
    let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
    let direct = DockerProvider::connect(DockerConfig::default()).await.unwrap();
    let beside = direct.attach(handle.sandbox_id().as_str()).await.unwrap();
    let lose = async {
        until("the command has begun", || async {
            stdout(&direct, &beside, "test -e /tmp/begun && echo yes; true").await == "yes\n"
        })
        .await;
        proxy.until_passed("printed").await;
        proxy.go_down();
        Instant::now()
    };
    let command = ExecOptions::new("echo printed; touch /tmp/begun; sleep 98431")
        .with_timeout(Duration::from_secs(300));
    let (result, lost) = tokio::join!(test.provider.exec(&handle, command), lose);
    let result = result.unwrap();
    // A call that is caught half-way waits out its deadline of 30 s.
    assert!(
        lost.elapsed() < Duration::from_secs(90),
        "told {:?} after it was lost",
        lost.elapsed()
    );
    assert_eq!(result.return_code, 125, "{result:?}");
    assert_eq!(result.error_type, Some(ExecErrorType::Sandbox));
    assert_eq!(
        result.reason,
        Some(ExecReason::Sandbox(SandboxReason::DaemonUnreachable))
    );
    assert_eq!(result.partial_stdout().as_deref(), Some("printed\n"));

    // Everything else in the meantime (T2, Q1).
    assert_eq!(
        test.provider.status(&handle).await.unwrap(),
        SandboxStatus::Unknown
    );
    let again = test
        .provider
        .exec(&handle, ExecOptions::new("true"))
        .await
        .unwrap();
    assert_eq!(
        again.reason,
        Some(ExecReason::Sandbox(SandboxReason::DaemonUnreachable)),
        "{again:?}"
    );
    assert_eq!(
        test.provider.inspect(&handle).await.unwrap_err().kind(),
        ErrorKind::Unavailable
    );
    let error = test.provider.close(&handle).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.is_retryable());
    assert_eq!(error.sandbox_id(), Some(handle.sandbox_id()));

    proxy.come_up();
    until("the lost command is killed", || async {
        stdout(&direct, &beside, &look_for(98431)).await.is_empty()
    })
    .await;
    assert_eq!(
        test.provider.status(&handle).await.unwrap(),
        SandboxStatus::Running
    );
    assert_eq!(stdout(&test.provider, &handle, "echo usable").await, "usable\n");
    test.provider.close(&handle).await.unwrap();
}

/// Only the stream of the command breaks: its end is the engine's to tell. Engine 20.10 gives 126 to a command whose
/// output it could not write, whatever the command did.
#[tokio::test(flavor = "multi_thread")]
async fn d6_a_command_whose_stream_breaks_keeps_its_exit_code_or_is_lost() {
    let Some((proxy, test)) = behind_proxy(by_engine()).await else {
        return;
    };
    let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
    proxy.cut("/start HTTP", Cut::AtOutput("printed"));
    let command = ExecOptions::new("echo printed; sleep 1; echo more; exit 5");
    let result = test.provider.exec(&handle, command).await.unwrap();
    match result.error_type {
        None => assert!([5, 126].contains(&result.return_code), "{result:?}"),
        Some(ExecErrorType::Sandbox) => {
            assert_eq!(
                result.reason,
                Some(ExecReason::Sandbox(SandboxReason::DaemonUnreachable))
            );
        }
        Some(other) => panic!("{other:?}: {result:?}"),
    }
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d6_a_command_whose_start_is_lost_is_told_and_not_run_twice() {
    let Some((proxy, test)) = behind_proxy(by_engine()).await else {
        return;
    };
    let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
    for cut in [Cut::AfterRequest, Cut::AfterAnswer] {
        for request in ["/exec HTTP", "/start HTTP"] {
            // The clean-up of the last one makes such requests, too.
            settled(&test).await;
            proxy.cut(request, cut);
            let command = ExecOptions::new("echo run >> /tmp/runs; sleep 97431");
            let result = test.provider.exec(&handle, command).await.unwrap();
            assert_eq!(result.return_code, 125, "{request} {cut:?}: {result:?}");
            assert_eq!(
                result.reason,
                Some(ExecReason::Sandbox(SandboxReason::DaemonUnreachable)),
                "{request} {cut:?}: {result:?}"
            );
        }
    }
    settled(&test).await;
    let runs = stdout(&test.provider, &handle, "cat /tmp/runs 2>/dev/null | wc -l").await;
    assert!(
        runs.trim().parse::<u32>().unwrap() <= 2,
        "two commands were started, and run {runs}"
    );
    assert_eq!(
        stdout(&test.provider, &handle, &look_for(97431)).await,
        "",
        "commands whose start was lost"
    );
    test.provider.close(&handle).await.unwrap();
}

/// Commands of the agent go by its own socket: an engine that is lost is no matter of theirs.
#[tokio::test(flavor = "multi_thread")]
async fn d6_commands_of_the_agent_go_on_without_the_engine() {
    let Some((proxy, test)) = behind_proxy(DockerConfig::default()).await else {
        return;
    };
    let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
    let raw = handle.raw::<DockerRaw>().unwrap();
    assert_eq!(raw.exec_path(), ExecPath::Agent, "{:?}", raw.engine_reason());
    let lose = async {
        until("the command has begun", || async {
            stdout(&test.provider, &handle, "test -e /tmp/begun && echo yes; true").await == "yes\n"
        })
        .await;
        proxy.go_down();
        assert_eq!(
            stdout(&test.provider, &handle, "touch /tmp/go; echo on").await,
            "on\n"
        );
    };
    let line = "echo printed; touch /tmp/begun; until test -e /tmp/go; do sleep 0.02; done; exit 5";
    let command = ExecOptions::new(line).with_timeout(LIMIT);
    let (result, ()) = tokio::join!(test.provider.exec(&handle, command), lose);
    let result = result.unwrap();
    assert_eq!((result.return_code, result.error_type), (5, None), "{result:?}");
    assert_eq!(result.stdout().as_deref(), Some("printed\n"));
    let mut limit = Duration::from_millis(300);
    let late = loop {
        let late = ExecOptions::new("sleep 96431").with_timeout(limit);
        let late = test.provider.exec(&handle, late).await.unwrap();
        assert_eq!(late.error_type, Some(ExecErrorType::Timeout), "{late:?}");
        // A busy machine may not have begun with it in its time.
        if late.killed >= Some(1) || limit > LIMIT / 4 {
            break late;
        }
        limit *= 4;
    };
    assert_eq!(late.survivors, Some(0), "{late:?}");
    assert_eq!(
        test.provider.status(&handle).await.unwrap(),
        SandboxStatus::Unknown
    );
    proxy.come_up();
    assert_eq!(stdout(&test.provider, &handle, &look_for(96431)).await, "");
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn q1_a_close_whose_answer_is_lost_can_be_called_again() {
    let Some((proxy, test)) = behind_proxy(DockerConfig::default()).await else {
        return;
    };
    for cut in [Cut::AfterRequest, Cut::AfterAnswer] {
        let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
        // The lease of this process may go at the same time.
        let removal: &'static str = format!("/containers/{}?", container_id(&handle)).leak();
        proxy.cut(removal, cut);
        let error = test.provider.close(&handle).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{cut:?}: {error:?}");
        test.provider.close(&handle).await.unwrap();
        assert_eq!(
            test.provider.status(&handle).await.unwrap(),
            SandboxStatus::Stopped
        );
    }
}

/// An engine that hangs is not waited for longer than a call's own deadline.
#[tokio::test(flavor = "multi_thread")]
async fn t2_an_engine_that_hangs_is_unknown_in_time() {
    if !long_tests_are_wanted() {
        eprintln!("skipped: takes 30 s; GYM_SANDBOX_LONG=1 runs it");
        return;
    }
    let Some((proxy, test)) = behind_proxy(DockerConfig::default()).await else {
        return;
    };
    let handle = test.provider.create(&crate::common::busybox()).await.unwrap();
    for _ in 0..2 {
        proxy.cut("/json", Cut::Hold);
    }
    let began = Instant::now();
    let (status, detail) = tokio::join!(test.provider.status(&handle), test.provider.inspect(&handle));
    assert_eq!(status.unwrap(), SandboxStatus::Unknown);
    assert_eq!(detail.unwrap_err().kind(), ErrorKind::Timeout);
    assert!(
        began.elapsed() < Duration::from_secs(45),
        "it took {:?}",
        began.elapsed()
    );
    test.provider.close(&handle).await.unwrap();
}
