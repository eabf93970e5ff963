// SPDX-License-Identifier: Apache-2.0
//! What stands at the top: what was found, in a few sentences. They say what verdicts carry, with all cells
//! in view, and nothing else; and how many samples are doubtful.

use crate::compare;
use crate::experiment::Experiment;
use crate::growth;
use crate::judged::{End, Judged, overall};
use crate::scenario::doubtful;
use crate::statistics::quantile;
use crate::table::digits;
use crate::verdict::{Comparison, Headline, Verdict};

/// More arms than this are told together.
const MAX_ARMS: usize = 3;

/// The sentences. `finding` is what the scenario itself concludes.
pub(super) fn tell(
    experiment: &Experiment,
    judged: &Judged,
    compared: Option<&compare::Report>,
    finding: Option<String>,
) -> Vec<String> {
    if let Some(report) = compared {
        return against(report);
    }
    let first = experiment.plan.arms.first().map_or("", String::as_str);
    let mut story: Vec<String> = finding.into_iter().collect();
    if experiment.plan.arms.len() > 1 {
        story.extend(arms(experiment, judged));
    }
    // What a scenario says itself needs no second opinion.
    if story.is_empty() || experiment.plan.arms.len() > 1 {
        story.extend(growth::sentences(experiment, first));
    }
    if story.is_empty() {
        story.extend(costs(experiment, first));
    }
    let doubtful = doubtful(experiment);
    let headline = (!story.is_empty()).then(|| doubtful.headline(story.remove(0)));
    let below = doubtful.sentence().filter(|_| !doubtful.are_most());
    headline.into_iter().chain(story).chain(below).collect()
}

fn against(report: &compare::Report) -> Vec<String> {
    let first = match report.cells.as_slice() {
        [only] => report.doubt() + &only.sentence,
        _ => report.headline(),
    };
    std::iter::once(first).chain(report.doubtful()).collect()
}

/// Of few arms each over the first; of many, which differ from it in how many cells.
fn arms(experiment: &Experiment, judged: &Judged) -> Vec<String> {
    let plan = &experiment.plan;
    let first = plan.arms.first().map_or("", String::as_str);
    if judged.all().all(|one| !one.verdict.is_resolved()) {
        return vec![undecided(experiment, judged, first)];
    }
    if let ([_, second], [cell]) = (plan.arms.as_slice(), plan.cells().as_slice()) {
        let compared = judged.over_first(cell, second).into_iter();
        return compared
            .map(|of| of.comparison.sentence_of(of.verdict, second, first, judged.margin))
            .collect();
    }
    if plan.arms.len() > MAX_ARMS + 1 {
        return together(judged, first);
    }
    judged
        .headlines()
        .map(|(arm, headline)| one(experiment, judged, [arm, first], headline))
        .collect()
}

/// Nothing can be told.
fn undecided(experiment: &Experiment, judged: &Judged, first: &str) -> String {
    let cells = experiment.plan.cells().len();
    let more = judged.all().filter_map(|one| match one.verdict {
        Verdict::Unresolved { more } => more,
        _ => None,
    });
    let more = more.min().map_or_else(String::new, |more| {
        let repetitions = if more == 1 { "repetition" } else { "repetitions" };
        format!("; {more} more {repetitions} would decide the clearest of them")
    });
    let who = match experiment.plan.arms.as_slice() {
        [_, only] => format!("{only} cannot"),
        _ => "no other arm can".to_owned(),
    };
    format!("Unresolved in {cells} of {cells} cells: {who} be told from {first}{more}")
}

/// One arm: in how many cells what holds, and by how much over all of them.
fn one(
    experiment: &Experiment,
    judged: &Judged,
    [arm, first]: [&str; 2],
    headline: Headline,
) -> String {
    let counts = [
        ("less than", headline.faster),
        ("more than", headline.slower),
        ("the same as", headline.same),
    ];
    let cells = headline.cells;
    let told: Vec<String> = counts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(word, count)| format!("{word} {first} in {count} of {cells} cells"))
        .collect();
    let open = cells - headline.faster - headline.slower - headline.same;
    let open = if open == 0 { String::new() } else { format!("; unresolved in {open}") };
    let told = if told.is_empty() { "what cannot be told".to_owned() } else { told.join(", ") };
    // A mean over cells that go different ways says nothing of any of them.
    let one_way = headline.faster == 0 || headline.slower == 0;
    let all = of_all(experiment, judged, [arm, first])
        .filter(|_| one_way)
        .filter(|all| all.verdict(judged.margin).is_resolved())
        .map_or_else(String::new, |all| {
            let ratio = all.ratio();
            let (low, high) = (digits(ratio.low), digits(ratio.high));
            format!("; on average {} times as much ({low} to {high})", digits(ratio.value))
        });
    format!("{arm} costs {told}{open}{all}")
}

/// The mean over all cells that have both arms.
fn of_all(experiment: &Experiment, judged: &Judged, arms: [&str; 2]) -> Option<Comparison> {
    let cells = judged.all().filter(|one| one.arm == arms[0]).map(|one| one.cell);
    let ends: Vec<[End<'_>; 2]> = cells.map(|cell| arms.map(|arm| (cell, arm))).collect();
    overall(experiment, &ends, |sample| Some(sample.cpu_each()))
}

/// Which arms differ from the first one, and in how many cells.
fn together(judged: &Judged, first: &str) -> Vec<String> {
    let headlines: Vec<(&str, Headline)> = judged.headlines().collect();
    let counted = |word: &str, count: fn(&Headline) -> usize| {
        let (all, some): (Vec<_>, Vec<_>) = headlines
            .iter()
            .filter(|(_, headline)| count(headline) > 0)
            .partition(|(_, headline)| count(headline) == headline.cells);
        let all: Vec<&str> = all.iter().map(|(arm, _)| *arm).collect();
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
        counted("Cannot be told from", |headline| {
            headline.cells - headline.faster - headline.slower - headline.same
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What there is to say where nothing can be compared: of a single cell its cost.
fn costs(experiment: &Experiment, arm: &str) -> Option<String> {
    let cells = experiment.plan.cells();
    let [cell] = cells.as_slice() else {
        return Some(format!(
            "{} cells, no factor of which is a number: see the table",
            cells.len()
        ));
    };
    let costs: Vec<f64> = experiment.of(cell, arm).map(|sample| experiment.ticks(sample)).collect();
    let [low, middle, high] = [0.25, 0.5, 0.75].map(|share| digits(quantile(&costs, share)));
    let unit = experiment.manifest.provenance.cost();
    (!costs.is_empty())
        .then(|| format!("{cell}: {middle} {unit}, half of the samples between {low} and {high}"))
}
