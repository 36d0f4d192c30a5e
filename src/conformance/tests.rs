//! Tests of the suite itself: it cleans up on every way out, and can fail.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;

use crate::error::{ErrorKind, Operation};
use crate::provider::tests::scripted::{Call, Capabilities, Scripted, Step};
use crate::provider::{Capability, SandboxProvider};
use crate::spec::SandboxSpec;

use super::{Case, Context, Failure, Need, Outcome, Skip, Survey, cases, check};

fn context(provider: &Arc<Scripted>) -> Context {
    Context::new(
        Arc::clone(provider) as Arc<dyn SandboxProvider>,
        SandboxSpec::default(),
    )
}

async fn passes(context: &Context) -> Outcome {
    context.sandbox().await?;
    Ok(())
}

async fn fails(context: &Context) -> Outcome {
    context.sandbox().await?;
    check::equal("the answer", 41, 42)
}

async fn panics(context: &Context) -> Outcome {
    context.sandbox().await?;
    panic!("on purpose")
}

async fn hangs(context: &Context) -> Outcome {
    context.sandbox().await?;
    std::future::pending().await
}

fn case(run: for<'a> fn(&'a Context) -> futures::future::BoxFuture<'a, Outcome>) -> Case {
    Case::new("theme", "name", None, run)
}

#[test]
fn every_case_has_a_name_of_its_own() {
    let names: Vec<String> = cases().iter().map(ToString::to_string).collect();
    let distinct: HashSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
    assert!(
        names.contains(&"exec::exit_codes_are_exact".to_owned()),
        "{names:?}"
    );
}

#[tokio::test]
async fn a_case_that_passes_removes_what_it_made() {
    let provider = Scripted::new();
    case(|context| passes(context).boxed())
        .run(&context(&provider))
        .await
        .unwrap();
    assert_eq!(provider.closes(), 1);
}

#[tokio::test]
async fn a_case_that_fails_says_why_and_removes_what_it_made() {
    let provider = Scripted::new();
    let failure = case(|context| fails(context).boxed())
        .run(&context(&provider))
        .await
        .unwrap_err();
    assert_eq!(failure.to_string(), "the answer is 41 and must be 42");
    assert_eq!(provider.closes(), 1);
}

#[tokio::test]
async fn a_case_that_panics_is_a_failure_and_removes_what_it_made() {
    let provider = Scripted::new();
    let failure = case(|context| panics(context).boxed())
        .run(&context(&provider))
        .await
        .unwrap_err();
    assert_eq!(failure.to_string(), "the case panicked: on purpose");
    assert_eq!(provider.closes(), 1);
}

#[tokio::test]
async fn a_case_that_hangs_is_a_failure_and_removes_what_it_made() {
    let provider = Scripted::new();
    let context = context(&provider).with_deadline(Duration::from_millis(50));
    let failure = case(|context| hangs(context).boxed())
        .run(&context)
        .await
        .unwrap_err();
    assert!(failure.to_string().contains("did not end in 50ms"), "{failure}");
    assert_eq!(provider.closes(), 1);
}

#[tokio::test]
async fn a_case_that_is_dropped_has_its_sandboxes_removed_in_the_background() {
    let provider = Scripted::new();
    let context = context(&provider);
    {
        let case = case(|context| hangs(context).boxed());
        let run = case.run(&context);
        let created = provider.reached(|call| matches!(call, Call::Create(_)));
        tokio::select! {
            biased;
            outcome = run => panic!("the case ended: {outcome:?}"),
            () = created => {}
        }
    }
    let closed = |call: &Call| matches!(call, Call::Close(_));
    provider.reached(closed).await;
    assert_eq!(provider.closes(), 1);
}

#[tokio::test]
async fn a_case_that_leaves_something_is_a_failure() {
    let survey: Survey = Arc::new(|key, value| {
        async move {
            assert_eq!(key, "conformance-case");
            assert!(value.starts_with("theme-name-"), "{value}");
            Ok(vec!["a container".to_owned()])
        }
        .boxed()
    });
    let mut context = context(&Scripted::new()).with_survey(survey);
    context.settle = Duration::from_millis(50);
    let failure = case(|context| passes(context).boxed())
        .run(&context)
        .await
        .unwrap_err();
    assert!(failure.to_string().contains("a container"), "{failure}");
}

#[tokio::test]
async fn a_failure_of_the_clean_up_is_told() {
    let provider = Scripted::new();
    let step = Step::Fail(ErrorKind::Unavailable);
    provider.script(Operation::Close, [step]);
    let failure = case(|context| passes(context).boxed())
        .run(&context(&provider))
        .await
        .unwrap_err();
    assert!(failure.to_string().contains("cleaning up"), "{failure}");
}

#[test]
fn what_can_not_be_run_says_why() {
    let all = context(&Scripted::new());
    let none = context(&Scripted::with(Capabilities::None));
    let needing = |need| {
        Case::new("theme", "name", Some(need), |_| {
            async { Err(Failure::new("not run")) }.boxed()
        })
    };
    let files = needing(Need::Capability(Capability::Files));
    assert_eq!(files.skip(&all), None);
    assert_eq!(files.skip(&none), Some(Skip::Lacks(Capability::Files)));
    assert_eq!(
        Skip::Lacks(Capability::Files).to_string(),
        "the provider has no directories"
    );
    assert_eq!(
        needing(Need::Server).skip(&none),
        Some(Skip::Lacks(Capability::Endpoint))
    );
    for need in [Need::Image, Need::User, Need::Server, Need::Survey] {
        assert_eq!(needing(need).skip(&all), Some(Skip::NotGiven(need)));
    }
    let survey: Survey = Arc::new(|_, _| async { Ok(Vec::new()) }.boxed());
    let given = Context::new(Scripted::new(), SandboxSpec::new("image"))
        .with_user("nobody", 65534)
        .with_server("serve {port}")
        .with_survey(survey);
    for need in [Need::Image, Need::User, Need::Server, Need::Survey] {
        assert_eq!(needing(need).skip(&given), None);
    }
    assert_eq!(given.server(80), "serve 80");
}

#[test]
fn differing_bytes_are_shown_where_they_differ() {
    check::equal_bytes("x", b"same", b"same").unwrap();
    let text = check::equal_bytes("x", b"abcdef", b"abcXef")
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("from byte 3") && text.contains("`def`") && text.contains("`Xef`"),
        "{text}"
    );
    check::equal_bytes("x", b"ab", b"abc").unwrap_err();
}

#[test]
fn every_public_case_function_is_listed() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conformance");
    let listed: HashSet<String> = cases().iter().map(ToString::to_string).collect();
    let mut written = HashSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let theme = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.extension().is_some_and(|extension| extension == "rs") {
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                if let Some((name, _)) = line
                    .strip_prefix("pub async fn ")
                    .and_then(|rest| rest.split_once('('))
                {
                    written.insert(format!("{theme}::{name}"));
                }
            }
        }
    }
    assert_eq!(written, listed);
}
