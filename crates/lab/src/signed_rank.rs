// SPDX-License-Identifier: Apache-2.0
//! The signed-rank statistic when there is no difference.
//!
//! F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1 (1945). The sum of
//! the ranks of the positive differences is the number of pairwise means above zero (J. W. Tukey), so
//! test and interval are two ways of counting the same means.

use crate::statistics::CONFIDENCE;

/// The exact distribution of the sum of positive ranks, for one number of differences whose signs
/// are thrown by a coin.
#[derive(Clone, Debug)]
pub struct SignedRank {
    pairs: usize,
    /// The chance of a sum of at most the index.
    at_most: Vec<f64>,
}

impl SignedRank {
    /// The distribution for `pairs` differences. Takes time that grows with their cube: a second
    /// for a thousand.
    #[must_use]
    pub fn new(pairs: usize) -> Self {
        let mut at_most = chances(pairs);
        let mut sum = 0.0;
        for chance in &mut at_most {
            sum += *chance;
            *chance = sum;
        }
        Self { pairs, at_most }
    }

    /// How many differences this is for.
    #[must_use]
    pub const fn pairs(&self) -> usize {
        self.pairs
    }

    /// The chance that the sum of positive ranks is `sum` or more; both tails are alike.
    #[must_use]
    pub fn at_least(&self, sum: usize) -> f64 {
        let highest = self.at_most.len() - 1;
        highest.checked_sub(sum).map_or(0.0, |rest| self.at_most[rest].min(1.0))
    }

    /// How many pairwise means an interval leaves out on each side: the largest number whose tail
    /// is within bounds, or none when there are too few differences.
    pub(crate) fn cut(&self) -> usize {
        let tail = (1.0 - CONFIDENCE) / 2.0;
        self.at_most.partition_point(|chance| *chance <= tail).saturating_sub(1)
    }

    /// The confidence that the interval then reaches.
    pub(crate) fn confidence(&self) -> f64 {
        2.0f64.mul_add(-self.at_most[self.cut()], 1.0).max(0.0)
    }
}

/// The chance of each sum of positive ranks, 0 to n(n+1)/2: each rank counts or not, one half each.
fn chances(pairs: usize) -> Vec<f64> {
    let mut chances = vec![0.0; pairs * (pairs + 1) / 2 + 1];
    chances[0] = 1.0;
    for rank in 1..=pairs {
        for sum in (0..=rank * (rank + 1) / 2).rev() {
            let with = if sum >= rank { chances[sum - rank] } else { 0.0 };
            chances[sum] = f64::midpoint(chances[sum], with);
        }
    }
    chances
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sign_patterns_of_three_are_counted_one_by_one() {
        let counts: Vec<f64> = chances(3).iter().map(|chance| chance * 8.0).collect();
        assert_eq!(counts, [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn ten_values_leave_out_eight_means_on_each_side() {
        // The published critical value for n = 10 at 5 % two-sided is 8, reached 0.0488.
        let rank = SignedRank::new(10);
        assert_eq!(rank.cut(), 8);
        assert!((rank.confidence() - (1.0 - 0.048_828_125)).abs() < 1e-12);
        assert!((rank.at_least(55 - 8) - 0.048_828_125 / 2.0).abs() < 1e-12);
    }

    #[test]
    fn too_few_values_say_how_little_they_reach() {
        let rank = SignedRank::new(4);
        assert_eq!(rank.cut(), 0);
        assert!((rank.confidence() - (1.0 - 2.0 / 16.0)).abs() < 1e-12);
    }

    #[test]
    fn many_values_do_not_overflow() {
        let rank = SignedRank::new(200);
        assert!((0.949..0.951).contains(&rank.confidence()));
        assert!((rank.at_least(0) - 1.0).abs() < 1e-9);
        assert_eq!(rank.at_least(usize::MAX), 0.0);
    }
}
