//! Where the subnets of networks come from that are not given any.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::error::{Error, Operation, Result};

/// Where the subnet of a network comes from that names none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Subnets {
    /// A small one of [`SubnetRange::DEFAULT`], so that hundreds of networks fit: an engine's built-in pools hold about
    /// 30. From the engine's pools where its operator has configured them, and where the range has none free.
    #[default]
    Planned,
    /// From the engine's pools.
    Engine,
    /// A small one of this range, and none elsewhere.
    Range(SubnetRange),
}

impl Subnets {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands fields over by reference"
    )]
    pub(super) fn is_planned(&self) -> bool {
        *self == Self::Planned
    }
}

/// A range of IPv4 addresses that subnets are taken from, as in `10.77.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubnetRange {
    base: Ipv4Addr,
    prefix: u8,
}

impl SubnetRange {
    /// `198.18.0.0/15`: set apart for benchmarks (RFC 2544), so that it is routed nowhere. It holds 4,096 subnets of 32
    /// addresses.
    pub const DEFAULT: Self = Self {
        base: Ipv4Addr::new(198, 18, 0, 0),
        prefix: 15,
    };

    /// The longest prefix of a range, and of a subnet of it.
    const LONGEST: u8 = 28;

    /// Describes a range.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a prefix of 0 or over 28, for a base that
    /// is not the first address, and for a first or last address that is loopback, link-local, multicast or of 0.0.0.0/8.
    pub fn new(base: Ipv4Addr, prefix: u8) -> Result<Self> {
        let range = Self { base, prefix };
        if prefix == 0 || prefix > Self::LONGEST {
            return Err(Error::invalid(
                Operation::Configure,
                format!(
                    "`{range}` is no range for subnets: its prefix is none of 1 to {}",
                    Self::LONGEST
                ),
            ));
        }
        if base.to_bits() & (u32::MAX >> prefix) != 0 {
            return Err(Error::invalid(
                Operation::Configure,
                format!("`{range}` does not begin at the first address of its range"),
            ));
        }
        let last = Ipv4Addr::from_bits(base.to_bits() | (u32::MAX >> prefix));
        let is_of_hosts = |address: Ipv4Addr| {
            !(address.is_loopback()
                || address.is_link_local()
                || address.is_multicast()
                || address.octets()[0] == 0)
        };
        if !is_of_hosts(base) || !is_of_hosts(last) {
            return Err(Error::invalid(
                Operation::Configure,
                format!("`{range}` begins or ends with addresses that no network can have (loopback, link-local, multicast, 0.0.0.0/8)"),
            )
            .with_hint("name a private range that nothing else uses, such as 10.77.0.0/16"));
        }
        Ok(range)
    }

    /// Its first address.
    pub fn base(self) -> Ipv4Addr {
        self.base
    }

    /// How many bits its addresses have in common.
    pub fn prefix(self) -> u8 {
        self.prefix
    }
}

impl fmt::Display for SubnetRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

impl FromStr for SubnetRange {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parsed = text
            .split_once('/')
            .and_then(|(base, prefix)| Some((base.parse().ok()?, prefix.parse().ok()?)));
        let (base, prefix) = parsed.ok_or_else(|| {
            Error::invalid(
                Operation::Configure,
                format!("`{}` is no IPv4 range such as 10.77.0.0/16", text.escape_debug()),
            )
        })?;
        Self::new(base, prefix)
    }
}

impl Serialize for SubnetRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_what_is_none_is_refused() {
        for text in ["10.77.0.0/16", "198.18.0.0/15", "192.168.1.16/28", "128.0.0.0/1"] {
            assert_eq!(text.parse::<SubnetRange>().unwrap().to_string(), text);
        }
        let default = SubnetRange::DEFAULT;
        assert_eq!(SubnetRange::new(default.base, default.prefix).unwrap(), default);
        for (text, told) in [
            ("", "no IPv4 range"),
            ("10.77.0.0", "no IPv4 range"),
            ("10.77.0/16", "no IPv4 range"),
            ("fd00::/64", "no IPv4 range"),
            ("10.77.0.0/-1", "no IPv4 range"),
            ("0.0.0.0/0", "1 to 28"),
            ("10.0.0.0/29", "1 to 28"),
            ("10.77.1.0/16", "first address"),
            ("127.0.0.0/8", "no network can have"),
            ("127.91.0.0/16", "no network can have"),
            ("64.0.0.0/2", "no network can have"),
            ("169.254.16.0/24", "no network can have"),
            ("224.0.0.0/4", "no network can have"),
            ("0.0.0.0/8", "no network can have"),
        ] {
            let error = text.parse::<SubnetRange>().unwrap_err();
            assert!(error.to_string().contains(told), "{text}: {error}");
        }
    }
}
