// SPDX-License-Identifier: Apache-2.0
//! The result: a table and a sentence, or JSON.

use super::floors::{CellFloor, largest, shown};
use crate::Result;
use crate::experiment::Experiment;
use crate::output::say;
use crate::table::Table;
use crate::verdict::{Estimate, Margin, Verdict};
use serde::Serialize;
use std::path::Path;

/// The schema's name; a change that breaks readers changes the number.
const SCHEMA: &str = "metaslot-lab-aa/1";

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    experiment: String,
    machine: String,
    pairs: usize,
    cells: Vec<FloorRow<'a>>,
    floor: ByClock,
    margin: ByClock,
}

#[derive(Serialize)]
struct FloorRow<'a> {
    cell: &'a str,
    clock: &'static str,
    /// The second arm's cost is 1.
    ratio: Estimate,
    floor_percent: f64,
    /// By a margin of 2 %, as if the floor were not known.
    verdict: Verdict,
    contaminated: usize,
}

/// In percent.
#[derive(Serialize)]
struct ByClock {
    cpu: f64,
    wall: f64,
}

impl ByClock {
    fn of(floors: &[CellFloor], percent: impl Fn(f64) -> f64) -> Self {
        Self { cpu: percent(largest(floors, "cpu")), wall: percent(largest(floors, "wall")) }
    }
}

pub(super) fn print(
    directory: &Path,
    experiment: &Experiment,
    floors: &[CellFloor],
    json: bool,
) -> Result<()> {
    let report = report(directory, experiment, floors);
    say(&if json { serde_json::to_string_pretty(&report)? + "\n" } else { text(&report) })
}

/// The text alone.
pub(super) fn of(directory: &Path, experiment: &Experiment, floors: &[CellFloor]) -> String {
    text(&report(directory, experiment, floors))
}

fn report<'a>(directory: &Path, experiment: &Experiment, floors: &'a [CellFloor]) -> Report<'a> {
    Report {
        schema: SCHEMA,
        experiment: shown(directory),
        machine: experiment.manifest.machine_line(),
        pairs: floors.first().map_or(0, |floor| floor.comparison.pairs()),
        cells: floors.iter().map(|floor| row(experiment, floor)).collect(),
        floor: ByClock::of(floors, percent),
        margin: ByClock::of(floors, |floor| Margin::new(Some(floor)).percent()),
    }
}

fn row<'a>(experiment: &Experiment, floor: &'a CellFloor) -> FloorRow<'a> {
    let samples = experiment.samples.iter().filter(|sample| sample.run.cell == floor.cell);
    FloorRow {
        cell: &floor.cell,
        clock: floor.clock,
        ratio: floor.comparison.ratio(),
        floor_percent: percent(floor.comparison.floor()),
        verdict: floor.comparison.verdict(Margin::new(None)),
        contaminated: samples.filter(|sample| !sample.measured.flags.is_empty()).count(),
    }
}

fn percent(log: f64) -> f64 {
    log.exp_m1() * 100.0
}

fn text(report: &Report<'_>) -> String {
    let heading = ["cell", "clock", "a over again", "interval", "floor", "doubtful samples"];
    let mut table = Table::new(&heading);
    for row in &report.cells {
        table.row(vec![
            row.cell.to_owned(),
            row.clock.to_owned(),
            format!("{:.4}", row.ratio.value),
            format!("{:.4} to {:.4}", row.ratio.low, row.ratio.high),
            format!("{:.2} %", row.floor_percent),
            row.contaminated.to_string(),
        ]);
    }
    let Report { floor, margin, .. } = report;
    format!(
        "{}\n\n{}\nTwo identical arms, {} pairs each. Today this machine cannot tell differences below\n  \
         {:.2} % of CPU time: the margin is {:.1} %\n  \
         {:.2} % of wall time: the margin is {:.1} %\n\nwritten: {}\n",
        report.machine,
        table.render(),
        report.pairs,
        floor.cpu,
        margin.cpu,
        floor.wall,
        margin.wall,
        report.experiment
    )
}
