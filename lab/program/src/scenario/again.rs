// SPDX-License-Identifier: Apache-2.0
//! The A/A inside of every experiment: when all planned runs are done, cells' first arms once more, started
//! afresh. It tells how far two runs of the same code lie apart.

use super::Scenario;
use crate::Result;
use crate::experiment::{Plan, Recorder, Run};
use crate::interrupt::Interrupt;
use crate::meter::Meter;
use crate::progress::Progress;

/// Samples of each cell.
pub(super) const TIMES: usize = 3;
/// No more cells than this: their differences are pooled, and more hardly tell more.
const MAX_CELLS: usize = 12;

/// How many samples that are, of so many cells.
pub(super) fn count(cells: usize) -> usize {
    cells.min(MAX_CELLS) * TIMES
}

/// Which cells are run again, each by its first arm: all, or some from the first to the last.
pub(super) fn cells(all: &[String]) -> Vec<&String> {
    let count = all.len().min(MAX_CELLS);
    let last = count.saturating_sub(1).max(1);
    (0..count).map(|at| &all[at * (all.len() - 1) / last]).collect()
}

/// Runs them, after the planned runs.
pub(super) fn again(
    scenario: &mut dyn Scenario,
    recorder: &mut Recorder,
    interrupt: &Interrupt,
    progress: &Progress,
) -> Result<()> {
    if !scenario.again() {
        return Ok(());
    }
    let runs = runs(scenario, recorder.plan());
    scenario.afresh()?;
    let meter = Meter::start();
    for run in runs {
        interrupt.failure().map_or(Ok(()), Err)?;
        progress.say(format_args!("the same again: {} {}", run.cell, run.arm));
        let measured = scenario
            .sample(&run, &meter)
            .map_err(|failure| interrupt.failure().unwrap_or_else(|| failure.context(&run.cell)))?;
        recorder.again(run, measured)?;
    }
    Ok(())
}

/// Cell by cell, and all of them so many times.
fn runs(scenario: &dyn Scenario, plan: &Plan) -> Vec<Run> {
    let Some(arm) = plan.arms.first() else { return Vec::new() };
    let mut all = plan.cells();
    all.retain(|cell| scenario.skip_arm(cell, arm).is_none());
    let chosen = cells(&all);
    let repetitions = plan.repetitions()..plan.repetitions() + TIMES;
    let of = |repetition| {
        chosen.iter().map(move |cell| Run { cell: (*cell).clone(), repetition, arm: arm.clone() })
    };
    repetitions.flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_cells_some_are_run_again_from_the_first_to_the_last() {
        let all = |count: usize| (0..count).map(|at| at.to_string()).collect::<Vec<_>>();
        assert!(cells(&all(0)).is_empty());
        assert_eq!(cells(&all(1)), ["0"]);
        assert_eq!(cells(&all(3)), ["0", "1", "2"]);
        let (many, few) = (all(100), all(12));
        let chosen = cells(&many);
        assert_eq!((chosen.len(), chosen[0].as_str(), chosen[11].as_str()), (12, "0", "99"));
        assert_eq!(cells(&few).len(), 12);
    }
}
