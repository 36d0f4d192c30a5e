//! The engine's clock: what it said once, carried on by a monotonic clock of ours, and RFC 3339 text.
//! Knows no engine.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::spec::calendar::{SECONDS_PER_DAY, date, days, rfc3339};

/// A moment by the engine's clock. `Display` is RFC 3339 in UTC with milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::docker) struct EngineTime {
    epoch_seconds: i64,
    nanoseconds: u32,
}

impl EngineTime {
    /// A moment by whole seconds since 1970; one before is 1970.
    pub(in crate::docker) fn from_epoch_seconds(seconds: i64) -> Self {
        Self {
            epoch_seconds: seconds.clamp(0, LAST_SECOND),
            nanoseconds: 0,
        }
    }

    /// Whole seconds since 1970-01-01T00:00:00Z, rounded down.
    #[cfg(test)]
    fn epoch_seconds(self) -> i64 {
        self.epoch_seconds
    }

    /// RFC 3339 in UTC with milliseconds, such as `2026-11-29T22:12:35.441Z`.
    pub(in crate::docker) fn to_rfc3339(self) -> String {
        self.to_string()
    }

    /// Seconds since 1970 with their fraction, as the events call takes them; RFC 3339 with a fraction is refused there.
    pub(in crate::docker) fn to_event_time(self) -> String {
        format!("{}.{:09}", self.epoch_seconds, self.nanoseconds)
    }

    /// This moment and some more. Saturates at the end of what can be shown.
    pub(in crate::docker) fn plus(self, duration: Duration) -> Self {
        let nanoseconds = self.nanoseconds + duration.subsec_nanos();
        let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        let carry = i64::from(nanoseconds / 1_000_000_000);
        Self {
            epoch_seconds: self
                .epoch_seconds
                .saturating_add(seconds)
                .saturating_add(carry)
                .min(LAST_SECOND),
            nanoseconds: nanoseconds % 1_000_000_000,
        }
    }

    /// This moment less a part of a second or more. Stops at 1970.
    pub(in crate::docker) fn minus(self, duration: Duration) -> Self {
        let zero = Self {
            epoch_seconds: 0,
            nanoseconds: 0,
        };
        zero.plus(self.since(zero).saturating_sub(duration))
    }

    /// How long after another this moment is; zero when it is before it.
    pub(in crate::docker) fn since(self, earlier: Self) -> Duration {
        let nanoseconds = (i128::from(self.epoch_seconds) - i128::from(earlier.epoch_seconds))
            * 1_000_000_000
            + i128::from(self.nanoseconds)
            - i128::from(earlier.nanoseconds);
        Duration::from_nanos(u64::try_from(nanoseconds.max(0)).unwrap_or(u64::MAX))
    }

    pub(super) fn of_this_machine() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            epoch_seconds: 0,
            nanoseconds: 0,
        }
        .plus(now)
    }
}

/// 9999-12-31T23:59:59Z; RFC 3339 has four digits for the year.
const LAST_SECOND: i64 = 253_402_300_799;

impl fmt::Display for EngineTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&rfc3339(self.epoch_seconds, self.nanoseconds))
    }
}

impl FromStr for EngineTime {
    type Err = NotRfc3339;

    fn from_str(text: &str) -> Result<Self, NotRfc3339> {
        parse(text).ok_or(NotRfc3339)
    }
}

/// The text is not an RFC 3339 time.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a time as RFC 3339 writes it, such as 2026-01-31T12:00:00Z")]
pub(in crate::docker) struct NotRfc3339;

/// What the engine's clock shows, without asking it again.
///
/// The local clock in between is monotonic: setting the time of this machine changes nothing. It may stand still while
/// this machine sleeps, and then shows less than the engine's.
#[derive(Debug, Clone, Copy)]
pub(super) struct EngineClock {
    engine: EngineTime,
    local: Instant,
}

impl EngineClock {
    /// From the engine's answer, and the moments before and after the question: it was made between them.
    pub(super) fn new(engine: EngineTime, asked: Instant, answered: Instant) -> Self {
        Self {
            engine,
            local: asked + answered.saturating_duration_since(asked) / 2,
        }
    }

    /// From this machine's clock, for an engine that does not tell its own.
    pub(super) fn of_this_machine() -> Self {
        Self {
            engine: EngineTime::of_this_machine(),
            local: Instant::now(),
        }
    }

    pub(super) fn now(&self) -> EngineTime {
        self.engine.plus(self.local.elapsed())
    }
}

