// SPDX-License-Identifier: Apache-2.0
//! Seconds and CPU time of the transfers, and what two stacks cost more than one.

use super::super::control::Way;
use super::super::path::Path;
use super::super::{sun, words};
use crate::experiment::{Experiment, Sample, level};
use crate::judged::Judged;
use crate::lines::wrapped;
use crate::scenario::{heading, margin};
use crate::table::{Table, digits};
use crate::verdict::{Comparison, Family};
use std::fmt::Write;

/// Everything that an experiment says.
pub(crate) fn text(experiment: &Experiment) -> String {
    let mut text = heading(experiment);
    let setting = |name: &str| {
        experiment.manifest.provenance.settings.get(name).map_or("unknown", String::as_str)
    };
    let (megabytes, congestion) = (setting("megabytes"), setting("congestion"));
    let placement = setting("placement");
    writeln!(
        text,
        "{megabytes} MB through one connection, congestion control {congestion}, {placement}\n"
    )
    .ok();
    text.push_str(&table(experiment));
    for (number, sentence) in sentences(experiment).iter().enumerate() {
        text.push_str(if number == 0 { "\n" } else { "" });
        text.push_str(&wrapped(sentence));
    }
    text
}

/// One row for each path and call.
pub(super) fn table(experiment: &Experiment) -> String {
    let cost = format!("own {}", experiment.manifest.provenance.cost());
    let mut table = Table::new(&[
        "path",
        "by",
        "real s",
        "TX user",
        "TX sys",
        "RX user",
        "RX sys",
        &cost,
        "segments/ACK",
        "Sun: V210, X4200",
    ]);
    for cell in experiment.plan.cells() {
        for arm in &experiment.plan.arms {
            table.row(row(experiment, &cell, arm));
        }
    }
    table.render()
}

fn row(experiment: &Experiment, cell: &str, arm: &str) -> Vec<String> {
    let typical = |figure: &dyn Fn(&Sample) -> Option<f64>| experiment.typical(cell, arm, figure);
    let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), digits);
    let seconds =
        |name: &str| shown(typical(&|sample| Some(sample.measured.counters.get(name)? / 1e9)));
    let name = level(cell, "path").unwrap_or("-");
    let sun = Path::named(name).ok().and_then(sun::seconds).filter(|_| arm == Way::Write.name());
    vec![
        name.to_owned(),
        arm.to_owned(),
        shown(typical(&|sample| Some(sample.measured.wall_ns / 1e9))),
        seconds("tx_user_ns"),
        seconds("tx_system_ns"),
        seconds("rx_user_ns"),
        seconds("rx_system_ns"),
        shown(typical(&|sample| Some(experiment.ticks(sample)))),
        shown(typical(&|sample| {
            let counters = &sample.measured.counters;
            Some(counters.get("segments")? / counters.get("acks")?)
                .filter(|ratio| ratio.is_finite())
        })),
        sun.map_or_else(String::new, |[v210, x4200]| format!("{v210:.1}, {x4200:.1}")),
    ]
}

/// What follows.
pub(crate) fn sentences(experiment: &Experiment) -> Vec<String> {
    let cell = |path: Path| format!("path={}", path.name());
    let shared = cell(Path::Shared);
    let over_shared = |path: &Path, cost: fn(&Sample) -> f64| {
        let (other, write) = (cell(*path), Way::Write.name());
        let ends = [(other.as_str(), write), (shared.as_str(), write)];
        Comparison::of(&experiment.pairs_between(ends, cost))
    };
    let compared = |path: Path| {
        let real = over_shared(&path, Sample::wall_each)?;
        Some((path, real, over_shared(&path, Sample::cpu_each)?))
    };
    let stacks: Vec<_> = [Path::Exclusive, Path::Mixed].into_iter().filter_map(compared).collect();
    let family = stacks.iter().map(|(path, _, cpu)| (path.name().to_owned(), cpu.clone()));
    let verdicts = Family::new(family.collect(), margin(experiment)).verdicts();
    let mut said = Vec::new();
    for ((path, real, cpu), verdict) in stacks.iter().zip(verdicts) {
        let (name, ratio) = (path.name(), real.ratio());
        said.push(format!(
            "two stacks ({name}) against one, by write: {}; real time is {:.2} times [{:.2}, {:.2}] \
             (Sun: {})",
            words::finding(verdict, cpu),
            ratio.value,
            ratio.low,
            ratio.high,
            of_sun(*path)
        ));
    }
    let judged = Judged::of(experiment);
    for path in [Path::Shared, Path::Mixed, Path::Exclusive] {
        for way in [Way::Sendfile, Way::Splice] {
            let (way, write) = (way.name(), Way::Write.name());
            if let Some(over) = judged.over_first(&cell(path), way) {
                let sentence = over.comparison.sentence_of(over.verdict, way, write, judged.margin);
                said.push(format!("{}: {sentence}", path.name()));
            }
        }
    }
    said.extend(words::skipped(experiment));
    said
}

/// Sun's ratios of two stacks to one.
fn of_sun(path: Path) -> String {
    let ratios = sun::seconds(path).zip(sun::seconds(Path::Shared)).map(|(two, one)| {
        let ratios = two.iter().zip(one).map(|(two, one)| format!("{:.1}", two / one));
        ratios.collect::<Vec<_>>().join(" and ")
    });
    ratios.unwrap_or_default()
}
