//! Go's way of printing numbers and times, which docker compose's output shows.
//!
//! Knows nothing about YAML or Compose.

/// Prints a float as Go's `%v` does: shortest digits, exponent form below 1e-4 and from 1e6 on.
pub(crate) fn float64(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    shape(&format!("{value:e}"))
}

/// Prints a 32-bit float as Go's `%v` does.
pub(crate) fn float32(value: f32) -> String {
    if value.is_nan() || value.is_infinite() {
        return float64(f64::from(value));
    }
    shape(&format!("{value:e}"))
}

/// Turns Rust's shortest exponent form (`1.5e-7`) into Go's `%v` form (`1.5e-07`, or plain digits).
fn shape(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa
        .strip_prefix('-')
        .map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    if digits == "0" {
        return format!("{sign}0");
    }
    if !(-4..6).contains(&exponent) {
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{mantissa}e{exponent_sign}{:02}", exponent.unsigned_abs());
    }
    let body = if exponent < 0 {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
        format!("0.{zeros}{digits}")
    } else {
        let whole = usize::try_from(exponent).unwrap_or(0) + 1;
        if digits.len() <= whole {
            format!("{digits}{}", "0".repeat(whole - digits.len()))
        } else {
            format!("{}.{}", &digits[..whole], &digits[whole..])
        }
    };
    format!("{sign}{body}")
}

/// Rewrites a time printed by Go's `%v` the way Go's JSON writes it: `2024-01-01T00:00:00Z`.
pub(crate) fn rfc3339(printed: &str) -> String {
    let mut parts = printed.split(' ');
    let (date, time) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let zone = match parts.next().unwrap_or_default() {
        "+0000" => "Z".to_owned(),
        zone if zone.len() == 5 => format!("{}:{}", &zone[..3], &zone[3..]),
        zone => zone.to_owned(),
    };
    format!("{date}T{time}{zone}")
}

/// Prints nanoseconds as Go's `time.Duration` does: `1m30s`, `1.5s`, `500ms`, `26h0m0s`.
pub(crate) fn duration(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let total = nanoseconds.unsigned_abs();
    if total == 0 {
        return "0s".to_owned();
    }
    if total < 1_000_000_000 {
        let (unit, per) = match total {
            0..1_000 => ("ns", 1),
            1_000..1_000_000 => ("µs", 1_000),
            _ => ("ms", 1_000_000),
        };
        return format!("{sign}{}{unit}", fraction(total, per));
    }
    let seconds = fraction(total % 60_000_000_000, 1_000_000_000);
    let minutes = total / 60_000_000_000;
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

/// Prints `value / per` without trailing zeros.
fn fraction(value: u64, per: u64) -> String {
    let width = per.ilog10() as usize;
    let (whole, rest) = (value / per, value % per);
    if rest == 0 {
        return whole.to_string();
    }
    let digits = format!("{rest:0width$}");
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_go_prints_them() {
        for (value, text) in [
            (1.0, "1"),
            (1.5, "1.5"),
            (1000.0, "1000"),
            (0.1, "0.1"),
            (999_999.5, "999999.5"),
            (1e6, "1e+06"),
            (123_456_789.25, "1.2345678925e+08"),
            (1e21, "1e+21"),
            (1.25e22, "1.25e+22"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5e-7, "-2.5e-07"),
            (0.0, "0"),
            (-0.0, "-0"),
            (f64::INFINITY, "+Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(float64(value), text);
        }
        assert_eq!(float32(0.1), "0.1");
        assert_eq!(float32(0.25), "0.25");
    }

    #[test]
    fn durations_print_as_go_prints_them() {
        for (value, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5µs"),
            (500_000_000, "500ms"),
            (1_500_000_000, "1.5s"),
            (90_000_000_000, "1m30s"),
            (7_200_000_000_000, "2h0m0s"),
            (93_600_000_000_000, "26h0m0s"),
            (-1_000_000_000, "-1s"),
        ] {
            assert_eq!(duration(value), text);
        }
    }
}
