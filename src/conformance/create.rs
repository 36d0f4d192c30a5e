//! Making sandboxes: what the spec says holds inside, what can't be made leaves nothing.

use std::time::Duration;

use crate::error::ErrorKind;
use crate::spec::SandboxStatus;

use super::case::cases;
use super::check::{equal, holds, refused, refused_with};
use super::{Context, Failure, Need, Outcome};

/// A created sandbox runs, belongs to the provider and takes commands at once (C3, C8, T1).
pub async fn a_created_sandbox_runs(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    equal(
        "the handle's provider",
        handle.provider_name(),
        context.provider().name(),
    )?;
    equal(
        "the status",
        context.provider().status(&handle).await?,
        SandboxStatus::Running,
    )?;
    equal(
        "the output",
        context.stdout(&handle, "echo ready").await?,
        "ready\n",
    )
}

/// Two sandboxes have ids of their own and don't see each other's files.
pub async fn sandboxes_are_apart(context: &Context) -> Outcome {
    let spec = context.spec();
    let (first, second) = futures::future::try_join(context.create(&spec), context.create(&spec)).await?;
    holds(
        "two sandboxes have different ids",
        first.sandbox_id() != second.sandbox_id(),
    )?;
    context.stdout(&first, "echo first > /tmp/whose").await?;
    equal(
        "the second sandbox's file",
        context
            .stdout(&second, "cat /tmp/whose 2>/dev/null || echo none")
            .await?,
        "none\n",
    )
}

/// The spec's environment is there for every command, values byte for byte (C10).
pub async fn the_specs_environment_is_set(context: &Context) -> Outcome {
    let value = "a b  c'd\"e$HOME\\f=g\nh ü";
    let handle = context
        .create(&context.spec().with_env("GIVEN", value).with_env("EMPTY", ""))
        .await?;
    equal(
        "the variable",
        context.stdout(&handle, "printf %s \"$GIVEN\"").await?,
        value,
    )?;
    equal(
        "the empty variable",
        context.stdout(&handle, "printf %s \"${EMPTY-unset}\"").await?,
        "",
    )
}

/// The spec's working directory is made where it is missing, and commands run there (C9, X7).
pub async fn the_specs_working_directory_is_made(context: &Context) -> Outcome {
    let workdir = "/tmp/made for/this case";
    let handle = context.create(&context.spec().with_workdir(workdir)).await?;
    equal(
        "the working directory",
        context.stdout(&handle, "pwd").await?,
        format!("{workdir}\n"),
    )
}

/// The handle knows the declared ports, in their order (R9).
pub async fn the_handle_has_the_declared_ports(context: &Context) -> Outcome {
    let handle = context.create(&context.spec().with_ports([8081, 8080])?).await?;
    equal("the ports", handle.ports().as_slice(), [8081, 8080].as_slice())
}

/// An option that the provider does not know is refused by name before anything is made (D10).
pub async fn an_unknown_option_is_refused(context: &Context) -> Outcome {
    let spec = context
        .spec()
        .with_provider_option("conformance_no_such_option", 1);
    let error = refused(
        "a create with an unknown option",
        context.provider().create(&spec).await,
    )?;
    equal("the kind of the error", error.kind(), ErrorKind::InvalidArgument)?;
    holds(
        "the error names the option",
        error.to_string().contains("conformance_no_such_option"),
    )?;
    context.nothing_left().await
}

/// A variable that no program can be given is refused before anything is made, without its value (D28).
pub async fn a_wrong_variable_is_refused(context: &Context) -> Outcome {
    for (name, value) in [
        ("", "hunter2"),
        ("A=B", "hunter2"),
        ("A\0", "hunter2"),
        ("A", "hunter2\0"),
    ] {
        let spec = context.spec().with_env(name, value);
        let what = format!("a create with the variable {name:?}");
        let error = refused(&what, context.provider().create(&spec).await)?;
        equal(
            &format!("the kind of the error of {what}"),
            error.kind(),
            ErrorKind::InvalidArgument,
        )?;
        holds(
            "the error does not show the value",
            !error.report().to_string().contains("hunter2"),
        )?;
    }
    context.nothing_left().await
}

/// An image that is no reference is refused (D12).
pub async fn an_image_that_is_no_reference_is_refused(context: &Context) -> Outcome {
    let mut value = serde_json::to_value(context.spec()).unwrap_or_default();
    value["image"] = "Not A Reference!".into();
    let spec = crate::spec::SandboxSpec::from_value(value)?;
    let error = refused(
        "a create from a wrong image reference",
        context.provider().create(&spec).await,
    )?;
    holds(
        format!(
            "the kind {:?} says that it is the argument or the image",
            error.kind()
        ),
        error.kind() == ErrorKind::InvalidArgument || matches!(error.kind(), ErrorKind::Image(_)),
    )?;
    context.nothing_left().await
}

