//! Durations and byte sizes as Compose writes them.
//!
//! Pure text to number; what a key accepts is decided elsewhere.

use std::fmt;
use std::time::Duration as StdDuration;

use super::gofmt;
use crate::spec::units::parse_duration;
pub(crate) use crate::spec::units::{parse_bytes, parse_float};

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
            ("1_000", 1_000),
            ("1_0.5_0k", 10_752),
        ] {
            assert_eq!(parse_bytes(text).unwrap(), bytes, "{text}");
        }
        for text in [
            "", "m", "-1", "-1m", "1x", "1bb", "1kbb", "1ki", "1  g", " ", "1e", "inf", "nan", "1mibb",
            "1__0", "_1", "1_", "1_.5",
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
