//! Puts variables into every string value of a file and turns strings into the type their key needs.
//!
//! Keys are never interpolated. Which keys are cast to what is the table at the end.

use super::diagnostic::Sink;
use super::node::{Node, Value};
use super::path::{Pattern, YamlPath, lookup};
use super::template;
use super::units::parse_float;

/// Interpolates and casts a whole file in place; what cannot be is reported and taken out.
pub(crate) fn interpolate(root: &mut Node, variables: template::Lookup<'_>, sink: &mut Sink) {
    let mut walk = Walk {
        variables,
        sink,
        path: YamlPath::new(),
    };
    if let Some(map) = root.as_map_mut() {
        map.retain(|key, node| walk.child(key, node));
    }
}

struct Walk<'a> {
    variables: template::Lookup<'a>,
    sink: &'a mut Sink,
    path: YamlPath,
}

impl Walk<'_> {
    fn child(&mut self, key: &str, node: &mut Node) -> bool {
        self.path.push_key(key);
        let keep = self.node(node);
        self.path.pop();
        keep
    }

    /// Returns false when the node has to go.
    fn node(&mut self, node: &mut Node) -> bool {
        let at = node.at;
        match &mut node.value {
            Value::Str(text) => match self.string(text, at) {
                Some(value) => node.value = value,
                None => return false,
            },
            Value::Seq(items) => {
                let mut index = 0;
                items.retain_mut(|item| {
                    self.path.push_index(index);
                    let keep = self.node(item);
                    self.path.pop();
                    index += 1;
                    keep
                });
            }
            Value::Map(map) => map.retain(|key, node| self.child(key, node)),
            _ => {}
        }
        true
    }

    fn string(&mut self, text: &str, at: super::node::Position) -> Option<Value> {
        let mut unset = Vec::new();
        let result = template::substitute(text, self.variables, &mut |name| {
            unset.push(name.to_owned());
        });
        for name in unset {
            let message = format!("the \"{name}\" variable is not set, defaulting to a blank string");
            self.sink.warning(
                at,
                &self.path,
                message,
                format!("pass it, or write `${{{name}:-default}}`"),
            );
        }
        let text = match result {
            Ok(text) => text,
            Err(error) => {
                let message = error.message(&self.path.to_string());
                let hint = match error {
                    template::TemplateError::Invalid(_) => "write `$$` for a literal dollar sign",
                    template::TemplateError::Required { .. } => "pass the variable",
                    template::TemplateError::TooDeep => "use fewer nested defaults",
                };
                self.sink.error_with_hint(at, &self.path, message, hint);
                return None;
            }
        };
        let Some(cast) = cast_for(&self.path) else {
            return Some(Value::Str(text));
        };
        match cast_text(cast, &text) {
            Ok(value) => {
                if cast == Cast::Boolean {
                    warn_old_boolean(&text, at, &self.path, self.sink);
                }
                Some(value)
            }
            Err(message) => {
                let message = format!("failed to cast to expected type: {message}");
                self.sink.error(at, &self.path, message);
                None
            }
        }
    }
}

/// What a string becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    Integer,
    Float,
    Float32,
    Boolean,
}

/// Turns a string into the type of its key, as the reference does.
pub(crate) fn cast_text(cast: Cast, text: &str) -> Result<Value, String> {
    match cast {
        Cast::Integer => parse_integer(text)
            .map(Value::Int)
            .ok_or_else(|| format!("\"{text}\" is no integer")),
        Cast::Float => parse_float(text)
            .map(Value::Float)
            .ok_or_else(|| format!("\"{text}\" is no number")),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the reference holds these in 32 bits"
        )]
        Cast::Float32 => {
            let value = parse_float(text).ok_or_else(|| format!("\"{text}\" is no number"))?;
            Ok(Value::Float32(value as f32))
        }
        Cast::Boolean => parse_boolean(text)
            .map(Value::Bool)
            .ok_or_else(|| format!("invalid boolean: {text}")),
    }
}

