//! Durations and byte sizes as Compose files and the docker command write them. Pure text to number.

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

/// Reads a duration in nanoseconds: numbers with the units `ns us µs ms s m h d w`, no blanks.
///
/// # Errors
///
/// The text is no duration; the message says why.
pub(crate) fn parse_duration(text: &str) -> Result<i64, String> {
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

/// Reads a float as Go's `ParseFloat` does, underscores between digits included, without its hexadecimal forms.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let bytes = text.as_bytes();
    let separates = |at: usize| at > 0 && is_digit(bytes.get(at - 1)) && is_digit(bytes.get(at + 1));
    if !text.match_indices('_').all(|(at, _)| separates(at)) {
        return None;
    }
    let text = text.replace('_', "");
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    text.parse::<f64>()
        .ok()
        .filter(|value| plain && value.is_finite())
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
    let size = parse_float(number).ok_or_else(invalid)?;
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
