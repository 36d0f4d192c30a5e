//! What docker compose does silently and an author cannot have meant.
//!
//! Each trap is always diagnosed; how strictly is the caller's choice.

use super::diagnostic::Sink;
use super::node::Position;
use super::path::YamlPath;

/// How the loader takes input that docker compose accepts but reads as no author can have meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strictness {
    /// Every trap is a warning; the result is docker compose's.
    Compatible,
    /// Traps that lose what the author asked for (a memory limit, a volume) are errors, the others warnings.
    #[default]
    Careful,
    /// Every trap is an error.
    Strict,
}

/// The traps to look for, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) strictness: Strictness,
}

/// A trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trap {
    /// A string command is cut at an unquoted operator.
    CutCommand,
    /// A volume of one letter is read as a Windows drive.
    OneLetterVolume,
    /// A byte size written as a YAML float is dropped.
    FloatBytes,
    /// A tmpfs mode is a decimal number.
    DecimalMode,
    /// A null value unsets what `env_file` sets.
    NullHidesEnvFile,
    /// An unknown option of a short mount is ignored.
    IgnoredMountOption,
    /// A duration is below zero.
    NegativeDuration,
    /// A port is published twice, once with a number and once with a string.
    DoublePort,
}

impl Trap {
    /// All traps, for the documentation test.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 8] = [
        Self::CutCommand,
        Self::OneLetterVolume,
        Self::FloatBytes,
        Self::DecimalMode,
        Self::NullHidesEnvFile,
        Self::IgnoredMountOption,
        Self::NegativeDuration,
        Self::DoublePort,
    ];

    /// Names the trap in docs/compose-support.md.
    #[cfg(test)]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CutCommand => "cut-command",
            Self::OneLetterVolume => "one-letter-volume",
            Self::FloatBytes => "float-bytes",
            Self::DecimalMode => "decimal-mode",
            Self::NullHidesEnvFile => "null-hides-env-file",
            Self::IgnoredMountOption => "ignored-mount-option",
            Self::NegativeDuration => "negative-duration",
            Self::DoublePort => "double-port",
        }
    }

    /// Tells whether the trap loses what was asked for.
    pub(crate) fn loses(self) -> bool {
        matches!(
            self,
            Self::OneLetterVolume | Self::FloatBytes | Self::NegativeDuration
        )
    }

    fn text(self, detail: &str) -> (String, &'static str) {
        match self {
            Self::CutCommand => (
                format!(
                    "the command is cut here: `{detail}` is dropped, since no shell runs a string command"
                ),
                "write `sh -c '...'`, a list, or quote the operator",
            ),
            Self::OneLetterVolume => (
                format!(
                    "`{detail}`: a volume name of one letter is read as a Windows drive, so no volume is mounted"
                ),
                "give the volume a longer name, or use the long form",
            ),
            Self::FloatBytes => (
                format!("{detail} is a YAML float, which docker compose reads as no limit at all"),
                "write bytes as an integer, or a string with a unit such as `1.5g`",
            ),
            Self::DecimalMode => (
                format!("the mode {detail} is decimal, not octal"),
                "write it with a leading zero: `01777`",
            ),
            Self::NullHidesEnvFile => (
                format!("{detail} has no value here, which unsets the value of `env_file`"),
                "remove the key to keep the value of `env_file`",
            ),
            Self::IgnoredMountOption => (
                format!("the mount option `{detail}` is unknown and ignored"),
                "remove it, or use the long form",
            ),
            Self::NegativeDuration => (
                format!("the duration {detail} is below zero"),
                "write a positive duration",
            ),
            Self::DoublePort => (
                format!("the port {detail} is published twice, once as a number and once as text"),
                "publish it once; the engine cannot start a container that binds a port twice",
            ),
        }
    }
}

/// Says that a trap was met.
pub(crate) fn report(
    policy: Policy,
    trap: Trap,
    at: Position,
    path: &YamlPath,
    detail: &str,
    sink: &mut Sink,
) {
    let detail: String = detail.chars().take(80).collect();
    let (message, hint) = trap.text(&detail);
    let refuse = match policy.strictness {
        Strictness::Compatible => false,
        Strictness::Careful => trap.loses(),
        Strictness::Strict => true,
    };
    if refuse {
        sink.error_with_hint(at, path, message, hint);
    } else {
        sink.warning(at, path, message, hint);
    }
}
