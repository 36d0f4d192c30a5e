//! How much of the machine a sandbox may use.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Operation, Result};

use super::{Mapping, Value};

/// Limits of a sandbox. What is `None` is not limited (contract R1-R3).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Option<Mapping>")]
#[non_exhaustive]
pub struct SandboxResources {
    /// Processor cores; fractions are allowed.
    pub cpu: Option<f64>,
    /// Memory in MiB. Swap is not added to it.
    pub memory_mib: Option<u64>,
    /// Disk space in GiB.
    pub disk_gib: Option<u64>,
    /// Number of GPUs.
    pub gpu: Option<u64>,
    /// Model of the GPUs.
    pub gpu_type: Option<String>,
}

const KEYS: [&str; 5] = ["cpu", "disk_gib", "gpu", "gpu_type", "memory_mib"];

impl SandboxResources {
    /// Reads a mapping; numbers may be given as text, `None` and null values mean "not limited".
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an unknown key (all of them are named,
    /// with the allowed ones) and for a value that is not a number where one is needed.
    pub fn from_mapping(mapping: Option<&Mapping>) -> Result<Self> {
        let Some(mapping) = mapping else {
            return Ok(Self::default());
        };
        let mut unknown: Vec<&str> = mapping
            .keys()
            .map(String::as_str)
            .filter(|key| !KEYS.contains(key))
            .collect();
        if !unknown.is_empty() {
            unknown.sort_unstable();
            return Err(Error::invalid(
                Operation::Configure,
                format!(
                    "unknown resource keys: {}; allowed are {}",
                    unknown.join(", "),
                    KEYS.join(", ")
                ),
            ));
        }
        Ok(Self {
            cpu: number(mapping, "cpu", |text| {
                text.parse().ok().filter(|cpu: &f64| cpu.is_finite())
            })?,
            memory_mib: number(mapping, "memory_mib", parse_whole)?,
            disk_gib: number(mapping, "disk_gib", parse_whole)?,
            gpu: number(mapping, "gpu", parse_whole)?,
            gpu_type: match mapping.get("gpu_type") {
                None | Some(Value::Null) => None,
                Some(Value::String(text)) => Some(text.clone()),
                Some(other) => Some(other.to_string()),
            },
        })
    }

    /// Limits the processor cores.
    pub fn with_cpu(mut self, cpu: f64) -> Self {
        self.cpu = Some(cpu);
        self
    }

    /// Limits the memory, in MiB.
    pub fn with_memory_mib(mut self, memory_mib: u64) -> Self {
        self.memory_mib = Some(memory_mib);
        self
    }
}

impl TryFrom<Option<Mapping>> for SandboxResources {
    type Error = Error;

    fn try_from(mapping: Option<Mapping>) -> Result<Self> {
        Self::from_mapping(mapping.as_ref())
    }
}

fn parse_whole(text: &str) -> Option<u64> {
    text.parse().ok()
}

fn number<T>(mapping: &Mapping, key: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
    let parsed = match mapping.get(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => parse(text.trim()),
        Some(Value::Number(number)) => parse(&number.to_string()),
        Some(_) => None,
    };
    parsed.map(Some).ok_or_else(|| {
        Error::invalid(
            Operation::Configure,
            format!(
                "resource `{key}` can't be {}",
                mapping.get(key).unwrap_or(&Value::Null)
            ),
        )
    })
}
