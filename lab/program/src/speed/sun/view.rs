// SPDX-License-Identifier: Apache-2.0
//! Figures of an experiment, as the table and the sentences ask for them.

use super::operations::{OPERATION, ROWS, SunRow, THREADS};
use crate::experiment::{Experiment, Sample};
use crate::scenario;
use crate::speed::openssl::{self, How};
use crate::speed::part::{ARM, BY, LANES, MODULE, RAW, RIVAL};
use crate::verdict::{Comparison, Margin, Verdict};
use std::path::Path;

/// An experiment, to be asked.
pub(super) struct View<'a> {
    pub(super) experiment: &'a Experiment,
    directory: &'a Path,
    pub(super) margin: Margin,
}

/// What one thread and several give, of one operation by one of those who do it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    /// Operations in a second of CPU time: with one thread, with several.
    pub(super) cpu: [f64; 2],
    /// Operations in a second by the wall clock.
    pub(super) wall: [f64; 2],
    /// CPUs that were used: CPU time over wall time.
    pub(super) cpus: [f64; 2],
}

impl Rates {
    /// What several threads gain, by the wall clock.
    pub(super) fn gain(&self) -> f64 {
        self.wall[1] / self.wall[0]
    }

    /// CPU time of an operation with several threads over that with one.
    pub(super) fn dearer(&self) -> f64 {
        self.cpu[0] / self.cpu[1]
    }

    /// How many times as many CPUs.
    pub(super) fn more_cpus(&self) -> f64 {
        self.cpus[1] / self.cpus[0]
    }
}

impl<'a> View<'a> {
    pub(super) fn of(directory: &'a Path, experiment: &'a Experiment) -> Self {
        Self { experiment, directory, margin: scenario::margin(experiment) }
    }

    /// The operations that were measured.
    pub(super) fn rows(&self) -> Vec<&'static SunRow> {
        let levels = self.experiment.plan.levels(OPERATION);
        ROWS.iter().filter(|row| levels.iter().any(|level| level == row.name)).collect()
    }

    /// Those who did them.
    pub(super) fn doers(&self) -> Vec<&'static str> {
        let levels = self.experiment.plan.levels(BY);
        let all = [RAW, MODULE, LANES, RIVAL];
        all.into_iter().filter(|by| levels.iter().any(|level| level == by)).collect()
    }

    /// The most threads.
    pub(super) fn threads(&self) -> usize {
        self.experiment
            .plan
            .levels(THREADS)
            .iter()
            .filter_map(|level| level.parse().ok())
            .max()
            .unwrap_or(1)
    }

    fn cell(row: &SunRow, by: &str, threads: usize) -> String {
        format!("{OPERATION}={} {THREADS}={threads} {BY}={by}", row.name)
    }

    fn typical(&self, cell: &str, figure: fn(&Sample) -> f64) -> Option<f64> {
        self.experiment.typical(cell, ARM, |sample| Some(figure(sample)))
    }

    /// What one thread and several give; nothing where it was not measured.
    pub(super) fn rates(&self, row: &SunRow, by: &str) -> Option<Rates> {
        let cells = [1, self.threads()].map(|threads| Self::cell(row, by, threads));
        let both = |figure: fn(&Sample) -> f64| {
            Some([self.typical(&cells[0], figure)?, self.typical(&cells[1], figure)?])
        };
        Some(Rates {
            cpu: both(Sample::cpu_each)?.map(|each| 1e9 / each),
            wall: both(Sample::wall_each)?.map(|each| 1e9 / each),
            cpus: both(|sample| sample.measured.cpu_ns / sample.measured.wall_ns)?,
        })
    }

    /// CPU time of an operation with several threads over that with one, by pairs.
    pub(super) fn growth(&self, row: &SunRow, by: &str) -> Option<Comparison> {
        let (several, one) = (Self::cell(row, by, self.threads()), Self::cell(row, by, 1));
        self.compared(&several, &one)
    }

    /// CPU time of an operation by one over that by another, with so many threads.
    pub(super) fn over(&self, row: &SunRow, by: [&str; 2], threads: usize) -> Option<Comparison> {
        self.compared(&Self::cell(row, by[0], threads), &Self::cell(row, by[1], threads))
    }

    fn compared(&self, first: &str, second: &str) -> Option<Comparison> {
        let pairs = self.experiment.pairs_between([(first, ARM), (second, ARM)], Sample::cpu_each);
        Comparison::of(&pairs).filter(|_| first != second)
    }

    pub(super) fn verdict(&self, compared: &Comparison) -> Verdict {
        compared.verdict(self.margin)
    }

    /// What `openssl speed` says, in operations in a second: as it comes, by the wall clock, and of several
    /// processes.
    pub(super) fn openssl(&self, row: &SunRow) -> Option<[f64; 3]> {
        let rate = |how| openssl::rate(self.directory, row.openssl, &row.job, how);
        let elapsed = rate(How::Elapsed)?;
        let multi = if self.threads() == 1 { elapsed } else { rate(How::Multi(self.threads()))? };
        Some([rate(How::Default)?, elapsed, multi])
    }

    /// A setting of the experiment.
    pub(super) fn setting(&self, name: &str) -> &str {
        self.experiment.manifest.provenance.settings.get(name).map_or("unknown", String::as_str)
    }
}
