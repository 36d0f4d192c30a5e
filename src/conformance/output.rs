//! What a command prints: the right stream, every byte, and the cap (X2, D32).

use crate::spec::{ExecOptions, OutputCap};

use super::case::cases;
use super::check::{equal, equal_bytes, holds};
use super::{Context, Outcome};

/// Standard output and standard error come apart (X2).
pub async fn streams_are_apart(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let result = context
        .exec(&handle, "echo out; echo err >&2; echo out again")
        .await?;
    equal(
        "standard output",
        result.stdout().as_deref(),
        Some("out\nout again\n"),
    )?;
    equal("standard error", result.stderr().as_deref(), Some("err\n"))?;
    let only_error = context.exec(&handle, "echo err >&2; exit 3").await?;
    equal(
        "standard output of a failed command",
        only_error.stdout().as_deref(),
        Some(""),
    )?;
    equal(
        "standard error of a failed command",
        only_error.stderr().as_deref(),
        Some("err\n"),
    )
}

/// No byte is added, lost or changed on either stream: NUL, what is not UTF-8, no line end at the end (X2).
pub async fn every_byte_comes_through(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    // Every byte is first in its line once: some decoders look at the first byte of a chunk.
    let bytes: Vec<u8> = (0..=255)
        .flat_map(|byte: u8| [byte, 0, 0, 0, 0, 0, 0, 3, b'a', b'\n', byte])
        .collect();
    context.write(&handle, "/tmp/bytes", &bytes).await?;
    let result = context.exec(&handle, ["cat", "/tmp/bytes"]).await?;
    equal_bytes("standard output", &result.captured_stdout.bytes(), &bytes)?;
    equal_bytes("standard error", &result.captured_stderr.bytes(), &[])?;
    let result = context.exec(&handle, "cat /tmp/bytes >&2").await?;
    equal_bytes("standard error", &result.captured_stderr.bytes(), &bytes)?;
    equal_bytes("standard output", &result.captured_stdout.bytes(), &[])
}

/// A first byte that looks like the header of a frame is output like any other.
pub async fn a_first_byte_that_looks_like_a_header_is_output(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    for first in ["\\000", "\\001", "\\002", "\\003", "\\377"] {
        let result = context
            .exec(
                &handle,
                format!("printf '{first}\\000\\000\\000\\000\\000\\000\\001x'"),
            )
            .await?;
        equal(
            &format!("the length of the output that starts with {first}"),
            result.captured_stdout.total_bytes(),
            9,
        )?;
        equal(
            "the length of the error output",
            result.captured_stderr.total_bytes(),
            0,
        )?;
    }
    Ok(())
}

/// What is no text is replaced in the text view (X2).
pub async fn text_is_a_lossy_view(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let result = context.exec(&handle, "printf 'a\\377b'").await?;
    equal("the text", result.stdout().as_deref(), Some("a\u{fffd}b"))?;
    equal_bytes("the bytes", &result.captured_stdout.bytes(), b"a\xffb")
}

/// A megabyte comes through whole.
pub async fn a_megabyte_comes_through(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let result = context
        .exec(&handle, "head -c 1048576 /dev/zero | tr '\\000' x; printf end")
        .await?;
    equal("the count", result.bytes().stdout, 1_048_579)?;
    holds("nothing is missing", !result.truncated().stdout)?;
    let mut expected = vec![b'x'; 1_048_576];
    expected.extend_from_slice(b"end");
    equal_bytes("standard output", &result.captured_stdout.bytes(), &expected)
}

/// Lines on both streams keep their order on each.
pub async fn each_stream_keeps_its_order(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let line = "i=0; while [ $i -lt 500 ]; do echo \"out $i\"; echo \"err $i\" >&2; i=$((i+1)); done";
    let result = context.exec(&handle, line).await?;
    let expected = |stream: &str| (0..500).fold(String::new(), |text, i| format!("{text}{stream} {i}\n"));
    equal_bytes(
        "standard output",
        &result.captured_stdout.bytes(),
        expected("out").as_bytes(),
    )?;
    equal_bytes(
        "standard error",
        &result.captured_stderr.bytes(),
        expected("err").as_bytes(),
    )
}

/// Over the cap the first and the last half are kept, everything is counted, and the command ends by itself (D32).
pub async fn the_cap_keeps_both_ends(context: &Context) -> Outcome {
    let handle = context.sandbox().await?;
    let line = "i=0; while [ $i -lt 2000 ]; do echo \"line $i\"; i=$((i+1)); done; echo done >&2; exit 4";
    let options = ExecOptions::new(line).with_output_cap(OutputCap::Bytes(1000));
    let result = context.exec(&handle, options).await?;
    let whole = (0..2000).fold(String::new(), |text, i| format!("{text}line {i}\n"));
    equal("the code", result.return_code, 4)?;
    equal("the count", result.bytes().stdout, whole.len() as u64)?;
    holds("standard output is truncated", result.truncated().stdout)?;
    holds("standard error is not", !result.truncated().stderr)?;
    equal_bytes(
        "the head",
        result.captured_stdout.head(),
        &whole.as_bytes()[..500],
    )?;
    equal_bytes(
        "the tail",
        result.captured_stdout.tail(),
        &whole.as_bytes()[whole.len() - 500..],
    )?;
    equal("standard error", result.stderr().as_deref(), Some("done\n"))
}

cases!("output":
    streams_are_apart,
    every_byte_comes_through,
    a_first_byte_that_looks_like_a_header_is_output,
    text_is_a_lossy_view,
    a_megabyte_comes_through,
    each_stream_keeps_its_order,
    the_cap_keeps_both_ends,
);
