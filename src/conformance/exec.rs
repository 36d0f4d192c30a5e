//! Running commands: exit codes, shell lines and argument lists, who and where (X1, X2, X7, X8, D31).

use futures::future::try_join_all;

use crate::error::ErrorKind;
use crate::spec::{Command, ExecOptions};

use super::case::cases;
use super::check::{equal, holds, refused_with};
use super::{Context, Failure, Need, Outcome};

/// Exit codes are the command's own, and an exit code is an ordinary result (X2).
pub async fn exit_codes_are_exact(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    for code in [
        0, 1, 2, 3, 42, 64, 100, 124, 125, 126, 127, 128, 129, 130, 137, 143, 254, 255,
    ] {
        let result = context.exec(&handle, format!("exit {code}")).await?;
        equal(&format!("the code of `exit {code}`"), result.return_code, code)?;
        equal(
            &format!("the error type of `exit {code}`"),
            result.error_type,
            None,
        )?;
        equal(
            "the output",
            (result.stdout(), result.stderr()),
            (Some(String::new()), Some(String::new())),
        )?;
    }
    Ok(())
}

/// A command that a signal ends has the code 128 + n (D2).
pub async fn a_killed_command_has_128_and_the_signal(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    for (signal, code) in [("KILL", 137), ("TERM", 143), ("USR1", 138)] {
        let result = context
            .exec(&handle, format!("kill -{signal} $$; sleep 100"))
            .await?;
        equal(&format!("the code after {signal}"), result.return_code, code)?;
        equal(&format!("the error type after {signal}"), result.error_type, None)?;
    }
    Ok(())
}

/// A string is a line for the sandbox's shell (X1, D31).
pub async fn a_string_is_a_shell_line(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let line = "for word in a 'b c'; do echo \"<$word>\"; done | tr a-z A-Z; echo $((6 * 7)) && ! false";
    equal(
        "the output",
        context.stdout(&handle, line).await?,
        "<A>\n<B C>\n42\n",
    )?;
    equal("an empty line's output", context.stdout(&handle, "").await?, "")
}

/// A list is run as it is: nothing is expanded, every argument arrives byte for byte (D31).
pub async fn a_list_is_run_as_it_is(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    equal(
        "the output",
        context
            .stdout(&handle, ["echo", "$HOME", "*", "a  b", ";", "'"])
            .await?,
        "$HOME * a  b ; '\n",
    )?;
    let arguments = [
        "",
        " ",
        "a\nb",
        "\"quoted\"",
        "back\\slash",
        "ünïcode",
        "-n",
        "$(id)",
        "tab\there",
    ];
    let mut argv = vec![
        "sh",
        "-c",
        "for argument; do printf '<%s>' \"$argument\"; done",
        "sh",
    ];
    argv.extend(arguments);
    let expected = format!("<{}>", arguments.join("><"));
    equal("the arguments", context.stdout(&handle, argv).await?, expected)
}

/// The longest argument that Linux takes goes through (D5).
pub async fn the_longest_argument_goes_through(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let longest = "x".repeat(crate::spec::MAX_ARGUMENT_BYTES);
    let argv = ["sh", "-c", "printf %s \"$1\" | wc -c", "sh", &longest];
    equal(
        "the length that arrived",
        context.stdout(&handle, argv).await?.trim(),
        longest.len().to_string(),
    )
}

/// What no program can be given is refused before the call (D5, D28, D31).
pub async fn wrong_arguments_are_refused(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let too_long = "x".repeat(crate::spec::MAX_ARGUMENT_BYTES + 1);
    for (what, options) in [
        ("an empty list", ExecOptions::new(Command::Argv(Vec::new()))),
        ("a NUL in a line", ExecOptions::new("echo a\0b")),
        ("a NUL in an argument", ExecOptions::new(["echo", "a\0b"])),
        (
            "an argument that is too long",
            ExecOptions::new(["echo", &too_long]),
        ),
        (
            "an empty variable name",
            ExecOptions::new("true").with_env("", "x"),
        ),
        (
            "a variable name with `=`",
            ExecOptions::new("true").with_env("A=B", "x"),
        ),
    ] {
        refused_with(
            what,
            context.exec(&handle, options).await,
            ErrorKind::InvalidArgument,
        )?;
    }
    equal(
        "the output afterwards",
        context.stdout(&handle, "echo fine").await?,
        "fine\n",
    )
}

