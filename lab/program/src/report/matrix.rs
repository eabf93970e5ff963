// SPDX-License-Identifier: Apache-2.0
//! Tables whose colour is the cost: one for each curve where arms are compared, one for all cells where
//! the cells are the matter.

use super::rug;
use super::scale::{Scale, heat};
use crate::cross::Axis;
use crate::experiment::{Experiment, Sample};
use crate::judged::Judged;
use crate::statistics::quantile;
use crate::table::digits;
use serde::Serialize;

/// One table.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Matrix {
    pub(super) title: String,
    corner: String,
    columns: Vec<String>,
    rows: Vec<MatrixRow>,
}

impl Matrix {
    /// Whether something else has room beside it.
    pub(super) fn is_narrow(&self) -> bool {
        self.columns.len() <= NARROW
    }

    /// How wide it is at least, in rem.
    pub(super) fn width(&self) -> f64 {
        let names = self.rows.iter().map(|row| row.name.chars().count());
        let names = names.chain([self.corner.chars().count()]).max().unwrap_or(0);
        let texts = self.rows.iter().flat_map(|row| &row.cells).flatten();
        let text = texts.map(|cell| cell.text.chars().count()).max().unwrap_or(0);
        let column = (text as f64 * 0.52 + 1.9).max(4.4);
        names as f64 * 0.52 + self.columns.len() as f64 * column + 2.0
    }

    pub(super) fn has_doubt(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.cells).flatten().any(|cell| cell.doubtful)
    }

    /// One that is narrow and long as several that are shorter, where two of them stand side by side.
    fn folded(self) -> Vec<Self> {
        if !self.is_narrow() || self.rows.len() <= LONG || self.width() > HALF {
            return vec![self];
        }
        let part = |rows: &[MatrixRow]| Self { rows: rows.to_vec(), ..self.clone() };
        let parts = self.rows.len().div_ceil(LONG);
        self.rows.chunks(self.rows.len().div_ceil(parts)).map(part).collect()
    }
}

/// Rows of a narrow table that stands beside something else.
const LONG: usize = 12;

/// Half of a page that is 1280 pixels wide, in rem.
const HALF: f64 = 36.0;

/// Columns of a narrow table.
const NARROW: usize = 6;

#[derive(Clone, Debug, Serialize)]
struct MatrixRow {
    name: String,
    cells: Vec<Option<Cell>>,
}

/// One cell's cost.
#[derive(Clone, Debug, Serialize)]
struct Cell {
    text: String,
    /// The step of its colour.
    heat: usize,
    /// For anyone who points at it.
    detail: String,
    doubtful: bool,
    /// Every sample beside the median.
    rug: String,
    against: Option<Against>,
}

/// Over the first arm.
#[derive(Clone, Debug, Serialize)]
struct Against {
    text: String,
    /// `faster`, `slower`, `same`, `unresolved`.
    kind: &'static str,
}

/// A number's digits by threes, where there are more than four before the point.
fn grouped(number: &str) -> String {
    let whole = number.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(number.len());
    let mut text = String::new();
    for (at, digit) in number.chars().enumerate() {
        if whole > 4 && at > 0 && at < whole && (whole - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// All tables of an experiment.
pub(super) fn all(experiment: &Experiment, judged: &Judged) -> Vec<Matrix> {
    let costs = experiment.samples.iter().map(|sample| experiment.ticks(sample));
    let scale = Scale::of(costs, 0.0, 1.0);
    let place = Context { experiment, judged, scale, reach: rug::reach(experiment) };
    match Axis::of(experiment, None) {
        Ok(axis) if experiment.plan.arms.len() > 1 => by_arm(&place, &axis),
        Ok(axis) => by_level(&place, &axis).folded(),
        Err(_) => plain(&place).folded(),
    }
}

struct Context<'a> {
    experiment: &'a Experiment,
    judged: &'a Judged,
    scale: Option<Scale>,
    /// Of the strips under the medians.
    reach: f64,
}

/// For each curve: levels downwards, arms across.
fn by_arm(place: &Context<'_>, axis: &Axis) -> Vec<Matrix> {
    let arms = &place.experiment.plan.arms;
    let table = |series: crate::cross::Series| Matrix {
        title: series.name.clone(),
        corner: axis.name.clone(),
        columns: arms.clone(),
        rows: series
            .cells
            .iter()
            .map(|(value, cell)| MatrixRow {
                name: axis.show(*value),
                cells: arms.iter().map(|arm| place.cell(cell, arm)).collect(),
            })
            .collect(),
    };
    axis.series(place.experiment).into_iter().map(table).collect()
}

/// Curves downwards, levels across.
fn by_level(place: &Context<'_>, axis: &Axis) -> Matrix {
    let arm = &place.experiment.plan.arms[0];
    let row = |series: crate::cross::Series| {
        let cell = |(value, _): &(f64, String)| {
            let cell = series.cells.iter().find(|(at, _)| at == value);
            cell.and_then(|(_, cell)| place.cell(cell, arm))
        };
        MatrixRow { name: series.name.clone(), cells: axis.levels.iter().map(cell).collect() }
    };
    Matrix {
        title: String::new(),
        corner: axis.name.clone(),
        columns: axis.levels.iter().map(|(_, name)| name.clone()).collect(),
        rows: axis.series(place.experiment).into_iter().map(row).collect(),
    }
}

/// Cells downwards, arms across.
fn plain(place: &Context<'_>) -> Matrix {
    let plan = &place.experiment.plan;
    let row = |cell: String| MatrixRow {
        cells: plan.arms.iter().map(|arm| place.cell(&cell, arm)).collect(),
        name: cell,
    };
    Matrix {
        title: String::new(),
        corner: "cell".to_owned(),
        columns: plan.arms.clone(),
        rows: plan.cells().into_iter().map(row).collect(),
    }
}

impl Context<'_> {
    fn cell(&self, cell: &str, arm: &str) -> Option<Cell> {
        let samples: Vec<&Sample> = self.experiment.of(cell, arm).collect();
        let costs: Vec<f64> = samples.iter().map(|sample| self.experiment.ticks(sample)).collect();
        if costs.is_empty() {
            return None;
        }
        let [low, middle, high] = [0.25, 0.5, 0.75].map(|share| quantile(&costs, share));
        let doubtful = samples.iter().filter(|sample| !sample.measured.flags.is_empty()).count();
        let unit = self.experiment.manifest.provenance.cost();
        let detail = format!(
            "{cell} {arm}: half of the samples between {} and {} {unit}; {} samples, {doubtful} of them \
             doubtful",
            digits(low),
            digits(high),
            samples.len()
        );
        Some(Cell {
            text: grouped(&digits(middle)),
            heat: heat(middle, self.scale),
            detail,
            doubtful: doubtful * 2 > samples.len(),
            rug: rug::draw(&samples, self.reach),
            against: self.against(cell, arm),
        })
    }

    fn against(&self, cell: &str, arm: &str) -> Option<Against> {
        let judged = self.judged.over_first(cell, arm)?;
        let ratio = judged.comparison.ratio().value;
        Some(Against { text: format!("×{ratio:.2}"), kind: judged.verdict.kind() })
    }
}
