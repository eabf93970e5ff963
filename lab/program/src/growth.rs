// SPDX-License-Identifier: Apache-2.0
//! How cost grows along each factor that is a number, over all curves together, and what grows with it.
//!
//! A repetition visits every cell. So each repetition says once by how much the highest level costs more than
//! the lowest, on average over the curves, and these are judged like the pairs of two arms.

use crate::cross::{Axis, Series};
use crate::experiment::{Experiment, Sample};
use crate::judged::Judged;
use crate::table::digits;
use crate::verdict::{Comparison, Estimate, Family, Margin, Pairs, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// More curves than this are no longer told one by one.
const MAX_SERIES: usize = 4;
/// So many counters stand for the reason.
const REASONS: usize = 2;
/// A counter that grows by fewer percent explains nothing.
const EXPLAINS: f64 = 10.0;

/// Along one factor.
struct Growth {
    factor: String,
    levels: [String; 2],
    comparison: Comparison,
    /// Each curve by itself: its name and its own ratio.
    series: Vec<(String, Estimate)>,
    /// What else grew for each unit of work: counter and ratio.
    with: Vec<(String, f64)>,
}

/// A sentence for each factor that is a number, of one arm.
pub(crate) fn sentences(experiment: &Experiment, arm: &str) -> Vec<String> {
    let factors = experiment.plan.factors.iter();
    let grown = factors.filter_map(|factor| Growth::along(experiment, &factor.name, arm));
    let grown: Vec<Growth> = grown.collect();
    let margin = Judged::of(experiment).margin;
    let family = grown.iter().map(|one| (one.factor.clone(), one.comparison.clone())).collect();
    let verdicts = Family::new(family, margin).verdicts();
    let unit = match experiment.manifest.provenance.unit.as_str() {
        "byte" => "a KB".to_owned(),
        "operation" => "an operation".to_owned(),
        unit => format!("a {unit}"),
    };
    let by = if experiment.plan.arms.len() > 1 { format!(" by {arm}") } else { String::new() };
    let unit = unit + &by;
    grown.iter().zip(verdicts).map(|(one, verdict)| one.sentence(&unit, verdict, margin)).collect()
}

impl Growth {
    fn along(experiment: &Experiment, factor: &str, arm: &str) -> Option<Self> {
        let axis = Axis::of(experiment, Some(factor)).ok().filter(|axis| axis.levels.len() > 1)?;
        let ((low, from), (high, to)) = (axis.levels.first()?, axis.levels.last()?);
        let ends = |series: &Series| {
            let end = |wanted: f64| series.cells.iter().find(|(value, _)| *value == wanted);
            Some((series.name.clone(), [end(*high)?.1.clone(), end(*low)?.1.clone()]))
        };
        let mut curves: Vec<(String, [String; 2])> =
            axis.series(experiment).iter().filter_map(ends).collect();
        let cost = |sample: &Sample| Some(sample.cpu_each());
        let mut levels = [from.clone(), to.clone()];
        // Told the way it grows.
        if pooled(experiment, &curves, arm, cost)?.log().value < 0.0 {
            levels.reverse();
            curves.iter_mut().for_each(|(_, ends)| ends.reverse());
        }
        let comparison = pooled(experiment, &curves, arm, cost)?;
        let own = |(name, cells): &(String, [String; 2])| {
            let ends = cells.each_ref().map(|cell| (cell.as_str(), arm));
            let pairs = experiment.pairs_between(ends, Sample::cpu_each);
            Some((name.clone(), Comparison::of(&pairs)?.ratio()))
        };
        let several = (2..=MAX_SERIES).contains(&curves.len());
        let series = curves.iter().filter(|_| several).filter_map(own).collect();
        let with = reasons(experiment, &curves, arm);
        Some(Self { factor: factor.to_owned(), levels, comparison, series, with })
    }

    fn sentence(&self, unit: &str, verdict: Verdict, margin: Margin) -> String {
        let Self { factor, levels: [from, to], comparison, .. } = self;
        let along = format!("Along {factor}, from {from} to {to}");
        let ratio = comparison.ratio();
        let (low, high) = (digits(ratio.low), digits(ratio.high));
        let times = format!("{} times as much ({low} to {high})", digits(ratio.value));
        if self.parts() {
            return format!("{along}, the curves go different ways{}", self.each());
        }
        match verdict {
            Verdict::Slower | Verdict::Faster => {
                format!("{along}, {unit} costs {times}{}{}", self.each(), self.reason(unit))
            }
            Verdict::Same => {
                format!("{along}, {unit} costs the same within {:.1} %", margin.percent())
            }
            Verdict::Unresolved { .. } => {
                format!("{along}, whether {unit} costs more cannot be told: {times}{}", self.each())
            }
        }
    }

    /// Whether some curve surely rises and another one surely falls.
    fn parts(&self) -> bool {
        let ratios = || self.series.iter().map(|(_, ratio)| ratio);
        ratios().any(|ratio| ratio.low > 1.0) && ratios().any(|ratio| ratio.high < 1.0)
    }

    /// Each curve by itself.
    fn each(&self) -> String {
        let one = |(name, ratio): &(String, Estimate)| {
            let name = name.replace('=', " ");
            let (value, low, high) = (digits(ratio.value), digits(ratio.low), digits(ratio.high));
            format!("{name}: {value} ({low} to {high})")
        };
        let each: Vec<String> = self.series.iter().map(one).collect();
        if each.is_empty() { String::new() } else { format!("; {}", each.join(", ")) }
    }

    /// What grows with it.
    fn reason(&self, unit: &str) -> String {
        let one = |(name, ratio): &(String, f64)| {
            format!("{} times the {}", digits(*ratio), name.replace('_', " "))
        };
        let with: Vec<String> = self.with.iter().map(one).collect();
        if with.is_empty() {
            String::new()
        } else {
            format!(". With it come, for {unit}, {}", with.join(" and "))
        }
    }
}

/// The second end over the first, on average over the curves, repetition by repetition.
fn pooled(
    experiment: &Experiment,
    curves: &[(String, [String; 2])],
    arm: &str,
    figure: impl Fn(&Sample) -> Option<f64>,
) -> Option<Comparison> {
    let figures = |cell: &String| -> BTreeMap<usize, f64> {
        let samples = experiment.of(cell, arm);
        samples.filter_map(|sample| Some((sample.run.repetition, figure(sample)?))).collect()
    };
    let mut sums: BTreeMap<usize, (usize, f64)> = BTreeMap::new();
    for (_, [high, low]) in curves {
        let (high, low) = (figures(high), figures(low));
        for (at, value) in high {
            let log = low.get(&at).map(|low| (value / low).ln()).filter(|log| log.is_finite());
            if let Some(log) = log {
                let sum = sums.entry(at).or_default();
                *sum = (sum.0 + 1, sum.1 + log);
            }
        }
    }
    let whole = sums.into_values().filter(|(count, _)| *count == curves.len());
    Comparison::of(&Pairs::of_logs(whole.map(|(count, sum)| sum / count as f64).collect()))
}

/// The counters that surely grow with the cost, those that grow most first.
fn reasons(
    experiment: &Experiment,
    curves: &[(String, [String; 2])],
    arm: &str,
) -> Vec<(String, f64)> {
    let names = experiment.samples.iter().flat_map(|sample| sample.measured.counters.keys());
    let names: BTreeSet<&String> = names.filter(|name| counts(name)).collect();
    let ratio = |name: &String| {
        let comparison = pooled(experiment, curves, arm, |sample| sample.counted_each(name))?;
        let grows = comparison.verdict(Margin::of_percent(EXPLAINS)) == Verdict::Slower;
        grows.then(|| (name.clone(), comparison.ratio().value))
    };
    let mut found: Vec<(String, f64)> = names.into_iter().filter_map(ratio).collect();
    found.sort_by(|left, right| right.1.total_cmp(&left.1));
    found.truncate(REASONS);
    found
}

/// Whether a counter counts something that is done for the work: no time, and nothing of the machine.
fn counts(name: &str) -> bool {
    !(name.ends_with("_ns")
        || ["machine_", "latency_", "lab_"].iter().any(|of| name.starts_with(of)))
}
