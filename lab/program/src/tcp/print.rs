// SPDX-License-Identifier: Apache-2.0
//! The table as Sun had it, a row for each cell, and what the numbers say.

use super::load::size;
use super::words::OWN;
use super::{sun, words};
use crate::experiment::{Experiment, Sample, level};
use crate::lines::wrapped;
use crate::scenario::heading;
use crate::table::{Table, digits};
use std::fmt::Write;

/// Everything that an experiment says.
pub(crate) fn text(experiment: &Experiment) -> String {
    let mut text = heading(experiment);
    let setting = |name: &str| {
        experiment.manifest.provenance.settings.get(name).map_or("unknown", String::as_str)
    };
    writeln!(
        text,
        "path {}, congestion control {}, {}\nsegments: {}\n",
        setting("path"),
        setting("congestion"),
        setting("placement"),
        setting("segments")
    )
    .ok();
    text.push_str(&table(experiment));
    for (number, sentence) in words::sentences(experiment).iter().enumerate() {
        text.push_str(if number == 0 { "\n" } else { "" });
        text.push_str(&wrapped(sentence));
    }
    text
}

/// One row for each cell and arm.
pub(super) fn table(experiment: &Experiment) -> String {
    let cost = experiment.manifest.provenance.cost();
    let own = format!("own {cost}");
    let sun = sun_has(experiment);
    let mut heading = vec![
        "connections",
        "write",
        "buffer",
        "usr",
        "sys",
        "intr",
        "idle",
        &own,
        "spread",
        "Gb/s",
        "spread",
        "segments/write",
        "data:ACK",
        "flags",
    ];
    let arms = &experiment.plan.arms;
    if sun {
        heading.insert(SUN, "Sun");
    }
    if arms.len() > 1 {
        heading.insert(0, "by");
    }
    let mut table = Table::new(&heading);
    for cell in experiment.plan.cells() {
        for arm in arms {
            let mut cells = row(experiment, &cell, arm);
            if sun {
                cells.insert(SUN, of_sun(&cell, arm).map_or_else(String::new, digits));
            }
            if arms.len() > 1 {
                cells.insert(0, arm.clone());
            }
            table.row(cells);
        }
    }
    format!(
        "usr, sys, intr and idle are the whole machine's, in percent; the rest is the experiment's own\n\n{}",
        table.render()
    )
}

fn sun_has(experiment: &Experiment) -> bool {
    experiment.plan.cells().iter().any(|cell| of_sun(cell, OWN).is_some())
}

fn of_sun(cell: &str, arm: &str) -> Option<f64> {
    let connections = level(cell, "connections")?.parse().ok()?;
    sun::cycles(connections, size(level(cell, "write")?).ok()?).filter(|_| arm == OWN)
}

fn row(experiment: &Experiment, cell: &str, arm: &str) -> Vec<String> {
    let typical = |figure: &dyn Fn(&Sample) -> Option<f64>| experiment.typical(cell, arm, figure);
    let counter =
        |name: &'static str| typical(&|sample| sample.measured.counters.get(name).copied());
    let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), digits);
    let percent = |name| {
        counter(name).map_or_else(|| "-".to_owned(), |share| format!("{:.0}", share * 100.0))
    };
    let costs: Vec<f64> = experiment.of(cell, arm).map(|sample| experiment.ticks(sample)).collect();
    let rates: Vec<f64> =
        experiment.of(cell, arm).map(|sample| sample.wall_each().recip()).collect();
    let ratio = |over: &'static str, under: &'static str| {
        typical(&|sample| {
            let counters = &sample.measured.counters;
            Some(counters.get(over)? / counters.get(under)?).filter(|ratio| ratio.is_finite())
        })
    };
    let of = |name| level(cell, name).unwrap_or("-").to_owned();
    vec![
        of("connections"),
        of("write"),
        of("buffer"),
        percent("machine_usr"),
        percent("machine_sys"),
        percent("machine_intr"),
        percent("machine_idle"),
        shown(typical(&|sample| Some(experiment.ticks(sample)))),
        spread(&costs),
        shown(typical(&|sample| Some(8.0 / sample.wall_each()))),
        spread(&rates),
        shown(ratio("segments", "writes")),
        ratio("segments", "acks")
            .map_or_else(|| "-".to_owned(), |ratio| format!("{}:1", digits(ratio))),
        flags(experiment, cell, arm),
    ]
}

/// Before which column Sun's figure stands.
const SUN: usize = 9;

/// How far samples lie apart.
fn spread(values: &[f64]) -> String {
    variation(values).map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// Standard deviation over mean.
fn variation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt() / mean)
}

/// The flags of a cell's samples but those for strangers, who are in the heading, with their number.
fn flags(experiment: &Experiment, cell: &str, arm: &str) -> String {
    let mut counted = std::collections::BTreeMap::new();
    let all = experiment.of(cell, arm).flat_map(|sample| &sample.measured.flags);
    for flag in all.filter(|flag| *flag != "contaminated") {
        *counted.entry(flag).or_insert(0) += 1;
    }
    let counted = counted.iter().map(|(flag, count)| format!("{flag} {count}"));
    counted.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_that_of_a_sample() {
        assert_eq!(variation(&[5.0]), None);
        let spread = variation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert!((spread - (32.0_f64 / 7.0).sqrt() / 5.0).abs() < 1e-12);
    }
}
