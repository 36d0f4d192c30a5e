use std::collections::BTreeMap;

use crate::error::Operation;

use super::super::{Command, MAX_ARGUMENT_BYTES, check_environment};
use super::invalid;

fn environment(name: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(name.to_owned(), value.to_owned())])
}

#[test]
fn d31_text_is_a_shell_line_and_a_list_is_an_argv() {
    let argv = Command::Argv(vec!["echo".to_owned(), "$HOME".to_owned()]);
    assert_eq!(
        Command::from("echo $HOME"),
        Command::Shell("echo $HOME".to_owned())
    );
    assert_eq!(
        Command::from("echo $HOME".to_owned()),
        Command::Shell("echo $HOME".to_owned())
    );
    assert_eq!(Command::from(["echo", "$HOME"]), argv);
    assert_eq!(Command::from(vec!["echo", "$HOME"]), argv);
    assert_eq!(Command::from(vec!["echo".to_owned(), "$HOME".to_owned()]), argv);
    assert_eq!(Command::from(&["echo", "$HOME"][..]), argv);
}

#[test]
fn d31_an_empty_list_is_refused() {
    assert!(invalid(Command::Argv(Vec::new()).check(Operation::Exec)).contains("empty list"));
    Command::from(["true"]).check(Operation::Exec).unwrap();
    Command::from("").check(Operation::Exec).unwrap();
}

#[test]
fn d05_nul_is_refused_before_the_call() {
    assert!(invalid(Command::from("a\0b").check(Operation::Exec)).contains("NUL"));
    let text = invalid(Command::from(["echo", "ok", "a\0b"]).check(Operation::Exec));
    assert!(text.contains("argument 2") && text.contains("NUL"), "{text}");
}

#[test]
fn d05_an_argument_may_have_131071_bytes_and_no_more() {
    assert_eq!(MAX_ARGUMENT_BYTES, 131_071);
    let longest = "x".repeat(131_071);
    let too_long = "x".repeat(131_072);
    Command::from(longest.as_str()).check(Operation::Exec).unwrap();
    Command::from(["echo", &longest, &longest])
        .check(Operation::Exec)
        .unwrap();
    assert!(invalid(Command::from(too_long.as_str()).check(Operation::Exec)).contains("131072 bytes"));
    assert!(invalid(Command::from(["echo", &too_long]).check(Operation::Exec)).contains("argument 1"));
}

#[test]
fn d05_a_variable_counts_with_its_name_and_equals_sign() {
    let longest = "x".repeat(131_071 - "NAME=".len());
    check_environment(Operation::Exec, &environment("NAME", &longest)).unwrap();
    let text = invalid(check_environment(
        Operation::Exec,
        &environment("NAME", &format!("{longest}x")),
    ));
    assert!(text.contains("NAME") && !text.contains("xxx"), "{text}");
}

#[test]
fn d28_names_that_are_empty_or_hold_equals_or_nul_are_refused() {
    for wrong in ["", "A=B", "=", "A\0", "\0"] {
        let text = invalid(check_environment(
            Operation::Create,
            &environment(wrong, "hunter2"),
        ));
        assert!(!text.contains("hunter2"), "{text}");
    }
    assert!(
        invalid(check_environment(
            Operation::Create,
            &environment("A", "hunter2\0")
        ))
        .contains("`A`")
    );
    for right in ["A", "lower", "with-dash", "with space", "ümlaut", "1"] {
        check_environment(Operation::Create, &environment(right, "")).unwrap();
    }
}

#[test]
fn d31_a_commands_debug_text_holds_no_arguments() {
    assert!(!format!("{:?}", Command::from("login hunter2")).contains("hunter2"));
    let shown = format!("{:?}", Command::from(["login", "hunter2"]));
    assert!(shown.contains("login") && !shown.contains("hunter2"), "{shown}");
}
