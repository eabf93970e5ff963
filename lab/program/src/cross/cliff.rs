// SPDX-License-Identifier: Apache-2.0
//! Cliffs: places where a small step along the axis costs much more, or much less, than the curve on
//! both sides of it explains. A write of 65,536 bytes instead of 65,483 over a loopback is one.

use crate::statistics::{Estimate, hodges_lehmann};
use crate::verdict::{Comparison, Family, Margin, Pairs, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a curve's neighbouring steps may say about a step: a cost per unit falls no faster than the
/// unit's size grows, and hardly rises faster.
const STEEPEST: f64 = 1.0;
/// A jump that is surely larger than this is worth a line, in percent.
const LEAST: f64 = 10.0;

/// A step of the axis that the curve around it does not explain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Cliff {
    /// The value before the step.
    pub(crate) from: f64,
    /// The value after it.
    pub(crate) to: f64,
    /// What the step costs beyond what the curve explains, as a factor.
    pub(crate) jump: Estimate,
}

/// A step of a curve, and what it costs beyond what the curve explains.
#[derive(Clone, Debug)]
pub(super) struct Step {
    from: f64,
    to: f64,
    beyond: Comparison,
}

/// The steps of a curve. `values` increase; `costs[i]` has the costs at `values[i]` by repetition. A step is
/// judged repetition by repetition, so whatever made one repetition dear made it so on both sides.
pub(super) fn steps(values: &[f64], costs: &[BTreeMap<usize, f64>]) -> Vec<Step> {
    let steps: Vec<Vec<f64>> =
        (1..values.len()).map(|at| step(&costs[at - 1], &costs[at])).collect();
    let slopes: Vec<Option<f64>> = steps
        .iter()
        .enumerate()
        .map(|(at, step)| {
            let slope = hodges_lehmann(step)?.value / (values[at + 1] / values[at]).ln();
            // A steeper one is a cliff itself, and explains nothing.
            (slope.abs() <= STEEPEST).then_some(slope)
        })
        .collect();
    let beyond = |at: usize| {
        let width = (values[at + 1] / values[at]).ln();
        let before = at.checked_sub(1).and_then(|before| slopes[before]);
        let (low, high) = explained(before, slopes.get(at + 1).copied().flatten());
        let (low, high) = (low * width, high * width);
        let beyond = |rise: &f64| if *rise > high { rise - high } else { (rise - low).min(0.0) };
        let beyond = Comparison::of(&Pairs::of_logs(steps[at].iter().map(beyond).collect()))?;
        Some(Step { from: values[at], to: values[at + 1], beyond })
    };
    (0..steps.len()).filter_map(beyond).collect()
}

/// Which steps are cliffs, with all of them in view: by more than is worth a line.
pub(super) fn cliffs(steps: &[Step]) -> Vec<Option<Cliff>> {
    let cells = steps.iter().map(|step| (String::new(), step.beyond.clone())).collect();
    let verdicts = Family::new(cells, Margin::of_percent(LEAST)).verdicts();
    let cliff = |(step, verdict): (&Step, Verdict)| {
        let Step { from, to, beyond } = step;
        let is_one = matches!(verdict, Verdict::Faster | Verdict::Slower);
        is_one.then(|| Cliff { from: *from, to: *to, jump: beyond.ratio() })
    };
    steps.iter().zip(verdicts).map(cliff).collect()
}

/// The logarithm of what a step costs more, for each repetition that has both sides.
fn step(before: &BTreeMap<usize, f64>, after: &BTreeMap<usize, f64>) -> Vec<f64> {
    let both = before.iter().filter_map(|(at, cost)| Some((after.get(at)? / cost).ln()));
    both.filter(|rise| rise.is_finite()).collect()
}

/// Between which slopes a step is explained: those of its neighbours. At an end of the curve there is
/// only one, and the step may be as steep as any in that direction.
fn explained(before: Option<f64>, after: Option<f64>) -> (f64, f64) {
    match (before, after) {
        (Some(before), Some(after)) => (before.min(after), before.max(after)),
        (Some(one), None) | (None, Some(one)) if one < 0.0 => (-STEEPEST, 0.0),
        (Some(_), None) | (None, Some(_)) => (0.0, STEEPEST),
        (None, None) => (-STEEPEST, STEEPEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Ten repetitions with a noise of 2 %, and a drift that all sizes of a repetition share.
    fn costs(values: &[f64], cost: impl Fn(f64) -> f64) -> Vec<BTreeMap<usize, f64>> {
        let mut random = Random::new(3);
        let drift: Vec<f64> = (0..10).map(|_| 1.0 + random.unit()).collect();
        let of_value = |value: &f64| {
            let noisy = |at: usize, random: &mut Random| {
                cost(*value) * drift[at] * (0.99 + 0.02 * random.unit())
            };
            (0..10).map(|at| (at, noisy(at, &mut random))).collect()
        };
        values.iter().map(of_value).collect()
    }

    fn found(values: &[f64], costs: &[BTreeMap<usize, f64>]) -> Vec<Cliff> {
        cliffs(&steps(values, costs)).into_iter().flatten().collect()
    }

    const SIZES: [f64; 8] =
        [4096.0, 8192.0, 16_384.0, 32_768.0, 61_440.0, 65_483.0, 65_536.0, 131_072.0];

    #[test]
    fn a_curve_that_falls_as_sizes_grow_has_no_cliff() {
        let cliffs = found(&SIZES, &costs(&SIZES, |size| 300.0 + 2e6 / size));
        assert_eq!(cliffs, []);
        assert_eq!(found(&SIZES, &costs(&SIZES, |_| 7.0)), []);
    }

    #[test]
    fn a_second_segment_for_a_few_bytes_is_a_cliff() {
        let segments = |size: f64| (size / 65_483.0).ceil();
        let cliffs =
            found(&SIZES, &costs(&SIZES, |size| (size + 30_000.0 * segments(size)) / size));
        assert_eq!(cliffs.len(), 1, "{cliffs:?}");
        assert_eq!((cliffs[0].from, cliffs[0].to), (65_483.0, 65_536.0));
        assert!((cliffs[0].jump.value / 1.31 - 1.0).abs() < 0.03, "{cliffs:?}");
    }

    #[test]
    fn a_cache_that_ends_is_a_cliff_at_the_end_of_it() {
        let cliffs = found(&SIZES, &costs(&SIZES, |size| if size > 20_000.0 { 4.0 } else { 1.0 }));
        assert_eq!(cliffs.len(), 1, "{cliffs:?}");
        assert_eq!(cliffs[0].from, 16_384.0);
    }

    #[test]
    fn one_repetition_proves_nothing() {
        let one: Vec<BTreeMap<usize, f64>> =
            [1.0, 1.0, 9.0, 9.0].into_iter().map(|cost| BTreeMap::from([(0, cost)])).collect();
        assert_eq!(found(&SIZES[..4], &one), []);
        assert_eq!(found(&[], &[]), []);
    }
}
