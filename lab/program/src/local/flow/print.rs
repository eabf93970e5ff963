// SPDX-License-Identifier: Apache-2.0
//! The tables of a run: sizes downwards, paths across.

use super::words::{self, SIZE};
use crate::experiment::{Experiment, Sample, level};
use crate::lines::wrapped;
use crate::local::path::LocalPath;
use crate::scenario::heading;
use crate::table::{Table, digits, nanoseconds};
use std::fmt::Write;

/// Everything that a run says.
pub(crate) fn text(experiment: &Experiment) -> String {
    let mut text = heading(experiment);
    let settings = &experiment.manifest.provenance.settings;
    let congestion = settings.get("congestion").map_or("unknown", String::as_str);
    writeln!(text, "TCP's congestion control {congestion}\n").ok();
    text.push_str(&tables(experiment));
    for sentence in words::sentences(experiment) {
        text.push_str(&wrapped(&sentence));
    }
    text
}

/// Cost, throughput, outstanding writes.
pub(super) fn tables(experiment: &Experiment) -> String {
    let counter = |sample: &Sample, name: &str| sample.measured.counters.get(name).copied();
    let cost = table(experiment, "CPU of both ends for each KB", |of| {
        of(&|sample| Some(sample.cpu_each() * 1024.0)).map(nanoseconds)
    });
    let gbps =
        table(experiment, "Gb/s", |of| of(&|sample| Some(8.0 / sample.wall_each())).map(digits));
    let outstanding = table(experiment, "outstanding writes: mean, most", |of| {
        let mean = of(&|sample| counter(sample, "outstanding_mean"))?;
        let most = of(&|sample| counter(sample, "outstanding_most"))?;
        Some(format!("{}, {most:.0}", digits(mean)))
    });
    format!("{cost}\n{gbps}\n{outstanding}\n")
}

/// The median of a figure over the samples of one cell and arm.
type Typical<'a> = &'a dyn Fn(&dyn Fn(&Sample) -> Option<f64>) -> Option<f64>;

fn table(
    experiment: &Experiment,
    name: &str,
    figure: impl Fn(Typical<'_>) -> Option<String>,
) -> String {
    let arms = &experiment.plan.arms;
    let mut heading = vec![name];
    heading.extend(arms.iter().map(|arm| LocalPath::of_word(arm).map_or("?", LocalPath::name)));
    let mut table = Table::new(&heading);
    for cell in experiment.plan.cells() {
        let mut row = vec![level(&cell, SIZE).unwrap_or("-").to_owned()];
        row.extend(arms.iter().map(|arm| {
            let typical = |of: &dyn Fn(&Sample) -> Option<f64>| experiment.typical(&cell, arm, of);
            figure(&typical).unwrap_or_else(|| "-".to_owned())
        }));
        table.row(row);
    }
    table.render()
}
