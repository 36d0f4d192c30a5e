//! The environment of a command (X6).

use crate::spec::ExecOptions;

use super::case::cases;
use super::check::equal;
use super::{Context, Outcome};

/// Variables of the call lie over those of the spec, and only for this call (X6).
pub async fn the_calls_variables_win(context: &Context) -> Outcome {
    let handle = context
        .create(&context.spec().with_env("BOTH", "spec").with_env("SPEC", "spec"))
        .await?;
    let line = "echo \"$BOTH $SPEC ${CALL-unset}\"";
    let options = ExecOptions::new(line)
        .with_env("BOTH", "call")
        .with_env("CALL", "call");
    equal(
        "the variables",
        context.stdout(&handle, options).await?,
        "call spec call\n",
    )?;
    equal(
        "the variables of the next call",
        context.stdout(&handle, line).await?,
        "spec spec unset\n",
    )
}

/// Values arrive byte for byte, for lines and lists.
pub async fn values_arrive_exactly(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    for value in [
        "",
        " ",
        "a b",
        "a=b",
        "line\nline\n",
        "'\"`$(id)\\",
        "ünïcode",
        "\t",
        "-n",
    ] {
        let line = ExecOptions::new("printf %s \"$VALUE\"").with_env("VALUE", value);
        equal("the value in a line", context.stdout(&handle, line).await?, value)?;
        let list = ExecOptions::new(["sh", "-c", "printf %s \"$VALUE\""]).with_env("VALUE", value);
        equal("the value in a list", context.stdout(&handle, list).await?, value)?;
    }
    Ok(())
}

/// Programs find their tools: there is a PATH, also when the call adds variables.
pub async fn the_path_is_there(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let path = context.stdout(&handle, "echo \"$PATH\"").await?;
    let options = ExecOptions::new("echo \"$PATH\"").with_env("OTHER", "1");
    equal(
        "the PATH with another variable",
        context.stdout(&handle, options).await?,
        path,
    )
}

cases!("environment":
    the_calls_variables_win,
    values_arrive_exactly,
    the_path_is_there,
);
