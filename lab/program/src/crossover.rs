// SPDX-License-Identifier: Apache-2.0
//! Where two ways change places: the size at which one of them begins to cost less than the other.
//!
//! At each size there are pairs, as logarithms of the first way's cost over the second's. Their
//! Hodges-Lehmann estimates are interpolated over the logarithm of the size, and the crossover is the zero
//! of that line. Noise can give it several: the one is taken that leaves the least cost on the wrong
//! side. The interval is a bootstrap over the pairs: B. Efron, "Bootstrap methods: another look at the
//! jackknife", Annals of Statistics 7 (1979).

use crate::random::Random;
use crate::ranks::CONFIDENCE;
use crate::statistics::{hodges_lehmann, median_in_place};
use crate::verdict::Verdict;
use serde::Serialize;

/// Fewer pairs at a size decide nothing: drawn again, they would only seem to.
const FEWEST: usize = 6;
/// How often the pairs are drawn again.
const DRAWS: usize = 500;

/// One of the two ways.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    /// The one whose cost is above the line in the ratio.
    First,
    /// The one below the line.
    Second,
}

/// A place on the axis of sizes.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SizePoint {
    /// Below the smallest size that was measured.
    Below,
    /// At this size.
    At(f64),
    /// Above the largest one.
    Above,
}

/// Where two ways change places.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Crossover {
    /// Which one costs less above the crossover; the other one costs less below it.
    pub(crate) above: Way,
    /// The crossover. `Below` and `Above`: one of the two costs less at every size.
    pub(crate) at: SizePoint,
    /// The lower end of its interval, of 95 %.
    pub(crate) low: SizePoint,
    /// The upper end.
    pub(crate) high: SizePoint,
    /// Sizes whose pairs clearly say the opposite of what the crossover makes of them: the two change
    /// places more often than once.
    pub(crate) against: Vec<f64>,
}

impl Crossover {
    /// Whether it can be anywhere: nothing is known then.
    pub(crate) fn is_unclear(&self) -> bool {
        self.low == SizePoint::Below && self.high == SizePoint::Above
    }

    /// The same as far as verdicts carry it, each of the first way's cost over the second's at one of the
    /// sizes: some size on each side of the crossover must say which way costs less there, and where one
    /// of them seems to cost less at every size, some size must say so. Otherwise nothing is known.
    pub(crate) fn carried(self, sizes: &[f64], verdicts: &[Verdict]) -> Self {
        let says = |way: Way, above: bool| {
            let wanted = if way == Way::First { Verdict::Faster } else { Verdict::Slower };
            sizes.iter().zip(verdicts).any(|(size, verdict)| {
                *verdict == wanted && (SizePoint::At(*size) >= self.at) == above
            })
        };
        let carried = match self.at {
            SizePoint::At(_) => says(self.above, true) && says(self.above.other(), false),
            SizePoint::Below => says(self.above, true),
            SizePoint::Above => says(self.above.other(), false),
        };
        if carried { self } else { Self { low: SizePoint::Below, high: SizePoint::Above, ..self } }
    }

    /// Which one costs less at every size, if one does, with no doubt.
    pub(crate) fn always(&self) -> Option<Way> {
        match (self.low, self.high) {
            (SizePoint::Below, SizePoint::Below) => Some(self.above),
            (SizePoint::Above, SizePoint::Above) => Some(self.above.other()),
            _ => None,
        }
    }
}

impl Way {
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    /// The sign of the logarithms where this one costs less.
    const fn sign(self) -> f64 {
        match self {
            Self::First => -1.0,
            Self::Second => 1.0,
        }
    }
}

