// SPDX-License-Identifier: Apache-2.0
//! The table of mixes.

use crate::experiment::{Experiment, Sample};
use crate::scenario;
use crate::speed::part::{ARM, BY, LANES, MODULE, ONLY_LANES, ONLY_OPENSSL, ROUTED};
use crate::table::{Table, digits};
use crate::verdict::Comparison;

/// Those who do a mix alone.
const ALONE: [&str; 3] = [MODULE, ONLY_LANES, ONLY_OPENSSL];

/// Everything.
pub(crate) fn text(experiment: &Experiment) -> String {
    let titles = ["mix", "awslc", ONLY_LANES, ONLY_OPENSSL, "in order", ROUTED, "/ best alone"];
    let mut table = Table::new(&[&titles[..], &["interval", "verdict"]].concat());
    for mix in experiment.plan.levels("mix") {
        let cell = |by: &str| format!("mix={mix} {BY}={by}");
        let cost =
            |by: &str| experiment.typical(&cell(by), ARM, |sample| Some(sample.cpu_each() / 1e3));
        let mut row = vec![mix.clone()];
        row.extend(
            [&ALONE[..], &[LANES, ROUTED]]
                .concat()
                .into_iter()
                .map(|by| cost(by).map_or_else(|| "–".to_owned(), digits)),
        );
        let alone = ALONE.into_iter().filter_map(|by| Some((cost(by)?, by)));
        let best = alone.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, by)| cell(by));
        let compared = best.and_then(|best| {
            let routed = cell(ROUTED);
            let cells = [(routed.as_str(), ARM), (best.as_str(), ARM)];
            Comparison::of(&experiment.pairs_between(cells, Sample::cpu_each))
        });
        row.extend(compared.map_or_else(Vec::new, |compared| {
            let ratio = compared.ratio();
            let interval = format!("{:.3} to {:.3}", ratio.low, ratio.high);
            let verdict = compared.verdict(scenario::margin(experiment)).to_string();
            vec![digits(ratio.value), interval, verdict]
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
