//! The decorator passes every call on, once, and changes nothing.

use std::path::Path;
use std::sync::Arc;

use crate::error::{ErrorKind, Operation};
use crate::provider::{SandboxHandle, SandboxProvider, Traced};
use crate::spec::{ExecOptions, SandboxId, SandboxSpec, SandboxStatus};

use super::scripted::{Call, NAME, Scripted, Seen, Step};

fn pair() -> (Arc<Scripted>, Traced) {
    let inner = Scripted::new();
    let outer = Traced::new(Arc::clone(&inner) as Arc<dyn SandboxProvider>);
    (inner, outer)
}

#[tokio::test]
async fn every_call_reaches_the_inner_provider_once() {
    let (inner, outer) = pair();
    assert_eq!(outer.name(), NAME);
    let handle = outer.create(&SandboxSpec::new("image")).await.unwrap();
    let options = || ExecOptions::new("true").with_cwd("/w").with_env("A", "b");
    outer.exec(&handle, options()).await.unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    outer.upload_file(&handle, file.path(), "/up").await.unwrap();
    outer
        .download_file(&handle, "/down", Path::new("down"))
        .await
        .unwrap();
    assert_eq!(outer.status(&handle).await.unwrap(), SandboxStatus::Paused);
    outer
        .as_spawn()
        .unwrap()
        .spawn(&handle, options())
        .await
        .unwrap_err();
    assert_eq!(
        outer
            .as_endpoint()
            .unwrap()
            .endpoint(&handle, 80)
            .await
            .unwrap()
            .endpoint(),
        "http://127.0.0.1:80"
    );
    outer.as_inspect().unwrap().inspect(&handle).await.unwrap();
    outer
        .as_files()
        .unwrap()
        .upload(&handle, Path::new("dir"), "/dir")
        .await
        .unwrap();
    outer
        .as_files()
        .unwrap()
        .download(&handle, "/dir", Path::new("dir"))
        .await
        .unwrap();
    outer.close(&handle).await.unwrap();
    outer.aclose().await.unwrap();
    let seen = Seen::from(&options());
    assert_eq!(
        inner.calls(),
        [
            Call::Create(Some("image".to_owned())),
            Call::Exec(seen.clone()),
            Call::Upload("/up".to_owned(), String::new()),
            Call::Download("/down".to_owned()),
            Call::Status,
            Call::Spawn(seen),
            Call::Endpoint(80),
            Call::Inspect,
            Call::Upload("/dir".to_owned(), "dir".to_owned()),
            Call::Download("/dir".to_owned()),
            Call::Close("box-1".to_owned()),
            Call::Aclose,
        ]
    );
}

#[tokio::test]
async fn errors_come_through_unchanged() {
    let (inner, outer) = pair();
    let handle = SandboxHandle::new(SandboxId::new("box-1").unwrap(), NAME);
    for operation in [
        Operation::Create,
        Operation::Exec,
        Operation::Close,
        Operation::Stop,
    ] {
        inner.script(operation, [Step::Fail(ErrorKind::Conflict)]);
    }
    let errors = [
        outer.create(&SandboxSpec::default()).await.err().unwrap(),
        outer.exec(&handle, ExecOptions::new("true")).await.err().unwrap(),
        outer.close(&handle).await.err().unwrap(),
        outer.aclose().await.err().unwrap(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.to_string().ends_with("the script says so"), "{error}");
    }
}
