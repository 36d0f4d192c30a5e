//! Dates and RFC 3339 text. The few lines of calendar are here because no crate of the tree has them.
//! Asks no clock.

pub(crate) const SECONDS_PER_DAY: i64 = 86_400;

/// A moment, in seconds since 1970 and nanoseconds, as RFC 3339 in UTC with milliseconds.
pub(crate) fn rfc3339(epoch_seconds: i64, nanoseconds: u32) -> String {
    let (year, month, day) = date(epoch_seconds.div_euclid(SECONDS_PER_DAY));
    let second = epoch_seconds.rem_euclid(SECONDS_PER_DAY);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
        nanoseconds / 1_000_000
    )
}

/// The number of a day in the proleptic Gregorian calendar, 0 for 1970-01-01. Years start in March here, so that the
/// leap day is the last of its year, and are counted in eras of 400.
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The inverse of [`days`].
pub(crate) fn date(day_number: i64) -> (i64, i64, i64) {
    let shifted = day_number + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}
