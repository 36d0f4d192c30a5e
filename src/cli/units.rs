//! How durations, sizes, paths and variables are written on the command line. Pure; knows no option by name.

use std::str::FromStr;
use std::time::Duration;

/// How long something may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeLimit {
    /// Without end.
    Never,
    /// This long.
    After(Duration),
}

impl FromStr for TimeLimit {
    type Err = String;

    /// Reads `none`, a number of seconds, or parts such as `1m30s` and `500ms`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::Never);
        }
        let duration = parse_duration(text).ok_or_else(|| {
            "a duration looks like `30s`, `1m30s` or `500ms`; `none` is no limit".to_owned()
        })?;
        if duration.is_zero() {
            return Err("the duration is zero; `none` is no limit".to_owned());
        }
        Ok(Self::After(duration))
    }
}

/// Reads how long ago something was.
pub(super) fn parse_age(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "not a duration, such as 10m, 1h30m or 45s".to_owned())
}

fn parse_duration(text: &str) -> Option<Duration> {
    let (mut total, mut rest) = (Duration::ZERO, text);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after
            .find(|character: char| !character.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let factor = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            // Only a lone number may go without a unit.
            "" if number.len() == text.len() => 1.0,
            _ => return None,
        };
        let seconds: f64 = number.parse().ok()?;
        total = total.checked_add(Duration::try_from_secs_f64(seconds * factor).ok()?)?;
        rest = after;
    }
    Some(total)
}

/// A number of bytes, written as Docker does: `b`, `k`, `m`, `g` are powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ByteSize(pub(super) u64);

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_size(text).map(Self).ok_or_else(|| {
            "a size is a whole number with `b`, `k`, `m` or `g` (powers of 1024), as in `512m`".to_owned()
        })
    }
}

fn parse_size(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let digits = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    number.checked_mul(1 << shift).filter(|&bytes| bytes > 0)
}

impl ByteSize {
    /// The size in MiB. None where it is not a whole number of them.
    pub(super) fn mebibytes(self) -> Option<u64> {
        self.0.is_multiple_of(1 << 20).then_some(self.0 >> 20)
    }
}

/// A number of processor cores.
pub(super) fn parse_cpus(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|cpus: &f64| cpus.is_finite() && *cpus > 0.0)
        .ok_or_else(|| "a number of cores is over 0, as in `1` or `0.5`".to_owned())
}

/// Reads `UID:GID`, both as numbers.
pub(super) fn parse_owner(text: &str) -> Result<gym_sandbox::FileOwner, String> {
    text.split_once(':')
        .and_then(|(uid, gid)| Some(gym_sandbox::FileOwner::new(uid.parse().ok()?, gid.parse().ok()?)))
        .ok_or_else(|| "an owner is two numbers, as in `1000:1000`".to_owned())
}

/// Reads a mode in octal.
pub(super) fn parse_mode(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text.strip_prefix("0o").unwrap_or(text), 8)
        .ok()
        .filter(|&mode| mode <= 0o7777)
        .ok_or_else(|| "a mode is an octal number up to 7777, as in `0644`".to_owned())
}

/// Where something is copied from and to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Transfer {
    /// The path to read.
    pub(super) source: String,
    /// The path to write.
    pub(super) target: String,
}

impl FromStr for Transfer {
    type Err = String;

    /// Reads `SRC:DST`. A second `:` is refused: nothing says which of them divides.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some((source, target)) if !source.is_empty() && !target.is_empty() && !target.contains(':') => {
                Ok(Self {
                    source: source.to_owned(),
                    target: target.to_owned(),
                })
            }
            _ => Err("a copy is `SRC:DST`, two paths with exactly one `:` between them".to_owned()),
        }
    }
}

/// A variable with its value, or the name of one of this process's own.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Variable {
    /// The name.
    pub(super) name: String,
    /// The value. None: that of this process's variable, if it has one.
    pub(super) value: Option<String>,
}

impl std::fmt::Debug for Variable {
    /// Shows the name only: the value may be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Variable")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl FromStr for Variable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        if name.is_empty() {
            return Err(
                "a variable is `NAME=VALUE`, or `NAME` to pass on one of this process's own".to_owned(),
            );
        }
        Ok(Self {
            name: name.to_owned(),
            value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let milliseconds = |text: &str| parse_duration(text).map(|duration| duration.as_millis());
        for (text, expected) in [
            ("30s", Some(30_000)),
            ("30", Some(30_000)),
            ("1.5", Some(1_500)),
            ("500ms", Some(500)),
            ("1m30s", Some(90_000)),
            ("2h", Some(7_200_000)),
            ("0.25s", Some(250)),
            ("", None),
            ("s", None),
            ("30 s", None),
            ("1m30", None),
            ("-1s", None),
            ("1d", None),
            ("1e400h", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(milliseconds(text), expected, "{text:?}");
        }
        assert_eq!("none".parse(), Ok(TimeLimit::Never));
        assert!("0s".parse::<TimeLimit>().is_err());
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, expected) in [
            ("1", Some(1)),
            ("7b", Some(7)),
            ("2k", Some(2048)),
            ("512m", Some(512 << 20)),
            ("512M", Some(512 << 20)),
            ("512mb", Some(512 << 20)),
            ("1GiB", Some(1 << 30)),
            ("0", None),
            ("m", None),
            ("1.5g", None),
            ("1t", None),
            ("-1m", None),
            ("99999999999g", None),
        ] {
            assert_eq!(parse_size(text), expected, "{text:?}");
        }
        assert_eq!(ByteSize(3 << 20).mebibytes(), Some(3));
        assert_eq!(ByteSize((3 << 20) + 1).mebibytes(), None);
    }

    #[test]
    fn copies_have_one_colon() {
        let transfer = |source: &str, target: &str| {
            Ok(Transfer {
                source: source.into(),
                target: target.into(),
            })
        };
        assert_eq!("a:/b".parse(), transfer("a", "/b"));
        assert_eq!("./a b:/c/".parse(), transfer("./a b", "/c/"));
        for text in ["", "a", ":b", "a:", "a:b:c"] {
            assert!(text.parse::<Transfer>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn variables() {
        let variable = |name: &str, value: Option<&str>| {
            Ok(Variable {
                name: name.into(),
                value: value.map(str::to_owned),
            })
        };
        assert_eq!("A=1".parse(), variable("A", Some("1")));
        assert_eq!("A=".parse(), variable("A", Some("")));
        assert_eq!("A=b=c".parse(), variable("A", Some("b=c")));
        assert_eq!("A".parse(), variable("A", None));
        assert!("=1".parse::<Variable>().is_err());
        assert!("".parse::<Variable>().is_err());
    }

    #[test]
    fn a_debug_print_shows_no_value() {
        let variable: Variable = "TOKEN=hunter2".parse().unwrap();
        assert!(!format!("{variable:?}").contains("hunter2"));
    }
}
