use super::*;

fn sample() -> Error {
    Error::new(
        ErrorKind::CreateFailed,
        Operation::Create,
        "the engine refused image `a:b`",
    )
    .with_source(std::io::Error::other("no space left"))
    .with_hint("free some disk space")
}

#[test]
fn the_line_says_the_operation_and_not_the_cause() {
    assert_eq!(
        sample().to_string(),
        "create sandbox: the engine refused image `a:b`"
    );
}

#[test]
fn the_report_says_each_cause_once_and_the_hint_last() {
    assert_eq!(
        sample().report().to_string(),
        "create sandbox: the engine refused image `a:b`\n  caused by: no space left\n  hint: free some disk space"
    );
    let doubled = Error::new(ErrorKind::Io, Operation::Upload, "reading `x`: gone")
        .with_source(std::io::Error::other("gone"));
    assert_eq!(doubled.report().to_string().matches("gone").count(), 1);
}

#[test]
fn the_sandbox_is_named_once_and_the_first_name_stays() {
    let first = SandboxId::new("box-1").unwrap();
    let second = SandboxId::new("box-2").unwrap();
    let error = sample().with_sandbox(&first).with_sandbox(&second);
    assert_eq!(error.sandbox_id(), Some(&first));
    assert_eq!(
        error.to_string(),
        "create sandbox `box-1`: the engine refused image `a:b`"
    );
}

#[test]
fn a_cleanup_error_does_not_replace_the_first_one() {
    let error = sample().with_cleanup_error(Error::new(
        ErrorKind::Timeout,
        Operation::Close,
        "no answer in 30s",
    ));
    assert_eq!(error.kind(), ErrorKind::CreateFailed);
    assert_eq!(error.cleanup_errors().len(), 1);
    assert!(
        error
            .report()
            .to_string()
            .contains("and then: remove sandbox: no answer in 30s")
    );
}

#[test]
fn create_failures_can_be_told_by_a_match() {
    assert!(ErrorKind::NotReady.is_create_failure());
    assert!(ErrorKind::Image(ImageProblem::Auth).is_create_failure());
    assert!(!ErrorKind::Timeout.is_create_failure());
}
