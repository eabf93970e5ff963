// SPDX-License-Identifier: Apache-2.0
//! How cost grows along each factor that is a number, over all curves together, and what grows with it.
//!
//! A repetition visits every cell. So each repetition says once by how much the highest level costs more than
//! the lowest, on average over the curves, and these are judged like the pairs of two arms.

use crate::cross::{Axis, Series};
use crate::experiment::{Experiment, Sample};
use crate::judged::{End, Judged, overall};
use crate::table::digits;
use crate::verdict::{Comparison, Family, Margin, Verdict};
use std::collections::BTreeSet;

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
    curves: Vec<Curve>,
    /// What else grew for each unit of work: counter and ratio. Nothing where nothing was counted.
    with: Option<Vec<(String, f64)>>,
}

/// A curve by itself.
struct Curve {
    name: String,
    comparison: Comparison,
    /// With all curves in view.
    verdict: Verdict,
}

/// How one arm grows along each factor that is a number, in one sentence that begins with where it grows most;
/// then a sentence for each factor about its curves.
pub(crate) fn sentences(experiment: &Experiment, arm: &str) -> Vec<String> {
    let margin = Judged::of(experiment).margin;
    let factors = experiment.plan.factors.iter();
    let grown = factors.filter_map(|factor| Growth::along(experiment, &factor.name, arm, margin));
    let grown: Vec<Growth> = grown.collect();
    let family = grown.iter().map(|one| (one.factor.clone(), one.comparison.clone())).collect();
    let verdicts = Family::new(family, margin).verdicts();
    let unit = match experiment.manifest.provenance.unit.as_str() {
        "byte" => "a KB".to_owned(),
        "operation" => "an operation".to_owned(),
        unit => format!("a {unit}"),
    };
    let by = if experiment.plan.arms.len() > 1 { format!(" by {arm}") } else { String::new() };
    let unit = unit + &by;
    let mut judged: Vec<(&Growth, Verdict)> = grown.iter().zip(verdicts).collect();
    judged.sort_by(|left, right| right.0.weight(right.1).total_cmp(&left.0.weight(left.1)));
    let clause = |(at, (one, verdict)): (usize, &(&Growth, Verdict))| {
        let (along, unit) = if at == 0 { ("Along", &*unit) } else { ("along", "it") };
        format!("{along} {}", one.clause(unit, *verdict, margin))
    };
    let clauses: Vec<String> = judged.iter().enumerate().map(clause).collect();
    let first = (!clauses.is_empty()).then(|| clauses.join("; "));
    first.into_iter().chain(judged.iter().filter_map(|(one, _)| one.curve_by_curve())).collect()
}

/// The cells of a curve's ends, the judged one first, by the curve's name.
type Ends = Vec<(String, [String; 2])>;

impl Growth {
    fn along(experiment: &Experiment, factor: &str, arm: &str, margin: Margin) -> Option<Self> {
        let axis = Axis::of(experiment, Some(factor)).ok().filter(|axis| axis.levels.len() > 1)?;
        let ((low, from), (high, to)) = (axis.levels.first()?, axis.levels.last()?);
        let ends = |series: &Series| {
            let end = |wanted: f64| series.cells.iter().find(|(value, _)| *value == wanted);
            Some((series.name.clone(), [end(*high)?.1.clone(), end(*low)?.1.clone()]))
        };
        let mut ends: Ends = axis.series(experiment).iter().filter_map(ends).collect();
        let between = |ends: &Ends, levels: [&String; 2]| {
            let both = of_arm(ends, arm);
            Some(Self {
                factor: factor.to_owned(),
                levels: levels.map(String::clone),
                comparison: overall(experiment, &both, |sample| Some(sample.cpu_each()))?,
                curves: curves(experiment, ends, arm, margin),
                with: reasons(experiment, &both),
            })
        };
        let growth = between(&ends, [from, to])?;
        if growth.comparison.log().value >= 0.0 || growth.parts() {
            return Some(growth);
        }
        // Told the way it grows.
        ends.iter_mut().for_each(|(_, ends)| ends.reverse());
        between(&ends, [to, from])
    }

    /// Whether some curve surely rises and another one surely falls.
    fn parts(&self) -> bool {
        self.count(Verdict::Faster) > 0 && self.count(Verdict::Slower) > 0
    }

    /// What is told first: what surely grows, by how much.
    fn weight(&self, verdict: Verdict) -> f64 {
        let told = matches!(verdict, Verdict::Slower | Verdict::Faster) && !self.parts();
        if told { self.comparison.log().value.abs() } else { -1.0 }
    }

