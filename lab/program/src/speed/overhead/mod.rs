// SPDX-License-Identifier: Apache-2.0
//! `lab speed`: what a call of the module costs beside the raw library's, on one thread and on several, and what it
//! has to reach.

mod cells;
mod finding;
mod print;
mod report;
mod scenario;

use super::Options;
pub(crate) use print::text;

use crate::Result;
use crate::experiment::Experiment;
use crate::filter::wanted;
use crate::scenario::{Made, margin};
use crate::summary::summary;
use cells::{CELLS, Cell};
use report::Report;
use serde_json::{Value, json};
use std::path::Path;

/// Lists, or measures.
pub(super) fn run(options: &Options) -> Result<Option<Made>> {
    let cells = wanted(CELLS, |cell| cell.name, &options.filter, "cell")?;
    if options.list {
        return print::list(&cells, options.goals).list(options.token.json).map(|()| None);
    }
    let cells = measured(cells, &options.filter);
    let made = scenario::jobs(options, &cells)?.make(options)?;
    Ok(Some(Made { goals: options.goals, ..made }))
}

/// Without those that take long, unless they are named.
fn measured(mut cells: Vec<Cell>, filter: &[String]) -> Vec<Cell> {
    cells.retain(|cell| !cell.named || !filter.is_empty());
    cells
}

/// What it comes to, in one sentence.
pub(crate) fn finding(directory: &Path, experiment: &Experiment) -> Option<String> {
    finding::sentence(&Report::of(directory, experiment), margin(experiment))
}

/// The summary, with every cell's samples.
pub(crate) fn json(directory: &Path, experiment: &Experiment) -> Value {
    let mut summary = summary(experiment);
    summary["overhead"] = json!(Report::of(directory, experiment));
    summary
}

/// The tables of a run whose file is JSON.
///
/// # Errors
/// It is not of this kind.
pub(crate) fn earlier(file: Value, goals: bool) -> Result<String> {
    Ok(print::tables(&serde_json::from_value(file)?, goals))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_measured_where_it_is_named() {
        let named = |cells: Vec<Cell>| cells.iter().filter(|cell| cell.named).count();
        assert_eq!(named(measured(CELLS.to_vec(), &[])), 0);
        assert_eq!(named(measured(CELLS.to_vec(), &["hss".to_owned()])), 4);
    }
}
