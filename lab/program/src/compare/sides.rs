// SPDX-License-Identifier: Apache-2.0
//! Which samples stand on which side.

use super::{Metric, Options};
use crate::experiment::{Experiment, Sample};
use crate::statistics::median;
use crate::verdict::{Comparison, Pairs};
use crate::{Failure, Result};
use std::collections::BTreeMap;

/// One arm of one cell of one experiment.
#[derive(Clone, Debug)]
pub(crate) struct Side<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) cell: String,
    pub(crate) arm: String,
}

impl Side<'_> {
    pub(crate) fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.experiment.of(&self.cell, &self.arm)
    }

    fn costs(&self, metric: Metric) -> BTreeMap<usize, f64> {
        self.samples().map(|sample| (sample.run.repetition, metric.of(sample))).collect()
    }

    /// The median, in the unit of tables.
    pub(crate) fn cost(&self, metric: Metric) -> Option<f64> {
        let values: Vec<f64> = match metric {
            Metric::Cpu => self.samples().map(|sample| self.experiment.ticks(sample)).collect(),
            Metric::Wall => self.samples().map(Sample::wall_each).collect(),
        };
        (!values.is_empty()).then(|| median(&values))
    }
}

/// Two sides.
#[derive(Clone, Debug)]
pub(crate) struct Sides<'a> {
    pub(crate) a: Side<'a>,
    pub(crate) b: Side<'a>,
}

impl Sides<'_> {
    /// Whether both were run in one experiment, interleaved.
    pub(crate) fn is_paired(&self) -> bool {
        std::ptr::eq(self.a.experiment, self.b.experiment)
    }

    pub(crate) fn compare(&self, metric: Metric) -> Option<Comparison> {
        let (a, b) = (self.a.costs(metric), self.b.costs(metric));
        if self.is_paired() {
            let both = a.iter().filter_map(|(at, cost)| Some((*cost, *b.get(at)?)));
            let (a, b): (Vec<f64>, Vec<f64>) = both.unzip();
            return Comparison::of(&Pairs::of_costs(&a, &b));
        }
        let values = |side: BTreeMap<usize, f64>| side.into_values().collect::<Vec<_>>();
        Comparison::of_two(&values(a), &values(b))
    }

    /// What the row is called: what both have in common.
    pub(crate) fn name(&self) -> String {
        let cell = if self.a.cell == self.b.cell {
            self.a.cell.clone()
        } else {
            format!("{} / {}", self.a.cell, self.b.cell)
        };
        let many = self.a.experiment.plan.arms.len() > 1 && self.a.arm == self.b.arm;
        if many { format!("{cell} {}", self.a.arm) } else { cell }
    }

    /// What a sentence calls the two.
    pub(crate) fn names(&self) -> [String; 2] {
        if !self.is_paired() {
            return ["A".to_owned(), "B".to_owned()];
        }
        if self.a.cell == self.b.cell {
            return [self.a.arm.clone(), self.b.arm.clone()];
        }
        [self.a.cell.clone(), self.b.cell.clone()]
    }
}

/// The sides that the options name, and the names of cells that only one experiment has.
pub(super) fn choose<'a>(
    options: &Options,
    a: &'a Experiment,
    b: Option<&'a Experiment>,
) -> Result<(Vec<Sides<'a>>, Vec<String>)> {
    let other = b.unwrap_or(a);
    let (left, right) = arms(options, a, b)?;
    let cells: Vec<[String; 2]> = match (&options.cell, &options.against_cell) {
        (Some(cell), Some(against)) => vec![[cell.clone(), against.clone()]],
        (Some(cell), None) => vec![[cell.clone(), cell.clone()]],
        _ => a.plan.cells().into_iter().map(|cell| [cell.clone(), cell]).collect(),
    };
    for (experiment, at) in [(a, 0), (other, 1)] {
        if options.cell.is_some() {
            known(experiment, &cells[0][at])?;
        }
    }
    let theirs = other.plan.cells();
    let (matched, rest): (Vec<_>, Vec<_>) =
        cells.into_iter().partition(|[_, against]| theirs.contains(against));
    let mut unmatched: Vec<String> =
        rest.into_iter().map(|[cell, _]| format!("A: {cell}")).collect();
    if options.cell.is_none() {
        let own = a.plan.cells();
        let only = theirs.iter().filter(|cell| !own.contains(cell));
        unmatched.extend(only.map(|cell| format!("B: {cell}")));
    }
    let sides = |[cell, against]: &[String; 2]| {
        let side = |experiment: &'a Experiment, cell: &String, arm: &String| Side {
            experiment,
            cell: cell.clone(),
            arm: arm.clone(),
        };
        let both = left.iter().zip(&right);
        both.map(|(one, two)| Sides { a: side(a, cell, one), b: side(other, against, two) })
            .collect::<Vec<_>>()
    };
    let sides: Vec<Sides<'a>> = matched.iter().flat_map(sides).collect();
    if sides.is_empty() {
        return Err(Failure::new("the experiments have no cell in common")
            .hint("name one of each with --cell and --against-cell"));
    }
    Ok((sides, unmatched))
}

/// The arms of both sides, one beside the other.
fn arms(
    options: &Options,
    a: &Experiment,
    b: Option<&Experiment>,
) -> Result<(Vec<String>, Vec<String>)> {
    let first = |experiment: &Experiment, named: &Option<String>, at: usize| {
        let arm = named.as_ref().or_else(|| experiment.plan.arms.get(at)).cloned();
        let arm = arm.ok_or_else(|| {
            Failure::new("the experiment has one arm only")
                .hint("name another experiment, or two cells with --cell and --against-cell")
        })?;
        if experiment.plan.arms.contains(&arm) {
            return Ok(arm);
        }
        Err(Failure::new(format!("there is no arm {arm:?}"))
            .hint(format!("there are: {}", experiment.plan.arms.join(", "))))
    };
    let named = options.arm.is_some() || options.against_arm.is_some();
    match b {
        Some(b) if !named => {
            let both = a.plan.arms.iter().filter(|arm| b.plan.arms.contains(arm));
            let both: Vec<String> = both.cloned().collect();
            if both.is_empty() {
                return Err(Failure::new("the experiments have no arm in common")
                    .hint("name one of each with --arm and --against-arm"));
            }
            Ok((both.clone(), both))
        }
        Some(b) => {
            let arm = first(a, &options.arm.clone().or_else(|| options.against_arm.clone()), 0)?;
            let against = options.against_arm.clone().or_else(|| Some(arm.clone()));
            Ok((vec![arm], vec![first(b, &against, 0)?]))
        }
        // Two cells are compared by the same arm, one cell by two arms.
        None if options.against_cell.is_some() => {
            let arm = first(a, &options.arm, 0)?;
            let against = options.against_arm.clone().or_else(|| Some(arm.clone()));
            Ok((vec![arm], vec![first(a, &against, 0)?]))
        }
        None => {
            let arm = first(a, &options.arm, 0)?;
            let next = usize::from(a.plan.arms.first() == Some(&arm));
            let against = first(a, &options.against_arm, next)?;
            if arm == against {
                return Err(Failure::new(format!("{arm:?} is compared with itself")));
            }
            Ok((vec![arm], vec![against]))
        }
    }
}

fn known(experiment: &Experiment, cell: &str) -> Result<()> {
    let cells = experiment.plan.cells();
    if cells.iter().any(|known| known == cell) {
        return Ok(());
    }
    let shown: Vec<&str> = cells.iter().map(String::as_str).take(8).collect();
    Err(Failure::new(format!("there is no cell {cell:?}"))
        .hint(format!("there are: {}", shown.join("; "))))
}
