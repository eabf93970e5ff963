// SPDX-License-Identifier: Apache-2.0
//! Pairs, and what follows from them before anybody judges.

use super::{Estimate, Margin, Ranks, Verdict};
use crate::statistics::{differences, estimate, log_ratios, pairwise_means};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One logarithm of A's cost over B's for each pair.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairs {
    logs: Vec<f64>,
}

impl Pairs {
    /// Pairs of costs, where less is better: `a[i]` and `b[i]` are a pair. What has no partner is left
    /// out, and so is a pair with a value that is not positive or not finite.
    #[must_use]
    pub fn of_costs(a: &[f64], b: &[f64]) -> Self {
        Self::of_logs(log_ratios(a, b))
    }

    /// Pairs of rates, where more is better.
    #[must_use]
    pub fn of_rates(a: &[f64], b: &[f64]) -> Self {
        Self::of_costs(b, a)
    }

    /// Logarithms of A's cost over B's; what is not finite is left out.
    #[must_use]
    pub fn of_logs(logs: Vec<f64>) -> Self {
        Self { logs: logs.into_iter().filter(|log| log.is_finite()).collect() }
    }

    /// The logarithms, in the order of the pairs.
    #[must_use]
    pub fn logs(&self) -> &[f64] {
        &self.logs
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.logs.len()
    }
}

/// The estimate of A's cost over B's, and everything that is needed to judge it.
#[derive(Clone, Debug)]
pub struct Comparison {
    means: Vec<f64>,
    rank: Arc<Ranks>,
    log: Estimate,
    /// By how much the interval is wider than the ranks say, on both sides.
    wider: f64,
}

impl Comparison {
    /// Compares. `None` without pairs.
    #[must_use]
    pub fn of(pairs: &Pairs) -> Option<Self> {
        Self::with(pairs, &Arc::new(Ranks::signed(pairs.count())))
    }

    /// The same with a distribution that is there already. `None` without pairs, or if the
    /// distribution is for another number of them.
    #[must_use]
    pub fn with(pairs: &Pairs, rank: &Arc<Ranks>) -> Option<Self> {
        if rank.pairs() != pairs.count() {
            return None;
        }
        let means = pairwise_means(&pairs.logs);
        let log = estimate(&means, rank)?;
        Some(Self { means, rank: Arc::clone(rank), log, wider: 0.0 })
    }

    /// Compares two groups of costs that were not measured in pairs: two experiments. What the machine
    /// was like in one and not in the other is not in the interval. `None` of nothing.
    #[must_use]
    pub fn of_two(a: &[f64], b: &[f64]) -> Option<Self> {
        let logs = |costs: &[f64]| -> Vec<f64> {
            costs.iter().map(|cost| cost.ln()).filter(|log| log.is_finite()).collect()
        };
        let (a, b) = (logs(a), logs(b));
        let rank = Arc::new(Ranks::of_two(a.len(), b.len()));
        let means = differences(&a, &b);
        let log = estimate(&means, &rank)?;
        Some(Self { means, rank, log, wider: 0.0 })
    }

    /// The same with an interval that is wider on both sides, on the scale of logarithms: by what lies
    /// between the two groups and in neither of them. A verdict and its chances follow.
    #[must_use]
    pub fn widened(mut self, by: f64) -> Self {
        self.wider += by;
        self.log.low -= by;
        self.log.high += by;
        self
    }

    /// Whether the interval holds more than the samples themselves say.
    #[must_use]
    pub fn is_widened(&self) -> bool {
        self.wider > 0.0
    }

