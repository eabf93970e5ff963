// SPDX-License-Identifier: Apache-2.0
//! What a run comes to whose cells differ in who does the work, in one sentence.

use super::part::{ARM, BY, LANES, MODULE, RAW, ROUTED};
use crate::experiment::{Experiment, Sample, level};
use crate::scenario::margin;
use crate::verdict::{Comparison, Family};

/// The sentence; nothing where nothing was compared.
pub(crate) fn sentence(experiment: &Experiment) -> Option<String> {
    let compared: &[([&str; 2], &str)] =
        if experiment.manifest.provenance.scenario == "mix" { &MIXES } else { &CALLS };
    let parts = compared.iter().filter_map(|(who, words)| part(experiment, *who, words));
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Who is judged, with whom, and how that is said.
const CALLS: [([&str; 2], &str); 2] = [
    (
        [MODULE, RAW],
        "By CPU time an operation through the module costs more than in the bare library",
    ),
    ([LANES, MODULE], "with lanes more than without"),
];
const MIXES: [([&str; 2], &str); 1] = [(
    [ROUTED, LANES],
    "By CPU time a mix costs more by all providers with their costs than in the configured order",
)];

fn part(experiment: &Experiment, [judged, with]: [&str; 2], words: &str) -> Option<String> {
    let margin = margin(experiment);
    let family = Family::new(over(experiment, [judged, with]), margin);
    let headline = family.headline();
    let open = headline.cells - headline.faster - headline.slower - headline.same;
    let rest = [
        ("less".to_owned(), headline.faster),
        (format!("the same within {:.1} %", margin.percent()), headline.same),
        ("unresolved".to_owned(), open),
    ];
    let rest = rest.into_iter().filter(|(_, count)| *count > 0);
    let rest: String = rest.map(|(word, count)| format!(", {word} in {count}")).collect();
    (headline.cells > 0)
        .then(|| format!("{words} in {} of {} cells{rest}", headline.slower, headline.cells))
}

/// Every cell by one over the same cell by another.
pub(super) fn over(
    experiment: &Experiment,
    [judged, with]: [&str; 2],
) -> Vec<(String, Comparison)> {
    let cells = experiment.plan.cells();
    let compared = |cell: &String| {
        if level(cell, BY) != Some(judged) {
            return None;
        }
        let other = cell.replace(&format!("{BY}={judged}"), &format!("{BY}={with}"));
        let ends = [(cell.as_str(), ARM), (other.as_str(), ARM)];
        let pairs = experiment.pairs_between(ends, Sample::cpu_each);
        Some((cell.clone(), Comparison::of(&pairs)?))
    };
    cells.iter().filter_map(compared).collect()
}
