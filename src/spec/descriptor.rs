//! What names a sandbox to another process (contract K1-K9, D23).

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::{Error, Operation, Result};

use super::{Mapping, Ports, SandboxId, Value};

/// What another process needs to use a sandbox: no secret, and nothing that only this process understands.
///
/// It is JSON with stable names. Only `sandbox_id` is needed; what is not given is found out when it is connected to. A
/// `version` other than 1 is refused.
///
/// ```
/// use gym_sandbox::SandboxDescriptor;
/// # fn main() -> gym_sandbox::Result<()> {
/// let given: SandboxDescriptor = serde_json::from_str(r#"{"sandbox_id": "gym-sandbox-0", "ports": [8000]}"#).unwrap();
/// assert_eq!(given.ports.as_ref().unwrap().as_slice(), [8000]);
/// assert_eq!(serde_json::to_string(&given).unwrap(), r#"{"sandbox_id":"gym-sandbox-0","ports":[8000]}"#);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[expect(
    clippy::manual_non_exhaustive,
    reason = "the field without a value is there to be read"
)]
pub struct SandboxDescriptor {
    /// The sandbox's id, or what else its provider finds it by.
    pub sandbox_id: SandboxId,
    /// The name of the provider that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Where the provider's engine was reached, without credentials. For people: the provider that connects uses its
    /// own way to the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// The ports that it was made with, in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<Ports>,
    /// Where commands run that name no directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// What runs shell lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// Read, so that a later one is not taken for this one; not written, since it is the first.
    #[serde(
        default,
        rename = "version",
        skip_serializing,
        deserialize_with = "known_version"
    )]
    version: (),
    /// What only its provider understands.
    #[serde(flatten)]
    pub extra: Mapping,
}

/// The version of descriptors that is known; one that does not say is of it.
const VERSION: u64 = 1;

fn known_version<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<(), D::Error> {
    let version = Value::deserialize(deserializer)?;
    if version.as_u64() == Some(VERSION) {
        return Ok(());
    }
    let shown: String = version.to_string().chars().take(40).collect();
    Err(D::Error::custom(format!(
        "its version is {}, and only version {VERSION} is known here: connect with the release that has made it, or a later one",
        shown.escape_debug()
    )))
}

impl SandboxDescriptor {
    /// Names a sandbox by its id alone.
    pub fn new(sandbox_id: SandboxId) -> Self {
        Self {
            sandbox_id,
            provider: None,
            engine: None,
            ports: None,
            workdir: None,
            shell: None,
            version: (),
            extra: Mapping::new(),
        }
    }

    /// Reads one from JSON: an object, or a text that is the id alone.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for anything that is no descriptor.
    pub fn from_value(value: Value) -> Result<Self> {
        if let Value::String(id) = value {
            return Ok(Self::new(SandboxId::new(id)?));
        }
        serde_json::from_value(value)
            .map_err(|error| Error::invalid(Operation::Attach, format!("this is no descriptor: {error}")))
    }

    /// Gives it as JSON.
    pub fn to_value(&self) -> Value {
        // Its fields are texts, numbers and JSON: nothing of it can fail to be written.
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl From<SandboxId> for SandboxDescriptor {
    fn from(id: SandboxId) -> Self {
        Self::new(id)
    }
}

impl TryFrom<Value> for SandboxDescriptor {
    type Error = Error;

    fn try_from(value: Value) -> Result<Self> {
        Self::from_value(value)
    }
}
