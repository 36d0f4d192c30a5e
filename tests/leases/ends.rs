//! Ends that need no client: ttl and idle time; and ends by a signal.

use std::time::{Duration, Instant};

use gym_sandbox::docker::DockerProvider;
use gym_sandbox::provider::{InspectProvider, SweepProvider};
use gym_sandbox::{
    ErrorKind, ExecErrorType, ExecOptions, ExecPath, SandboxFilter, SandboxProvider, SandboxStatus,
    SecondLook, SweepOptions,
};

use crate::client::{Client, Machine, Role};
use crate::common::{DockerTest, docker};
use crate::proxy::Proxy;
use crate::support::{LASTING, objects_of, run_with_grace, until};

async fn status(provider: &DockerProvider, id: &str) -> Option<SandboxStatus> {
    provider.describe(id).await.ok().map(|detail| detail.status)
}

#[tokio::test(flavor = "multi_thread")]
async fn d16_a_ttl_ends_a_sandbox_whose_client_is_dead() {
    let Some(run) = run_with_grace(30.0).await else {
        return;
    };
    // Leases that last longer than this test: only the ttl can end anything.
    let mut client = Client::start(Role::Holder, &run.name, Machine::Other, LASTING);
    let lasting = client.make("").await;
    let by_engine = client.make("ttl=30 exec_path=engine").await;
    let by_agent = client.make("ttl=30 exec_path=auto").await;
    assert_eq!(
        status(&run.provider, &by_agent).await,
        Some(SandboxStatus::Running)
    );
    client.kill().await;
    for id in [&by_engine, &by_agent] {
        until("the ttl ends it", || async {
            status(&run.provider, id).await == Some(SandboxStatus::Stopped)
        })
        .await;
    }
    // Its owner counts as alive, but that does not save what has expired; nothing else is touched.
    until("the sweep removes what has expired", || async {
        run.sweep(SecondLook::Never).await;
        let left = run.objects().await;
        !left.contains(&by_engine) && !left.contains(&by_agent)
    })
    .await;
    assert_eq!(
        status(&run.provider, &lasting).await,
        Some(SandboxStatus::Running)
    );
    assert!(run.provider.remove(&lasting).await.unwrap());
    run.prune_leases().await;
}

async fn agent_works(test: &DockerTest) -> bool {
    let spec = test.spec().with_provider_option("exec_path", "agent");
    match test.provider.create(&spec).await {
        Ok(handle) => {
            test.provider.close(&handle).await.unwrap();
            true
        }
        Err(error) => {
            eprintln!("skipped: no agent on this engine: {}", error.report());
            false
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d16_an_idle_sandbox_ends_itself_and_a_busy_one_does_not() {
    let Some(test) = docker().await else { return };
    if !agent_works(&test).await {
        return;
    }
    let idle = Duration::from_secs(10);
    let spec = test
        .spec()
        .with_provider_option("exec_path", "agent")
        .with_idle_timeout(idle);
    let handle = test.provider.create(&spec).await.unwrap();
    let began = Instant::now();
    let busy = test
        .provider
        .exec(&handle, ExecOptions::new("sleep 13; echo busy"))
        .await
        .unwrap();
    assert_eq!(busy.stdout().as_deref(), Some("busy\n"), "{busy:?}");
    assert_eq!(busy.exec_path, ExecPath::Agent);
    let worked = began.elapsed();
    until("it ends", || async {
        test.provider.status(&handle).await.unwrap() == SandboxStatus::Stopped
    })
    .await;
    assert!(began.elapsed() >= worked + idle / 2, "{:?}", began.elapsed());
    let result = test
        .provider
        .exec(&handle, ExecOptions::new("true"))
        .await
        .unwrap();
    assert_eq!(
        (result.return_code, result.error_type),
        (125, Some(ExecErrorType::Sandbox))
    );
    assert_eq!(
        test.provider.inspect(&handle).await.unwrap().exit_code,
        Some(124),
        "the agent's own code for an end by its clock"
    );
    test.provider.close(&handle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d16_an_idle_timeout_over_the_engine_alone_is_refused_by_name() {
    let Some(test) = docker().await else { return };
    let spec = test
        .spec()
        .with_provider_option("exec_path", "engine")
        .with_idle_timeout(Duration::from_secs(9));
    let error = test.provider.create(&spec).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
    assert!(error.to_string().contains("idle timeout"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn d16_a_stopped_sandbox_whose_ttl_has_ended_is_swept_under_a_live_owner() {
    let Some(test) = docker().await else { return };
    let (plain, passing) = (test.spec(), test.spec().with_ttl(Duration::from_secs(30)));
    let (short, lasting) = tokio::join!(test.provider.create(&passing), test.provider.create(&plain));
    let (short, lasting) = (short.unwrap(), lasting.unwrap());
    let options = SweepOptions::default()
        .with_second_look(SecondLook::Never)
        .with_filter(SandboxFilter::default().with_label(crate::common::TEST_LABEL, test.label()));
    until("it is swept", || async {
        let report = test.provider.sweep(&options).await.unwrap();
        assert!(
            report
                .removed
                .iter()
                .all(|object| object.name == short.sandbox_id().as_str() && object.why == "its ttl has ended")
        );
        test.containers().await == [lasting.sandbox_id().to_string()]
    })
    .await;
    // Closing what is gone succeeds.
    test.provider.close(&short).await.unwrap();
    test.provider.close(&lasting).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d35_a_program_that_asks_for_it_leaves_nothing_when_a_signal_ends_it() {
    let Some(run) = run_with_grace(30.0).await else {
        return;
    };
    let Some(proxy) = Proxy::start().await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let mut client = Client::behind(&proxy, Role::Signalled, &run.name, Machine::This, LASTING);
        client.says("busy").await;
        assert!(run.objects().await.len() >= 3);
        client.signal(signal).await;
        assert_eq!(client.exit_code().await, Some(code));
        // A create that the engine was at when the process ended may still appear; nobody can remove it before.
        proxy.until_made().await;
        until("nothing is left", || async {
            let left = objects_of("run", &run.name).await;
            if !left.is_empty() {
                run.sweep(SecondLook::Never).await;
            }
            left.is_empty()
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d35_everything_of_a_process_goes_at_once() {
    // In a process of its own: all tests of this program are one owner.
    let Some(run) = run_with_grace(30.0).await else {
        return;
    };
    let Some(proxy) = Proxy::start().await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    let mut client = Client::behind(&proxy, Role::Signalled, &run.name, Machine::This, LASTING);
    for _ in 0..3 {
        client.says("made").await;
    }
    client.signal("HUP").await;
    assert_eq!(client.exit_code().await, Some(129));
    proxy.until_made().await;
    until("nothing is left", || async {
        run.sweep(SecondLook::Never).await;
        run.objects().await.is_empty()
    })
    .await;
}