/// The directory of the call is the command's, for lines and lists (X7).
pub async fn the_directory_of_the_call_is_used(context: &Context) -> Outcome {
    let handle = context.create(&context.spec().with_workdir("/tmp")).await?;
    context.stdout(&handle, "mkdir -p '/tmp/a b/c'").await?;
    for cwd in ["/", "/tmp/a b/c"] {
        let line = ExecOptions::new("pwd").with_cwd(cwd);
        equal(
            "the directory of a line",
            context.stdout(&handle, line).await?,
            format!("{cwd}\n"),
        )?;
        let list = ExecOptions::new(["sh", "-c", "pwd"]).with_cwd(cwd);
        equal(
            "the directory of a list",
            context.stdout(&handle, list).await?,
            format!("{cwd}\n"),
        )?;
    }
    equal(
        "the directory without one",
        context.stdout(&handle, "pwd").await?,
        "/tmp\n",
    )
}

/// A user may be named or numbered, with a group or without; root is 0 (X8).
pub async fn the_user_of_the_call_runs_it(context: &Context) -> Outcome {
    let Some((name, uid)) = context.user() else {
        return Err(Failure::new("the context names no user"));
    };
    let handle = context.sandbox().await?;
    let uid_text = format!("{uid}\n");
    for user in [name.to_owned(), uid.to_string(), format!("{uid}:{uid}")] {
        let options = ExecOptions::new("id -u").with_user(user.clone());
        equal(
            &format!("the uid of user `{user}`"),
            context.stdout(&handle, options).await?,
            uid_text.as_str(),
        )?;
    }
    for user in ["root", "0"] {
        let options = ExecOptions::new("id -u").with_user(user);
        equal(
            &format!("the uid of user `{user}`"),
            context.stdout(&handle, options).await?,
            "0\n",
        )?;
    }
    let options = ExecOptions::new("id -g").with_user(format!("{uid}:7"));
    equal(
        "the gid of a user with a group",
        context.stdout(&handle, options).await?,
        "7\n",
    )
}

/// Commands that run at once don't mix their results.
pub async fn commands_at_once_keep_their_results_apart(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let runs = (0..16).map(|number| {
        let handle = &handle;
        async move {
            let line = format!("sleep 1; echo out {number}; echo err {number} >&2; exit {number}");
            Ok::<_, Failure>((number, context.exec(handle, line).await?))
        }
    });
    for (number, result) in try_join_all(runs).await? {
        equal("the code", result.return_code, number)?;
        equal("the output", result.stdout(), Some(format!("out {number}\n")))?;
        equal(
            "the error output",
            result.stderr(),
            Some(format!("err {number}\n")),
        )?;
    }
    Ok(())
}

/// Commands share the sandbox: what one writes the next reads, and a background process lives on (D4).
pub async fn commands_share_the_sandbox(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    context.stdout(&handle, "echo kept > /tmp/kept").await?;
    equal(
        "the file",
        context.stdout(&handle, "cat /tmp/kept").await?,
        "kept\n",
    )?;
    let line = "sh -c 'sleep 2; echo late > /tmp/late' >/dev/null 2>&1 & echo started";
    equal("the output", context.stdout(&handle, line).await?, "started\n")?;
    let wait = "n=0; until test -s /tmp/late; do n=$((n+1)); test $n -lt 120 || exit 1; sleep 1; done; cat /tmp/late";
    equal(
        "what the background process wrote",
        context.stdout(&handle, wait).await?,
        "late\n",
    )
}

/// A background child that keeps the output open does not hold the call (D4).
pub async fn a_background_child_does_not_hold_the_call(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let started = std::time::Instant::now();
    let result = context.exec(&handle, "sleep 300 & echo started").await?;
    equal("the output", result.stdout().as_deref(), Some("started\n"))?;
    equal("the code", result.return_code, 0)?;
    holds(
        "the result says that the output is still open",
        result.background_output_open,
    )?;
    holds(
        format!("it takes less than 60 s ({:?})", started.elapsed()),
        started.elapsed().as_secs() < 60,
    )?;
    // The child has let go of the output before the command ends.
    let line = "{ touch /tmp/apart; sleep 60; } >/dev/null 2>&1 & until test -e /tmp/apart; do sleep 1; done; echo started";
    let closed = context.exec(&handle, line).await?;
    holds(
        "a child without the output does not count",
        !closed.background_output_open,
    )
}

cases!("exec":
    exit_codes_are_exact,
    a_killed_command_has_128_and_the_signal,
    a_string_is_a_shell_line,
    a_list_is_run_as_it_is,
    the_longest_argument_goes_through,
    wrong_arguments_are_refused,
    the_directory_of_the_call_is_used,
    the_user_of_the_call_runs_it needs Need::User,
    commands_at_once_keep_their_results_apart,
    commands_share_the_sandbox,
    a_background_child_does_not_hold_the_call,
);
