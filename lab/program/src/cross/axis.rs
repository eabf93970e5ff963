// SPDX-License-Identifier: Apache-2.0
//! An experiment as curves: one factor that is a number along the axis, and a curve for each
//! combination of the others.

use crate::experiment::{Experiment, Factor, Sample, level};
use crate::{Failure, Result};
use std::collections::BTreeMap;

/// A factor that is a number, and its levels in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub(crate) name: String,
    /// Each level's value and name.
    pub(crate) levels: Vec<(f64, String)>,
}

/// The cells that differ along the axis only.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// The levels of the other factors that are varied: `name=level`, with blanks between; empty without
    /// others.
    pub(crate) name: String,
    /// The value on the axis and the cell.
    pub(crate) cells: Vec<(f64, String)>,
}

impl Axis {
    /// The factor of this name; of none, the one that is a number and has most levels.
    ///
    /// # Errors
    /// There is none, or it is no number.
    pub(crate) fn of(experiment: &Experiment, name: Option<&str>) -> Result<Self> {
        let factors = &experiment.plan.factors;
        let axes = || factors.iter().filter_map(Self::parse);
        let names = || axes().map(|axis| axis.name).collect::<Vec<_>>().join(", ");
        let Some(name) = name else {
            // Two points of many arms are a table and no curve.
            let fewest = if experiment.plan.arms.len() > 1 { 3 } else { 2 };
            let best = axes().max_by_key(|axis| axis.levels.len());
            return best.filter(|axis| axis.levels.len() >= fewest).ok_or_else(|| {
                Failure::new("no factor of this experiment is a number with several levels")
                    .hint("name one with --x, or measure several sizes in one experiment")
            });
        };
        match factors.iter().find(|factor| factor.name == name) {
            None => Err(Failure::new(format!("there is no factor {name:?}"))
                .hint(format!("numbers are: {}", names()))),
            Some(factor) => Self::parse(factor).ok_or_else(|| {
                Failure::new(format!("the levels of {name:?} are no numbers"))
                    .hint(format!("numbers are: {}", names()))
            }),
        }
    }

    fn parse(factor: &Factor) -> Option<Self> {
        let value = |level: &String| Some((number(level)?, level.clone()));
        let mut levels = factor.levels.iter().map(value).collect::<Option<Vec<_>>>()?;
        levels.sort_by(|left, right| left.0.total_cmp(&right.0));
        Some(Self { name: factor.name.clone(), levels })
    }

    /// A value as its level is called, or as a number.
    pub(crate) fn show(&self, value: f64) -> String {
        let level = self.levels.iter().find(|(level, _)| *level == value);
        level.map_or_else(|| short(value), |(_, name)| name.clone())
    }

    /// The curves, in the order of the plan.
    pub(crate) fn series(&self, experiment: &Experiment) -> Vec<Series> {
        let mut series: Vec<Series> = Vec::new();
        let factors = &experiment.plan.factors;
        for cell in experiment.plan.cells() {
            let Some(value) = level(&cell, &self.name).and_then(number) else { continue };
            // What all curves have in common is in no name.
            let others = factors.iter().filter(|factor| factor.levels.len() == 1);
            let name = others
                .fold(without(&cell, &self.name), |name, factor| without(&name, &factor.name));
            match series.iter_mut().find(|known| known.name == name) {
                Some(known) => known.cells.push((value, cell)),
                None => series.push(Series { name, cells: vec![(value, cell)] }),
            }
        }
        for series in &mut series {
            series.cells.sort_by(|left, right| left.0.total_cmp(&right.0));
        }
        series
    }
}

impl Series {
    /// The costs of an arm at each value, by repetition.
    pub(crate) fn costs(
        &self,
        experiment: &Experiment,
        arm: &str,
        cost: impl Fn(&Sample) -> f64,
    ) -> Vec<BTreeMap<usize, f64>> {
        let of_cell = |cell: &String| {
            experiment.of(cell, arm).map(|sample| (sample.run.repetition, cost(sample))).collect()
        };
        self.cells.iter().map(|(_, cell)| of_cell(cell)).collect()
    }

    pub(crate) fn values(&self) -> Vec<f64> {
        self.cells.iter().map(|(value, _)| *value).collect()
    }
}

/// A cell's name without one of its levels.
pub(crate) fn without(cell: &str, factor: &str) -> String {
    let levels = cell
        .split(' ')
        .filter(|level| level.split_once('=').is_none_or(|(name, _)| name != factor));
    levels.collect::<Vec<_>>().join(" ")
}

/// `64`, `64K`, `1.5M`, `2G`.
pub(crate) fn number(level: &str) -> Option<f64> {
    let (digits, scale) = match level.as_bytes().last()? {
        b'K' | b'k' => (&level[..level.len() - 1], 1024.0),
        b'M' => (&level[..level.len() - 1], 1024.0 * 1024.0),
        b'G' => (&level[..level.len() - 1], 1024.0 * 1024.0 * 1024.0),
        b'0'..=b'9' => (level, 1.0),
        _ => return None,
    };
    digits.parse::<f64>().ok().filter(|value| *value > 0.0).map(|value| value * scale)
}

/// A number between the levels, short: `13.4K`.
pub(crate) fn short(value: f64) -> String {
    let (value, unit) = match value {
        v if v >= 1024.0 * 1024.0 * 1024.0 => (v / (1024.0 * 1024.0 * 1024.0), "G"),
        v if v >= 1024.0 * 1024.0 => (v / (1024.0 * 1024.0), "M"),
        v if v >= 1024.0 => (v / 1024.0, "K"),
        v => (v, ""),
    };
    let text = if value >= 99.5 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    };
    text + unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_numbers_or_are_not() {
        assert_eq!(number("64"), Some(64.0));
        assert_eq!(number("64K"), Some(65_536.0));
        assert_eq!(number("1M"), Some(1_048_576.0));
        assert_eq!(number("0.5K"), Some(512.0));
        for level in ["", "K", "cached", "4K pages", "-1", "0"] {
            assert_eq!(number(level), None, "{level}");
        }
        assert_eq!(
            (short(65_536.0), short(13_700.0), short(700.0)),
            ("64K".into(), "13.4K".into(), "700".into())
        );
    }

    #[test]
    fn a_level_is_taken_out_of_a_name() {
        assert_eq!(without("size=1K pages=4K", "size"), "pages=4K");
        assert_eq!(without("size=1K", "size"), "");
        assert_eq!(without("size=1K pages=4K", "page"), "size=1K pages=4K");
    }
}
