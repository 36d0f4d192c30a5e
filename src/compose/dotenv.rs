//! `.env`, `env_file` and `label_file` dialects.
//!
//! Text in, pairs out; which files are read and who wins is decided in environment.rs and loader.rs.

use std::collections::BTreeMap;

use super::template;

/// Looks a variable up outside of the file.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A mistake in a file, with its line from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DotenvError {
    pub(crate) line: u32,
    pub(crate) message: String,
}

/// Reads the `.env` dialect into `values`; keys of earlier lines and files can be used in later ones.
///
/// # Errors
///
/// The first mistake of the file.
pub(crate) fn parse(
    text: &str,
    values: &mut BTreeMap<String, String>,
    lookup: Lookup<'_>,
) -> Result<(), DotenvError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { text, position: 0 };
    while reader.skip_to_statement() {
        let (key, bare) = reader.key()?;
        if key.contains(' ') {
            return Err(reader.error_here("key cannot contain a space"));
        }
        if bare {
            if let Some(value) = lookup(&key) {
                values.insert(key, value);
            }
            continue;
        }
        let value = reader.value(values, lookup)?;
        values.insert(key, value);
    }
    Ok(())
}

/// Reads the raw format: `KEY=value` taken verbatim, `KEY` alone looked up, lines that start with `#` skipped.
///
/// # Errors
///
/// The first line whose key is empty or holds a blank.
pub(crate) fn parse_raw(
    text: &str,
    values: &mut BTreeMap<String, String>,
    lookup: Lookup<'_>,
) -> Result<(), DotenvError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (number, line) in (1u32..).zip(text.split('\n')) {
        let line = line.strip_suffix('\r').unwrap_or(line).trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = match line.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (line, None),
        };
        let key = key.trim_start();
        if key.is_empty() {
            return Err(DotenvError {
                line: number,
                message: format!("no variable name on line '{line}'"),
            });
        }
        if key.contains(char::is_whitespace) {
            return Err(DotenvError {
                line: number,
                message: format!("variable '{key}' contains whitespaces"),
            });
        }
        if let Some(value) = value.map(str::to_owned).or_else(|| lookup(key)) {
            values.insert(key.to_owned(), value);
        }
    }
    Ok(())
}

struct Reader<'a> {
    text: &'a str,
    position: usize,
}

