// SPDX-License-Identifier: Apache-2.0
//! The table of mixes.

use crate::experiment::{Experiment, Sample};
use crate::scenario;
use crate::speed::part::{ARM, BY, LANES, MODULE, ONLY_LANES, ONLY_OPENSSL, ROUTED};
use crate::table::{Table, digits};
use crate::verdict::{Comparison, Family};

/// Those who do a mix alone.
const ALONE: [&str; 3] = [MODULE, ONLY_LANES, ONLY_OPENSSL];

/// Everything.
pub(crate) fn text(experiment: &Experiment) -> String {
    let titles = ["mix", "awslc", ONLY_LANES, ONLY_OPENSSL, "in order", ROUTED, "/ best alone"];
    let mut table = Table::new(&[&titles[..], &["interval", "verdict"]].concat());
    let compared = over_best(experiment);
    let verdicts = Family::new(compared.clone(), scenario::margin(experiment)).verdicts();
    for mix in experiment.plan.levels("mix") {
        let cost = |by: &str| cost(experiment, &cell(mix, by));
        let mut row = vec![mix.clone()];
        row.extend(
            [&ALONE[..], &[LANES, ROUTED]]
                .concat()
                .into_iter()
                .map(|by| cost(by).map_or_else(|| "–".to_owned(), digits)),
        );
        let judged = compared.iter().zip(&verdicts).find(|((name, _), _)| name == mix);
        row.extend(judged.map_or_else(Vec::new, |((_, compared), verdict)| {
            let ratio = compared.ratio();
            let interval = format!("{:.3} to {:.3}", ratio.low, ratio.high);
            vec![digits(ratio.value), interval, verdict.to_string()]
        }));
        row.resize(9, String::new());
        table.row(row);
    }
    format!(
        "{}\nCPU time of a round, all threads, in microseconds, by each provider alone, by lanes before AWS-LC, and by all \
         with costs\n\n{}",
        scenario::heading(experiment),
        table.render()
    )
}

fn cell(mix: &str, by: &str) -> String {
    format!("mix={mix} {BY}={by}")
}

/// CPU time of a round, in microseconds.
fn cost(experiment: &Experiment, cell: &str) -> Option<f64> {
    experiment.typical(cell, ARM, |sample| Some(sample.cpu_each() / 1e3))
}

/// Each mix by all with costs, over the one that does it best alone.
fn over_best(experiment: &Experiment) -> Vec<(String, Comparison)> {
    let compared = |mix: &String| {
        let alone = ALONE.into_iter().map(|by| cell(mix, by));
        let alone = alone.filter_map(|cell| Some((cost(experiment, &cell)?, cell)));
        let (_, best) = alone.min_by(|a, b| a.0.total_cmp(&b.0))?;
        let routed = cell(mix, ROUTED);
        let ends = [(routed.as_str(), ARM), (best.as_str(), ARM)];
        let pairs = experiment.pairs_between(ends, Sample::cpu_each);
        Some((mix.clone(), Comparison::of(&pairs)?))
    };
    experiment.plan.levels("mix").iter().filter_map(compared).collect()
}
