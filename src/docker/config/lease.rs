//! How long this process counts as alive for others, and how patient it is with them.

use std::time::Duration;

use serde::Deserialize;

use super::seconds;

/// Leases and sweeps (`docs/leaks.md`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LeaseConfig {
    /// How long this process counts as alive after it was last heard of, where its death can't be seen otherwise. A
    /// sandbox whose main process is the resident agent ends by itself so long, and `grace` on top, after the last word
    /// of any client. Default 300 s; at least twice the renewal.
    #[serde(rename = "length_s", deserialize_with = "seconds")]
    pub length: Duration,
    /// How often the lease is renewed. Default 60 s; from 0.1 s to an hour.
    #[serde(rename = "renewal_s", deserialize_with = "seconds")]
    pub renewal: Duration,
    /// How long a sweep waits beyond the end of somebody else's lease. Default 60 s.
    #[serde(rename = "grace_s", deserialize_with = "seconds")]
    pub grace: Duration,
    /// When the provider sweeps by itself. Default `never`.
    pub sweep: SweepWhen,
}

/// When a provider sweeps by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SweepWhen {
    /// Only when it is asked to.
    #[default]
    Never,
    /// In the background once it has reached the engine, without a second look.
    Connect,
}

impl Default for LeaseConfig {
    fn default() -> Self {
        Self {
            length: Duration::from_secs(300),
            renewal: Duration::from_secs(60),
            grace: Duration::from_secs(60),
            sweep: SweepWhen::default(),
        }
    }
}

/// The longest renewal: a sweep has to wait as long for its second look.
pub(in crate::docker) const LONGEST_RENEWAL: Duration = Duration::from_secs(3600);

const SHORTEST_RENEWAL: Duration = Duration::from_millis(100);

impl LeaseConfig {
    /// The names of the settings.
    pub(super) const KEYS: [&'static str; 4] = ["length_s", "renewal_s", "grace_s", "sweep"];

    /// How long a sandbox with an agent goes on after it was last heard of its owner: no shorter than any sweep that is
    /// as patient as this process leaves it alone.
    pub(in crate::docker) fn without_client(&self) -> Duration {
        self.length.saturating_add(self.grace)
    }

    pub(super) fn checks(&self) -> [(bool, &'static str); 2] {
        [
            (
                (SHORTEST_RENEWAL..=LONGEST_RENEWAL).contains(&self.renewal),
                "lease.renewal_s must be from 0.1 to 3600",
            ),
            (
                self.length >= self.renewal.saturating_mul(2),
                "lease.length_s must be at least twice lease.renewal_s",
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::DockerConfig;
    use super::*;
    use crate::provider::config_from_yaml;
    use crate::spec::Value;

    fn read(text: &str) -> crate::error::Result<DockerConfig> {
        let block = config_from_yaml(&format!("docker: {{lease: {text}}}")).unwrap();
        let Value::Object(settings) = &block["docker"] else {
            panic!("no map: {block}");
        };
        DockerConfig::from_settings(settings)
    }

    #[test]
    fn c19_leases_are_read_and_checked() {
        let lease = read("{length_s: 9, renewal_s: 1.5, grace_s: 0, sweep: connect}")
            .unwrap()
            .lease;
        assert_eq!(lease.length, Duration::from_secs(9));
        assert_eq!(lease.renewal, Duration::from_millis(1500));
        assert_eq!((lease.grace, lease.sweep), (Duration::ZERO, SweepWhen::Connect));
        assert_eq!(read("null").unwrap().lease, LeaseConfig::default());
        for (bad, named) in [
            ("{length_s: 60}", "lease.length_s"),
            ("{renewal_s: 0}", "lease.renewal_s"),
            ("{renewal_s: 4000, length_s: 9000}", "lease.renewal_s"),
            ("{sweep: always}", "always"),
            ("{lenght_s: 60}", "lenght_s"),
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.report().to_string().contains(named), "{bad}: {error:?}");
        }
    }
}
