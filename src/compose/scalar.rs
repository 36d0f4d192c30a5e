//! What an unquoted YAML scalar means, by go-yaml v3's rules rather than YAML 1.1's or 1.2's.
//!
//! Booleans are only true and false, `010` is eight, `1_000` a thousand, dates are dates. Knows nothing of the parser.

use super::node::Value;

/// An explicit tag on a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarTag<'a> {
    /// No tag.
    None,
    /// A tag of the YAML core namespace: `str` for `!!str`.
    Core(&'a str),
    /// Any other tag; the text is then taken as it stands.
    Other,
}

/// Resolves a scalar; `plain` tells that it is not quoted and not a block.
///
/// # Errors
///
/// The text cannot be what its tag says.
pub(crate) fn resolve(text: &str, plain: bool, tag: ScalarTag<'_>) -> Result<Value, String> {
    match tag {
        ScalarTag::Other | ScalarTag::Core("str") => Ok(Value::Str(text.to_owned())),
        ScalarTag::Core("binary") => base64(text)
            .map(Value::Str)
            .ok_or_else(|| "!!binary value contains invalid base64 data".to_owned()),
        ScalarTag::None if !plain => Ok(Value::Str(text.to_owned())),
        ScalarTag::None => Ok(resolve_plain(text, true)),
        ScalarTag::Core(name) => {
            let value = resolve_plain(text, name == "timestamp");
            let fits = match (name, &value) {
                ("null", Value::Null)
                | ("bool", Value::Bool(_))
                | ("int", Value::Int(_) | Value::Uint(_))
                | ("float", Value::Float(_))
                | ("timestamp", Value::Time(_)) => true,
                #[expect(clippy::cast_precision_loss, reason = "go-yaml converts the same way")]
                ("float", Value::Int(number)) => return Ok(Value::Float(*number as f64)),
                ("null" | "bool" | "int" | "float" | "timestamp", _) => false,
                _ => return Ok(Value::Str(text.to_owned())),
            };
            if fits {
                Ok(value)
            } else {
                Err(format!("cannot read `{text}` as !!{name}"))
            }
        }
    }
}

/// Reads padded base64 that holds UTF-8 text; line breaks in it do not count.
fn base64(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let (mut bits, mut held, mut padding) = (0u32, 0u32, 0usize);
    for byte in text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')) {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                padding += 1;
                continue;
            }
            _ => return None,
        };
        if padding > 0 {
            return None;
        }
        held = held << 6 | u32::from(digit);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits & 0xff).unwrap_or_default());
            held &= (1 << bits) - 1;
        }
    }
    let complete = matches!((bits, padding), (0, 0) | (4, 2) | (2, 1));
    if complete {
        String::from_utf8(bytes).ok()
    } else {
        None
    }
}

fn resolve_plain(text: &str, with_dates: bool) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Value::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Value::Float(f64::INFINITY);
        }
        "-.inf" | "-.Inf" | "-.INF" => return Value::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let number = match text.as_bytes()[0] {
        b'.' => finite(text),
        b'+' | b'-' | b'0'..=b'9' => {
            if with_dates && let Some(printed) = timestamp(text) {
                return Value::Time(printed);
            }
            let digits = text.replace('_', "");
            integer(&digits).or_else(|| {
                if is_yaml_float(&digits) {
                    finite(&digits)
                } else {
                    None
                }
            })
        }
        _ => None,
    };
    number.unwrap_or_else(|| Value::Str(text.to_owned()))
}

/// Reads a decimal float; numbers beyond 64-bit floats are no floats.
fn finite(text: &str) -> Option<Value> {
    if !text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'))
    {
        return None;
    }
    text.parse::<f64>()
        .ok()
        .filter(|value| value.is_finite())
        .map(Value::Float)
}

/// Reads an integer with Go's base prefixes: `0x`, `0b`, `0o`, and a leading 0 for octal.
fn integer(text: &str) -> Option<Value> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = digits.get(..2).map(str::to_ascii_lowercase);
    let (radix, digits) = match lower.as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some(_) if digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        // The most negative integer has no positive twin.
        return 0i64.checked_sub_unsigned(magnitude).map(Value::Int);
    }
    match i64::try_from(magnitude) {
        Ok(value) => Some(Value::Int(value)),
        // Go reads a large unsigned integer only without a sign.
        Err(_) if text.starts_with('+') => None,
        Err(_) => Some(Value::Uint(magnitude)),
    }
}

/// Tells whether text is `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn is_yaml_float(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (
            mantissa,
            Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)),
        ),
        None => (text, None),
    };
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && all_digits(fraction),
        Some((whole, fraction)) => all_digits(whole) && all_digits(fraction),
        None => !mantissa.is_empty() && all_digits(mantissa),
    };
    mantissa_fits && exponent.is_none_or(|exponent| !exponent.is_empty() && all_digits(exponent))
}

