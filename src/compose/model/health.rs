//! How a service is watched: health, hooks, output, development.

use serde_json::Value as Json;

use super::codec::{Context, Decode, Encode, Style};
use super::{CommandLine, Named, OptionalValues, mapping};
use crate::compose::node::Node;
use crate::compose::units::ComposeDuration;

mapping! {
    /// How health is checked.
    pub struct Healthcheck {
        /// `CMD` and words, `CMD-SHELL` and a line, or `NONE`; empty for the image's.
        "test" => test: HealthTest,
        /// How long a check may take.
        "timeout" => timeout: Option<ComposeDuration>,
        /// Time between checks.
        "interval" => interval: Option<ComposeDuration>,
        /// How many failures make unhealthy.
        "retries" => retries: Option<u64>,
        /// How long failures do not count.
        "start_period" => start_period: Option<ComposeDuration>,
        /// Time between checks during that.
        "start_interval" => start_interval: Option<ComposeDuration>,
        /// Whether the image's check is off.
        "disable" => disable: bool,
    }
}

/// What a health check runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthTest(Vec<String>);

impl HealthTest {
    /// Returns the words, `CMD`, `CMD-SHELL` or `NONE` first; empty for the image's check.
    pub fn words(&self) -> &[String] {
        &self.0
    }
}

impl Decode for HealthTest {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        match node.as_str() {
            Some(line) => Self(vec!["CMD-SHELL".to_owned(), line.to_owned()]),
            None => Self(Decode::decode(node, context)),
        }
    }
}

impl Encode for HealthTest {
    fn encode(&self, style: Style) -> Json {
        self.0.encode(style)
    }

    fn omit(&self, _style: Style) -> bool {
        self.0.is_empty()
    }
}

mapping! {
    /// Where output goes.
    pub struct Logging {
        /// The driver.
        "driver" => driver: String,
        /// Options of the driver.
        "options" => options: Named<String>,
    }
}

mapping! {
    /// A command in a running container.
    pub struct Hook {
        /// The command.
        "command" => command: CommandLine,
        /// The user.
        "user" => user: String,
        /// Whether it is privileged.
        "privileged" => privileged: bool,
        /// The working folder.
        "working_dir" => working_dir: String,
        /// Environment variables.
        "environment" => environment: OptionalValues,
    }
}

mapping! {
    /// What happens during development.
    pub struct Develop {
        /// What to do when files change.
        "watch" => watch: Vec<WatchRule>,
    }
}

mapping! {
    /// What to do when files change.
    pub struct WatchRule {
        /// The files.
        "path" always => path: String,
        /// What to do.
        "action" always => action: String,
        /// Where changed files go.
        "target" => target: String,
        /// What to run.
        "exec" => exec: Hook,
        /// Files that count.
        "include" => include: Vec<String>,
        /// Files that do not.
        "ignore" => ignore: Vec<String>,
        /// Whether files are copied at the start.
        "initial_sync" => initial_sync: bool,
    }
}
