//! Credentials: given, configured, of the docker command's file and of its helpers.

use std::path::Path;
use std::process::Command;

use gym_sandbox::provider::ImageProvider;
use gym_sandbox::{BuildSpec, ImageProblem, PullOptions, RegistryCredentials, SandboxProvider, SandboxSpec};

use crate::common::docker_with;
use crate::executable::write_script;
use crate::registry::{Access, PASSWORD, Registry, USER};
use crate::support::{Images, assert_problem, config, docker, pushed, unique};

fn docker_config(folder: &Path, text: &str) {
    std::fs::write(folder.join("config.json"), text).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_without_credentials_or_with_wrong_ones_it_is_an_auth_error() {
    let (Some(test), Some(registry)) = (docker().await, Registry::start(Access::Password).await) else {
        return;
    };
    let mut images = Images::new();
    let image = pushed(&test, &mut images, &registry.address(), 1000).await;
    let error = test.provider.create(&SandboxSpec::new(&image)).await.unwrap_err();
    assert_problem(&error, ImageProblem::Auth);
    let wrong = RegistryCredentials::password(USER, "wrong-secret");
    let options = PullOptions::default().with_credentials(wrong);
    assert!(!format!("{options:?}").contains("wrong-secret"));
    let error = test.provider.pull_image(&image, &options).await.unwrap_err();
    assert_problem(&error, ImageProblem::Auth);
    assert!(
        !error.report().to_string().contains("wrong-secret"),
        "{}",
        error.report()
    );
    let right = RegistryCredentials::password(USER, PASSWORD);
    let options = PullOptions::default().with_credentials(right);
    test.provider.pull_image(&image, &options).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_configured_credentials_are_used_for_creates_and_for_the_bases_of_builds() {
    let (Some(setup), Some(registry)) = (docker().await, Registry::start(Access::Password).await) else {
        return;
    };
    let mut images = Images::new();
    let image = pushed(&setup, &mut images, &registry.address(), 1000).await;
    let mut config = config();
    config
        .pull
        .credentials
        .insert(registry.address(), RegistryCredentials::password(USER, PASSWORD));
    let Some(test) = docker_with(config).await else {
        return;
    };
    let handle = test.provider.create(&SandboxSpec::new(&image)).await.unwrap();
    test.provider.close(&handle).await.unwrap();
    images.remove(&image).await;

    let tag = images.add(format!("{}:1", unique("gym-sandbox-test/based")));
    let spec = BuildSpec::inline(format!("FROM {image}\nENV a=b")).with_tag(&tag);
    let error = setup.provider.build_image(&spec).await.unwrap_err();
    assert_problem(&error, ImageProblem::Auth);
    test.provider.build_image(&spec).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_the_docker_commands_file_is_read() {
    let (Some(setup), Some(registry)) = (docker().await, Registry::start(Access::Password).await) else {
        return;
    };
    let mut images = Images::new();
    let image = pushed(&setup, &mut images, &registry.address(), 1000).await;
    let folder = tempfile::tempdir().unwrap();
    let mut config = config();
    config.pull.docker_config = Some(folder.path().to_owned());
    let Some(test) = docker_with(config).await else {
        return;
    };

    docker_config(folder.path(), "{ this is not JSON");
    let error = test
        .provider
        .pull_image(&image, &PullOptions::default())
        .await
        .unwrap_err();
    assert_problem(&error, ImageProblem::Auth);
    assert!(
        error.hint().unwrap().contains("config.json"),
        "{:?}",
        error.hint()
    );

    let entry = format!(
        r#"{{"auths": {{"{}": {{"username": "{USER}", "password": "{PASSWORD}"}}}}}}"#,
        registry.address()
    );
    docker_config(folder.path(), &entry);
    test.provider
        .pull_image(&image, &PullOptions::default())
        .await
        .unwrap();
}

/// The search path of a process can't be changed while it runs, so the command is started with one.
#[tokio::test(flavor = "multi_thread")]
async fn d12_a_credential_helper_is_asked_by_its_name() {
    let (Some(setup), Some(registry)) = (docker().await, Registry::start(Access::Password).await) else {
        return;
    };
    let mut images = Images::new();
    let image = pushed(&setup, &mut images, &registry.address(), 1000).await;
    let folder = tempfile::tempdir().unwrap();
    let helper = folder.path().join("docker-credential-test");
    let script = format!(
        "read -r server || :\n[ \"$server\" = '{}' ] || exit 1\n\
         echo '{{\"Username\": \"{USER}\", \"Secret\": \"{PASSWORD}\"}}'\n",
        registry.address()
    );
    write_script(&helper, &script);
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let prefetch = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gym-sandbox"));
        command
            .args(["prefetch", &image])
            .env("DOCKER_CONFIG", folder.path())
            .env("PATH", &path);
        command
    };
    for (text, works) in [
        (
            format!(r#"{{"credHelpers": {{"{}": "missing"}}}}"#, registry.address()),
            false,
        ),
        (
            format!(r#"{{"credHelpers": {{"{}": "test"}}}}"#, registry.address()),
            true,
        ),
        (r#"{"credsStore": "test"}"#.to_owned(), true),
    ] {
        docker_config(folder.path(), &text);
        let mut command = prefetch();
        let output = tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), works, "{text}: {said}");
        if !works {
            assert!(said.contains("docker-credential-missing"), "{said}");
        }
        images.remove(&image).await;
    }
}
