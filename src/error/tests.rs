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

/// Every kind, with the group that a caller matches on.
const KINDS: [ErrorKind; 20] = [
    ErrorKind::InvalidArgument,
    ErrorKind::Unsupported,
    ErrorKind::NotStarted,
    ErrorKind::AlreadyStarted,
    ErrorKind::Stopped,
    ErrorKind::CreateFailed,
    ErrorKind::NotReady,
    ErrorKind::Image(ImageProblem::Offline),
    ErrorKind::Conflict,
    ErrorKind::NotFound,
    ErrorKind::Sandbox(SandboxReason::Paused),
    ErrorKind::Path(PathProblem::NotFound),
    ErrorKind::Timeout,
    ErrorKind::Pty,
    ErrorKind::Unavailable,
    ErrorKind::ResourceExhausted(Resource::Disk),
    ErrorKind::ForeignHandle,
    ErrorKind::BlockingInAsync,
    ErrorKind::Io,
    ErrorKind::Internal,
];

#[test]
fn d37_every_kind_is_another_and_told_by_a_match() {
    let distinct: std::collections::HashSet<ErrorKind> = KINDS.into_iter().collect();
    assert_eq!(distinct.len(), KINDS.len());
    for kind in KINDS {
        assert_eq!(Error::new(kind, Operation::Exec, "text").kind(), kind);
    }
}

#[test]
fn d37_image_problems_are_told_apart() {
    let problems = [
        ImageProblem::Auth,
        ImageProblem::NotFound,
        ImageProblem::RateLimited,
        ImageProblem::Platform,
        ImageProblem::Offline,
        ImageProblem::InvalidReference,
        ImageProblem::Other,
    ];
    let kinds: std::collections::HashSet<ErrorKind> = problems.into_iter().map(ErrorKind::Image).collect();
    assert_eq!(kinds.len(), problems.len());
    assert!(kinds.iter().all(|kind| kind.is_create_failure()));
}

#[test]
fn d37_only_a_failed_create_is_a_create_failure() {
    let failures: Vec<ErrorKind> = KINDS
        .into_iter()
        .filter(|kind| kind.is_create_failure())
        .collect();
    assert_eq!(
        failures,
        [
            ErrorKind::CreateFailed,
            ErrorKind::NotReady,
            ErrorKind::Image(ImageProblem::Offline)
        ]
    );
}

#[test]
fn d37_only_an_engine_that_is_away_is_retryable_by_itself() {
    for kind in KINDS {
        let error = Error::new(kind, Operation::Exec, "text");
        assert_eq!(error.is_retryable(), kind == ErrorKind::Unavailable, "{kind:?}");
    }
    assert!(
        Error::new(ErrorKind::Timeout, Operation::Exec, "text")
            .with_retryable(true)
            .is_retryable()
    );
}

#[test]
fn d37_an_unsupported_capability_names_the_provider() {
    let error = Error::unsupported(Operation::Endpoint, "local", "endpoints");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(
        error.to_string(),
        "resolve endpoint: provider `local` does not support endpoints"
    );
}

#[test]
fn d37_the_error_is_one_word_and_crosses_threads() {
    fn crosses<T: Send + Sync + 'static>() {}
    crosses::<Error>();
    assert_eq!(size_of::<Error>(), size_of::<usize>());
}
