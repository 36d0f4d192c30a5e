//! The input of a command: every byte, then its end (X10, D31).

use std::time::Duration;

use crate::spec::{ExecOptions, Stdin};

use super::case::cases;
use super::check::{equal, equal_bytes};
use super::{Context, Outcome};

fn bytes(length: usize) -> Vec<u8> {
    (0..length)
        .map(|place| u8::try_from(place * 7 % 251).unwrap_or_default())
        .collect()
}

/// Input arrives byte for byte and ends (X10).
pub async fn input_arrives_and_ends(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    for length in [0, 1, 4096, 65_537, 1_048_576] {
        let input = bytes(length);
        let options = ExecOptions::new(["cat"])
            .with_stdin(input.clone())
            .with_timeout(Duration::from_secs(120));
        let result = context.exec(&handle, options).await?;
        equal("the code", (result.return_code, result.error_type), (0, None))?;
        equal_bytes("what came back", &result.captured_stdout.bytes(), &input)?;
    }
    Ok(())
}

/// Without input a command sees the end of its input at once, and does not wait.
pub async fn without_input_there_is_an_end_at_once(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    for stdin in [Stdin::Empty, Stdin::from("")] {
        let mut options = ExecOptions::new("cat; echo end").with_timeout(Duration::from_secs(120));
        options.stdin = stdin;
        equal("the output", context.stdout(&handle, options).await?, "end\n")?;
    }
    Ok(())
}

/// Input may come from a reader (D31).
pub async fn input_may_come_from_a_reader(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let input = bytes(200_000);
    let options = ExecOptions::new("wc -c")
        .with_stdin_reader(std::io::Cursor::new(input))
        .with_timeout(Duration::from_secs(120));
    equal(
        "the count",
        context.stdout(&handle, options).await?.trim(),
        "200000",
    )
}

/// A command that does not read its input ends as it likes; the call does not hang or fail.
pub async fn a_command_may_leave_its_input(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let options = ExecOptions::new("echo done; exit 5")
        .with_stdin(bytes(1_048_576))
        .with_timeout(Duration::from_secs(120));
    let result = context.exec(&handle, options).await?;
    equal("the code", (result.return_code, result.error_type), (5, None))?;
    equal("the output", result.stdout().as_deref(), Some("done\n"))
}

cases!("stdin":
    input_arrives_and_ends,
    without_input_there_is_an_end_at_once,
    input_may_come_from_a_reader,
    a_command_may_leave_its_input,
);
