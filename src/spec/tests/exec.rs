use std::time::Duration;

use bytes::Bytes;

use crate::error::Operation;

use super::super::{ExecOptions, ExecTimeout, OutputCap, Stdin, User};
use super::invalid;

#[test]
fn d01_a_timeout_is_the_default_never_or_a_duration() {
    assert_eq!(ExecOptions::new("true").timeout, ExecTimeout::Default);
    assert_eq!(
        ExecTimeout::from(Duration::from_secs(1)),
        ExecTimeout::After(Duration::from_secs(1))
    );
    let never = ExecOptions::new("true").with_timeout(ExecTimeout::Never);
    never.check(Operation::Exec).unwrap();
    assert_eq!(never.timeout, ExecTimeout::Never);
}

#[test]
fn d01_a_timeout_of_zero_is_refused() {
    assert!(
        invalid(
            ExecOptions::new("true")
                .with_timeout(Duration::ZERO)
                .check(Operation::Exec)
        )
        .contains("timeout")
    );
    ExecOptions::new("true")
        .with_timeout(Duration::from_nanos(1))
        .check(Operation::Exec)
        .unwrap();
}

#[test]
fn x08_root_is_0_and_other_users_are_what_they_are() {
    for (given, told) in [
        ("root", "0"),
        ("0", "0"),
        ("alice", "alice"),
        ("1000", "1000"),
        ("1000:1000", "1000:1000"),
    ] {
        assert_eq!(User::from(given).as_str(), told);
        assert_eq!(User::from(given.to_owned()).as_str(), told);
    }
    assert_eq!(User::from(0).as_str(), "0");
    assert_eq!(User::from(1000).as_str(), "1000");
    assert!(ExecOptions::new("true").user.is_none());
}

#[test]
fn d31_every_option_is_checked_before_the_call() {
    let options = || ExecOptions::new(["true"]);
    for wrong in [
        ExecOptions::new(Vec::<String>::new()),
        options().with_env("", "x"),
        options().with_env("A=B", "x"),
        options().with_cwd(""),
        options().with_cwd("/a\0b"),
        options().with_user(""),
        options().with_user("a\0b"),
        options().with_output_cap(OutputCap::Bytes(0)),
    ] {
        let shown = format!("{wrong:?}");
        let text = invalid(wrong.check(Operation::Exec));
        assert!(!text.is_empty(), "{shown}");
    }
    options()
        .with_env("A", "")
        .with_cwd("relative")
        .with_user(7)
        .check(Operation::Exec)
        .unwrap();
}

#[test]
fn d31_a_later_variable_of_one_name_wins() {
    let options = ExecOptions::new("true").with_env("A", "1").with_env("A", "2");
    assert_eq!(options.env.get("A").map(String::as_str), Some("2"));
}

#[test]
fn d31_input_is_empty_bytes_or_a_reader() {
    assert!(matches!(ExecOptions::new("cat").stdin, Stdin::Empty));
    for stdin in [
        Stdin::from("ab"),
        Stdin::from("ab".to_owned()),
        Stdin::from(b"ab".to_vec()),
    ] {
        assert!(
            matches!(&stdin, Stdin::Bytes(bytes) if bytes.as_ref() == b"ab"),
            "{stdin:?}"
        );
    }
    assert!(matches!(Stdin::from(Bytes::from_static(b"ab")), Stdin::Bytes(_)));
    let options = ExecOptions::new("cat").with_stdin_reader(tokio::io::empty());
    assert!(matches!(options.stdin, Stdin::Reader(_)));
}

#[test]
fn d31_the_options_debug_text_holds_no_values() {
    let options = ExecOptions::new(["login", "hunter2"])
        .with_env("TOKEN", "hunter2")
        .with_stdin("hunter2");
    let shown = format!("{options:?}");
    assert!(shown.contains("TOKEN") && shown.contains("login"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}
