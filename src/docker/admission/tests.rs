use std::time::Duration;

use super::*;

const MIB: u64 = 1 << 20;

/// A sandbox of so many bytes.
fn asks(bytes: u64) -> Asked {
    Asked {
        sandbox: SandboxId::new("s").unwrap(),
        engine: "e".into(),
        project: None,
        bytes,
    }
}

fn config(max_wait: Option<Duration>) -> AdmissionConfig {
    AdmissionConfig {
        max_wait,
        ..AdmissionConfig::default()
    }
}

fn positions(admission: &Admission) -> Vec<u64> {
    let (_, waiting) = admission.report();
    assert!(
        waiting
            .iter()
            .enumerate()
            .all(|(index, one)| one.position == index + 1)
    );
    waiting.iter().map(|one| one.memory_bytes / MIB).collect()
}

async fn until(mut holds: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never came to be");
}

#[tokio::test]
async fn who_asked_first_gets_it_first_and_nobody_overtakes() {
    let admission = Admission::default();
    let first = admission
        .admit(asks(60 * MIB), 100 * MIB, &config(None))
        .await
        .unwrap();
    let wait = |bytes: u64| {
        let admission = admission.clone();
        tokio::spawn(async move { admission.admit(asks(bytes * MIB), 100 * MIB, &config(None)).await })
    };
    let large = wait(80);
    until(|| positions(&admission) == [80]).await;
    // It would fit, but somebody asked before.
    let small = wait(10);
    until(|| positions(&admission) == [80, 10]).await;
    first.release();
    first.release();
    let large = large.await.unwrap().unwrap();
    let small = small.await.unwrap().unwrap();
    assert_eq!(admission.report(), (90 * MIB, vec![]));
    drop(large);
    assert_eq!(admission.report().0, 10 * MIB);
    drop(small);
    assert_eq!(admission.report().0, 0);
}

#[tokio::test]
async fn who_gives_up_lets_the_next_one_in() {
    let admission = Admission::default();
    let held = admission
        .admit(asks(60 * MIB), 100 * MIB, &config(None))
        .await
        .unwrap();
    let other = admission.clone();
    let large = tokio::spawn(async move { other.admit(asks(80 * MIB), 100 * MIB, &config(None)).await });
    until(|| positions(&admission) == [80]).await;
    let other = admission.clone();
    let small = tokio::spawn(async move { other.admit(asks(40 * MIB), 100 * MIB, &config(None)).await });
    until(|| positions(&admission) == [80, 40]).await;
    large.abort();
    drop(small.await.unwrap().unwrap());
    drop(held);
    assert_eq!(admission.report(), (0, vec![]));
}

#[tokio::test]
async fn a_wait_ends_and_what_never_fits_does_not_wait() {
    let admission = Admission::default();
    let never = admission
        .admit(asks(101 * MIB), 100 * MIB, &config(None))
        .await
        .unwrap_err();
    assert_eq!(never.kind(), ErrorKind::ResourceExhausted(Resource::Memory));
    assert!(!never.is_retryable());
    let held = admission
        .admit(asks(60 * MIB), 100 * MIB, &config(None))
        .await
        .unwrap();
    let late = admission
        .admit(
            asks(60 * MIB),
            100 * MIB,
            &config(Some(Duration::from_millis(50))),
        )
        .await
        .unwrap_err();
    assert_eq!(late.kind(), ErrorKind::ResourceExhausted(Resource::Memory));
    assert!(
        late.is_retryable() && late.to_string().contains("place 1"),
        "{late}"
    );
    assert_eq!(admission.report(), (60 * MIB, vec![]));
    drop(held);
}

#[test]
fn a_fraction_of_the_engines_memory() {
    assert_eq!(capacity(1000, 0.8), 800);
    assert_eq!(capacity(1000, 1.0), 1000);
}
