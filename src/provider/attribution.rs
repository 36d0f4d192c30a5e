//! Whose work a sandbox is: team, user, workload and run, from the caller, the environment and the login name.
//! Says it as labels; who makes the spec applies them.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

/// Whose work a sandbox is (contract 1.6). What is not known is absent.
///
/// Nothing is labelled by itself: whoever makes the spec applies
/// [`metadata`](Self::metadata), below the spec's own:
///
/// ```
/// use gym_sandbox::SandboxSpec;
/// use gym_sandbox::provider::{Attribution, log_attribution_once, resolve_attribution, resolve_run_id};
/// let attribution = resolve_attribution(&Attribution::default().with_team("agents"));
/// let run = resolve_run_id(None);
/// log_attribution_once(&attribution, &run);
/// let spec = SandboxSpec::new("debian:bookworm").with_default_metadata(&attribution.metadata("example.org/", &run));
/// assert_eq!(spec.metadata()["example.org/team"], "agents");
/// ```
///
/// These labels are about people and work. Which objects of an engine may be removed is told by the labels of the
/// provider (`gym-sandbox.owner` and the others), never by these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Attribution {
    /// Who pays for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// Who runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
}

impl Attribution {
    /// Names the team.
    pub fn with_team(mut self, team: impl Into<String>) -> Self {
        self.team = Some(team.into());
        self
    }

    /// Names the user.
    pub fn with_user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Names the workload.
    pub fn with_workload(mut self, workload: impl Into<String>) -> Self {
        self.workload = Some(workload.into());
        self
    }

    /// What is known as labels: `team`, `user`, `workload` and `run`, each behind the prefix, which may be empty.
    pub fn metadata(&self, key_prefix: &str, run_id: &str) -> BTreeMap<String, String> {
        let labels = [
            ("team", self.team.as_deref()),
            ("user", self.user.as_deref()),
            ("workload", self.workload.as_deref()),
            ("run", Some(run_id)),
        ];
        labels
            .into_iter()
            .filter_map(|(key, value)| Some((format!("{key_prefix}{key}"), value?.to_owned())))
            .collect()
    }
}

/// Where attribution is looked for when the caller does not say: the variables and the login name of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttributionEnvironment {
    /// The environment variables.
    pub variables: BTreeMap<String, String>,
    /// The name that the user logged in with.
    pub login: Option<String>,
}

impl AttributionEnvironment {
    /// That of this process. Variables that are no UTF-8 are left out. The login name is the first that is there of
    /// `LOGNAME`, `USER`, `LNAME`, `USERNAME` and the entry of `/etc/passwd`.
    pub fn of_process() -> Self {
        let variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let login = ["LOGNAME", "USER", "LNAME", "USERNAME"]
            .iter()
            .find_map(|name| present(variables.get(*name).map(String::as_str)))
            .or_else(|| {
                let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
                name_in_passwd(&passwd, rustix::process::getuid().as_raw())
            });
        Self { variables, login }
    }

    /// Resolves what the caller leaves open. In this order, and blanks never count: what the caller says;
    /// `NEMO_GYM_TEAM`, `NEMO_GYM_USER`, `NEMO_GYM_WORKLOAD`; `SLURM_JOB_ACCOUNT`, `SLURM_JOB_USER`,
    /// `SLURM_JOB_NAME`; for the user the login name, unless it is root's, for the workload `NEMO_GYM_CONFIG_PATH`.
    pub fn resolve(&self, explicit: &Attribution) -> Attribution {
        let first = |explicit: &Option<String>, names: &[&str]| {
            present(explicit.as_deref()).or_else(|| names.iter().find_map(|name| self.variable(name)))
        };
        let login = || present(self.login.as_deref()).filter(|login| login != "root");
        Attribution {
            team: first(&explicit.team, &["NEMO_GYM_TEAM", "SLURM_JOB_ACCOUNT"]),
            user: first(&explicit.user, &["NEMO_GYM_USER", "SLURM_JOB_USER"]).or_else(login),
            workload: first(
                &explicit.workload,
                &["NEMO_GYM_WORKLOAD", "SLURM_JOB_NAME", "NEMO_GYM_CONFIG_PATH"],
            ),
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        present(self.variables.get(name).map(String::as_str))
    }

    fn run_id(&self, explicit: Option<&str>) -> Option<String> {
        present(explicit).or_else(|| self.variable("NEMO_GYM_RUN_ID"))
    }
}

/// Resolves whose work this is, with what this process knows; see [`AttributionEnvironment::resolve`].
pub fn resolve_attribution(explicit: &Attribution) -> Attribution {
    AttributionEnvironment::of_process().resolve(explicit)
}

/// The run: the one given, else `NEMO_GYM_RUN_ID`, else 12 hexadecimal digits that are made once per process.
pub fn resolve_run_id(explicit: Option<&str>) -> String {
    static RUN_ID: OnceLock<String> = OnceLock::new();
    AttributionEnvironment::of_process()
        .run_id(explicit)
        .unwrap_or_else(|| {
            RUN_ID
                .get_or_init(|| {
                    let mut id = uuid::Uuid::new_v4().simple().to_string();
                    id.truncate(12);
                    id
                })
                .clone()
        })
}

/// Logs, at `info`, whose work this process does, the first time it is called. Says whether it logged.
pub fn log_attribution_once(attribution: &Attribution, run_id: &str) -> bool {
    static LOGGED: AtomicBool = AtomicBool::new(false);
    if LOGGED.swap(true, Ordering::Relaxed) {
        return false;
    }
    tracing::info!(
        team = attribution.team,
        user = attribution.user,
        workload = attribution.workload,
        run = run_id,
        "sandboxes of this process are attributed so"
    );
    true
}

/// A value that is no blank, without the white space around it.
fn present(value: Option<&str>) -> Option<String> {
    value
        .map(str::trim)
        .filter(|value| !value.is_empty())
        .map(str::to_owned)
}

fn name_in_passwd(passwd: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    })
}
