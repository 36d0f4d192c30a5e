//! The engine's default address pools: how many networks they hold and how many are taken. Plain arithmetic on IPv4.

use std::net::Ipv4Addr;

use bollard::models::SystemInfoDefaultAddressPools;

use crate::docker::subnets::Block;

/// The pools of an engine that is not told others (moby, libnetwork/ipamutils): base, prefix, prefix of each network.
const BUILT_IN: [(Ipv4Addr, u32, u32); 7] = [
    (Ipv4Addr::new(172, 17, 0, 0), 16, 16),
    (Ipv4Addr::new(172, 18, 0, 0), 16, 16),
    (Ipv4Addr::new(172, 19, 0, 0), 16, 16),
    (Ipv4Addr::new(172, 20, 0, 0), 14, 16),
    (Ipv4Addr::new(172, 24, 0, 0), 14, 16),
    (Ipv4Addr::new(172, 28, 0, 0), 14, 16),
    (Ipv4Addr::new(192, 168, 0, 0), 16, 20),
];

/// The pools that networks without a subnet of their own are given a subnet from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pools {
    pools: Vec<Pool>,
    told: bool,
}

/// Equal parts of an address range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pool {
    base: u32,
    prefix: u32,
    network_prefix: u32,
}

impl Pools {
    /// The pools that the engine tells, or the built-in ones if it tells none. IPv6 pools are not counted: a network
    /// needs an IPv4 subnet.
    pub(super) fn of(told: &[SystemInfoDefaultAddressPools]) -> Self {
        let pools: Vec<Pool> = told
            .iter()
            .filter_map(|pool| {
                let (block, prefix) = Block::parse(pool.base.as_deref()?)?;
                let network_prefix = u32::try_from(pool.size?)
                    .ok()
                    .filter(|size| (prefix..=32).contains(size))?;
                Some(Pool {
                    base: block.first,
                    prefix,
                    network_prefix,
                })
            })
            .collect();
        if !pools.is_empty() {
            return Self { pools, told: true };
        }
        let pools = BUILT_IN
            .into_iter()
            .map(|(base, prefix, network_prefix)| Pool {
                base: base.to_bits(),
                prefix,
                network_prefix,
            })
            .collect();
        Self { pools, told: false }
    }

    /// How many networks the pools hold.
    pub(super) fn total(&self) -> u64 {
        self.pools.iter().map(Pool::total).sum()
    }

    /// How many of them overlap with one of these subnets.
    pub(super) fn in_use(&self, subnets: &[String]) -> u64 {
        let ranges: Vec<Block> = subnets
            .iter()
            .filter_map(|subnet| Some(Block::parse(subnet)?.0))
            .collect();
        self.pools.iter().map(|pool| pool.in_use(&ranges)).sum()
    }

    /// What the numbers rest on, for a person.
    pub(super) fn basis(&self) -> String {
        let source = if self.told {
            "the pools that the engine reports"
        } else {
            "the engine reports no pools, so Docker's built-in ones are assumed"
        };
        format!(
            "{source}; less those that its networks overlap; routes of the engine's machine may take more"
        )
    }
}

impl Pool {
    fn total(&self) -> u64 {
        1 << (self.network_prefix - self.prefix)
    }

    /// Counts the parts that a range touches, each once.
    fn in_use(&self, ranges: &[Block]) -> u64 {
        let whole = Block::new(self.base, self.prefix);
        let part = |address: u32| u64::from(address - whole.first) >> (32 - self.network_prefix);
        let mut touched: Vec<(u64, u64)> = ranges
            .iter()
            .filter(|range| range.overlaps(whole))
            .map(|range| {
                (
                    part(range.first.max(whole.first)),
                    part(range.last.min(whole.last)),
                )
            })
            .collect();
        touched.sort_unstable();
        let (mut count, mut next) = (0, 0);
        for (start, end) in touched {
            let start = start.max(next);
            if end >= start {
                count += end - start + 1;
                next = end + 1;
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(base: &str, size: i64) -> SystemInfoDefaultAddressPools {
        SystemInfoDefaultAddressPools {
            base: Some(base.to_owned()),
            size: Some(size),
        }
    }

    fn subnets(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn the_built_in_pools_hold_31_networks_and_the_default_bridge_takes_one() {
        let pools = Pools::of(&[]);
        assert_eq!(pools.total(), 31);
        assert_eq!(pools.in_use(&subnets(&["172.17.0.0/16"])), 1);
        assert!(pools.basis().contains("built-in"));
    }

    #[test]
    fn each_part_counts_once_and_what_lies_elsewhere_not_at_all() {
        let pools = Pools::of(&[]);
        for (texts, count) in [
            (&[] as &[&str], 0),
            (&["10.0.0.0/8", "fd00::/64", "zork", "1.2.3.4/40"], 0),
            (&["172.18.0.0/16", "172.18.3.0/24", "172.18.0.0/16"], 1),
            (&["172.20.0.0/14"], 4),
            (&["172.20.0.0/14", "172.21.0.0/16", "172.22.0.0/15"], 4),
            (&["192.168.16.0/20", "192.168.0.0/24"], 2),
            (&["0.0.0.0/0"], 31),
        ] {
            assert_eq!(pools.in_use(&subnets(texts)), count, "{texts:?}");
        }
    }

    #[test]
    fn pools_that_the_engine_tells_replace_the_built_in_ones() {
        let pools = Pools::of(&[
            told("10.0.0.0/16", 24),
            told("10.9.0.0/24", 28),
            told("fd00::/32", 64),
            told("10.8.0.0/24", 16),
        ]);
        assert_eq!(pools.total(), 256 + 16);
        assert_eq!(
            pools.in_use(&subnets(&["10.0.7.0/24", "10.9.0.16/28", "172.17.0.0/16"])),
            2
        );
        assert!(pools.basis().contains("reports;"), "{}", pools.basis());
        let single = Pools::of(&[told("10.0.0.0/0", 32)]);
        assert_eq!(single.total(), 1 << 32);
        assert_eq!(single.in_use(&subnets(&["10.0.0.0/8"])), 1 << 24);
    }
}
