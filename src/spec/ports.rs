//! The ports a sandbox offers, checked once.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Operation, Result};

use super::Value;

/// TCP ports of a sandbox, in the order given, none twice (contract R5-R9).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Value>")]
pub struct Ports(Vec<u16>);

impl Ports {
    /// Checks and keeps ports.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for port 0 and for a port given twice.
    pub fn new(ports: impl IntoIterator<Item = u16>) -> Result<Self> {
        let mut checked: Vec<u16> = Vec::new();
        // A descriptor may name every port there is.
        let mut seen = HashSet::new();
        for port in ports {
            if port == 0 {
                return Err(out_of_range(0));
            }
            if !seen.insert(port) {
                return Err(Error::invalid(
                    Operation::Configure,
                    format!("port {port} is given twice"),
                ));
            }
            checked.push(port);
        }
        Ok(Self(checked))
    }

    /// The ports, in the order given.
    pub fn as_slice(&self) -> &[u16] {
        &self.0
    }

    /// Says whether the port is one of them.
    pub fn contains(&self, port: u16) -> bool {
        self.0.contains(&port)
    }

    /// Says whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl TryFrom<Vec<Value>> for Ports {
    type Error = Error;

    /// Takes numbers and numeric strings (contract R6).
    fn try_from(values: Vec<Value>) -> Result<Self> {
        let ports = values.iter().map(parse_port).collect::<Result<Vec<_>>>()?;
        Self::new(ports)
    }
}

fn parse_port(value: &Value) -> Result<u16> {
    let number = match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse::<i64>().ok(),
        _ => None,
    };
    let number = number.ok_or_else(|| {
        Error::invalid(Operation::Configure, format!("invalid port {value}"))
            .with_hint("a port is a whole number from 1 to 65535")
    })?;
    u16::try_from(number)
        .ok()
        .filter(|&port| port > 0)
        .ok_or_else(|| out_of_range(number))
}

fn out_of_range(port: i64) -> Error {
    Error::invalid(Operation::Configure, format!("port {port} is not in 1..=65535"))
}
