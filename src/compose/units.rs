//! Durations and byte sizes as Compose writes them.
//!
//! Pure text to number; what a key accepts is decided elsewhere.

use std::fmt;
use std::time::Duration as StdDuration;

use super::gofmt;

/// A time span in nanoseconds, written `1h30m`, `1.5s`, `2d`; printed as Go prints it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComposeDuration(i64);

impl ComposeDuration {
    /// Makes a duration of nanoseconds.
    pub const fn from_nanos(nanoseconds: i64) -> Self {
        Self(nanoseconds)
    }

    /// Returns the nanoseconds; negative only for a negative duration.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Returns the duration; none when it is negative.
    pub fn to_std(self) -> Option<StdDuration> {
        u64::try_from(self.0).ok().map(StdDuration::from_nanos)
    }

    /// Reads a duration: numbers with the units `ns us µs ms s m h d w`, no blanks.
    ///
    /// # Errors
    ///
    /// The text is no duration; the message says why.
    ///
    /// # Examples
    ///
    /// ```
    /// use gym_sandbox::compose::ComposeDuration;
    /// assert_eq!(ComposeDuration::parse("1m30s")?.to_string(), "1m30s");
    /// assert_eq!(ComposeDuration::parse("1d2h")?.to_string(), "26h0m0s");
    /// assert!(ComposeDuration::parse("90").is_err());
    /// # Ok::<(), String>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        parse_duration(text).map(Self)
    }
}

impl fmt::Display for ComposeDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&gofmt::duration(self.0))
    }
}

const DURATION_UNITS: &[(&str, i64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("w", 604_800_000_000_000),
];

fn parse_duration(text: &str) -> Result<i64, String> {
    let invalid = || format!("invalid duration \"{text}\"");
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        if !rest.starts_with(is_number) {
            return Err(invalid());
        }
        let whole_end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let whole: i64 = if whole_end == 0 {
            0
        } else {
            rest[..whole_end].parse().map_err(|_| invalid())?
        };
        let mut fraction = "";
        let mut end = whole_end;
        if let Some(tail) = rest[whole_end..].strip_prefix('.') {
            let digits = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
            fraction = &tail[..digits];
            end += 1 + digits;
        }
        if whole_end == 0 && fraction.is_empty() {
            return Err(invalid());
        }
        rest = &rest[end..];
        let unit_end = rest.find(is_number).unwrap_or(rest.len());
        if unit_end == 0 {
            return Err(format!("missing unit in duration \"{text}\""));
        }
        let unit = &rest[..unit_end];
        rest = &rest[unit_end..];
        let (_, nanoseconds) = DURATION_UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(|| format!("unknown unit \"{unit}\" in duration \"{text}\""))?;
        let part = whole.checked_mul(*nanoseconds).ok_or_else(invalid)?;
        let part = part
            .checked_add(fraction_of(fraction, *nanoseconds))
            .ok_or_else(invalid)?;
        total = total.checked_add(part).ok_or_else(invalid)?;
    }
    Ok(if negative { -total } else { total })
}

/// Returns `0.fraction * unit` in nanoseconds, rounded down.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "the reference computes fractions in floats, and the result must be the same"
)]
fn fraction_of(fraction: &str, unit: i64) -> i64 {
    let digits = &fraction[..fraction.len().min(18)];
    let Ok(value) = digits.parse::<i64>() else {
        return 0;
    };
    let scale = 10f64.powi(i32::try_from(digits.len()).unwrap_or(18));
    (value as f64 * (unit as f64 / scale)) as i64
}

/// Reads a byte size: `512`, `64k`, `1.5g`, `1 GB`, `2MiB`; every unit is a power of 1024.
///
/// # Errors
///
/// The text is no byte size; the message says why.
pub(crate) fn parse_bytes(text: &str) -> Result<i64, String> {
    let invalid = || format!("invalid size: '{text}'");
    let split = text
        .rfind(|c: char| c.is_ascii_digit() || c == '.' || c == ' ')
        .ok_or_else(invalid)?;
    let number_end = if text.as_bytes()[split] == b' ' {
        split
    } else {
        split + 1
    };
    let number = &text[..number_end];
    let suffix = text[split + 1..].to_ascii_lowercase();
    let plausible = number
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    let size: f64 = number
        .parse()
        .ok()
        .filter(|_| plausible && !number.is_empty())
        .ok_or_else(invalid)?;
    if size < 0.0 {
        return Err(invalid());
    }
    let unit = match suffix.as_bytes() {
        [] | [b'b'] => 0,
        [unit] | [unit, b'b'] | [unit, b'i', b'b'] => {
            1 + b"kmgtp"
                .iter()
                .position(|known| known == unit)
                .ok_or_else(|| format!("invalid suffix: '{suffix}'"))?
        }
        _ => return Err(format!("invalid suffix: '{suffix}'")),
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "sizes round down, and beyond i64 they saturate"
    )]
    let bytes = (size * 1024f64.powi(i32::try_from(unit).unwrap_or(0))) as i64;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations() {
        for (text, printed) in [
            ("1m30s", "1m30s"),
            ("1.5s", "1.5s"),
            ("1h30m10s500ms", "1h30m10.5s"),
            ("1d2h", "26h0m0s"),
            ("1w", "168h0m0s"),
            ("0", "0s"),
            ("100us", "100µs"),
            (".5m", "30s"),
            ("1.h", "1h0m0s"),
            ("+3s", "3s"),
            ("-3s", "-3s"),
        ] {
            assert_eq!(
                ComposeDuration::parse(text).unwrap().to_string(),
                printed,
                "{text}"
            );
        }
        assert_eq!(
            ComposeDuration::parse("90").unwrap_err(),
            "missing unit in duration \"90\""
        );
        for text in ["", "s", "1 s", "1x", ".s", "1h 2m", "9999999999999h", "-", "1e3s"] {
            assert!(ComposeDuration::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn byte_sizes() {
        for (text, bytes) in [
            ("512", 512),
            ("512m", 536_870_912),
            ("64MB", 67_108_864),
            ("1gib", 1_073_741_824),
            ("1.5g", 1_610_612_736),
            ("1 GB", 1_073_741_824),
            ("0.5g", 536_870_912),
            ("10b", 10),
            ("1.5", 1),
            ("2T", 2_199_023_255_552),
            ("1p", 1_125_899_906_842_624),
        ] {
            assert_eq!(parse_bytes(text).unwrap(), bytes, "{text}");
        }
        for text in [
            "", "m", "-1", "-1m", "1x", "1bb", "1kbb", "1ki", "1  g", " ", "1e", "inf", "nan", "1mibb",
        ] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn reading_a_printed_duration_gives_it_back(nanoseconds in 0i64..i64::MAX / 4) {
            let duration = ComposeDuration::from_nanos(nanoseconds);
            let again = ComposeDuration::parse(&duration.to_string()).unwrap();
            // The reference computes fractions in floats: the last digits of nine may be lost.
            prop_assert!((again.as_nanos() - nanoseconds).abs() <= 1);
        }

        #[test]
        fn never_panic(text in "[0-9.a-z µ+-]{0,20}") {
            let _ = ComposeDuration::parse(&text);
            let _ = parse_bytes(&text);
        }
    }
}
