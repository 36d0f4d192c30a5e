//! Whose an object of the engine is: labels that any later client can read (contract D17).

mod file;

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;
use std::time::Duration;

use crate::error::{Error, Operation, Result};
use crate::spec::SandboxFilter;

use super::config::LONGEST_RENEWAL;
use super::connect::EngineTime;

pub(super) use file::{Presence, Proof, forget, notices, proof_of, publish};

/// Every object of ours carries this label.
pub(super) const LABEL: &str = "gym-sandbox";

/// What the objects of ours are called, as the label `gym-sandbox.kind` has it.
pub(super) mod kind {
    /// A sandbox.
    pub(in crate::docker) const SANDBOX: &str = "sandbox";
    /// The empty volume whose name and labels say until when its owner lives.
    pub(in crate::docker) const LEASE: &str = "lease";
    /// Something that belongs to no single owner.
    pub(in crate::docker) const SHARED: &str = "shared";
}

/// The owner: one id per process. Its first part names the folder of owner files that can prove its death. The run:
/// `GYM_SANDBOX_RUN` where the caller sets it, else the owner, so that all processes of one run can be found together.
pub(super) struct Owner {
    pub(super) id: String,
    pub(super) run: String,
}

pub(super) fn owner() -> &'static Owner {
    static OWNER: OnceLock<Owner> = OnceLock::new();
    OWNER.get_or_init(|| {
        let id = file::new_owner_id();
        let run = std::env::var("GYM_SANDBOX_RUN")
            .ok()
            .filter(|run| !run.trim().is_empty())
            .unwrap_or_else(|| id.clone());
        Owner { id, run }
    })
}

/// What the labels of a new object say. All times are the engine's.
#[derive(Debug, Clone)]
pub(super) struct Stamp<'a> {
    pub(super) kind: &'a str,
    pub(super) created: EngineTime,
    /// The end of the ttl.
    pub(super) expires: Option<EngineTime>,
    /// Until when the owner counts as alive whatever is seen of it.
    pub(super) lease: EngineTime,
    /// How often the owner renews its lease: whoever misses it has to wait as long until it looks again.
    pub(super) renewal: Duration,
    pub(super) project: Option<&'a str>,
    pub(super) keep: Keep,
}

/// Whether an object outlives its owner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Keep {
    /// It is swept when its owner is dead.
    #[default]
    No,
    /// It stays until its ttl ends or it is removed by name.
    Yes,
}

impl Stamp<'_> {
    /// The labels of an object of this process (contract D17).
    pub(super) fn labels(&self) -> HashMap<String, String> {
        let owner = owner();
        let mut labels = HashMap::from([(LABEL.to_owned(), "1".to_owned())]);
        let mut put = |suffix: &str, value: String| {
            labels.insert(format!("{LABEL}.{suffix}"), value);
        };
        put("owner", owner.id.clone());
        put("run", owner.run.clone());
        put("created", self.created.to_rfc3339());
        put("lease", self.lease.to_rfc3339());
        put("renewal", format!("{:.3}", self.renewal.as_secs_f64()));
        put("kind", self.kind.to_owned());
        if let Some(expires) = self.expires {
            put("expires", expires.to_rfc3339());
        }
        if let Some(project) = self.project {
            put("project", project.to_owned());
        }
        if self.keep == Keep::Yes {
            put("kept", "1".to_owned());
        }
        labels
    }
}

/// What the labels of an object say. Labels that can't be read count as absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) owner: Option<String>,
    pub(super) run: Option<String>,
    pub(super) project: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) created: Option<EngineTime>,
    pub(super) expires: Option<EngineTime>,
    pub(super) lease: Option<EngineTime>,
    pub(super) renewal: Option<Duration>,
    pub(super) keep: Keep,
    /// The sandboxes of other processes that the owner of this lease has taken over.
    pub(super) holds: Vec<String>,
}

impl Marks {
    pub(super) fn read(labels: &HashMap<String, String>) -> Self {
        let text = |suffix: &str| labels.get(&format!("{LABEL}.{suffix}")).cloned();
        let time = |suffix: &str| text(suffix)?.parse::<EngineTime>().ok();
        let renewal = text("renewal")
            .and_then(|seconds| seconds.parse().ok())
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            // Somebody else's label does not make a sweep wait for ever.
            .filter(|renewal| *renewal <= LONGEST_RENEWAL);
        Self {
            owner: text("owner"),
            run: text("run"),
            project: text("project"),
            kind: text("kind"),
            created: time("created"),
            expires: time("expires"),
            lease: time("lease"),
            renewal,
            keep: if text("kept").is_some() {
                Keep::Yes
            } else {
                Keep::No
            },
            holds: text("holds")
                .map(|names| names.split(',').map(str::to_owned).collect())
                .unwrap_or_default(),
        }
    }
}