/// A blank that does not end a line.
fn is_blank(c: char) -> bool {
    matches!(c, '\t' | '\u{b}' | '\u{c}' | '\r' | ' ' | '\u{85}' | '\u{a0}')
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn line(&self) -> u32 {
        let before = self.text[..self.position]
            .bytes()
            .filter(|byte| *byte == b'\n')
            .count();
        u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1)
    }

    fn error_here(&self, message: impl Into<String>) -> DotenvError {
        DotenvError {
            line: self.line(),
            message: message.into(),
        }
    }

    /// Skips blanks, empty lines and comment lines; false at the end.
    fn skip_to_statement(&mut self) -> bool {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.position += rest.len() - trimmed.len();
            if !trimmed.starts_with('#') {
                return !trimmed.is_empty();
            }
            self.position += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    /// Reads the key and what separates it from the value; `true` when it stands alone.
    fn key(&mut self) -> Result<(String, bool), DotenvError> {
        let rest = self.rest();
        if let Some(tail) = rest.strip_prefix("export")
            && tail.starts_with(|c: char| c.is_ascii_whitespace())
        {
            let trimmed = tail.trim_start_matches(is_blank);
            self.position += rest.len() - trimmed.len();
        }
        let rest = self.rest();
        for (offset, c) in rest.char_indices() {
            match c {
                '=' | ':' | '\n' => {
                    let key = rest[..offset].trim_end().to_owned();
                    let after = &rest[offset + 1..];
                    let trimmed = after.trim_start_matches(is_blank);
                    self.position += rest.len() - trimmed.len();
                    return Ok((key, c == '\n'));
                }
                '_' | '.' | '-' | '[' | ']' => {}
                c if is_blank(c) || c.is_alphanumeric() => {}
                c => {
                    // What follows a sign of equality may be a secret.
                    let name = rest.split(['=', ':', '\n']).next().unwrap_or_default().trim_end();
                    return Err(self.error_here(format!(
                        "unexpected character \"{c}\" in variable name \"{name}\""
                    )));
                }
            }
        }
        // The reference takes a bare name at the very end for the value of a variable without a name.
        self.position = self.text.len();
        Ok((rest.trim_end().to_owned(), true))
    }

    fn value(
        &mut self,
        values: &BTreeMap<String, String>,
        lookup: Lookup<'_>,
    ) -> Result<String, DotenvError> {
        let rest = self.rest();
        if let Some(quote @ (b'"' | b'\'')) = rest.as_bytes().first() {
            self.quoted(*quote, values, lookup)
        } else {
            let line = rest.split('\n').next().unwrap_or_default();
            let value = line.split(" #").next().unwrap_or_default().trim_end();
            let expanded = self.expand(value, values, lookup);
            self.position += (line.len() + 1).min(rest.len());
            expanded
        }
    }

    fn quoted(
        &mut self,
        quote: u8,
        values: &BTreeMap<String, String>,
        lookup: Lookup<'_>,
    ) -> Result<String, DotenvError> {
        let rest = self.rest();
        let mut value: Vec<u8> = Vec::new();
        let mut after_backslash = false;
        for (offset, byte) in rest.bytes().enumerate().skip(1) {
            if byte == quote && !after_backslash {
                let text = String::from_utf8(value).map_err(|_| self.error_here("not UTF-8"))?;
                let result = if quote == b'"' {
                    self.expand(&unescape(&text), values, lookup)
                } else {
                    Ok(text)
                };
                self.position += offset + 1;
                return result;
            }
            if byte == b'\\' && !after_backslash {
                after_backslash = true;
                continue;
            }
            if after_backslash && byte != quote {
                value.push(b'\\');
            }
            after_backslash = false;
            value.push(byte);
        }
        // The value may be a secret, so it is not repeated.
        Err(self.error_here("unterminated quoted value"))
    }

    fn expand(
        &self,
        value: &str,
        values: &BTreeMap<String, String>,
        lookup: Lookup<'_>,
    ) -> Result<String, DotenvError> {
        let find = |name: &str| lookup(name).or_else(|| values.get(name).cloned());
        template::substitute(value, &find, &mut |_| {})
            .map_err(|error| self.error_here(error.message("a value")))
    }
}

/// Expands `\n`, `\t`, `\"`, `\\`, `\0123` and so on; `\$` becomes `$$`, which interpolation makes `$`.
fn unescape(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(position) = rest.find('\\') {
        output.push_str(&rest[..position]);
        let tail = &rest[position + 1..];
        let (replacement, width) = escape(tail);
        match replacement {
            Some(replacement) => output.push_str(&replacement),
            None => output.push_str(&rest[position..=position + width]),
        }
        rest = &tail[width..];
    }
    output.push_str(rest);
    output
}

/// Returns what the escape after a backslash stands for, if it is one, and how many bytes it takes.
fn escape(tail: &str) -> (Option<String>, usize) {
    let simple = match tail.as_bytes().first() {
        Some(b'a') => "\u{7}",
        Some(b'b') => "\u{8}",
        Some(b'f') => "\u{c}",
        Some(b'n') => "\n",
        Some(b'r') => "\r",
        Some(b't') => "\t",
        Some(b'v') => "\u{b}",
        Some(b'$') => "$$",
        Some(b'"') => "\"",
        Some(b'\\') => "\\",
        // `\c` is matched by the reference, but means nothing to it.
        Some(b'c') => return (None, 1),
        Some(b'0') => {
            let digits = tail
                .bytes()
                .skip(1)
                .take(3)
                .take_while(u8::is_ascii_digit)
                .count();
            let octal = (digits == 3)
                .then(|| u32::from_str_radix(&tail[1..4], 8).ok())
                .flatten();
            let character = octal.filter(|code| *code < 256).and_then(char::from_u32);
            return (character.map(String::from), 1 + digits);
        }
        _ => return (None, 0),
    };
    (Some(simple.to_owned()), 1)
}

#[cfg(test)]
mod tests;
