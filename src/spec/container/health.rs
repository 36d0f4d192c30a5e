//! How the health of a container is checked.

use std::time::Duration;

use serde::Serialize;

/// What is run to check the health (Engine API `HealthConfig.Test`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum HealthTest {
    /// The image's test.
    #[default]
    Inherit,
    /// Nothing: the image's check is switched off.
    Disabled,
    /// A program and its arguments.
    Command(Vec<String>),
    /// A line for the container's `/bin/sh`.
    Shell(String),
}

/// A health check. What is `None` is the image's value, or else the engine's default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HealthcheckSpec {
    /// What is run.
    pub test: HealthTest,
    /// Time between two checks. The engine's default is 30 s, the least 1 ms.
    pub interval: Option<Duration>,
    /// How long one check may take. The engine's default is 30 s.
    pub timeout: Option<Duration>,
    /// How many failures in a row make it unhealthy. The engine's default is 3.
    pub retries: Option<u32>,
    /// Time after the start in which failures do not count. The engine's default is 0 s.
    pub start_period: Option<Duration>,
    /// Time between two checks within the start period. API 1.44.
    pub start_interval: Option<Duration>,
}

/// What a run of a health check has come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HealthProbe {
    /// Its exit code; none when it did not end in time, or could not be run.
    pub exit_code: Option<i64>,
    /// What it printed, on both streams, or why it has no exit code. The engine keeps the first 4 KiB.
    pub output: String,
}

impl HealthProbe {
    /// Describes one.
    pub fn new(exit_code: Option<i64>, output: impl Into<String>) -> Self {
        Self {
            exit_code,
            output: output.into(),
        }
    }
}
