//! Tables for the `.env` dialects.

use proptest::prelude::*;

use super::*;

fn outside(name: &str) -> Option<String> {
    match name {
        "SET" => Some("set".to_owned()),
        _ => None,
    }
}

fn read(text: &str) -> Result<String, DotenvError> {
    let mut values = BTreeMap::new();
    parse(text, &mut values, &outside)?;
    Ok(values
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect::<Vec<_>>()
        .join("|"))
}

#[test]
fn the_dialect() {
    for (text, expected) in [
        ("# comment\nA=1\n", "A=1"),
        ("A=plain value # trailing\n", "A=plain value"),
        ("A=a#b\n", "A=a#b"),
        ("A='single $SET # kept'\n", "A=single $SET # kept"),
        ("A=\"double $SET \\n nl \\$ESC\"\n", "A=double set \n nl $ESC"),
        ("A=\"line1\nline2\"\nB=2", "A=line1\nline2|B=2"),
        ("export A=x\n", "A=x"),
        ("A: colon\n", "A=colon"),
        ("A = spaced\n", "A=spaced"),
        ("A=${SET}-${UNSET:-d}\n", "A=set-d"),
        ("A=1\nB=${A}!\n", "A=1|B=1!"),
        ("SET\nUNSET\nA=\n", "A=|SET=set"),
        ("1DIGIT=x\n", "1DIGIT=x"),
        ("\u{feff}A=1", "A=1"),
        ("A=1\r\nB=2\r\n", "A=1|B=2"),
        ("A=\"a\\tb\\0101\\q\"", "A=a\tbA\\q"),
        ("A='it\\'s'", "A=it's"),
        ("A=`x`", "A=`x`"),
        ("a.b-c[0]=1", "a.b-c[0]=1"),
        ("A=1\nSET", "A=1|SET=set"),
        ("", ""),
    ] {
        assert_eq!(read(text).as_deref(), Ok(expected), "{text:?}");
    }
}

#[test]
fn mistakes_have_lines() {
    for (text, line, message) in [
        ("A=1\nB C=2\n", 2, "key cannot contain a space"),
        ("A=1\n\nB=\"x\n", 3, "unterminated quoted value \"x"),
        (
            "A=1\nB%=2\n",
            2,
            "unexpected character \"%\" in variable name \"B%=2\"",
        ),
        ("A=${1}\n", 1, "invalid interpolation format for a value: `${1}`"),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!((error.line, error.message.as_str()), (line, message), "{text:?}");
    }
}

#[test]
fn raw_files_are_verbatim() {
    let mut values = BTreeMap::new();
    parse_raw(
        "# c\nA=\"q $SET\" # c\n  B=1\nSET\nUNSET\n\nC=\n",
        &mut values,
        &outside,
    )
    .unwrap();
    let shown: Vec<_> = values
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    assert_eq!(shown, ["A=\"q $SET\" # c", "B=1", "C=", "SET=set"]);
    assert!(parse_raw("A B=1", &mut values, &outside).is_err());
    assert!(parse_raw("=1", &mut values, &outside).is_err());
}

proptest! {
    #[test]
    fn never_panics(text in "[A-C=:# '\"\\\\$\\{\\}\n\t0-9\u{e9}]{0,60}") {
        let _ = read(&text);
        let _ = parse_raw(&text, &mut BTreeMap::new(), &outside);
    }

    #[test]
    fn single_quoted_text_is_kept(value in "[^'\\\\]{0,20}") {
        prop_assert_eq!(read(&format!("A='{value}'")).unwrap(), format!("A={value}"));
    }
}
