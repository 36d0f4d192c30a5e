//! The numbers behind a verdict. Pure: no clock, no engine, and the same samples give the same interval.

use serde::Serialize;

/// How often the samples are drawn again for an interval.
const RESAMPLES: usize = 2_000;

/// The value in the middle; between the two middle ones where there is no middle. None of nothing.
pub(in crate::cli) fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The smallest value that this many percent of all do not exceed. None of nothing.
pub(in crate::cli) fn percentile(values: &[f64], percent: usize) -> Option<f64> {
    let sorted = sorted(values);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The ratio of two methods that took turns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(in crate::cli) struct Ratio {
    /// The median of the ratios of all pairs.
    pub(in crate::cli) median: f64,
    /// Where that median lies in 95 of 100 repetitions.
    pub(in crate::cli) interval: (f64, f64),
    /// How many pairs there are.
    pub(in crate::cli) pairs: usize,
}

impl Ratio {
    /// Compares pairs of (ours, theirs). None without a pair.
    pub(in crate::cli) fn of_pairs(pairs: &[(f64, f64)]) -> Option<Self> {
        let ratios: Vec<f64> = pairs.iter().map(|(ours, theirs)| ours / theirs).collect();
        let median = median(&ratios)?;
        let interval = bootstrap(&ratios)?;
        Some(Self {
            median,
            interval,
            pairs: ratios.len(),
        })
    }

    /// Judges it against a goal that it must not exceed.
    pub(in crate::cli) fn verdict(&self, goal: f64) -> Verdict {
        let (low, high) = self.interval;
        Interval { low, high }.verdict(goal)
    }
}

/// Where a median lies in 95 of 100 repetitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::cli) struct Interval {
    pub(in crate::cli) low: f64,
    pub(in crate::cli) high: f64,
}

impl Interval {
    /// That of the median of these. None of nothing.
    pub(in crate::cli) fn of(values: &[f64]) -> Option<Self> {
        let (low, high) = bootstrap(values)?;
        Some(Self { low, high })
    }

    /// Judges it against a goal that it must not exceed.
    pub(in crate::cli) fn verdict(self, goal: f64) -> Verdict {
        if self.high <= goal {
            Verdict::Pass
        } else if self.low > goal {
            Verdict::Miss
        } else {
            Verdict::Unresolved
        }
    }
}

/// What a measurement says about its goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::cli) enum Verdict {
    /// The whole interval keeps it.
    Pass,
    /// The whole interval is beyond it.
    Miss,
    /// The goal lies within the interval: more samples are needed.
    Unresolved,
}

impl Verdict {
    /// The word in tables.
    pub(in crate::cli) fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Miss => "miss",
            Self::Unresolved => "unresolved",
        }
    }
}

/// The interval of the median by resampling with replacement (percentile method, 95 %).
fn bootstrap(values: &[f64]) -> Option<(f64, f64)> {
    let mut random = SplitMix(0x9e37_79b9_7f4a_7c15);
    let mut medians = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let draw: Vec<f64> = values
            .iter()
            .map(|_| values[random.below(values.len())])
            .collect();
        medians.push(median(&draw)?);
    }
    medians.sort_by(f64::total_cmp);
    let last = medians.len() - 1;
    Some((medians[last * 25 / 1000], medians[last - last * 25 / 1000]))
}

/// A small generator with a fixed seed: an interval must not change between two looks at the same samples.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below the bound, by the high half of a product: no division and no bias worth naming.
    fn below(&mut self, bound: usize) -> usize {
        let product = u128::from(self.next()) * bound as u128;
        usize::try_from(product >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_percentiles() {
        for (values, expected_median, expected_p95) in [
            (&[][..], None, None),
            (&[3.0][..], Some(3.0), Some(3.0)),
            (&[4.0, 1.0][..], Some(2.5), Some(4.0)),
            (&[9.0, 1.0, 2.0][..], Some(2.0), Some(9.0)),
        ] {
            assert_eq!(median(values), expected_median, "{values:?}");
            assert_eq!(percentile(values, 95), expected_p95, "{values:?}");
        }
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&hundred, 95), Some(95.0));
        assert_eq!(percentile(&hundred, 50), Some(50.0));
        assert_eq!(percentile(&hundred, 100), Some(100.0));
    }

    #[test]
    fn equal_pairs_have_an_interval_of_one_point() {
        let ratio = Ratio::of_pairs(&[(2.0, 4.0); 20]).unwrap();
        assert_eq!((ratio.median, ratio.interval, ratio.pairs), (0.5, (0.5, 0.5), 20));
        assert_eq!(Ratio::of_pairs(&[]), None);
        assert_eq!(Interval::of(&[]), None);
    }

    #[test]
    fn the_interval_holds_the_median_and_is_repeatable() {
        let pairs: Vec<(f64, f64)> = (0..40)
            .map(|index| (1.0 + f64::from(index % 7) / 50.0, 1.0))
            .collect();
        let ratio = Ratio::of_pairs(&pairs).unwrap();
        assert!(
            ratio.interval.0 <= ratio.median && ratio.median <= ratio.interval.1,
            "{ratio:?}"
        );
        assert!(ratio.interval.0 < ratio.interval.1);
        assert_eq!(Some(ratio), Ratio::of_pairs(&pairs));
    }

    #[test]
    fn an_outlier_moves_a_paired_median_little() {
        let mut pairs = vec![(1.0, 1.0); 19];
        pairs.push((100.0, 1.0));
        assert_eq!(Ratio::of_pairs(&pairs).map(|ratio| ratio.median), Some(1.0));
    }

    #[test]
    fn a_verdict_needs_the_whole_interval() {
        let ratio = |low, high| Ratio {
            median: f64::midpoint(low, high),
            interval: (low, high),
            pairs: 9,
        };
        for (low, high, verdict) in [
            (0.9, 1.0, Verdict::Pass),
            (1.0, 1.08, Verdict::Pass),
            (1.0, 1.09, Verdict::Unresolved),
            (1.09, 1.2, Verdict::Miss),
        ] {
            assert_eq!(ratio(low, high).verdict(1.08), verdict, "{low} {high}");
        }
    }
}
