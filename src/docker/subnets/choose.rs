//! Which subnet of a range a network gets. Pure.

use std::net::Ipv4Addr;

use crate::spec::container::SubnetRange;

use super::block::Block;

/// A subnet has this prefix, or a shorter one where more containers must fit.
const LONGEST_PREFIX: u32 = 27;

/// Addresses that no container gets: the network's, the gateway's, the broadcast address.
const NOT_OF_CONTAINERS: u32 = 3;

/// The prefix of a subnet for that many containers.
pub(super) fn prefix_for(containers: u32) -> u32 {
    let addresses = containers.saturating_add(NOT_OF_CONTAINERS);
    // The number of bits that hold the last address's number.
    let bits = u32::BITS - (addresses - 1).leading_zeros();
    (u32::BITS - bits).min(LONGEST_PREFIX)
}

/// How many subnets of a prefix a range holds.
pub(super) fn count(range: SubnetRange, prefix: u32) -> u64 {
    match prefix.checked_sub(u32::from(range.prefix())) {
        Some(bits) => 1 << bits,
        None => 0,
    }
}

/// The first subnet that overlaps nothing of what is taken, from the given one on, around the range.
pub(super) fn free(range: SubnetRange, prefix: u32, from: u64, taken: &[Block]) -> Option<Block> {
    let count = count(range, prefix);
    if count == 0 {
        return None;
    }
    let whole = Block::new(range.base().to_bits(), u32::from(range.prefix()));
    let size = u64::from(u32::MAX >> prefix) + 1;
    let mut taken: Vec<Block> = taken
        .iter()
        .copied()
        .filter(|block| block.overlaps(whole))
        .collect();
    taken.sort_unstable();
    let from = from % count;
    search(whole, size, from..count, &taken).or_else(|| search(whole, size, 0..from, &taken))
}

/// Every step leaves something behind that is taken, so that there are no more steps than that.
fn search(whole: Block, size: u64, numbers: std::ops::Range<u64>, taken: &[Block]) -> Option<Block> {
    let mut number = numbers.start;
    'next: while number < numbers.end {
        // A part of the range: as small as its addresses are.
        let first = u32::try_from(u64::from(whole.first) + number * size).ok()?;
        let subnet = Block {
            first,
            last: u32::try_from(u64::from(first) + size - 1).ok()?,
        };
        for block in taken {
            if block.overlaps(subnet) {
                number = (u64::from(block.last.min(whole.last) - whole.first) + 1).div_ceil(size);
                continue 'next;
            }
        }
        return Some(subnet);
    }
    None
}

/// As an engine reads it.
pub(super) fn text(subnet: Block) -> String {
    let prefix = (subnet.last - subnet.first).leading_zeros();
    format!("{}/{prefix}", Ipv4Addr::from_bits(subnet.first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> SubnetRange {
        text.parse().unwrap()
    }

    fn blocks(texts: &[&str]) -> Vec<Block> {
        texts.iter().map(|text| Block::parse(text).unwrap().0).collect()
    }

    fn chosen(range_text: &str, prefix: u32, from: u64, taken: &[&str]) -> Option<String> {
        free(range(range_text), prefix, from, &blocks(taken)).map(text)
    }

    #[test]
    fn a_subnet_holds_the_containers_and_is_small() {
        for (containers, prefix) in [
            (0, 27),
            (29, 27),
            (30, 26),
            (61, 26),
            (62, 25),
            (1000, 22),
            (1021, 22),
            (1022, 21),
        ] {
            assert_eq!(prefix_for(containers), prefix, "{containers}");
        }
        assert_eq!(prefix_for(u32::MAX), 0);
        assert_eq!(count(SubnetRange::DEFAULT, 27), 4096);
        assert_eq!(count(range("10.0.0.0/28"), 27), 0);
        assert_eq!(count(range("128.0.0.0/1"), 27), 1 << 26);
    }

    #[test]
    fn the_first_free_one_from_a_place_on_is_taken() {
        let small = "10.7.0.0/25";
        for (from, taken, expected) in [
            (0, &[] as &[&str], Some("10.7.0.0/27")),
            (2, &[], Some("10.7.0.64/27")),
            (6, &[], Some("10.7.0.64/27")),
            (0, &["10.7.0.0/28", "10.9.0.0/16"], Some("10.7.0.32/27")),
            (3, &["10.7.0.96/27"], Some("10.7.0.0/27")),
            (1, &["10.7.0.32/27", "10.7.0.64/26"], Some("10.7.0.0/27")),
            (1, &["10.7.0.0/26", "10.7.0.120/30"], Some("10.7.0.64/27")),
            (1, &["10.7.0.0/26", "10.7.0.64/26"], None),
            (0, &["10.0.0.0/8"], None),
            (0, &["0.0.0.0/0"], None),
        ] {
            let found = chosen(small, 27, from, taken);
            assert_eq!(found.as_deref(), expected, "{from} {taken:?}");
        }
    }

    #[test]
    fn ranges_at_the_edges_of_all_addresses_are_whole() {
        assert_eq!(
            chosen("255.255.255.240/28", 28, 5, &[]).unwrap(),
            "255.255.255.240/28"
        );
        assert_eq!(chosen("255.255.255.240/28", 27, 0, &[]), None);
        assert_eq!(chosen("128.0.0.0/1", 1, 0, &[]).unwrap(), "128.0.0.0/1");
        assert_eq!(
            chosen("255.255.255.192/26", 27, 1, &["255.255.255.224/27"]).unwrap(),
            "255.255.255.192/27"
        );
        assert_eq!(chosen("255.255.255.192/26", 27, 1, &["255.255.255.0/24"]), None);
    }
}
