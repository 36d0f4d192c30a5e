//! Durations of the configuration: seconds, whole or fractional.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

pub(in crate::docker) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| serde::de::Error::custom(format!("{seconds} is not a number of seconds")))
}

pub(super) fn optional_seconds<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    Option::<f64>::deserialize(deserializer)?
        .map(|seconds| {
            Duration::try_from_secs_f64(seconds)
                .map_err(|_| serde::de::Error::custom(format!("{seconds} is not a number of seconds")))
        })
        .transpose()
}
