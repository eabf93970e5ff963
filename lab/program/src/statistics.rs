// SPDX-License-Identifier: Apache-2.0
//! Estimates that one bad round cannot move: medians, and the Hodges-Lehmann estimate of paired
//! values with the exact interval of the signed-rank test.

use crate::ranks::Ranks;
use serde::{Deserialize, Serialize};

/// An estimate and its interval.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Estimate {
    /// What is most likely.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// What the interval reaches: less than asked for when there are too few values.
    pub confidence: f64,
}

impl Estimate {
    /// The same estimate on another scale; `scale` must not decrease.
    pub(crate) fn map(self, scale: impl Fn(f64) -> f64) -> Self {
        Self {
            value: scale(self.value),
            low: scale(self.low),
            high: scale(self.high),
            confidence: self.confidence,
        }
    }
}

/// The middle value, of an even number the mean of both middle ones; NaN of nothing. Whatever the lab shows
/// as a median comes from here.
pub(crate) fn median(values: &[f64]) -> f64 {
    median_in_place(&mut values.to_vec())
}

/// The same of values that may be put into another order.
pub(crate) fn median_in_place(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    if values.is_empty() {
        return f64::NAN;
    }
    let odd = values.len() % 2 == 1;
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp).filter(|_| !odd);
    between(lower.unwrap_or(*upper), *upper, 0.5)
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The value at `share` (0 to 1) of the values, on the straight line between the two nearest ranks: at one
/// half it is the median.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    quantile_of_sorted(&sorted(values.to_vec()), share)
}

fn quantile_of_sorted(values: &[f64], share: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    let place = share.clamp(0.0, 1.0) * last as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to the last")]
    let below = (place as usize).min(last);
    between(values[below], values[(below + 1).min(last)], place - below as f64)
}

/// A point of the line between two values; at an end the value itself, even one that is infinite.
fn between(low: f64, high: f64, share: f64) -> f64 {
    if share <= 0.0 || low == high { low } else { (high - low).mul_add(share, low) }
}

/// The Hodges-Lehmann estimate of where paired differences lie: the median of all their pairwise
/// means, with the exact interval of the signed-rank test. `None` of nothing.
///
/// J. L. Hodges and E. L. Lehmann, "Estimates of location based on rank tests", Annals of
/// Mathematical Statistics 34 (1963).
pub(crate) fn hodges_lehmann(differences: &[f64]) -> Option<Estimate> {
    let rank = Ranks::signed(differences.len());
    estimate(&pairwise_means(differences), &rank)
}

/// The means of all pairs, each value with itself too, sorted.
pub(crate) fn pairwise_means(values: &[f64]) -> Vec<f64> {
    let mut means = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (at, left) in values.iter().enumerate() {
        means.extend(values[at..].iter().map(|right| f64::midpoint(*left, *right)));
    }
    sorted(means)
}

/// All differences between two groups, sorted.
pub(crate) fn differences(first: &[f64], second: &[f64]) -> Vec<f64> {
    sorted(first.iter().flat_map(|left| second.iter().map(move |right| left - right)).collect())
}

/// The estimate from the sorted pairwise means, or differences of two groups. `None` of nothing.
pub(crate) fn estimate(means: &[f64], rank: &Ranks) -> Option<Estimate> {
    let last = means.len().checked_sub(1)?;
    Some(Estimate {
        value: quantile_of_sorted(means, 0.5),
        low: means[rank.cut()],
        high: means[last - rank.cut()],
        confidence: rank.confidence(),
    })
}

/// The logarithms of `numerator / denominator`, pair by pair. Pairs with a value that is not
/// positive are left out.
pub(crate) fn log_ratios(numerator: &[f64], denominator: &[f64]) -> Vec<f64> {
    let pairs = numerator.iter().zip(denominator);
    pairs.filter(|(a, b)| **a > 0.0 && **b > 0.0).map(|(a, b)| (a / b).ln()).collect()
}

/// The paired estimate of `numerator / denominator`, on the scale of logarithms: neither order is
/// preferred. Pairs with a value that is not positive are left out.
pub(crate) fn paired_ratio(numerator: &[f64], denominator: &[f64]) -> Option<Estimate> {
    let logs = log_ratios(numerator, denominator);
    hodges_lehmann(&logs).map(|estimate| estimate.map(f64::exp))
}

/// The paired estimate of `left - right`.
pub(crate) fn paired_difference(left: &[f64], right: &[f64]) -> Option<Estimate> {
    let differences: Vec<f64> = left.iter().zip(right).map(|(a, b)| a - b).collect();
    hodges_lehmann(&differences)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_quantile_of_one_half_is_the_median() {
        let mut random = crate::random::Random::new(8);
        for count in 1..40 {
            let values: Vec<f64> = (0..count).map(|_| random.unit()).collect();
            assert_eq!(quantile(&values, 0.5), median(&values), "{values:?}");
        }
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.25), 1.75);
        assert!(quantile(&[], 0.5).is_nan());
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.0), 1.0);
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 1.0), 5.0);
    }

    #[expect(clippy::approx_constant, reason = "a measured score, not pi")]
    #[test]
    fn the_estimate_of_known_differences_agrees_with_the_textbook() {
        // Hollander and Wolfe, depression scores (table 3.1): the estimate is -0.46, and the
        // interval with confidence 0.961 is from -0.786 to -0.010.
        let before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
        let estimate = paired_difference(&after, &before).unwrap();
        assert!((estimate.value - -0.46).abs() < 5e-4, "{estimate:?}");
        assert!((estimate.low - -0.786).abs() < 5e-4, "{estimate:?}");
        assert!((estimate.high - -0.010).abs() < 5e-4, "{estimate:?}");
        assert!((estimate.confidence - 0.961).abs() < 5e-4, "{estimate:?}");
    }

    #[test]
    fn one_bad_round_does_not_move_the_ratio() {
        let raw = [100.0; 11];
        let mut module = [101.0; 11];
        module[4] = 900.0;
        let ratio = paired_ratio(&raw, &module).unwrap();
        assert!((ratio.value - 100.0 / 101.0).abs() < 1e-9, "{ratio:?}");
        assert!(ratio.low <= ratio.value && ratio.value <= ratio.high);
    }

    #[test]
    fn the_interval_covers_the_truth_as_often_as_it_says() {
        let mut random = crate::random::Random::new(42);
        let runs = 2_000;
        let covered = (0..runs).filter(|_| {
            let sample: Vec<f64> = (0..15).map(|_| random.unit() - 0.5).collect();
            let estimate = hodges_lehmann(&sample).unwrap();
            estimate.low <= 0.0 && 0.0 <= estimate.high
        });
        let share = covered.count() as f64 / f64::from(runs);
        assert!((0.935..=0.975).contains(&share), "{share}");
    }
}
