// SPDX-License-Identifier: Apache-2.0
//! What two identical arms differ by.

use crate::experiment::{Experiment, Sample};
use crate::verdict::Comparison;
use std::path::Path;

/// What one cell shows by one clock.
pub(super) struct CellFloor {
    pub(super) cell: String,
    pub(super) clock: &'static str,
    pub(super) comparison: Comparison,
}

pub(super) fn floors(experiment: &Experiment) -> Vec<CellFloor> {
    let floor = |cell: &String, clock, cost: fn(&Sample) -> f64| {
        let comparison = Comparison::of(&experiment.pairs(cell, cost))?;
        Some(CellFloor { cell: cell.clone(), clock, comparison })
    };
    let of_cell =
        |cell| [floor(cell, "cpu", Sample::cpu_each), floor(cell, "wall", Sample::wall_each)];
    experiment.plan.cells().iter().flat_map(of_cell).flatten().collect()
}

/// The largest of all cells by one clock: the floor for whatever is compared by it today.
pub(super) fn largest(floors: &[CellFloor], clock: &str) -> f64 {
    let of_clock = floors.iter().filter(|floor| floor.clock == clock);
    of_clock.map(|floor| floor.comparison.floor()).fold(0.0, f64::max)
}

pub(super) fn shown(directory: &Path) -> String {
    directory.display().to_string()
}
