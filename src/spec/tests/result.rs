use crate::error::SandboxReason;

use super::super::{CapturedOutput, ExecErrorType, ExecPath, ExecReason, ExecResult, StartProblem};

fn with_output(result: ExecResult) -> ExecResult {
    result.with_output(CapturedOutput::complete("out"), CapturedOutput::complete("err"))
}

#[test]
fn x02_an_ordinary_result_has_both_texts_whatever_the_code() {
    for code in [0, 1, 125, 126, 127, 137, 255] {
        let result = ExecResult::new(code, ExecPath::Engine);
        assert_eq!(result.error_type, None);
        assert_eq!(result.stdout().as_deref(), Some(""));
        assert_eq!(result.stderr().as_deref(), Some(""));
        assert_eq!(result.is_success(), code == 0);
        assert_eq!((result.partial_stdout(), result.partial_stderr()), (None, None));
    }
}

#[test]
fn x03_a_timeout_is_125_without_stdout_and_keeps_what_was_printed() {
    let result = with_output(ExecResult::timed_out("no end after 1s", ExecPath::Engine));
    assert_eq!(result.return_code, 125);
    assert_eq!(result.error_type, Some(ExecErrorType::Timeout));
    assert_eq!(result.reason, None);
    assert_eq!(result.stdout(), None);
    assert_eq!(result.stderr().as_deref(), Some("no end after 1s"));
    assert_eq!(result.partial_stdout().as_deref(), Some("out"));
    assert_eq!(result.partial_stderr().as_deref(), Some("err"));
    assert!(!result.is_success());
}

#[test]
fn d06_a_lost_sandbox_is_125_with_a_reason() {
    let result = with_output(ExecResult::sandbox_failure(
        SandboxReason::Paused,
        "it is paused",
        ExecPath::Engine,
    ));
    assert_eq!(result.return_code, 125);
    assert_eq!(result.error_type, Some(ExecErrorType::Sandbox));
    assert_eq!(result.reason, Some(ExecReason::Sandbox(SandboxReason::Paused)));
    assert_eq!(result.stdout(), None);
    assert_eq!(result.stderr().as_deref(), Some("it is paused"));
    assert_eq!(result.partial_stdout().as_deref(), Some("out"));
}

#[test]
fn d05_a_failed_start_is_127_for_a_missing_program_else_126_with_empty_stdout() {
    for (problem, code) in [
        (StartProblem::NotFound, 127),
        (StartProblem::NotExecutable, 126),
        (StartProblem::Cwd, 126),
        (StartProblem::User, 126),
        (StartProblem::TooLong, 126),
        (StartProblem::BadFormat, 126),
        (StartProblem::Other, 126),
    ] {
        let result = ExecResult::start_failure(problem, "the engine's text", ExecPath::Engine);
        assert_eq!(result.return_code, code, "{problem:?}");
        assert_eq!(result.error_type, Some(ExecErrorType::Start));
        assert_eq!(result.reason, Some(ExecReason::Start(problem)));
        assert_eq!(result.stdout().as_deref(), Some(""));
        assert_eq!(result.stderr().as_deref(), Some("the engine's text"));
        assert_eq!(result.partial_stdout(), None);
    }
}

#[test]
fn d02_totals_and_truncation_are_told_for_each_stream() {
    let result = with_output(ExecResult::new(0, ExecPath::Engine));
    assert_eq!((result.bytes().stdout, result.bytes().stderr), (3, 3));
    assert_eq!(
        (result.truncated().stdout, result.truncated().stderr),
        (false, false)
    );
    let mut capture = super::super::capture::Capture::new(2);
    capture.push(b"abcdef");
    let result =
        ExecResult::new(0, ExecPath::Engine).with_output(capture.finish(), CapturedOutput::default());
    assert_eq!((result.bytes().stdout, result.bytes().stderr), (6, 0));
    assert_eq!(
        (result.truncated().stdout, result.truncated().stderr),
        (true, false)
    );
}