/// Finds the crossover. `sizes` increase; `logs[i]` has the pairs at `sizes[i]`, logarithms of the
/// first way's cost over the second's. Sizes with fewer than six pairs are left out; `None` if none is
/// left.
pub(crate) fn crossover(
    sizes: &[f64],
    logs: &[Vec<f64>],
    random: &mut Random,
) -> Option<Crossover> {
    let (sizes, logs): (Vec<f64>, Vec<&Vec<f64>>) =
        sizes.iter().zip(logs).filter(|(_, logs)| logs.len() >= FEWEST).unzip();
    let estimates: Vec<_> = logs.iter().filter_map(|logs| hodges_lehmann(logs)).collect();
    let values: Vec<f64> = estimates.iter().map(|estimate| estimate.value).collect();
    let above = direction(&values)?;
    let at = zero(&sizes, &values, above);
    let mut drawn: Vec<SizePoint> = (0..DRAWS)
        .map(|_| {
            zero(&sizes, &logs.iter().map(|logs| draw(logs, random)).collect::<Vec<_>>(), above)
        })
        .collect();
    drawn.sort_by(|left, right| left.partial_cmp(right).unwrap_or(std::cmp::Ordering::Equal));
    let tail = cut();
    let against = sizes.iter().zip(&estimates).filter(|(size, estimate)| {
        let sign = if SizePoint::At(**size) < at { above.other() } else { above }.sign();
        estimate.low * sign < 0.0 && estimate.high * sign < 0.0
    });
    Some(Crossover {
        above,
        at,
        low: drawn[tail],
        high: drawn[DRAWS - 1 - tail],
        against: against.map(|(size, _)| *size).collect(),
    })
}

/// How many draws an interval leaves out on each side.
const fn cut() -> usize {
    let left_out = (1.0 - CONFIDENCE) * DRAWS as f64 / 2.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count"
    )]
    let whole = left_out as usize;
    whole
}

/// The estimate of the same pairs, drawn with replacement.
fn draw(logs: &[f64], random: &mut Random) -> f64 {
    let count = logs.len();
    let any = |random: &mut Random| usize::try_from(random.below(count as u64)).unwrap_or(0);
    let drawn: Vec<f64> = (0..count).map(|_| logs[any(random)]).collect();
    let mut means = Vec::with_capacity(count * (count + 1) / 2);
    for (at, left) in drawn.iter().enumerate() {
        means.extend(drawn[at..].iter().map(|right| f64::midpoint(*left, *right)));
    }
    median_in_place(&mut means)
}

/// Which one costs less above, of the two possibilities the one that explains more. Where one costs less at
/// every size, the slope decides at which end the other one comes nearer.
fn direction(values: &[f64]) -> Option<Way> {
    let (first, last) = (values.first()?, values.last()?);
    let best = |way: Way| split(values, way).1;
    let (one, other) = (best(Way::First), best(Way::Second));
    let falls = if (one - other).abs() > 1e-12 { one > other } else { last < first };
    Some(if falls { Way::First } else { Way::Second })
}

/// How many sizes are below the crossover, and how much cost that explains: the values of the right sign
/// less those of the wrong one.
fn split(values: &[f64], above: Way) -> (usize, f64) {
    let mut explained: f64 = values.iter().map(|value| value * above.sign()).sum();
    let mut best = (0, explained);
    for (at, value) in values.iter().enumerate() {
        explained -= 2.0 * value * above.sign();
        if explained > best.1 {
            best = (at + 1, explained);
        }
    }
    best
}

