//! L16: background services through the facade.

use crate::error::ErrorKind;
use crate::provider::tests::scripted::{Call, Capabilities, Scripted};
use crate::spec::{ExecOptions, ServiceSpec};

use super::{kind, shared};

#[tokio::test]
async fn l16_the_providers_own_way_is_used_where_there_is_one() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    assert_eq!(
        kind(sandbox.exec_preserving_services(ExecOptions::new("x")).await),
        ErrorKind::NotStarted
    );
    sandbox.start().await.unwrap();
    sandbox
        .exec_preserving_services(ExecOptions::new("server >/dev/null 2>&1 &"))
        .await
        .unwrap();
    let calls = provider.calls();
    assert_eq!(calls[1], Call::Connected("exec", "box-1".to_owned()));
    assert!(matches!(&calls[2], Call::Exec(seen) if seen.cwd.as_deref() == Some("/work")));
}

#[tokio::test]
async fn l16_variables_and_a_user_are_refused_there() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    sandbox.start().await.unwrap();
    for options in [
        ExecOptions::new("x").with_env("A", "1"),
        ExecOptions::new("x").with_user("nobody"),
    ] {
        let outcome = sandbox.exec_preserving_services(options).await;
        assert_eq!(kind(outcome), ErrorKind::InvalidArgument);
    }
    assert_eq!(provider.count(|call| matches!(call, Call::Exec(_))), 0);
}

#[tokio::test]
async fn l16_otherwise_it_is_an_ordinary_command() {
    let provider = Scripted::with(Capabilities::None);
    let sandbox = shared(&provider);
    sandbox.start().await.unwrap();
    let options = ExecOptions::new("x").with_env("A", "1");
    sandbox.exec_preserving_services(options).await.unwrap();
    assert_eq!(provider.count(|call| matches!(call, Call::Exec(_))), 1);
    let error = sandbox
        .start_service(ServiceSpec::new("web", "x"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn l16_a_service_runs_in_the_specs_directory_unless_it_names_one() {
    let provider = Scripted::new();
    let sandbox = shared(&provider);
    sandbox.start().await.unwrap();
    sandbox.start_service(ServiceSpec::new("a", "x")).await.unwrap();
    sandbox
        .start_service(ServiceSpec::new("b", "x").with_cwd("/there"))
        .await
        .unwrap();
    assert_eq!(
        provider.calls()[1..],
        [
            Call::Connected("start", "a /work".to_owned()),
            Call::Connected("start", "b /there".to_owned())
        ]
    );
    assert_eq!(
        kind(sandbox.start_service(ServiceSpec::new("../x", "x")).await),
        ErrorKind::InvalidArgument
    );
}
