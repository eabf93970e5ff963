// SPDX-License-Identifier: Apache-2.0
//! Figures of an experiment, as the table and the JSON ask for them.

use super::place::{BATCHED, BATCHES};
use super::rows::{Doer, JOBS, OPERATION, PROCESSES, ROWS, ThroughRow};
use crate::experiment::{Experiment, Sample};
use crate::scenario;
use crate::speed::part::{ARM, BY};
use crate::verdict::{Comparison, Family, Verdict};
use std::collections::BTreeMap;

/// Why combinations that make no sense are left out.
pub(super) const NO_PAUSES: &str = "nothing pauses there";

/// An experiment, to be asked.
pub(super) struct View<'a> {
    pub(super) experiment: &'a Experiment,
    /// CPU time of an operation over that of the same without the module, by the cell.
    compared: BTreeMap<String, (Comparison, Verdict)>,
}

/// One line of the table.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) row: &'static ThroughRow,
    pub(super) doer: Doer,
    pub(super) processes: usize,
    pub(super) jobs: usize,
}

impl Line {
    fn cell(&self) -> String {
        let Self { row, doer, processes, jobs } = self;
        let (name, by) = (row.name, doer.word());
        format!("{OPERATION}={name} {BY}={by} {PROCESSES}={processes} {JOBS}={jobs}")
    }
}

impl<'a> View<'a> {
    pub(super) fn of(experiment: &'a Experiment) -> Self {
        let mut view = Self { experiment, compared: BTreeMap::new() };
        let pairs = |line: &Line| {
            let beside = Line { doer: line.doer.beside()?, jobs: 0, ..line.clone() };
            let (cell, beside) = (line.cell(), beside.cell());
            let ends = [(cell.as_str(), ARM), (beside.as_str(), ARM)];
            let pairs = experiment.pairs_between(ends, Sample::cpu_each);
            Some((cell.clone(), Comparison::of(&pairs)?))
        };
        let compared: Vec<_> = view.lines().iter().filter_map(pairs).collect();
        let verdicts = Family::new(compared.clone(), scenario::margin(experiment)).verdicts();
        let judged = compared.into_iter().zip(verdicts);
        view.compared = judged.map(|((cell, one), verdict)| (cell, (one, verdict))).collect();
        view
    }

    fn levels(&self, factor: &str) -> Vec<usize> {
        self.experiment.plan.levels(factor).iter().filter_map(|level| level.parse().ok()).collect()
    }

    pub(super) fn rows(&self) -> Vec<&'static ThroughRow> {
        let levels = self.experiment.plan.levels(OPERATION);
        ROWS.iter().filter(|row| levels.iter().any(|level| level == row.name)).collect()
    }

    /// All that was measured.
    pub(super) fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for row in self.rows() {
            for doer in Doer::ALL {
                for processes in self.levels(PROCESSES) {
                    for jobs in self.levels(JOBS) {
                        lines.push(Line { row, doer, processes, jobs });
                    }
                }
            }
        }
        lines.retain(|line| self.experiment.of(&line.cell(), ARM).next().is_some());
        lines
    }

    fn typical(&self, line: &Line, figure: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        self.experiment.typical(&line.cell(), ARM, figure)
    }

    /// Operations in a second by the wall clock.
    pub(super) fn rate(&self, line: &Line) -> Option<f64> {
        Some(1e9 / self.typical(line, |sample| Some(sample.wall_each()))?)
    }

    /// CPU time of an operation, in nanoseconds.
    pub(super) fn cpu(&self, line: &Line) -> Option<f64> {
        self.typical(line, |sample| Some(sample.cpu_each()))
    }

    /// The same over that of plain `openssl speed`, or of the key in a file.
    pub(super) fn compared(&self, line: &Line) -> Option<&(Comparison, Verdict)> {
        self.compared.get(&line.cell())
    }

    /// By how much several processes are faster than one, by the wall clock.
    pub(super) fn gain(&self, line: &Line) -> Option<f64> {
        let one = Line { processes: 1, ..line.clone() };
        (line.processes > 1).then(|| Some(self.rate(line)? / self.rate(&one)?))?
    }

    /// Operations of one batch in the mean.
    pub(super) fn fill(&self, line: &Line) -> Option<f64> {
        let counted = |name: &str, sample: &Sample| sample.measured.counters.get(name).copied();
        self.typical(line, |sample| {
            let batches = counted(BATCHES, sample).filter(|batches| *batches > 0.0)?;
            Some(counted(BATCHED, sample)? / batches)
        })
    }

    /// What was not run, and why: who, and for which operations.
    pub(super) fn left_out(&self) -> Vec<String> {
        let mut whys: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for skipped in &self.experiment.plan.skipped {
            let level = |factor| crate::experiment::level(&skipped.cell, factor).unwrap_or("-");
            if skipped.why != NO_PAUSES {
                whys.entry((level(BY), &skipped.why)).or_default().push(level(OPERATION));
            }
        }
        let line = |((by, why), mut names): ((&str, &str), Vec<&str>)| {
            names.dedup();
            format!("{by}, {}: {why}", names.join(", "))
        };
        whys.into_iter().map(line).collect()
    }
}
