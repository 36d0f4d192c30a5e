//! Tables and laws for interpolation.

use proptest::prelude::*;

use super::*;

fn values(name: &str) -> Option<String> {
    match name {
        "SET" => Some("v".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

fn run(template: &str) -> Result<String, TemplateError> {
    substitute(template, &values, &mut |_| {})
}

#[test]
fn operators_defaults_and_escapes() {
    for (template, expected) in [
        ("plain", "plain"),
        ("$SET ${SET}x $SET.x", "v vx v.x"),
        ("${UNSET:-d} ${EMPTY:-d} ${EMPTY-d} ${UNSET-d}", "d d  d"),
        ("${SET:+y} ${EMPTY:+y} ${EMPTY+y} ${UNSET+y}", "y  y "),
        ("${UNSET:-${SET:-x}} ${UNSET:-a:-b}", "v a:-b"),
        ("${UNSET:-${ALSO-in}}tail}", "intail}"),
        ("$$SET $${SET} $$$SET", "$SET ${SET} $v"),
        ("pre${UNSET}post", "prepost"),
        ("cost $5, $@ $? $(date) $", "cost $5, $@ $? $(date) $"),
        ("${SET:?needed} ${EMPTY?needed}", "v "),
        ("${UNSET:-{}}", "{}"),
        ("${UNSET:-{\"a\":1}}", "{\"a\":1}"),
        ("${UNSET:-a}\n${UNSET:-b}", "a\nb"),
        ("${UNSET:-}", ""),
        ("${SET-a b c} and ${UNSET-}", "v and "),
        ("é${UNSET:-ü}é", "éüé"),
    ] {
        assert_eq!(run(template).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn mistakes_are_errors() {
    for template in [
        "${1}",
        "${}",
        "${a b}",
        "a${",
        "${SET",
        "${SET:}",
        "${UNSET:-a\n}",
        "${SET:-x",
    ] {
        assert_eq!(
            run(template),
            Err(TemplateError::Invalid(template.to_owned())),
            "{template}"
        );
    }
    let required = |name: &str, message: &str| TemplateError::Required {
        name: name.to_owned(),
        message: message.to_owned(),
    };
    assert_eq!(
        run("${UNSET:?need ${SET} it}"),
        Err(required("UNSET", "need v it"))
    );
    assert_eq!(run("${EMPTY:?}"), Err(required("EMPTY", "")));
    // A default is looked at even when it is not used.
    assert_eq!(run("${SET:-${UNSET:?x}}"), Err(required("UNSET", "x")));
}

#[test]
fn only_plain_variables_warn() {
    let mut names = Vec::new();
    let result = substitute("$A ${B} ${C:-x} ${D:+y} ${E-$F}", &values, &mut |name| {
        names.push(name.to_owned());
    });
    assert_eq!(result.as_deref(), Ok("  x  "));
    assert_eq!(names, ["A", "B", "F"]);
}

#[test]
fn hostile_templates_stay_cheap() {
    assert_eq!(
        run(&"${A:-".repeat(100_000)),
        Err(TemplateError::Invalid("${A:-".repeat(100_000)))
    );
    let nested = format!("{}{}", "${A:-".repeat(10_000), "}".repeat(10_000));
    assert_eq!(run(&nested), Err(TemplateError::TooDeep));
    let flat = "${A:-x} ".repeat(50_000);
    assert_eq!(run(&flat).unwrap().len(), 100_000);
    let open = format!("{}{}", "${SET ".repeat(50_000), "y".repeat(100_000));
    assert!(run(&open).is_err());
}

proptest! {
    #[test]
    fn never_panics(template in "[$\\{\\}:?+\\-A-C_ \n\u{e9}]{0,40}") {
        let _ = run(&template);
    }

    #[test]
    fn text_without_dollars_is_kept(template in "[^$]{0,40}") {
        prop_assert_eq!(run(&template).unwrap(), template);
    }

    #[test]
    fn doubling_dollars_escapes_everything(text in "[$\\{\\}a-z:\\-]{0,30}") {
        prop_assert_eq!(run(&text.replace('$', "$$")).unwrap(), text);
    }
}