/// The zero of the interpolated line at the best split.
fn zero(sizes: &[f64], values: &[f64], above: Way) -> SizePoint {
    let (below, _) = split(values, above);
    if below == 0 {
        return SizePoint::Below;
    }
    if below == sizes.len() {
        return SizePoint::Above;
    }
    let [left, right] = [below - 1, below];
    let share = values[left] / (values[left] - values[right]);
    let step = (sizes[right] / sizes[left]).ln();
    SizePoint::At(sizes[left] * (share.clamp(0.0, 1.0) * step).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [f64; 6] = [1024.0, 4096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0];

    /// Pairs around a line that falls by `slope` with each factor of e, and is zero at `at`.
    fn pairs(at: f64, slope: f64, noise: f64, count: usize, random: &mut Random) -> Vec<Vec<f64>> {
        let around = |size: &f64, random: &mut Random| {
            let line = -slope * (size / at).ln();
            (0..count).map(|_| line + (random.unit() - 0.5) * noise).collect()
        };
        SIZES.iter().map(|size| around(size, random)).collect()
    }

    fn found(logs: &[Vec<f64>]) -> Crossover {
        crossover(&SIZES, logs, &mut Random::new(1)).unwrap()
    }

    #[test]
    fn a_line_without_noise_has_its_zero_where_it_is() {
        let logs = pairs(40_000.0, 0.2, 0.0, 6, &mut Random::new(1));
        let crossover = found(&logs);
        let SizePoint::At(at) = crossover.at else { panic!("{crossover:?}") };
        assert!((at - 40_000.0).abs() < 1.0, "{crossover:?}");
        assert_eq!((crossover.low, crossover.high), (crossover.at, crossover.at));
        assert_eq!((crossover.above, crossover.always()), (Way::First, None));
        assert!(crossover.against.is_empty());
    }

    #[test]
    fn exchanging_the_two_keeps_the_place_and_exchanges_the_winner() {
        let logs = pairs(40_000.0, 0.2, 0.3, 9, &mut Random::new(2));
        let exchanged: Vec<Vec<f64>> =
            logs.iter().map(|logs| logs.iter().map(|log| -log).collect()).collect();
        let (here, there) = (found(&logs), found(&exchanged));
        assert_eq!((here.at, here.above), (there.at, there.above.other()));
    }

    #[test]
    fn one_that_always_wins_has_no_crossover_in_range() {
        let logs = pairs(10.0, 0.2, 0.1, 9, &mut Random::new(3));
        let first = found(&logs);
        assert_eq!((first.at, first.always()), (SizePoint::Below, Some(Way::First)));
        let logs = pairs(1e9, 0.2, 0.1, 9, &mut Random::new(3));
        let second = found(&logs);
        assert_eq!((second.at, second.always()), (SizePoint::Above, Some(Way::Second)));
    }

    #[test]
    fn a_crossover_is_only_known_where_verdicts_on_both_sides_carry_it() {
        let crossover = found(&pairs(40_000.0, 0.2, 0.1, 9, &mut Random::new(2)));
        let (less, more) = (Verdict::Faster, Verdict::Slower);
        let open = Verdict::Unresolved { more: None };
        let is_known =
            |verdicts: [Verdict; 6]| !crossover.clone().carried(&SIZES, &verdicts).is_unclear();
        assert!(is_known([more, open, open, open, open, less]));
        assert!(!is_known([more, more, more, open, open, open]));
        assert!(!is_known([open, open, open, less, less, less]));
        assert!(!is_known([less, less, less, more, more, more]));
        assert!(!is_known([open; 6]));
    }

    #[test]
    fn noise_alone_says_nothing() {
        let logs = pairs(1024.0, 0.0, 1.0, 9, &mut Random::new(4));
        let crossover = found(&logs);
        assert!(crossover.always().is_none(), "{crossover:?}");
        assert!(crossover.is_unclear() || crossover.low < crossover.high, "{crossover:?}");
    }

    #[test]
    fn the_interval_holds_the_truth_about_as_often_as_it_says() {
        let mut random = Random::new(5);
        let rounds = 80;
        let held = (0..rounds).filter(|_| {
            let at = 3000.0 * (random.unit() * 4.0).exp();
            let logs = pairs(at, 0.1, 0.3, 12, &mut random);
            let crossover = crossover(&SIZES, &logs, &mut random).unwrap();
            crossover.low <= SizePoint::At(at) && SizePoint::At(at) <= crossover.high
        });
        let held = held.count();
        assert!((68..=80).contains(&held), "{held} of {rounds}");
    }

    #[test]
    fn a_second_change_of_places_is_named() {
        let mut logs = pairs(10_000.0, 0.3, 0.1, 9, &mut Random::new(6));
        logs[5] = vec![0.2; 9];
        let crossover = found(&logs);
        assert_eq!((crossover.above, crossover.against), (Way::First, vec![SIZES[5]]));
    }

    #[test]
    fn sizes_with_few_pairs_are_left_out() {
        assert_eq!(crossover(&[], &[], &mut Random::new(1)), None);
        assert_eq!(crossover(&SIZES[..1], &[Vec::new()], &mut Random::new(1)), None);
        let mut logs = pairs(40_000.0, 0.2, 0.0, 6, &mut Random::new(1));
        logs[1].truncate(5);
        let SizePoint::At(at) = found(&logs).at else { panic!() };
        assert!((at - 40_000.0).abs() < 1.0);
        let one = crossover(&SIZES[..1], &[vec![-0.1; 6]], &mut Random::new(1)).unwrap();
        assert_eq!(one.always(), Some(Way::First));
    }
}