    /// All curves together.
    fn clause(&self, unit: &str, verdict: Verdict, margin: Margin) -> String {
        let Self { factor, levels: [from, to], comparison, .. } = self;
        let along = format!("{factor}, from {from} to {to}");
        let ratio = comparison.ratio();
        let (low, high) = (digits(ratio.low), digits(ratio.high));
        let mean = if self.curves.len() > 1 { " on average" } else { "" };
        let times = format!("{} times as much{mean} ({low} to {high})", digits(ratio.value));
        // A mean over curves that go different ways says nothing of any of them.
        if self.parts() {
            return format!("{along}, the curves go different ways: {}", self.each());
        }
        match verdict {
            Verdict::Slower | Verdict::Faster => {
                format!("{along}, {unit} costs {times}{}", self.reason())
            }
            Verdict::Same => {
                format!("{along}, {unit} costs the same{mean} within {:.1} %", margin.percent())
            }
            Verdict::Unresolved { .. } => {
                format!("{along}, whether {unit} costs more cannot be told: {times}")
            }
        }
    }

    /// Each curve by itself, where the average hides something.
    fn curve_by_curve(&self) -> Option<String> {
        let told = self.curves.len() > 1 && !self.parts();
        told.then(|| format!("Along {}, curve by curve: {}", self.factor, self.each()))
    }

    fn count(&self, wanted: Verdict) -> usize {
        self.curves.iter().filter(|curve| curve.verdict == wanted).count()
    }

    /// Each curve by itself; of many how many do what.
    fn each(&self) -> String {
        let all = self.curves.len();
        let told: Vec<String> = match all {
            0..=MAX_SERIES => self.curves.iter().map(Curve::words).collect(),
            _ => {
                let kinds = [Verdict::Slower, Verdict::Faster, Verdict::Same];
                let mut counts = kinds.map(|kind| self.count(kind)).to_vec();
                counts.push(all - counts.iter().sum::<usize>());
                let words = ["more", "less", "the same", "unresolved"];
                let told = counts.into_iter().zip(words).filter(|(count, _)| *count > 0);
                told.map(|(count, word)| format!("{word} on {count} of {all} curves")).collect()
            }
        };
        told.join(", ")
    }

    /// What grows with it.
    fn reason(&self) -> String {
        let one = |(name, ratio): &(String, f64)| {
            format!("{} times the {}", digits(*ratio), name.replace('_', " "))
        };
        match &self.with {
            None => String::new(),
            Some(with) if with.is_empty() => {
                format!(", and no counter surely grows by {EXPLAINS} % with it")
            }
            Some(with) => {
                format!(", with {}", with.iter().map(one).collect::<Vec<_>>().join(" and "))
            }
        }
    }
}

impl Curve {
    fn words(&self) -> String {
        let ratio = self.comparison.ratio();
        let (value, low, high) = (digits(ratio.value), digits(ratio.low), digits(ratio.high));
        let open = if self.verdict.is_resolved() { "" } else { ", unresolved" };
        format!("{}: {value} ({low} to {high}{open})", self.name.replace('=', " "))
    }
}

/// The ends of all curves by one arm.
fn of_arm<'a>(ends: &'a Ends, arm: &'a str) -> Vec<[End<'a>; 2]> {
    ends.iter().map(|(_, cells)| cells.each_ref().map(|cell| (cell.as_str(), arm))).collect()
}

fn curves(experiment: &Experiment, ends: &Ends, arm: &str, margin: Margin) -> Vec<Curve> {
    let compared = ends.iter().zip(of_arm(ends, arm)).filter_map(|((name, _), ends)| {
        let pairs = experiment.pairs_between(ends, Sample::cpu_each);
        Some((name.clone(), Comparison::of(&pairs)?))
    });
    let compared: Vec<(String, Comparison)> = compared.collect();
    let verdicts = Family::new(compared.clone(), margin).verdicts();
    let judged = compared.into_iter().zip(verdicts);
    judged.map(|((name, comparison), verdict)| Curve { name, comparison, verdict }).collect()
}

/// The counters that surely grow with the cost, with all counters in view; those that grow most first.
fn reasons(experiment: &Experiment, ends: &[[End<'_>; 2]]) -> Option<Vec<(String, f64)>> {
    let names = experiment.samples.iter().flat_map(|sample| sample.measured.counters.keys());
    let names: BTreeSet<&String> = names.filter(|name| counts(name)).collect();
    let compared = names.into_iter().filter_map(|name| {
        Some((name.clone(), overall(experiment, ends, |sample| sample.counted_each(name))?))
    });
    let compared: Vec<_> = compared.collect();
    if compared.is_empty() {
        return None;
    }
    let family = Family::new(compared, Margin::of_percent(EXPLAINS));
    let grown = family.cells().zip(family.verdicts());
    let grown = grown.filter(|(_, verdict)| *verdict == Verdict::Slower);
    let mut found: Vec<(String, f64)> = grown
        .map(|((name, comparison, _), _)| (name.to_owned(), comparison.ratio().value))
        .collect();
    found.sort_by(|left, right| right.1.total_cmp(&left.1));
    found.truncate(REASONS);
    Some(found)
}

/// Whether a counter counts something that is done for the work: no time, and nothing of the machine.
fn counts(name: &str) -> bool {
    !(name.ends_with("_ns")
        || ["machine_", "latency_", "lab_"].iter().any(|of| name.starts_with(of)))
}
