//! A sandbox that is lent: the owner describes it, a borrower connects, works and disconnects, and the owner stops it.

use std::sync::Arc;

use gym_sandbox::provider::{config_from_yaml, create_provider, resolve_provider_config};
use gym_sandbox::{
    AsyncSandbox, ConnectOptions, DirectSandboxConnection, ErrorKind, ExecOptions, SandboxAccess,
    SandboxProvider, SandboxStatus,
};

/// What a borrower does with the text that it was given.
async fn borrow(text: &str) -> gym_sandbox::Result<String> {
    let access: SandboxAccess = serde_json::from_str(text).unwrap();
    let configs = config_from_yaml("engine: {docker: {}}")?;
    let reference = access.connection().provider_config_ref().into();
    let config = resolve_provider_config(&reference, configs.as_object())?;
    let options = ConnectOptions::new().with_owned_provider();
    let provider = create_provider(&config)?;
    let sandbox = AsyncSandbox::connect_with(provider, access.connection().descriptor(), &options).await?;
    let work = ExecOptions::new("cat lent; pwd; echo done > returned").with_cwd(access.workdir());
    let result = sandbox.exec_with(work).await?;
    sandbox.disconnect().await?;
    assert_eq!(
        sandbox.exec("true").await.unwrap_err().kind(),
        ErrorKind::NotStarted
    );
    Ok(result.stdout().unwrap_or_default())
}

#[tokio::test]
async fn the_owner_stops_and_the_borrower_disconnects() {
    let Some(docker) = crate::common::docker().await else {
        return;
    };
    let provider = Arc::clone(&docker.provider) as Arc<dyn SandboxProvider>;
    let spec = docker
        .spec()
        .with_workdir("/work")
        .with_file("lent", "for a while\n");
    let owner = AsyncSandbox::new(provider).with_spec(spec);
    owner.start().await.unwrap();
    let descriptor = owner.serialize(None).await.unwrap();
    let access = SandboxAccess::new(DirectSandboxConnection::new(descriptor, "engine"), "/work");
    let text = serde_json::to_string(&access).unwrap();
    for _ in 0..2 {
        assert_eq!(borrow(&text).await.unwrap(), "for a while\n/work\n");
    }
    assert_eq!(
        owner.status().await.unwrap(),
        SandboxStatus::Running,
        "borrowing leaves it as it is"
    );
    assert_eq!(owner.read_file("returned").await.unwrap(), "done\n");
    owner.stop().await.unwrap();
    let gone = borrow(&text).await.unwrap_err();
    assert!(
        gone.kind().is_create_failure() || gone.kind() == ErrorKind::NotFound,
        "{gone}"
    );
}