fn parse(text: &str) -> Option<EngineTime> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = bytes.get(from..to)?;
        digits
            .iter()
            .all(u8::is_ascii_digit)
            .then(|| text.get(from..to)?.parse().ok())?
    };
    let separators = [(4, b"-"), (7, b"-"), (10, b"Tt"), (13, b":"), (16, b":")] as [(usize, &[u8]); 5];
    if !separators
        .iter()
        .all(|(at, allowed)| bytes.get(*at).is_some_and(|byte| allowed.contains(byte)))
    {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    // 60 is a leap second; it counts as the first second of the next minute.
    if !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let day_number = days(year, month, day);
    if date(day_number) != (year, month, day) {
        return None;
    }
    let mut rest = text.get(19..)?;
    let mut nanoseconds = 0;
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return None;
        }
        let digits = &fraction[..length.min(9)];
        nanoseconds = format!("{digits:0<9}").parse().ok()?;
        rest = &fraction[length..];
    }
    let offset = match rest.as_bytes() {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let start = text.len() - 5;
            let (hours, minutes) = (number(start, start + 2)?, number(start + 3, start + 5)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let seconds = hours * 3600 + minutes * 60;
            if *sign == b'-' { -seconds } else { seconds }
        }
        _ => return None,
    };
    let seconds = day_number * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second - offset;
    Some(EngineTime {
        epoch_seconds: seconds,
        nanoseconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_shown() {
        for (text, seconds, shown) in [
            ("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00.000Z"),
            (
                "2026-11-29T22:12:35.441230496Z",
                1_795_990_355,
                "2026-11-29T22:12:35.441Z",
            ),
            (
                "2026-11-29T23:12:35.5+01:00",
                1_795_990_355,
                "2026-11-29T22:12:35.500Z",
            ),
            (
                "2026-11-29T16:42:35-05:30",
                1_795_990_355,
                "2026-11-29T22:12:35.000Z",
            ),
            ("2000-02-29T12:00:00z", 951_825_600, "2000-02-29T12:00:00.000Z"),
            ("1969-12-31t23:59:59.9Z", -1, "1969-12-31T23:59:59.900Z"),
            ("2016-12-31T23:59:60Z", 1_483_228_800, "2017-01-01T00:00:00.000Z"),
            (
                "0001-01-01T00:00:00Z",
                -62_135_596_800,
                "0001-01-01T00:00:00.000Z",
            ),
            ("9999-12-31T23:59:59Z", LAST_SECOND, "9999-12-31T23:59:59.000Z"),
            (
                "2026-01-02T03:04:05.123456789012Z",
                1_767_323_045,
                "2026-01-02T03:04:05.123Z",
            ),
        ] {
            let time: EngineTime = text.parse().unwrap_or_else(|_| panic!("{text}"));
            assert_eq!(time.epoch_seconds(), seconds, "{text}");
            assert_eq!(time.to_string(), shown, "{text}");
        }
    }

    #[test]
    fn what_is_not_a_time_is_refused() {
        for text in [
            "",
            "2026",
            "2026-11-29",
            "2026-11-29 22:12:35Z",
            "2026-11-29T22:12:35",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+0100",
            "2026-01-01T00:00:00+aa:00",
            "2026-01-01T00:00:00ZZ",
            "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:0éZ",
            "２026-01-01T00:00:00Z",
        ] {
            assert_eq!(text.parse::<EngineTime>(), Err(NotRfc3339), "{text}");
        }
    }

    #[test]
    fn every_day_of_four_centuries_is_its_own_and_follows_the_one_before() {
        let mut previous = date(days(1799, 12, 31));
        for day_number in days(1800, 1, 1)..=days(2200, 1, 1) {
            let current = date(day_number);
            assert_eq!(days(current.0, current.1, current.2), day_number);
            assert!(current > previous, "{current:?} after {previous:?}");
            previous = current;
        }
        assert_eq!(previous, (2200, 1, 1));
    }

    #[test]
    fn moments_are_added_and_compared() {
        let start: EngineTime = "2026-12-31T23:59:59.9Z".parse().unwrap();
        let later = start.plus(Duration::from_millis(200));
        assert_eq!(later.to_string(), "2027-01-01T00:00:00.100Z");
        assert_eq!(later.since(start), Duration::from_millis(200));
        assert_eq!(start.since(later), Duration::ZERO);
        assert_eq!(start.plus(Duration::MAX).epoch_seconds(), LAST_SECOND);
    }

    #[test]
    fn the_clock_goes_on_from_the_engines_answer() {
        let engine: EngineTime = "2001-01-01T00:00:00Z".parse().unwrap();
        let asked = Instant::now();
        let clock = EngineClock::new(engine, asked, asked + Duration::from_secs(2));
        // The answer was made a second after the question, which has not passed yet.
        assert_eq!(clock.now(), engine);
        let clock = EngineClock::new(engine, asked, asked);
        assert!(clock.now() >= engine);
        assert!(clock.now().since(engine) < Duration::from_secs(60));
    }
}
