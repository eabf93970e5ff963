// SPDX-License-Identifier: Apache-2.0
//! Many experiments with identical arms: how many of them say that the arms differ. A verdict of 95 %
//! may be wrong one time in twenty; whether it is, only counting tells.

use super::floors::{CellFloor, floors};
use crate::experiment::{Experiment, State, level};
use crate::output::say;
use crate::table::Table;
use crate::verdict::{Family, Margin};
use crate::{Failure, Result};
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    directory: String,
    experiments: usize,
    /// Without a seal.
    interrupted: usize,
    /// More than half of whose samples were taken while others used the machine.
    contaminated: usize,
    rows: Vec<TallyRow>,
}

/// One kind of work by one clock, by a margin of 2 %.
#[derive(Debug, Default, Serialize)]
struct TallyRow {
    work: String,
    clock: String,
    experiments: usize,
    /// Some cell is faster or slower with all cells of the experiment in view.
    wrong: usize,
    cells: usize,
    cells_wrong: usize,
    cells_same: usize,
    /// Which floors the cells had: the middle one and the largest, in percent.
    floor_median: f64,
    floor_largest: f64,
}

pub(super) fn print(directory: &Path, json: bool) -> Result<()> {
    let report = report(directory)?;
    say(&if json { serde_json::to_string_pretty(&report)? + "\n" } else { text(&report) })
}

fn report(directory: &Path) -> Result<Report> {
    let mut experiments = Vec::new();
    for path in below(directory)? {
        experiments.push(Experiment::read(&path)?);
    }
    if experiments.is_empty() {
        return Err(Failure::new(format!("{}: no experiment in it", directory.display()))
            .hint("metaslot lab aa --times N --output DIR makes some"));
    }
    let doubtful = |experiment: &&Experiment| {
        let flagged = experiment.samples.iter().filter(|sample| !sample.measured.flags.is_empty());
        flagged.count() * 2 > experiment.samples.len()
    };
    let mut rows: Vec<TallyRow> = Vec::new();
    let mut all: Vec<Vec<f64>> = Vec::new();
    for experiment in &experiments {
        let floors = floors(experiment);
        for clock in ["cpu", "wall"] {
            let of_clock: Vec<&CellFloor> =
                floors.iter().filter(|floor| floor.clock == clock).collect();
            let work = kind(experiment);
            let known = rows.iter().position(|row| row.work == work && row.clock == clock);
            let at = known.unwrap_or_else(|| {
                let clock = clock.to_owned();
                rows.push(TallyRow { work, clock, ..TallyRow::default() });
                all.push(Vec::new());
                rows.len() - 1
            });
            rows[at].add(&of_clock);
            all[at].extend(of_clock.iter().map(|floor| floor.comparison.floor().exp_m1() * 100.0));
        }
    }
    for (row, floors) in rows.iter_mut().zip(all) {
        row.floor_median = crate::statistics::median(&floors);
        row.floor_largest = floors.into_iter().fold(0.0, f64::max);
    }
    Ok(Report {
        schema: "metaslot-lab-aa-tally/1",
        directory: directory.display().to_string(),
        experiments: experiments.len(),
        interrupted: experiments.iter().filter(|one| one.state != State::Sealed).count(),
        contaminated: experiments.iter().filter(doubtful).count(),
        rows,
    })
}

impl TallyRow {
    fn add(&mut self, floors: &[&CellFloor]) {
        let margin = Margin::new(None);
        let cells = floors.iter().map(|floor| (floor.cell.clone(), floor.comparison.clone()));
        let family = Family::new(cells.collect(), margin);
        let headline = family.headline();
        self.experiments += 1;
        self.wrong += usize::from(headline.faster + headline.slower > 0);
        for (_, _, verdict) in family.cells() {
            self.cells += 1;
            self.cells_wrong += usize::from(matches!(verdict.kind(), "faster" | "slower"));
            self.cells_same += usize::from(verdict.kind() == "same");
        }
    }
}

/// What the experiment did: the name of its first factor tells the scenarios apart.
fn kind(experiment: &Experiment) -> String {
    let cells = experiment.plan.cells();
    let first = cells.first().map_or("", String::as_str);
    let known = [("work", "work"), ("state", "copy"), ("connections", "tcp")];
    let name = known.iter().find(|(factor, _)| level(first, factor).is_some());
    name.map_or_else(|| first.to_owned(), |(_, name)| (*name).to_owned())
}

/// The experiments in a directory, by name.
fn below(directory: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error| Failure::file(directory, &error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|ending| ending == "labx") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn text(report: &Report) -> String {
    let heading = [
        "arms",
        "clock",
        "experiments",
        "wrong",
        "cells",
        "wrong",
        "same",
        "floor: median",
        "largest",
    ];
    let mut table = Table::new(&heading);
    for row in &report.rows {
        table.row(vec![
            row.work.clone(),
            row.clock.clone(),
            row.experiments.to_string(),
            row.wrong.to_string(),
            row.cells.to_string(),
            row.cells_wrong.to_string(),
            row.cells_same.to_string(),
            format!("{:.2} %", row.floor_median),
            format!("{:.2} %", row.floor_largest),
        ]);
    }
    format!(
        "{} experiments of two identical arms, {} interrupted, {} mostly on a busy machine\n\n{}\nwrong: \
         faster or slower, by a margin of 2 %; one in twenty may be\n",
        report.experiments,
        report.interrupted,
        report.contaminated,
        table.render()
    )
}
