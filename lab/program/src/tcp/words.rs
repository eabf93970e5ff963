// SPDX-License-Identifier: Apache-2.0
//! What follows from the cells of one experiment. They are comparable with each other, because each
//! repetition visits all of them in random order: the cells of one repetition are a pair.

use crate::experiment::{Experiment, Sample, level};
use crate::scenario::margin;
use crate::verdict::{Comparison, Family, Verdict};

/// Why a combination that is not wanted is left out.
pub(super) const UNWANTED: &str = "not asked for";

/// The sentences.
pub(super) fn sentences(experiment: &Experiment) -> Vec<String> {
    let mut said = Vec::new();
    if experiment.plan.arms.iter().any(|arm| arm == OWN) {
        let mut compared = along(experiment, "connections", |few, many| {
            format!("{many} connections against {few}")
        });
        compared.extend(along(experiment, "write", |first, last| {
            format!("writes of {last} against {first}")
        }));
        compared.extend(along(experiment, "buffer", |first, last| {
            format!("buffers of {last} against {first}")
        }));
        let family = Family::new(compared, margin(experiment));
        let verdicts = family.verdicts();
        let judged = family.cells().zip(verdicts);
        said.extend(judged.map(|((what, comparison, _), verdict)| {
            format!("{what} {}", finding(verdict, comparison))
        }));
    }
    if let Some(other) = experiment.plan.arms.iter().find(|arm| *arm != OWN) {
        let cells = experiment.plan.cells();
        said.extend(cells.iter().filter_map(|cell| beside(experiment, cell, other)));
    }
    said.extend(skipped(experiment));
    said
}

/// The own generator against the other one, in one cell.
fn beside(experiment: &Experiment, cell: &str, other: &str) -> Option<String> {
    let pairs = experiment.pairs_of(cell, [OWN, other], Sample::cpu_each);
    let comparison = Comparison::of(&pairs)?;
    let sentence = comparison.sentence("our generator", other, margin(experiment));
    Some(format!("{}: {sentence}", without(cell, "").trim().trim_matches(['(', ')'])))
}

/// What was not run, and why.
pub(super) fn skipped(experiment: &Experiment) -> impl Iterator<Item = String> {
    let wanted = experiment.plan.skipped.iter().filter(|skipped| skipped.why != UNWANTED);
    wanted.map(|skipped| format!("not run: {}: {}", skipped.cell, skipped.why))
}

/// The last level of a factor against its first one, wherever the other factors are alike.
fn along(
    experiment: &Experiment,
    factor: &str,
    words: impl Fn(&str, &str) -> String,
) -> Vec<(String, Comparison)> {
    let factors = &experiment.plan.factors;
    let Some(levels) = factors.iter().find(|known| known.name == factor).map(|f| &f.levels) else {
        return Vec::new();
    };
    let [first, .., last] = levels.as_slice() else { return Vec::new() };
    let cells = experiment.plan.cells();
    let mut compared = Vec::new();
    for cell in cells.iter().filter(|cell| level(cell, factor) == Some(last)) {
        let other = with_level(cell, factor, first);
        let pairs = experiment.pairs_between([(cell, OWN), (&other, OWN)], Sample::cpu_each);
        if let Some(comparison) = Comparison::of(&pairs) {
            let rest = without(cell, factor);
            compared.push((format!("{}{rest}", words(first, last)), comparison));
        }
    }
    compared
}

/// The verdict in words, with the ratio and its interval.
pub(super) fn finding(verdict: Verdict, comparison: &Comparison) -> String {
    let ratio = comparison.ratio();
    let word = match verdict {
        Verdict::Slower => "cost more".to_owned(),
        Verdict::Faster => "cost less".to_owned(),
        Verdict::Same => "cost the same".to_owned(),
        Verdict::Unresolved { more: Some(more) } => {
            format!("cannot be told apart ({more} more repetitions might)")
        }
        Verdict::Unresolved { more: None } => "cannot be told apart".to_owned(),
    };
    format!("{word}: {:.2} times [{:.2}, {:.2}]", ratio.value, ratio.low, ratio.high)
}

fn with_level(cell: &str, factor: &str, to: &str) -> String {
    let levels = cell.split(' ').map(|level| match level.split_once('=') {
        Some((name, _)) if name == factor => format!("{name}={to}"),
        _ => level.to_owned(),
    });
    levels.collect::<Vec<_>>().join(" ")
}

/// The levels of the other factors that say something, for the end of a subject.
fn without(cell: &str, factor: &str) -> String {
    let levels = cell.split(' ').filter_map(|level| level.split_once('='));
    let rest = levels.filter(|(name, level)| *name != factor && *level != "default");
    let rest: Vec<String> = rest.map(|(name, level)| format!("{name} {level}")).collect();
    if rest.is_empty() { String::new() } else { format!(" ({})", rest.join(", ")) }
}

/// This generator's arm.
pub(super) const OWN: &str = "own";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_differ_in_one_level() {
        let cell = "connections=8 write=64K buffer=default";
        assert_eq!(with_level(cell, "write", "1K"), "connections=8 write=1K buffer=default");
        assert_eq!(without(cell, "write"), " (connections 8)");
        assert_eq!(without("write=64K", "write"), "");
    }
}
