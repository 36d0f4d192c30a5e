//! The project of `docker-compose.test.yml`: brought up, used and taken down.

use std::path::Path;

use gym_sandbox::compose::AsyncSandboxCompose;

use crate::common::docker;
use crate::support::{left_of, printed, provider};

#[tokio::test]
async fn the_project_of_the_suite_comes_up_and_its_services_do_their_work() {
    let Some(test) = docker().await else { return };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docker-compose.test.yml");
    let project = AsyncSandboxCompose::new(provider(&test)).with_compose_file(file);
    project.start().await.unwrap();
    let name = project.project().unwrap();
    // The file's own name is for one copy; here it is one of many.
    assert!(name.starts_with("compose-"), "{name}");
    let client = project.default_service().unwrap();
    let seen = client
        .exec("cat /store/table/version; wget -qO- $REGISTRY/v2/index.html")
        .await
        .unwrap();
    assert_eq!(seen.stdout().as_deref(), Some("1\n{}\n"), "{seen:?}");
    // The migration has ended well; its log can still be read.
    let migration = project.service("migration").unwrap().inspect().await.unwrap();
    assert_eq!(
        (migration.exit_code, migration.last_log_lines),
        (Some(0), vec!["migrated".to_owned()])
    );
    assert_eq!(printed(&project, "store", "ls /store/table").await, "version");
    let endpoint = project.service("registry").unwrap().endpoint(5000).await.unwrap();
    assert!(endpoint.endpoint().starts_with("http://127.0.0.1:"));
    project.stop().await.unwrap();
    assert_eq!(left_of(&name).await, Vec::<String>::new());
}
