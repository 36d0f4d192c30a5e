//! The clock is the engine's: a client whose own is years away from it is judged as any other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gym_sandbox::SecondLook;
use gym_sandbox::provider::ListProvider;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};

use crate::client::{Client, Machine, Role};
use crate::support::{BEYOND_STEADY, SHORT, STEADY, run_with, swept_down_to, until};

/// How many lists of volumes were asked for.
type Lists = Arc<AtomicUsize>;

/// A proxy whose engine says another year. Gives its address.
async fn engine_of_another_year(years: i32) -> Option<(String, Lists)> {
    let socket = match std::env::var("DOCKER_HOST") {
        Ok(host) => host.strip_prefix("unix://")?.to_owned(),
        Err(_) => "/var/run/docker.sock".to_owned(),
    };
    if !std::path::Path::new(&socket).exists() {
        return None;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let lists = Lists::default();
    let counted = Arc::clone(&lists);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (socket, lists) = (socket.clone(), Arc::clone(&counted));
            tokio::spawn(async move {
                let Ok(mut engine) = UnixStream::connect(&socket).await else {
                    return;
                };
                let mut request = Vec::new();
                while !request.windows(4).any(|window| window == b"\r\n\r\n") {
                    if client.read_buf(&mut request).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                let line = String::from_utf8_lossy(&request);
                let first = line.lines().next().unwrap_or_default();
                let is_info = first.contains("/info");
                if first.starts_with("GET") && first.contains("/volumes") {
                    lists.fetch_add(1, Ordering::Relaxed);
                }
                if engine.write_all(&request).await.is_err() {
                    return;
                }
                if !is_info {
                    // A connection that breaks is the client's to notice.
                    let _ended = tokio::io::copy_bidirectional(&mut client, &mut engine).await;
                    return;
                }
                let mut answer = Vec::new();
                while !has_time(&answer) {
                    if engine.read_buf(&mut answer).await.unwrap_or(0) == 0 {
                        break;
                    }
                }
                shift(&mut answer, years);
                if client.write_all(&answer).await.is_ok() {
                    let _ended = tokio::io::copy_bidirectional(&mut client, &mut engine).await;
                }
            });
        }
    });
    Some((address, lists))
}

const KEY: &[u8] = b"\"SystemTime\":\"";

fn time_at(answer: &[u8]) -> Option<usize> {
    let key = answer.windows(KEY.len()).position(|window| window == KEY)?;
    Some(key + KEY.len())
}

fn has_time(answer: &[u8]) -> bool {
    time_at(answer).is_some_and(|start| answer.len() >= start + 4)
}

/// Four years are a leap year's distance, so that every day has its like.
fn shift(answer: &mut [u8], years: i32) {
    let start = time_at(answer).expect("the engine says what time it is");
    let digits = &mut answer[start..start + 4];
    let year: i32 = std::str::from_utf8(digits).unwrap().parse().unwrap();
    digits.copy_from_slice(format!("{:04}", year + years).as_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn d17_only_the_engines_clock_counts() {
    tokio::join!(
        only_the_engines_clock_counts(-4),
        only_the_engines_clock_counts(4)
    );
}

async fn only_the_engines_clock_counts(years: i32) {
    let Some((address, _)) = engine_of_another_year(years).await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    let Some(run) = run_with(0.5, |config| config.host = Some(address.clone())).await else {
        return;
    };
    let mut client = Client::start_with(Role::Holder, &run.name, Machine::Other, STEADY, |command| {
        command.env("DOCKER_HOST", &address);
    });
    client.make("").await;
    until("there is a lease", || async { !run.leases().await.is_empty() }).await;
    tokio::time::sleep(BEYOND_STEADY).await;
    let report = run.sweep(SecondLook::Wait).await;
    assert_eq!((report.removed, report.unsure), (vec![], vec![]), "{years}");
    let listed = run.provider.list_sandboxes(&run.filter()).await.unwrap();
    assert!(listed[0].age_s.unwrap() < 600, "{listed:?}");
    client.works(1).await;
    client.kill().await;
    swept_down_to(&run, 0).await;
}

/// From another machine, and years ago, all owners live: this sweep takes nothing from anybody.
#[tokio::test(flavor = "multi_thread")]
async fn d35_a_provider_sweeps_by_itself_only_when_it_is_told_to() {
    let Some(run) = run_with(0.0, |_| {}).await else {
        return;
    };
    let Some((address, lists)) = engine_of_another_year(-4).await else {
        eprintln!("skipped: the engine has no local socket");
        return;
    };
    for (line, expected) in [("rest", 0), ("sweep", 1)] {
        let mut client = Client::start_with(Role::Connecting, &run.name, Machine::Other, SHORT, |command| {
            command.env("DOCKER_HOST", &address);
        });
        client.tell(line).await;
        assert_eq!(client.exit_code().await, Some(0));
        assert_eq!(lists.load(Ordering::Relaxed), expected, "{line}");
    }
}
