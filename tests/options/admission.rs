//! Creates wait for memory in the order of asking, and the queue can be looked at (issue "admission").

use std::time::Duration;

use gym_sandbox::provider::ListProvider;
use gym_sandbox::{ErrorKind, OwnerState, Resource, SandboxFilter, SandboxProvider, SandboxResources};

use crate::common::{DockerTest, TEST_LABEL, busybox, config, docker_with};

/// A provider whose sandboxes may have so many MiB together.
async fn bounded(mebibytes: u64, max_wait: Option<Duration>) -> Option<DockerTest> {
    let engine = docker_with(config()).await?;
    let memory = engine.provider.diagnose().await.unwrap().memory_bytes?;
    let mut config = config();
    #[expect(clippy::cast_precision_loss, reason = "a fraction needs no exact bytes")]
    let fraction = (mebibytes << 20) as f64 / memory as f64;
    config.admission.memory_fraction = Some(fraction);
    config.admission.max_wait = max_wait;
    docker_with(config).await
}

fn of(mebibytes: u64) -> gym_sandbox::SandboxSpec {
    busybox().with_resources(SandboxResources::default().with_memory_mib(mebibytes))
}

#[tokio::test(flavor = "multi_thread")]
async fn d27_a_create_waits_for_memory_until_another_sandbox_is_closed() {
    let Some(test) = bounded(110, None).await else {
        return;
    };
    let first = test.provider.create(&of(64)).await.unwrap();
    let provider = test.provider.clone();
    let second = tokio::spawn(async move { provider.create(&of(64)).await });
    let mut queue = test.provider.queue();
    for _ in 0..4800 {
        queue = test.provider.queue();
        if !queue.waiting.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    assert_eq!(queue.waiting.len(), 1, "{queue:?}");
    assert_eq!(
        (queue.waiting[0].position, queue.waiting[0].memory_bytes),
        (1, 64 << 20)
    );
    assert_eq!(queue.reserved_bytes, 64 << 20);
    assert!(
        queue
            .memory_bytes
            .is_some_and(|bytes| bytes.abs_diff(110 << 20) < 4096)
    );
    assert!(!second.is_finished());
    // Another provider of this machine sees it, too; the ids of sandboxes are fixed before they are made.
    let other = docker_with(config()).await.unwrap();
    let of_this_test = SandboxFilter::default().with_label(TEST_LABEL, test.label());
    let mut there = test.provider.list_sandboxes(&of_this_test).await.unwrap();
    let owner = there.pop().unwrap().owner.unwrap();
    let of_this_process = SandboxFilter::default().with_owner(owner.as_str());
    let seen = other.provider.waiting_creates(&of_this_process).await.unwrap();
    assert!(
        seen.iter().any(|create| {
            create.memory_bytes == 64 << 20
                && create.position == 1
                && create.owner == owner
                && create.owner_state == OwnerState::Own
        }),
        "{seen:?}"
    );
    // A dropped create leaves the queue.
    let provider = test.provider.clone();
    let third = tokio::spawn(async move { provider.create(&of(100)).await });
    for _ in 0..4800 {
        if test.provider.queue().waiting.len() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    assert_eq!(test.provider.queue().waiting.len(), 2);
    third.abort();
    assert!(third.await.unwrap_err().is_cancelled());
    assert_eq!(test.provider.queue().waiting.len(), 1);
    test.provider.close(&first).await.unwrap();
    let second = second.await.unwrap().unwrap();
    assert!(test.provider.queue().waiting.is_empty());
    let waiting = other.provider.waiting_creates(&of_this_process).await.unwrap();
    assert!(
        waiting
            .iter()
            .all(|create| create.sandbox_id != *second.sandbox_id()),
        "{waiting:?}"
    );
    test.provider.close(&second).await.unwrap();
    assert_eq!(test.provider.queue().reserved_bytes, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn d27_a_wait_for_memory_ends_and_what_never_fits_fails_at_once() {
    let Some(test) = bounded(110, Some(Duration::from_millis(200))).await else {
        return;
    };
    let first = test.provider.create(&of(64)).await.unwrap();
    for (mebibytes, is_retryable) in [(64, true), (200, false)] {
        let error = test.provider.create(&of(mebibytes)).await.unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::ResourceExhausted(Resource::Memory),
            "{error:?}"
        );
        assert_eq!(error.is_retryable(), is_retryable, "{error:?}");
    }
    assert_eq!(test.containers().await.len(), 1);
    test.provider.close(&first).await.unwrap();
    // A create that fails gives its memory back.
    let bad = of(64).with_entrypoint(["/no/such/program"]);
    test.provider.create(&bad).await.unwrap_err();
    assert_eq!(test.provider.queue().reserved_bytes, 0);
}

/// The sizes of those that wait, in their order.
fn sizes(test: &DockerTest) -> Vec<u64> {
    let queue = test.provider.queue();
    for (index, waiting) in queue.waiting.iter().enumerate() {
        assert_eq!(waiting.position, index + 1);
    }
    queue
        .waiting
        .iter()
        .map(|waiting| waiting.memory_bytes >> 20)
        .collect()
}

async fn until_sizes(test: &DockerTest, expected: &[u64]) {
    for _ in 0..4800 {
        if sizes(test) == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{:?} wait, and not {expected:?}", sizes(test));
}

#[tokio::test(flavor = "multi_thread")]
async fn d27_eight_creates_wait_in_the_order_of_asking_and_those_who_leave_make_room() {
    let Some(test) = bounded(70, None).await else {
        return;
    };
    let first = test.provider.create(&of(64)).await.unwrap();
    // They are told apart by their sizes, and no two fit at once.
    let mut queued = Vec::new();
    let mut expected = Vec::new();
    for mebibytes in 36..44 {
        let provider = test.provider.clone();
        queued.push(tokio::spawn(async move { provider.create(&of(mebibytes)).await }));
        expected.push(mebibytes);
        until_sizes(&test, &expected).await;
    }
    // The first, one in the middle and the last go away.
    for index in [7, 3, 0] {
        let gone = queued.remove(index);
        gone.abort();
        assert!(gone.await.unwrap_err().is_cancelled());
        expected.remove(index);
        assert_eq!(sizes(&test), expected);
    }
    let mut living = first;
    while let Some(next) = expected.first().copied() {
        assert!(queued.iter().all(|create| !create.is_finished()));
        test.provider.close(&living).await.unwrap();
        let create = queued.remove(0);
        living = tokio::time::timeout(Duration::from_secs(180), create)
            .await
            .expect("it is its turn")
            .unwrap()
            .unwrap();
        assert_eq!(test.provider.queue().reserved_bytes, next << 20);
        expected.remove(0);
        assert_eq!(sizes(&test), expected);
    }
    test.provider.close(&living).await.unwrap();
    assert_eq!(test.provider.queue().reserved_bytes, 0);
    assert!(test.containers().await.is_empty());
}
