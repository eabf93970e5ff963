// SPDX-License-Identifier: Apache-2.0
//! What each function costs for a unit of work in two profiles, and their ratio with an interval.

use super::Folded;
use super::folded::Function;
use crate::ranks::CONFIDENCE;
use crate::statistics::Estimate;
use std::collections::{BTreeMap, BTreeSet};

/// A function with fewer samples on either side is shown in grey.
pub(crate) const FEW: u64 = 100;
/// Standard deviations of the normal distribution to either side that hold 95 %.
const DEVIATIONS: f64 = 1.959_964;

/// Which of a function's samples are meant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum View {
    /// Those in it and in what it calls.
    Inclusive,
    /// Those in itself.
    Exclusive,
}

impl View {
    pub(crate) const fn samples(self, function: &Function) -> u64 {
        match self {
            Self::Inclusive => function.inclusive,
            Self::Exclusive => function.exclusive,
        }
    }
}

/// A function in two profiles.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RatioRow {
    pub(crate) function: String,
    /// Its part of A's cost of a unit of work.
    pub(crate) a_cost: f64,
    /// Its part of B's.
    pub(crate) b_cost: f64,
    pub(crate) a_samples: u64,
    pub(crate) b_samples: u64,
    /// B's part over A's. The interval is that of the samples' numbers; what the whole costs is taken as
    /// known.
    pub(crate) ratio: Estimate,
    /// Fewer than a hundred samples on either side.
    pub(crate) few: bool,
}

/// All functions of two profiles, dearest first; the costs are those of a whole unit of work.
pub(crate) fn ratios(
    view: View,
    a: &Folded,
    a_cost: f64,
    b: &Folded,
    b_cost: f64,
) -> Vec<RatioRow> {
    let counts = |folded: &Folded| -> BTreeMap<String, u64> {
        let functions = folded.functions().into_iter();
        functions.map(|function| (function.name.clone(), view.samples(&function))).collect()
    };
    let (old, new) = (counts(a), counts(b));
    let each = |cost: f64, folded: &Folded| cost / folded.total().max(1) as f64;
    let (a_each, b_each) = (each(a_cost, a), each(b_cost, b));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let row = |name: &String| {
        let count = |counts: &BTreeMap<String, u64>| counts.get(name).copied().unwrap_or(0);
        let (na, nb) = (count(&old), count(&new));
        RatioRow {
            function: name.clone(),
            a_cost: na as f64 * a_each,
            b_cost: nb as f64 * b_each,
            a_samples: na,
            b_samples: nb,
            ratio: estimate([na, nb], [a_each, b_each]),
            few: na < FEW || nb < FEW,
        }
    };
    let mut rows: Vec<RatioRow> = names.into_iter().map(row).collect();
    rows.retain(|row| row.a_samples + row.b_samples > 0);
    let dearer = |row: &RatioRow| row.a_cost.max(row.b_cost);
    rows.sort_by(|one, other| dearer(other).total_cmp(&dearer(one)));
    rows
}

/// B over A. Numbers of samples are Poisson's: the logarithm of one deviates by one over its root. A
/// function that was never seen was perhaps nearly seen: half a sample.
fn estimate(samples: [u64; 2], each: [f64; 2]) -> Estimate {
    let [a, b] = samples.map(|count| if count == 0 { 0.5 } else { count as f64 });
    let log = (b * each[1] / (a * each[0]).max(f64::MIN_POSITIVE)).ln();
    let error = DEVIATIONS * (1.0 / a + 1.0 / b).sqrt();
    Estimate { value: log, low: log - error, high: log + error, confidence: CONFIDENCE }
        .map(f64::exp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn row<'a>(rows: &'a [RatioRow], name: &str) -> &'a RatioRow {
        rows.iter().find(|row| row.function == name).unwrap()
    }

    #[test]
    fn a_ratio_is_of_cost_for_a_unit_of_work() {
        let a = Folded::parse("m;x 900\nm;y 100\n").unwrap();
        let b = Folded::parse("m;x 400\nm;y 400\n").unwrap();
        let rows = ratios(View::Inclusive, &a, 1000.0, &b, 1600.0);
        let x = row(&rows, "x");
        assert_eq!((x.a_cost, x.b_cost), (900.0, 800.0));
        assert!((x.ratio.value - 800.0 / 900.0).abs() < 1e-9, "{x:?}");
        assert!(x.ratio.low < x.ratio.value && x.ratio.value < x.ratio.high);
        assert!((row(&rows, "m").ratio.value - 1.6).abs() < 1e-9);
        let own = ratios(View::Exclusive, &a, 1000.0, &b, 1600.0);
        assert!((own.iter().map(|row| row.b_cost).sum::<f64>() - 1600.0).abs() < 1e-9);
        assert!(own.iter().all(|row| row.function != "m"));
    }

    #[test]
    fn too_few_samples_show_on_either_side() {
        let a = Folded::parse("x 99\ny 1000\nz 1000\n").unwrap();
        let b = Folded::parse("x 1000\ny 1000\n").unwrap();
        let rows = ratios(View::Inclusive, &a, 1.0, &b, 1.0);
        assert!(row(&rows, "x").few && row(&rows, "z").few && !row(&rows, "y").few);
        assert!(row(&rows, "z").ratio.high.is_finite());
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        // 2,000 times two profiles of 4,000 samples where the function has a tenth and a fifth.
        let mut random = Random::new(7);
        let mut draw = |share: f64| -> u64 {
            (0..4_000).filter(|_| random.unit() < share).count().try_into().unwrap()
        };
        let holds = (0..2_000)
            .filter(|_| {
                let ratio = estimate([draw(0.1), draw(0.2)], [1.0, 1.0]);
                ratio.low <= 2.0 && 2.0 <= ratio.high
            })
            .count();
        // Binomial, with a little to spare: it is Poisson's interval of a binomial number.
        assert!((1_860..=1_980).contains(&holds), "{holds}");
    }
}
