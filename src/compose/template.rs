//! Variables in one string: `$NAME`, `${NAME}`, `${NAME:-default}` and so on, by compose-go's rules.
//!
//! Knows nothing about YAML; where the values come from is the caller's.

/// Why a string cannot be interpolated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TemplateError {
    /// `${` that starts no variable; the template it is in.
    Invalid(String),
    /// `${NAME:?message}` without a value.
    Required { name: String, message: String },
    /// Defaults nested deeper than [`MOST_DEPTH`].
    TooDeep,
}

impl TemplateError {
    /// Says it for the value at `place`.
    pub(crate) fn message(&self, place: &str) -> String {
        match self {
            Self::Invalid(template) => {
                format!(
                    "invalid interpolation format for {place}: `{}`",
                    template.trim_end()
                )
            }
            Self::Required { name, message } if message.is_empty() => {
                format!("error while interpolating {place}: required variable {name} is missing a value")
            }
            Self::Required { name, message } => {
                format!(
                    "error while interpolating {place}: required variable {name} is missing a value: {message}"
                )
            }
            Self::TooDeep => {
                format!("error while interpolating {place}: defaults are nested too deeply")
            }
        }
    }
}

/// How much of a template an error shows.
const SHOWN_CHARACTERS: usize = 120;

/// The deepest nesting of defaults.
const MOST_DEPTH: usize = 50;

/// What a `${NAME...}` does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Default,
    Alternative,
    Required,
}

/// Looks a variable up.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Replaces the variables of `template`; names that have no value and no default go to `unset`.
///
/// # Errors
///
/// The first mistake of the template, from the left.
pub(crate) fn substitute(
    template: &str,
    lookup: Lookup<'_>,
    unset: &mut dyn FnMut(&str),
) -> Result<String, TemplateError> {
    if !template.contains('$') {
        return Ok(template.to_owned());
    }
    Substitution { lookup, unset }.run(template, 0)
}

struct Substitution<'a> {
    lookup: Lookup<'a>,
    unset: &'a mut dyn FnMut(&str),
}

impl Substitution<'_> {
    fn run(&mut self, template: &str, depth: usize) -> Result<String, TemplateError> {
        if depth > MOST_DEPTH {
            return Err(TemplateError::TooDeep);
        }
        let mut output = String::with_capacity(template.len());
        let mut first_error = None;
        let mut lines = LineBraces::new(template);
        let mut position = 0;
        while let Some(found) = template[position..].find('$') {
            let start = position + found;
            output.push_str(&template[position..start]);
            let rest = &template[start + 1..];
            if rest.starts_with('$') {
                output.push('$');
                position = start + 2;
                continue;
            }
            if let Some(braced) = rest.strip_prefix('{') {
                let result = self.braced(template, start, braced, &mut lines, depth);
                position = match result {
                    Ok((value, end)) => {
                        output.push_str(&value);
                        end
                    }
                    Err((error, end)) => {
                        first_error.get_or_insert(error);
                        end
                    }
                };
                continue;
            }
            let name = name_of(rest);
            if name.is_empty() {
                output.push('$');
                position = start + 1;
                continue;
            }
            output.push_str(&self.plain(name));
            position = start + 1 + name.len();
        }
        output.push_str(&template[position..]);
        first_error.map_or(Ok(output), Err)
    }

    fn plain(&mut self, name: &str) -> String {
        (self.lookup)(name).unwrap_or_else(|| {
            (self.unset)(name);
            String::new()
        })
    }

    /// Handles `${...}`; returns the value, and where the text after it starts.
    fn braced(
        &mut self,
        template: &str,
        start: usize,
        braced: &str,
        lines: &mut LineBraces<'_>,
        depth: usize,
    ) -> Result<(String, usize), (TemplateError, usize)> {
        let body = start + 2;
        // Only as much as is shown: a hostile template has an error at every second character.
        let invalid = || {
            let shown = template.chars().take(SHOWN_CHARACTERS).collect();
            (TemplateError::Invalid(shown), body)
        };
        let name = name_of(braced);
        if name.is_empty() {
            return Err(invalid());
        }
        let after_name = body + name.len();
        if template[after_name..].starts_with('}') {
            return Ok((self.plain(name), after_name + 1));
        }
        let Some((operator, not_empty, width)) = operator_of(&template[after_name..]) else {
            return Err(invalid());
        };
        // The whole expression ends at the last brace of its line; the variable ends at the brace that closes it.
        let Some(last) = lines.last_brace(after_name + width) else {
            return Err(invalid());
        };
        let close = closing_brace(&template[start..=last]).map_or(last, |offset| start + offset);
        let argument = template.get(after_name + width..close).unwrap_or_default();
        let end = close + 1;
        let argument = self.run(argument, depth + 1).map_err(|error| (error, end))?;
        let value = (self.lookup)(name);
        let has_value = value
            .as_deref()
            .is_some_and(|value| !not_empty || !value.is_empty());
        let value = match (operator, has_value) {
            (Operator::Default | Operator::Required, true) | (Operator::Alternative, false) => {
                value.unwrap_or_default()
            }
            (Operator::Default, false) | (Operator::Alternative, true) => argument,
            (Operator::Required, false) => {
                return Err((
                    TemplateError::Required {
                        name: name.to_owned(),
                        message: argument,
                    },
                    end,
                ));
            }
        };
        Ok((value, end))
    }
}

/// Returns the variable name at the start of the text, perhaps empty.
fn name_of(text: &str) -> &str {
    let starts = text.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic());
    if !starts {
        return "";
    }
    let end = text
        .find(|c: char| c != '_' && !c.is_ascii_alphanumeric())
        .unwrap_or(text.len());
    &text[..end]
}

/// Returns what the text after a name asks for: the operator, whether empty counts as unset, and its width.
fn operator_of(text: &str) -> Option<(Operator, bool, usize)> {
    let (not_empty, sign) = match text.strip_prefix(':') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let operator = match sign.as_bytes().first()? {
        b'-' => Operator::Default,
        b'+' => Operator::Alternative,
        b'?' => Operator::Required,
        _ => return None,
    };
    Some((operator, not_empty, 1 + usize::from(not_empty)))
}

/// Finds the brace that closes the first one, by compose-go's count: the character after a `{` is not looked at.
fn closing_brace(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut open = 0i64;
    let mut position = 0;
    while position < bytes.len() {
        match bytes[position] {
            b'}' => {
                open -= 1;
                if open == 0 {
                    return Some(position);
                }
            }
            b'{' => {
                open += 1;
                position += 1;
            }
            _ => {}
        }
        position += 1;
    }
    None
}

/// Finds the last brace of a line, remembering it for the other variables of that line.
struct LineBraces<'a> {
    text: &'a str,
    known: Option<(std::ops::Range<usize>, Option<usize>)>,
}

impl<'a> LineBraces<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, known: None }
    }

    /// Returns where the last `}` at or after `from` on its line is.
    fn last_brace(&mut self, from: usize) -> Option<usize> {
        let fresh = self.known.as_ref().is_none_or(|(line, _)| !line.contains(&from));
        if fresh {
            let end = self.text[from..]
                .find('\n')
                .map_or(self.text.len(), |offset| from + offset);
            let brace = self.text[from..end].rfind('}').map(|offset| from + offset);
            self.known = Some((from..end.max(from + 1), brace));
        }
        self.known
            .as_ref()
            .and_then(|(_, brace)| *brace)
            .filter(|brace| *brace >= from)
    }
}

#[cfg(test)]
mod tests;