/// Reads a date or time as go-yaml does and prints it as Go would.
fn timestamp(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    if bytes.len() < 6 || !bytes[..4].iter().all(u8::is_ascii_digit) || bytes[4] != b'-' {
        return None;
    }
    let year: u32 = text[..4].parse().ok()?;
    let (month, rest) = one_or_two_digits(&text[5..])?;
    let (day, rest) = one_or_two_digits(rest.strip_prefix('-')?)?;
    if !(1..=12).contains(&month) || day < 1 || day > days_of(year, month) {
        return None;
    }
    if rest.is_empty() {
        return Some(format!("{year:04}-{month:02}-{day:02} 00:00:00 +0000 UTC"));
    }
    let with_zone = rest.starts_with(['T', 't']);
    let (hour, rest) = one_or_two_digits(rest.strip_prefix(['T', 't', ' '])?)?;
    let (minute, rest) = one_or_two_digits(rest.strip_prefix(':')?)?;
    let (second, mut rest) = one_or_two_digits(rest.strip_prefix(':')?)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut fraction = "";
    if let Some(tail) = rest.strip_prefix('.') {
        let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        if end == 0 {
            return None;
        }
        fraction = tail[..end].trim_end_matches('0');
        rest = &tail[end..];
    }
    let zone = match (with_zone, rest) {
        (false, "") | (true, "Z") => "+0000 UTC".to_owned(),
        (true, offset) => numeric_zone(offset)?,
        (false, _) => return None,
    };
    let dot = if fraction.is_empty() { "" } else { "." };
    Some(format!(
        "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{dot}{fraction} {zone}"
    ))
}

fn numeric_zone(offset: &str) -> Option<String> {
    let bytes = offset.as_bytes();
    let shape = bytes.len() == 6
        && matches!(bytes[0], b'+' | b'-')
        && bytes[3] == b':'
        && [1, 2, 4, 5]
            .iter()
            .all(|position| bytes[*position].is_ascii_digit());
    let digits = shape.then(|| format!("{}{}{}", &offset[..1], &offset[1..3], &offset[4..]))?;
    Some(format!("{digits} {digits}"))
}

fn one_or_two_digits(text: &str) -> Option<(u32, &str)> {
    let end = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let value = text[..end].parse().ok()?;
    Some((value, &text[end..]))
}

fn days_of(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::gofmt;

    fn shown(value: &Value) -> String {
        match value {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => format!("bool {value}"),
            Value::Int(value) => format!("int {value}"),
            Value::Uint(value) => format!("uint {value}"),
            Value::Float(value) => format!("float {}", gofmt::float64(*value)),
            Value::Str(text) => format!("str {text}"),
            Value::Time(text) => format!("time {text}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn plain_scalars_resolve_as_go_yaml_does() {
        for (text, expected) in [
            ("", "null"),
            ("~", "null"),
            ("yes", "str yes"),
            ("on", "str on"),
            ("y", "str y"),
            ("True", "bool true"),
            ("tRue", "str tRue"),
            ("010", "int 8"),
            ("0o10", "int 8"),
            ("0O10", "int 8"),
            ("-010", "int -8"),
            ("08", "float 8"),
            ("0x1F", "int 31"),
            ("0b11", "int 3"),
            ("1_000", "int 1000"),
            ("_1", "str _1"),
            ("+5", "int 5"),
            ("-0", "int 0"),
            ("1.0", "float 1"),
            ("1.50", "float 1.5"),
            ("1e3", "float 1000"),
            (".5", "float 0.5"),
            ("5.", "float 5"),
            (".", "str ."),
            ("1e400", "str 1e400"),
            ("12345678901234567890", "uint 12345678901234567890"),
            ("123456789012345678901", "float 1.2345678901234568e+20"),
            ("-9223372036854775808", "int -9223372036854775808"),
            ("12:30:45", "str 12:30:45"),
            ("22:22", "str 22:22"),
            ("1.2.3", "str 1.2.3"),
            (".inf", "float +Inf"),
            ("0xZZ", "str 0xZZ"),
            ("1e", "str 1e"),
            ("-", "str -"),
            ("<<", "str <<"),
            ("2024-01-01", "time 2024-01-01 00:00:00 +0000 UTC"),
            ("2024-1-1", "time 2024-01-01 00:00:00 +0000 UTC"),
            ("2024-02-30", "str 2024-02-30"),
            ("2024-13-01", "str 2024-13-01"),
            (
                "2001-12-14t21:59:43.10-05:00",
                "time 2001-12-14 21:59:43.1 -0500 -0500",
            ),
            ("2001-12-14 21:59:43", "time 2001-12-14 21:59:43 +0000 UTC"),
            ("2001-12-14 21:59:43 -5", "str 2001-12-14 21:59:43 -5"),
        ] {
            assert_eq!(
                shown(&resolve(text, true, ScalarTag::None).unwrap()),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn tags_win_over_the_look_of_the_text() {
        assert_eq!(
            shown(&resolve("1", true, ScalarTag::Core("str")).unwrap()),
            "str 1"
        );
        assert_eq!(
            shown(&resolve("1", false, ScalarTag::Core("int")).unwrap()),
            "int 1"
        );
        assert_eq!(
            shown(&resolve("1", true, ScalarTag::Core("float")).unwrap()),
            "float 1"
        );
        assert_eq!(shown(&resolve("010", true, ScalarTag::Other).unwrap()), "str 010");
        assert_eq!(
            shown(&resolve("true", false, ScalarTag::None).unwrap()),
            "str true"
        );
        assert_eq!(
            shown(&resolve("aGk=", true, ScalarTag::Core("binary")).unwrap()),
            "str hi"
        );
        assert!(resolve("aGk", true, ScalarTag::Core("binary")).is_err());
        assert!(resolve("yes", true, ScalarTag::Core("bool")).is_err());
    }
}
