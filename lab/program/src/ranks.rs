// SPDX-License-Identifier: Apache-2.0
//! The statistics of ranks when there is no difference: of pairs, and of two groups.
//!
//! F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1 (1945). The sum of
//! the ranks of the positive differences is the number of pairwise means above zero (J. W. Tukey), so
//! test and interval are two ways of counting the same means. Of two groups it is the number of
//! differences above zero among all (H. B. Mann and D. R. Whitney, Annals of Mathematical Statistics
//! 18, 1947). Both distributions are symmetric.

/// The exact distribution of a statistic of ranks: the chance of each count of means, or of
/// differences, above zero.
#[derive(Clone, Debug)]
pub struct Ranks {
    pairs: usize,
    /// The chance of a count of at most the index.
    at_most: Vec<f64>,
}

impl Ranks {
    /// Of the sum of positive ranks, for `pairs` differences whose signs are thrown by a coin. Takes
    /// time that grows with their cube: a second for a thousand.
    #[must_use]
    pub fn signed(pairs: usize) -> Self {
        Self::of(pairs, chances(pairs))
    }

    /// Of two groups of values that come from the same place in any order: how many of the differences
    /// between them are above zero.
    #[must_use]
    pub fn of_two(first: usize, second: usize) -> Self {
        Self::of(first.min(second), orders(first, second))
    }

    fn of(pairs: usize, mut at_most: Vec<f64>) -> Self {
        let mut sum = 0.0;
        for chance in &mut at_most {
            sum += *chance;
            *chance = sum;
        }
        Self { pairs, at_most }
    }

    /// For how many pairs it is, or for how many values in the smaller group.
    #[must_use]
    pub const fn pairs(&self) -> usize {
        self.pairs
    }

    /// The chance that the count is `sum` or more; both tails are alike.
    #[must_use]
    pub fn at_least(&self, sum: usize) -> f64 {
        let highest = self.at_most.len() - 1;
        highest.checked_sub(sum).map_or(0.0, |rest| self.at_most[rest].min(1.0))
    }

    /// How many means, or differences, an interval leaves out on each side: the largest number whose tail
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

/// The chance of each count of differences above zero, 0 to mn. The numbers of orders are the
/// coefficients of the Gaussian binomial: each further value of the first group multiplies by
/// (1 - x^(n+i)) / (1 - x^i). Kept as chances, so that nothing overflows.
fn orders(first: usize, second: usize) -> Vec<f64> {
    let last = first * second;
    // The lower half, and its mirror: beyond the middle, what is subtracted would have grown.
    let mut half = vec![0.0; last / 2 + 1];
    half[0] = 1.0;
    for step in 1..=first {
        for count in (second + step..half.len()).rev() {
            half[count] -= half[count - second - step];
        }
        for count in step..half.len() {
            half[count] += half[count - step];
        }
        let scale = step as f64 / (second + step) as f64;
        half.iter_mut().for_each(|chance| *chance *= scale);
    }
    (0..=last).map(|count| half[count.min(last - count)].max(0.0)).collect()
}

/// The confidence that every interval aims at.
pub(crate) const CONFIDENCE: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sign_patterns_of_three_are_counted_one_by_one() {
        let counts: Vec<f64> = chances(3).iter().map(|chance| chance * 8.0).collect();
        assert_eq!(counts, [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn orders_of_two_groups_are_counted_one_by_one() {
        // Two and three: ten orders.
        let counts: Vec<f64> = orders(2, 3).iter().map(|chance| (chance * 10.0).round()).collect();
        assert_eq!(counts, [1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 1.0]);
        for (first, second) in [(1, 7), (7, 1), (6, 9), (40, 35), (200, 200)] {
            let chances = orders(first, second);
            let sum: f64 = chances.iter().sum();
            assert!((sum - 1.0).abs() < 1e-9, "{first} {second}: {sum}");
            let alike = chances.iter().zip(chances.iter().rev());
            assert!(alike.clone().all(|(low, high)| (low - high).abs() < 1e-9));
        }
    }

    #[test]
    fn two_groups_have_the_published_critical_values() {
        // Two-sided, 5 %: 23 for ten and ten, 2 for five and five.
        for (size, critical) in [(10, 23), (5, 2)] {
            assert_eq!(Ranks::of_two(size, size).cut(), critical);
        }
        // Large groups are near the normal distribution.
        let (size, rank) = (100.0_f64, Ranks::of_two(100, 100));
        let spread = (size * size * (2.0 * size + 1.0) / 12.0).sqrt();
        let expected = size * size / 2.0 - 1.96 * spread;
        assert!((rank.cut() as f64 - expected).abs() < 3.0, "{} {expected}", rank.cut());
    }

    #[test]
    fn ten_values_leave_out_eight_means_on_each_side() {
        // The published critical value for n = 10 at 5 % two-sided is 8, reached 0.0488.
        let rank = Ranks::signed(10);
        assert_eq!(rank.cut(), 8);
        assert!((rank.confidence() - (1.0 - 0.048_828_125)).abs() < 1e-12);
        assert!((rank.at_least(55 - 8) - 0.048_828_125 / 2.0).abs() < 1e-12);
    }

    #[test]
    fn too_few_values_say_how_little_they_reach() {
        let rank = Ranks::signed(4);
        assert_eq!(rank.cut(), 0);
        assert!((rank.confidence() - (1.0 - 2.0 / 16.0)).abs() < 1e-12);
    }

    #[test]
    fn many_values_do_not_overflow() {
        let rank = Ranks::signed(200);
        assert!((0.949..0.951).contains(&rank.confidence()));
        assert!((rank.at_least(0) - 1.0).abs() < 1e-9);
        assert_eq!(rank.at_least(usize::MAX), 0.0);
    }
}
