// SPDX-License-Identifier: Apache-2.0
//! What stands at the top: the experiment in one to three sentences that follow from its samples.

use crate::compare;
use crate::experiment::{Experiment, Sample};
use crate::scenario::margin;
use crate::table::digits;
use crate::verdict::{Comparison, Family, Headline};
use std::fmt::Write;

/// The sentences.
pub(super) fn tell(experiment: &Experiment, compared: Option<&compare::Report>) -> Vec<String> {
    match compared {
        Some(report) => against(report),
        None if experiment.plan.arms.len() > 1 => arms(experiment),
        None => extremes(experiment).into_iter().collect(),
    }
}

fn against(report: &compare::Report) -> Vec<String> {
    match report.cells.as_slice() {
        [only] => vec![only.sentence.clone()],
        _ => vec![report.headline()],
    }
}

/// Of two arms the verdict; of more which one is cheapest where, and which differ from the first one
/// with all cells in view.
fn arms(experiment: &Experiment) -> Vec<String> {
    let plan = &experiment.plan;
    if let ([first, second], [cell]) = (plan.arms.as_slice(), plan.cells().as_slice()) {
        let pairs = experiment.pairs_of(cell, [second, first], Sample::cpu_each);
        let compared = Comparison::of(&pairs);
        return compared
            .map(|of| of.sentence(second, first, margin(experiment)))
            .into_iter()
            .collect();
    }
    cheapest(experiment).into_iter().chain(everywhere(experiment)).collect()
}

/// The arm that is cheapest in most cells, and how much it saves where it surely saves most.
fn cheapest(experiment: &Experiment) -> Option<String> {
    let plan = &experiment.plan;
    let first = plan.arms.first()?;
    let cost = |cell: &String, arm: &String| {
        experiment.typical(cell, arm, |sample| Some(experiment.ticks(sample)))
    };
    let winner = |cell: &String| {
        let costs = plan.arms.iter().filter_map(|arm| Some((arm, cost(cell, arm)?)));
        costs.min_by(|left, right| left.1.total_cmp(&right.1)).map(|(arm, _)| arm)
    };
    let cells = plan.cells();
    let winners: Vec<&String> = cells.iter().filter_map(winner).collect();
    let wins = |arm: &String| winners.iter().filter(|winner| **winner == arm).count();
    let best = plan.arms.iter().max_by_key(|arm| wins(arm))?;
    let mut words = format!(
        "{best} is the cheapest of {} in {} of {} cells",
        plan.arms.len(),
        wins(best),
        winners.len()
    );
    if best != first {
        let compared = |cell: &String| {
            let pairs = experiment.pairs_of(cell, [best, first], Sample::cpu_each);
            Some((cell.clone(), Comparison::of(&pairs)?.ratio()))
        };
        let saves = cells.iter().filter_map(compared);
        if let Some((cell, ratio)) =
            saves.min_by(|left, right| left.1.high.total_cmp(&right.1.high))
        {
            let less = |ratio: f64| (1.0 - ratio) * 100.0;
            write!(
                words,
                "; at {cell} it costs {:.1} % less than {first} ({:.1} to {:.1} %)",
                less(ratio.value),
                less(ratio.high),
                less(ratio.low)
            )
            .ok();
        }
    }
    Some(words)
}

/// Which arms differ from the first one, and in how many cells.
fn everywhere(experiment: &Experiment) -> Vec<String> {
    let plan = &experiment.plan;
    let (margin, first) = (margin(experiment), &plan.arms[0]);
    let headline = |arm: &String| {
        let compared = |cell: String| {
            let pairs = experiment.pairs_of(&cell, [arm, first], Sample::cpu_each);
            Some((cell, Comparison::of(&pairs)?))
        };
        let cells: Vec<_> = plan.cells().into_iter().filter_map(compared).collect();
        (arm.clone(), Family::new(cells, margin).headline())
    };
    let headlines: Vec<_> = plan.arms.iter().skip(1).map(headline).collect();
    let counted = |word: &str, count: fn(&Headline) -> usize| {
        let (all, some): (Vec<_>, Vec<_>) = headlines
            .iter()
            .filter(|(_, headline)| count(headline) > 0)
            .partition(|(_, headline)| count(headline) == headline.cells);
        let all: Vec<&str> = all.iter().map(|(arm, _)| arm.as_str()).collect();
        let some = some
            .iter()
            .map(|(arm, headline)| format!("{arm} ({} of {})", count(headline), headline.cells));
        let some: Vec<String> = some.collect();
        let all = (!all.is_empty()).then(|| format!("in every cell: {}", all.join(" · ")));
        let some = (!some.is_empty()).then(|| format!("in some: {}", some.join(" · ")));
        let words: Vec<String> = all.into_iter().chain(some).collect();
        (!words.is_empty()).then(|| format!("{word} {first} {}", words.join("; ")))
    };
    [
        counted("Faster than", |headline| headline.faster),
        counted("Slower than", |headline| headline.slower),
        counted("The same as", |headline| headline.same),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The dearest cell over the cheapest.
fn extremes(experiment: &Experiment) -> Option<String> {
    let plan = &experiment.plan;
    let arm = plan.arms.first()?;
    let cost =
        |cell: &String| experiment.typical(cell, arm, |sample| Some(experiment.ticks(sample)));
    let mut costs: Vec<(String, f64)> =
        plan.cells().into_iter().filter_map(|cell| Some((cell.clone(), cost(&cell)?))).collect();
    costs.sort_by(|left, right| left.1.total_cmp(&right.1));
    let ((cheap, least), (dear, most)) = (costs.first()?, costs.last()?);
    let unit = experiment.manifest.provenance.cost();
    if costs.len() == 1 {
        return Some(format!("{cheap}: {} {unit}", digits(*least)));
    }
    Some(format!(
        "The dearest cell, {dear}, costs {} {unit}: {} times the {} of the cheapest, {cheap}",
        digits(*most),
        digits(most / least),
        digits(*least)
    ))
}
