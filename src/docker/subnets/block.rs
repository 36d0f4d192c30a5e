//! Blocks of IPv4 addresses. Plain arithmetic.

use std::net::Ipv4Addr;

/// The addresses from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::docker) struct Block {
    pub(in crate::docker) first: u32,
    pub(in crate::docker) last: u32,
}

impl Block {
    /// All addresses that have this many bits in common with a base.
    pub(in crate::docker) fn new(base: u32, prefix: u32) -> Self {
        let hosts = u32::MAX.checked_shr(prefix).unwrap_or(0);
        Self {
            first: base & !hosts,
            last: base | hosts,
        }
    }

    /// A block and its prefix from a text; none for IPv6 and for what is no block.
    pub(in crate::docker) fn parse(text: &str) -> Option<(Self, u32)> {
        let (address, prefix) = text.split_once('/')?;
        let prefix: u32 = prefix.parse().ok().filter(|prefix| *prefix <= 32)?;
        let address = address.parse::<Ipv4Addr>().ok()?.to_bits();
        Some((Self::new(address, prefix), prefix))
    }

    pub(in crate::docker) fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// What the kernel's table of IPv4 routes sends elsewhere (`/proc/net/route`). The default route is none of it.
pub(super) fn routed(table: &str) -> Vec<Block> {
    // The kernel prints the bytes as it has them: the network's order, read as a number of this machine.
    let number = |text: &str| u32::from_str_radix(text, 16).ok().map(u32::from_be);
    let lines = table.lines().skip(1);
    lines
        .filter_map(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let destination = number(fields.next()?)?;
            let mask = number(fields.nth(5)?)?;
            (mask != 0).then(|| Block::new(destination, mask.leading_ones()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_and_compared() {
        let block = |text: &str| Block::parse(text).unwrap().0;
        assert_eq!(block("10.1.2.3/16"), block("10.1.0.0/16"));
        assert_eq!(
            block("0.0.0.0/0"),
            Block {
                first: 0,
                last: u32::MAX
            }
        );
        let single = block("1.2.3.4/32");
        assert_eq!(single.first, single.last);
        for (one, other, overlap) in [
            ("10.0.0.0/8", "10.255.0.0/16", true),
            ("10.255.0.0/16", "10.0.0.0/8", true),
            ("10.0.0.0/28", "10.0.0.16/28", false),
            ("10.0.0.0/27", "10.0.0.16/28", true),
        ] {
            assert_eq!(block(one).overlaps(block(other)), overlap, "{one} {other}");
        }
        for text in ["", "1.2.3.4", "1.2.3.4/33", "fd00::/64", "a/8"] {
            assert_eq!(Block::parse(text), None, "{text}");
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn routes_are_read_without_the_default_one() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     eth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                     docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n\
                     tun0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n\
                     short\n";
        let block = |text: &str| Block::parse(text).unwrap().0;
        assert_eq!(routed(table), [block("172.17.0.0/16"), block("10.0.0.0/8")]);
    }
}
