// SPDX-License-Identifier: Apache-2.0
//! Functions on the page: what each costs, on one side or on both, and flame graphs.

use crate::compare;
use crate::experiment::{Experiment, Sample};
use crate::profile::{self, Profile};
use crate::table::digits;
use serde::Serialize;
use std::collections::BTreeMap;

/// Columns and rows of the table of functions.
const COLUMNS: usize = 8;
const FUNCTIONS: usize = 20;
/// Bytes for flame graphs: the page stays below a megabyte.
const FLAMES: usize = 500_000;

/// Functions by what they cost on both sides.
#[derive(Debug, Serialize)]
pub(super) struct Compared {
    name: String,
    rows: Vec<FunctionRow>,
}

#[derive(Debug, Serialize)]
struct FunctionRow {
    function: String,
    a: String,
    b: String,
    ratio: String,
    interval: String,
    few: bool,
}

/// Functions by what they cost in every cell.
#[derive(Debug, Serialize)]
pub(super) struct Profiled {
    columns: Vec<String>,
    rows: Vec<(String, Vec<String>)>,
    /// How many there are, with those that have no column.
    all: usize,
}

/// Flame graphs that have room on the page, and how many have none.
#[derive(Debug, Serialize)]
pub(super) struct Flames {
    shown: Vec<[String; 2]>,
    left_out: usize,
}

/// Of every cell with profiles on both sides.
pub(super) fn compared(report: &compare::Report) -> Vec<Compared> {
    let row = |row: &compare::Function| {
        let [ratio, interval] = row.words();
        let (a, b) = (digits(row.a_cost), digits(row.b_cost));
        FunctionRow { function: row.function.clone(), a, b, ratio, interval, few: row.few }
    };
    let table = |of: &compare::Functions| Compared {
        name: of.name.clone(),
        rows: of.functions.iter().map(row).collect(),
    };
    report.functions.iter().map(table).collect()
}

/// The dearest functions of every profile, by what they cost a unit of work themselves; what the rest
/// costs, so that each column adds up to the cell's cost.
pub(super) fn profiled(experiment: &Experiment, known: &[Profile]) -> Profiled {
    let costed = |profile: &Profile| -> Option<(String, BTreeMap<String, f64>, f64)> {
        let details = &profile.details;
        let cost = |sample: &Sample| Some(experiment.ticks(sample));
        let cost = experiment.typical(&details.cell, &details.arm, cost)?;
        let each = cost / profile.folded.total().max(1) as f64;
        let functions = profile.folded.charged_to_callers().functions().into_iter();
        let functions = functions.map(|function| (function.name, function.exclusive as f64 * each));
        let many = experiment.plan.arms.len() > 1;
        let cell = experiment.plan.short(&details.cell);
        let name = if many { format!("{cell} {}", details.arm) } else { cell };
        Some((name, functions.collect(), cost))
    };
    let columns: Vec<_> = known.iter().take(COLUMNS).filter_map(costed).collect();
    let mut dearest: BTreeMap<&String, f64> = BTreeMap::new();
    for (_, functions, cost) in &columns {
        for (function, own) in functions {
            let share = dearest.entry(function).or_default();
            *share = share.max(own / cost);
        }
    }
    let mut dearest: Vec<(&String, f64)> = dearest.into_iter().collect();
    dearest.sort_by(|left, right| right.1.total_cmp(&left.1));
    dearest.truncate(FUNCTIONS);
    let cell = |functions: &BTreeMap<String, f64>, function: &String| {
        functions
            .get(function)
            .filter(|own| **own > 0.0)
            .map_or_else(String::new, |own| digits(*own))
    };
    let mut rows: Vec<(String, Vec<String>)> = dearest
        .iter()
        .map(|(function, _)| {
            let cells = columns.iter().map(|(_, functions, _)| cell(functions, function));
            ((*function).clone(), cells.collect())
        })
        .collect();
    let rest = |(_, functions, cost): &(String, BTreeMap<String, f64>, f64)| {
        let shown: f64 = dearest.iter().filter_map(|(function, _)| functions.get(*function)).sum();
        digits(cost - shown)
    };
    rows.push(("all others".to_owned(), columns.iter().map(rest).collect()));
    rows.push(("together".to_owned(), columns.iter().map(|(_, _, cost)| digits(*cost)).collect()));
    let columns = columns.into_iter().map(|(name, ..)| name).collect();
    Profiled { columns, rows, all: known.len() }
}

/// Flame graphs: of the differences where two are compared, of every profile otherwise. No more than
/// keeps the page small.
pub(super) fn flames(
    experiment: &Experiment,
    known: &[Profile],
    compared: Option<&compare::Report>,
) -> Flames {
    let differences = compared.into_iter().flat_map(|report| &report.functions);
    let mut flames: Vec<[String; 2]> =
        differences.map(|of| [format!("B → A: {}", of.name), of.flame.clone()]).collect();
    flames.extend(known.iter().map(|profile| {
        let cell = experiment.plan.short(&profile.details.cell);
        let name = format!("{cell} {}", profile.details.arm);
        let graph = profile::flame(&name, &profile.folded);
        [name, graph]
    }));
    let (all, mut room) = (flames.len(), FLAMES);
    flames.retain(|[_, svg]| {
        let fits = svg.len() <= room;
        room -= if fits { svg.len() } else { 0 };
        fits
    });
    Flames { left_out: all - flames.len(), shown: flames }
}
