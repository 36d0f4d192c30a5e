//! Splits a string `command` the way docker compose does, which is not the way a shell does.
//!
//! It stops at an unquoted `;`, `&`, `|`, `<` or `>` and drops the rest; see docs/compose-support.md.

/// A split command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    pub(crate) words: Vec<String>,
    /// What was dropped, when the line was cut.
    pub(crate) dropped: Option<String>,
}

/// Splits a command line.
///
/// # Errors
///
/// A quote, a parenthesis or a backslash at the end leaves the line unfinished.
pub(crate) fn split(line: &str) -> Result<Split, &'static str> {
    const UNFINISHED: &str = "invalid command line string";
    let mut words = Vec::new();
    let mut word = String::new();
    let mut has_word = false;
    let (mut escaped, mut double, mut single, mut back, mut dollar) = (false, false, false, false, false);
    let mut dropped = None;
    for (position, c) in line.char_indices() {
        if escaped {
            word.push(c);
            escaped = false;
            has_word = true;
            continue;
        }
        match c {
            '\\' if single => word.push(c),
            '\\' => escaped = true,
            ' ' | '\t' | '\r' | '\n' => {
                if single || double || back || dollar {
                    word.push(c);
                } else if has_word {
                    words.push(std::mem::take(&mut word));
                    has_word = false;
                }
            }
            '"' if !single && !dollar => {
                has_word |= double;
                double = !double;
            }
            '\'' if !double && !dollar => {
                has_word |= single;
                single = !single;
            }
            ';' | '&' | '|' | '<' | '>' if !(single || double || back || dollar) => {
                if c == '>' && word.starts_with(|first: char| first.is_ascii_digit()) {
                    has_word = false;
                }
                dropped = Some(line[position..].to_owned());
                break;
            }
            '(' if !single && !double && !back => {
                if dollar || !word.ends_with('$') {
                    return Err(UNFINISHED);
                }
                dollar = true;
                word.push('(');
            }
            _ => {
                if c == '`' && !single && !double && !dollar {
                    back = !back;
                }
                if c == ')' && !single && !double && !back {
                    dollar = !dollar;
                }
                word.push(c);
                has_word = true;
            }
        }
    }
    if has_word {
        words.push(word);
    }
    if escaped || single || double || back || dollar {
        return Err(UNFINISHED);
    }
    Ok(Split { words, dropped })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_split_as_docker_compose_splits_them() {
        for (line, words) in [
            ("echo a; echo b", "echo|a"),
            ("echo a > /tmp/f", "echo|a"),
            ("echo \"a;b\" 'c|d'", "echo|a;b|c|d"),
            ("sh -c 'a && b'", "sh|-c|a && b"),
            ("  echo   spaced  ", "echo|spaced"),
            ("echo \"\" ''", "echo||"),
            (r#"echo \n "\n" a\ b"#, "echo|n|n|a b"),
            ("a 2>&1 | b", "a"),
            ("a x2>&1", "a|x2"),
            ("", ""),
            ("echo $HOME # c", "echo|$HOME|#|c"),
            ("echo $(date +%s)", "echo|$(date +%s)"),
            ("echo `a | b`", "echo|`a | b`"),
            ("a\nb\tc", "a|b|c"),
            ("FOO=1 {x,y} *", "FOO=1|{x,y}|*"),
            ("a\"b c\"d", "ab cd"),
        ] {
            assert_eq!(split(line).unwrap().words.join("|"), words, "{line}");
        }
        for line in ["(x)", "a \\", "\"a", "'a", "`a", "$(a", "a)"] {
            assert!(split(line).is_err(), "{line}");
        }
        assert_eq!(split("a && b").unwrap().dropped.as_deref(), Some("&& b"));
        assert_eq!(split("a 'x;y'").unwrap().dropped, None);
    }

    proptest! {
        #[test]
        fn never_panics(line in "[a-c \\\\\"'`$();|&<>0-9\n\u{e9}]{0,40}") {
            let _ = split(&line);
        }

        #[test]
        fn single_quotes_keep_everything(word in "[^']{0,20}") {
            prop_assert_eq!(split(&format!("'{word}'")).unwrap().words, vec![word]);
        }
    }
}