/// Says whether an object with these labels is one that a filter asks for.
pub(super) fn matches(filter: &SandboxFilter, labels: &HashMap<String, String>) -> bool {
    let has = |key: &str, value: &String| labels.get(key) == Some(value);
    let ours = [
        ("owner", &filter.owner),
        ("run", &filter.run),
        ("project", &filter.project),
    ];
    let asked = ours
        .into_iter()
        .filter_map(|(suffix, value)| Some((format!("{LABEL}.{suffix}"), value.as_ref()?)));
    asked.into_iter().all(|(key, value)| has(&key, value))
        && filter.labels.iter().all(|(key, value)| has(key, value))
}

/// Refuses labels of the caller that would pass for ours.
pub(super) fn check_metadata(metadata: &BTreeMap<String, String>) -> Result<()> {
    match metadata.keys().find(|key| key.starts_with(LABEL)) {
        Some(key) => Err(Error::invalid(
            Operation::Create,
            format!("the metadata key `{}` is reserved", key.escape_debug()),
        )
        .with_hint("keys that start with `gym-sandbox` are the library's own")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> EngineTime {
        text.parse().unwrap()
    }

    #[test]
    fn d17_labels_are_read_as_they_were_written() {
        let created = time("2026-01-01T00:00:00Z");
        let stamp = Stamp {
            kind: kind::SANDBOX,
            created,
            expires: Some(created.plus(Duration::from_secs(90))),
            lease: created.plus(Duration::from_secs(300)),
            renewal: Duration::from_millis(1500),
            project: Some("web"),
            keep: Keep::Yes,
        };
        let labels = stamp.labels();
        for (key, value) in [
            ("gym-sandbox", "1"),
            ("gym-sandbox.created", "2026-01-01T00:00:00.000Z"),
            ("gym-sandbox.expires", "2026-01-01T00:01:30.000Z"),
            ("gym-sandbox.lease", "2026-01-01T00:05:00.000Z"),
            ("gym-sandbox.renewal", "1.500"),
            ("gym-sandbox.project", "web"),
            ("gym-sandbox.kind", "sandbox"),
            ("gym-sandbox.kept", "1"),
        ] {
            assert_eq!(labels.get(key).map(String::as_str), Some(value), "{key}");
        }
        let marks = Marks::read(&labels);
        assert_eq!(marks.owner.as_deref(), Some(owner().id.as_str()));
        assert_eq!(marks.expires, stamp.expires);
        assert_eq!(marks.lease, Some(stamp.lease));
        assert_eq!(marks.renewal, Some(stamp.renewal));
        assert_eq!((marks.project.as_deref(), marks.keep), (Some("web"), Keep::Yes));
    }

    #[test]
    fn labels_that_cannot_be_read_count_as_absent() {
        let labels = HashMap::from(
            [
                ("gym-sandbox.lease", "soon"),
                ("gym-sandbox.renewal", "-1"),
                ("gym-sandbox.expires", ""),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned())),
        );
        assert_eq!(Marks::read(&labels), Marks::default());
    }

    #[test]
    fn everything_that_a_filter_names_must_hold() {
        let labels = HashMap::from(
            [("gym-sandbox.run", "r"), ("gym-sandbox.project", "p"), ("k", "v")]
                .map(|(key, value)| (key.to_owned(), value.to_owned())),
        );
        let any = SandboxFilter::default();
        for (filter, holds) in [
            (any.clone(), true),
            (any.clone().with_run("r"), true),
            (
                any.clone().with_run("r").with_project("p").with_label("k", "v"),
                true,
            ),
            (any.clone().with_run("r").with_project("q"), false),
            (any.clone().with_owner("r"), false),
            (any.clone().with_label("k", "w"), false),
            (any.with_label("l", "v"), false),
        ] {
            assert_eq!(matches(&filter, &labels), holds, "{filter:?}");
        }
    }
}