    /// How many pairs there were, or values in the smaller group.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.rank.pairs()
    }

    /// The Hodges-Lehmann estimate of the logarithm of A's cost over B's, with its exact interval.
    #[must_use]
    pub const fn log(&self) -> Estimate {
        self.log
    }

    /// A's cost over B's: 0.9 is a tenth less.
    #[must_use]
    pub fn ratio(&self) -> Estimate {
        self.log.map(f64::exp)
    }

    /// How far from "alike" the interval reaches: of two identical arms, what this machine could not
    /// have told apart. On the scale of logarithms.
    #[must_use]
    pub fn floor(&self) -> f64 {
        self.log.low.abs().max(self.log.high.abs())
    }

    /// Judges by the interval.
    #[must_use]
    pub fn verdict(&self, margin: Margin) -> Verdict {
        match Verdict::of(self.log, self.pairs(), margin) {
            // What was added to the interval does not shrink with the number of pairs.
            Verdict::Unresolved { .. } if self.wider > 0.0 => Verdict::Unresolved { more: None },
            verdict => verdict,
        }
    }

    /// The two-sided p-value of "the arms differ by no more than the margin": at most 0.05 exactly
    /// when the verdict is faster or slower.
    #[must_use]
    pub fn p_different(&self, margin: Margin) -> f64 {
        let margin = margin.log() + self.wider;
        let slower = self.rank.at_least(self.above(margin));
        let faster = self.rank.at_least(self.below(-margin));
        (2.0 * slower.min(faster)).min(1.0)
    }

    /// The p-value of "the arms differ by the margin or more": at most 0.05 exactly when the verdict
    /// is same. Two one-sided tests, each at half the level, as the interval has it.
    #[must_use]
    pub fn p_same(&self, margin: Margin) -> f64 {
        let margin = margin.log() - self.wider;
        let not_faster = self.rank.at_least(self.above(-margin));
        let not_slower = self.rank.at_least(self.below(margin));
        (2.0 * not_faster.max(not_slower)).min(1.0)
    }

    /// The sum of positive ranks of the differences less `log`. Equal ones count for neither side, which
    /// errs on the side of "unresolved".
    fn above(&self, log: f64) -> usize {
        self.means.len() - self.means.partition_point(|mean| *mean <= log)
    }

    /// The sum of the negative ranks.
    fn below(&self, log: f64) -> usize {
        self.means.partition_point(|mean| *mean < log)
    }
}

/// Compares many cells: distributions take longer than all the rest, and cells mostly have as many pairs as
/// the others.
#[derive(Debug, Default)]
pub struct Comparer(BTreeMap<usize, Arc<Ranks>>);

