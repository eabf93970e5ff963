// SPDX-License-Identifier: Apache-2.0
//! Every arm of every cell over the first arm, judged once and with all cells in view: tables, marks,
//! headlines and JSON ask here, so none of them says what another one takes back.

use crate::experiment::{Experiment, Sample};
use crate::scenario::margin;
use crate::verdict::{Comparer, Comparison, Family, Headline, Margin, Pairs, Verdict};
use std::collections::BTreeMap;

/// All comparisons of an experiment with its first arm.
pub(crate) struct Judged {
    pub(crate) margin: Margin,
    arms: Vec<JudgedArm>,
}

/// One arm over the first, in every cell that has pairs of both. It is one family.
struct JudgedArm {
    name: String,
    cells: Vec<(String, Comparison)>,
    verdicts: Vec<Verdict>,
    headline: Headline,
}

/// One cell of one arm over the first arm.
#[derive(Clone, Copy)]
pub(crate) struct OverFirst<'a> {
    pub(crate) cell: &'a str,
    pub(crate) arm: &'a str,
    pub(crate) comparison: &'a Comparison,
    pub(crate) verdict: Verdict,
}

impl Judged {
    /// By CPU time, with the margin of the day.
    pub(crate) fn of(experiment: &Experiment) -> Self {
        let plan = &experiment.plan;
        let margin = margin(experiment);
        let mut comparer = Comparer::default();
        let Some((first, others)) = plan.arms.split_first() else {
            return Self { margin, arms: Vec::new() };
        };
        let cells = plan.cells();
        let mut arm = |name: &String| {
            let compared = |cell: &String| {
                let pairs = experiment.pairs_of(cell, [name, first], Sample::cpu_each);
                Some((cell.clone(), comparer.compare(&pairs)?))
            };
            let cells: Vec<_> = cells.iter().filter_map(compared).collect();
            let family = Family::new(cells.clone(), margin);
            let (verdicts, headline) = (family.verdicts(), family.headline());
            JudgedArm { name: name.clone(), cells, verdicts, headline }
        };
        Self { margin, arms: others.iter().map(&mut arm).collect() }
    }

    /// One of them; none for the first arm itself.
    pub(crate) fn over_first(&self, cell: &str, arm: &str) -> Option<OverFirst<'_>> {
        self.all().find(|one| one.cell == cell && one.arm == arm)
    }

    /// All of them, arm by arm.
    pub(crate) fn all(&self) -> impl Iterator<Item = OverFirst<'_>> {
        self.arms.iter().flat_map(|arm| {
            arm.cells.iter().zip(&arm.verdicts).map(|((cell, comparison), verdict)| OverFirst {
                cell,
                arm: &arm.name,
                comparison,
                verdict: *verdict,
            })
        })
    }

    /// In how many cells what holds, by arm.
    pub(crate) fn headlines(&self) -> impl Iterator<Item = (&str, Headline)> {
        self.arms.iter().map(|arm| (arm.name.as_str(), arm.headline))
    }
}

/// A cell and an arm.
pub(crate) type End<'a> = (&'a str, &'a str);

/// By how much the first ends cost more than the second ones, on average over all of them. A repetition visits
/// every cell, so each that has all of them says it once.
pub(crate) fn overall(
    experiment: &Experiment,
    ends: &[[End<'_>; 2]],
    figure: impl Fn(&Sample) -> Option<f64>,
) -> Option<Comparison> {
    let figures = |(cell, arm): End<'_>| -> BTreeMap<usize, f64> {
        let samples = experiment.of(cell, arm);
        samples.filter_map(|sample| Some((sample.run.repetition, figure(sample)?))).collect()
    };
    let mut sums: BTreeMap<usize, (usize, f64)> = BTreeMap::new();
    for ends in ends {
        let [judged, with] = ends.map(figures);
        for (at, value) in judged {
            let log = with.get(&at).map(|with| (value / with).ln()).filter(|log| log.is_finite());
            if let Some(log) = log {
                let sum = sums.entry(at).or_default();
                *sum = (sum.0 + 1, sum.1 + log);
            }
        }
    }
    let whole = sums.into_values().filter(|(count, _)| *count == ends.len());
    Comparison::of(&Pairs::of_logs(whole.map(|(count, sum)| sum / count as f64).collect()))
}