/// Reads a decimal integer with an optional sign.
pub(crate) fn parse_integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// Reads a boolean, in YAML 1.2's words or 1.1's.
pub(crate) fn parse_boolean(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "true" | "y" | "yes" | "on" => Some(true),
        "false" | "n" | "no" | "off" => Some(false),
        _ => None,
    }
}

fn warn_old_boolean(text: &str, at: super::node::Position, path: &YamlPath, sink: &mut Sink) {
    let lower = text.to_lowercase();
    let wanted = match lower.as_str() {
        "y" | "yes" | "on" => "true",
        "n" | "no" | "off" => "false",
        _ => return,
    };
    let message = format!("\"{text}\" for boolean is not supported by YAML 1.2");
    sink.warning(at, path, message, format!("write `{wanted}`"));
}

/// Finds the cast for a path. The first segment decides quickly for most strings.
fn cast_for(path: &YamlPath) -> Option<Cast> {
    if path.len() < 3 {
        return None;
    }
    lookup(CASTS, path).copied()
}

/// Which keys are cast, in the reference's words `interpolateTypeCastMapping`.
static CASTS: &[(Pattern, Cast)] = &[
    (&["services", "*", "cpu_count"], Cast::Integer),
    (&["services", "*", "cpu_percent"], Cast::Float),
    (&["services", "*", "cpu_period"], Cast::Integer),
    (&["services", "*", "cpu_quota"], Cast::Integer),
    (&["services", "*", "cpu_rt_period"], Cast::Integer),
    (&["services", "*", "cpu_rt_runtime"], Cast::Integer),
    (&["services", "*", "cpus"], Cast::Float32),
    (&["services", "*", "cpu_shares"], Cast::Integer),
    (&["services", "*", "init"], Cast::Boolean),
    (&["services", "*", "deploy", "replicas"], Cast::Integer),
    (
        &["services", "*", "deploy", "update_config", "parallelism"],
        Cast::Integer,
    ),
    (
        &["services", "*", "deploy", "update_config", "max_failure_ratio"],
        Cast::Float,
    ),
    (
        &["services", "*", "deploy", "rollback_config", "parallelism"],
        Cast::Integer,
    ),
    (
        &["services", "*", "deploy", "rollback_config", "max_failure_ratio"],
        Cast::Float,
    ),
    (
        &["services", "*", "deploy", "restart_policy", "max_attempts"],
        Cast::Integer,
    ),
    (
        &["services", "*", "deploy", "placement", "max_replicas_per_node"],
        Cast::Integer,
    ),
    (&["services", "*", "healthcheck", "retries"], Cast::Integer),
    (&["services", "*", "healthcheck", "disable"], Cast::Boolean),
    (&["services", "*", "oom_kill_disable"], Cast::Boolean),
    (&["services", "*", "oom_score_adj"], Cast::Integer),
    (&["services", "*", "pids_limit"], Cast::Integer),
    (&["services", "*", "ports", "[]", "target"], Cast::Integer),
    (&["services", "*", "privileged"], Cast::Boolean),
    (&["services", "*", "read_only"], Cast::Boolean),
    (&["services", "*", "scale"], Cast::Integer),
    (&["services", "*", "stdin_open"], Cast::Boolean),
    (&["services", "*", "tty"], Cast::Boolean),
    (&["services", "*", "ulimits", "*"], Cast::Integer),
    (&["services", "*", "ulimits", "*", "hard"], Cast::Integer),
    (&["services", "*", "ulimits", "*", "soft"], Cast::Integer),
    (&["services", "*", "volumes", "[]", "read_only"], Cast::Boolean),
    (
        &["services", "*", "volumes", "[]", "volume", "nocopy"],
        Cast::Boolean,
    ),
    (&["networks", "*", "external"], Cast::Boolean),
    (&["networks", "*", "internal"], Cast::Boolean),
    (&["networks", "*", "attachable"], Cast::Boolean),
    (&["networks", "*", "enable_ipv4"], Cast::Boolean),
    (&["networks", "*", "enable_ipv6"], Cast::Boolean),
    (&["volumes", "*", "external"], Cast::Boolean),
    (&["secrets", "*", "external"], Cast::Boolean),
    (&["configs", "*", "external"], Cast::Boolean),
];