/// An image that does not exist is a create failure that names it and leaves nothing (C16, D12).
pub async fn a_missing_image_is_a_create_failure(context: &Context) -> Outcome {
    let image = "gym-sandbox/conformance-no-such-image:none";
    let mut value = serde_json::to_value(context.spec()).unwrap_or_default();
    value["image"] = image.into();
    let spec = crate::spec::SandboxSpec::from_value(value)?;
    let error = refused(
        "a create from a missing image",
        context.provider().create(&spec).await,
    )?;
    holds(
        format!("{:?} is a kind about the image", error.kind()),
        matches!(error.kind(), ErrorKind::Image(_)),
    )?;
    holds(
        "the error names the image",
        error.report().to_string().contains("conformance-no-such-image"),
    )?;
    context.nothing_left().await
}

/// The spec's entrypoint is the main process, with its arguments as they are (C5).
pub async fn the_entrypoint_is_the_main_process(context: &Context) -> Outcome {
    let line = "for argument; do printf '<%s>' \"$argument\"; done > /tmp/arguments; touch /tmp/written; exec sleep 1000";
    let spec = context
        .spec()
        .with_entrypoint(["sh", "-c", line, "sh", "a b", "", "$HOME"]);
    let handle = context.create(&spec).await?;
    let wait = "until test -e /tmp/written; do sleep 1; done; cat /tmp/arguments";
    equal(
        "what the main process was given",
        context.stdout(&handle, wait).await?,
        "<a b><><$HOME>",
    )
}

/// A main process that ends at once fails the create, with its exit code and last words, and leaves nothing (D15).
pub async fn a_main_process_that_ends_at_once_fails_the_create(context: &Context) -> Outcome {
    let spec = context
        .spec()
        .with_entrypoint(["sh", "-c", "echo famous last words >&2; exit 7"]);
    let mut tries = 0;
    let (error, took) = loop {
        let started = std::time::Instant::now();
        match context.provider().create(&spec).await {
            Err(error) => break (error, started.elapsed()),
            // On a busy machine the sandbox may be ready before its main process has come to its end.
            Ok(handle) if tries < 10 => context.provider().close(&handle).await?,
            Ok(handle) => {
                context.adopt(&handle);
                return Err(Failure::new("a create whose main process ends always succeeds"));
            }
        }
        tries += 1;
    };
    holds(
        format!("{:?} is a create failure", error.kind()),
        error.kind().is_create_failure(),
    )?;
    let text = error.report().to_string();
    holds(format!("the exit code 7 is in `{text}`"), text.contains('7'))?;
    holds(
        format!("the last words are in `{text}`"),
        text.contains("famous last words"),
    )?;
    holds(
        format!("it is told without being waited for ({took:?})"),
        took < Duration::from_secs(60),
    )?;
    context.nothing_left().await
}

/// A main process that can't be started fails the create and leaves nothing (C16).
pub async fn a_main_process_that_does_not_exist_fails_the_create(context: &Context) -> Outcome {
    let spec = context.spec().with_entrypoint(["/no/such/program"]);
    let error = refused(
        "a create with a missing main program",
        context.provider().create(&spec).await,
    )?;
    holds(
        format!("{:?} is a create failure", error.kind()),
        error.kind().is_create_failure(),
    )?;
    holds(
        "the error names the program",
        error.report().to_string().contains("/no/such/program"),
    )?;
    context.nothing_left().await
}

/// A create that is dropped at any moment leaves nothing (C18).
pub async fn a_dropped_create_leaves_nothing(context: &Context) -> Outcome {
    let spec = context.spec();
    for milliseconds in [0, 1, 5, 20, 50, 100, 200, 400, 800] {
        let create = context.provider().create(&spec);
        if let Ok(created) = tokio::time::timeout(Duration::from_millis(milliseconds), create).await {
            context.adopt(&created?);
        }
    }
    // `Case::run` removes what was made in time, and then looks for the rest.
    Ok(())
}

/// A port that is declared twice or is none can't get into a spec, so no provider sees it (R7, R8).
pub async fn wrong_ports_never_reach_the_provider(context: &Context) -> Outcome {
    refused_with(
        "port 0",
        context.spec().with_ports([0]),
        ErrorKind::InvalidArgument,
    )?;
    refused_with(
        "a port twice",
        context.spec().with_ports([80, 80]),
        ErrorKind::InvalidArgument,
    )
}

cases!("create":
    a_created_sandbox_runs,
    sandboxes_are_apart,
    the_specs_environment_is_set,
    the_specs_working_directory_is_made,
    the_handle_has_the_declared_ports,
    an_unknown_option_is_refused,
    a_wrong_variable_is_refused,
    an_image_that_is_no_reference_is_refused needs Need::Image,
    a_missing_image_is_a_create_failure needs Need::Image,
    the_entrypoint_is_the_main_process needs Need::Image,
    a_main_process_that_ends_at_once_fails_the_create needs Need::Image,
    a_main_process_that_does_not_exist_fails_the_create needs Need::Image,
    a_dropped_create_leaves_nothing needs Need::Survey,
    wrong_ports_never_reach_the_provider,
);