impl Comparer {
    /// As [`Comparison::of`].
    pub fn compare(&mut self, pairs: &Pairs) -> Option<Comparison> {
        let count = pairs.count();
        let rank = self.0.entry(count).or_insert_with(|| Arc::new(Ranks::signed(count)));
        Comparison::with(pairs, rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn random_pairs(random: &mut Random, count: usize) -> Vec<f64> {
        // Coarse values: ties and zeros are part of the matter.
        let shift = (random.unit() - 0.5) * 0.12;
        (0..count).map(|_| ((random.unit() - 0.5) * 20.0).round() / 100.0 + shift).collect()
    }

    fn compare(logs: Vec<f64>) -> Comparison {
        Comparison::of(&Pairs::of_logs(logs)).unwrap()
    }

    #[test]
    fn costs_and_rates_have_opposite_signs() {
        let (a, b) = ([1.1; 3], [2.0; 3]);
        let costs = Comparison::of(&Pairs::of_costs(&a, &b)).unwrap();
        let rates = Comparison::of(&Pairs::of_rates(&a, &b)).unwrap();
        assert!(costs.log().value < 0.0);
        assert!((costs.log().value + rates.log().value).abs() < 1e-12);
        assert!((costs.ratio().value - 0.55).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        let a = [1.0, f64::NAN, 0.0, f64::INFINITY, 2.0, 3.0];
        assert_eq!(Pairs::of_costs(&a, &[1.0; 5]).count(), 2);
        assert!(Comparison::of(&Pairs::default()).is_none());
    }

    #[test]
    fn two_groups_are_compared_without_pairs() {
        let a: Vec<f64> = (0..12).map(|at| 110.0 + f64::from(at) * 0.1).collect();
        let b: Vec<f64> = (0..9).map(|at| 100.0 + f64::from(at) * 0.1).collect();
        let here = Comparison::of_two(&a, &b).unwrap();
        let there = Comparison::of_two(&b, &a).unwrap();
        assert_eq!(here.pairs(), 9);
        assert!((here.ratio().value - 1.1).abs() < 5e-3 && here.log().confidence > 0.95);
        assert_eq!(here.verdict(Margin::new(None)), Verdict::Slower);
        assert_eq!(there.verdict(Margin::new(None)), Verdict::Faster);
        assert!(here.p_different(Margin::new(None)) < 1e-4);
        assert!(Comparison::of_two(&[], &b).is_none());
        let few = Comparison::of_two(&a[..2], &b[..2]).unwrap();
        assert!(!few.verdict(Margin::new(None)).is_resolved());
    }

    #[test]
    fn the_interval_of_two_groups_covers_the_truth_as_often_as_it_says() {
        let (mut random, mut covered) = (Random::new(9), 0);
        for _ in 0..2_000 {
            let mut group = |shift: f64, size: usize| -> Vec<f64> {
                (0..size).map(|_| (shift + random.unit().powi(3)).exp()).collect()
            };
            let (a, b) = (group(0.3, 8), group(0.0, 11));
            let log = Comparison::of_two(&a, &b).unwrap().log();
            covered += usize::from(log.low <= 0.3 && 0.3 <= log.high);
        }
        assert!((1_880..=1_960).contains(&covered), "{covered} of 2000");
    }

    #[test]
    fn exchanging_the_arms_exchanges_the_signs() {
        let mut random = Random::new(1);
        for count in 1..40 {
            let logs = random_pairs(&mut random, count);
            let here = compare(logs.clone());
            let there = compare(logs.iter().map(|log| -log).collect());
            assert!((here.log().value + there.log().value).abs() < 1e-12);
            assert!((here.log().low + there.log().high).abs() < 1e-12);
            let margin = Margin::new(None);
            assert_eq!(here.verdict(margin).exchanged(), there.verdict(margin));
            assert!((here.p_different(margin) - there.p_different(margin)).abs() < 1e-12);
            assert!((here.p_same(margin) - there.p_same(margin)).abs() < 1e-12);
        }
    }

    #[test]
    fn the_order_of_pairs_does_not_matter() {
        let mut random = Random::new(2);
        for count in 2..30 {
            let mut logs = random_pairs(&mut random, count);
            let before = compare(logs.clone()).log();
            random.shuffle(&mut logs);
            assert_eq!(before, compare(logs).log());
        }
    }

    #[test]
    fn shifting_every_pair_shifts_the_estimate() {
        let mut random = Random::new(3);
        for count in 1..30 {
            let logs = random_pairs(&mut random, count);
            let before = compare(logs.clone()).log();
            let after = compare(logs.iter().map(|log| log + 0.5).collect()).log();
            assert!((after.value - before.value - 0.5).abs() < 1e-9);
            assert!((after.high - after.low - before.high + before.low).abs() < 1e-9);
        }
    }

    #[test]
    fn interval_and_test_always_agree() {
        let mut random = Random::new(4);
        let mut seen = [0; 3];
        for round in 0..2_000 {
            let count = 1 + round % 30;
            let comparison = compare(random_pairs(&mut random, count));
            let wider = if round % 3 == 0 { random.unit() * 0.03 } else { 0.0 };
            let comparison = comparison.widened(wider);
            let margin = Margin::new(Some(0.02 + random.unit() * 0.06));
            let verdict = comparison.verdict(margin);
            let (different, same) = (comparison.p_different(margin), comparison.p_same(margin));
            let differs = matches!(verdict, Verdict::Faster | Verdict::Slower);
            assert_eq!(differs, different <= 0.05, "{comparison:?}");
            assert_eq!(verdict == Verdict::Same, same <= 0.05, "{comparison:?}");
            seen[usize::from(differs) + 2 * usize::from(verdict == Verdict::Same)] += 1;
        }
        assert!(seen.iter().all(|times| *times > 20), "{seen:?}");
    }
}
