// SPDX-License-Identifier: Apache-2.0
//! Figures of an experiment, as the table and the sentences ask for them.

use super::operations::{OPERATION, ROWS, SunRow, THREADS};
use crate::experiment::{Experiment, Sample};
use crate::scenario;
use crate::speed::finding::over;
use crate::speed::openssl::{self, How};
use crate::speed::part::{ARM, BY, LANES, MODULE, RAW, RIVAL};
use crate::verdict::{Comparison, Family, Margin, Verdict};
use std::collections::BTreeMap;
use std::path::Path;

/// An experiment, to be asked.
pub(super) struct View<'a> {
    pub(super) experiment: &'a Experiment,
    directory: &'a Path,
    pub(super) margin: Margin,
    /// Several threads over one.
    growths: Together,
    /// One over another, as [`OVER`] has them.
    overs: Vec<([&'static str; 2], Together)>,
}

/// Comparisons by their first cell, each judged with all of them in view.
type Together = BTreeMap<String, (Comparison, Verdict)>;

/// Who is compared with whom.
pub(super) const OVER: [[&str; 2]; 3] = [[MODULE, RAW], [LANES, MODULE], [RIVAL, MODULE]];

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
        let margin = scenario::margin(experiment);
        let overs = OVER.map(|by| (by, together(over(experiment, by), margin))).into();
        let growths = Together::new();
        let mut view = Self { experiment, directory, margin, growths, overs };
        view.growths = together(view.grown(), margin);
        view
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
    pub(super) fn growth(&self, row: &SunRow, by: &str) -> Option<&(Comparison, Verdict)> {
        self.growths.get(&Self::cell(row, by, self.threads()))
    }

    fn grown(&self) -> Vec<(String, Comparison)> {
        let rows = self.rows().into_iter().filter(|_| self.threads() > 1);
        let all = rows.flat_map(|row| self.doers().into_iter().map(move |by| (row, by)));
        let compared = all.filter_map(|(row, by)| {
            let several = Self::cell(row, by, self.threads());
            let ends = [(&*several, ARM), (&*Self::cell(row, by, 1), ARM)];
            let pairs = self.experiment.pairs_between(ends, Sample::cpu_each);
            Some((several, Comparison::of(&pairs)?))
        });
        compared.collect()
    }

    /// CPU time of an operation by one over that by another, with so many threads.
    pub(super) fn over(
        &self,
        row: &SunRow,
        by: [&str; 2],
        threads: usize,
    ) -> Option<&(Comparison, Verdict)> {
        let (_, all) = self.overs.iter().find(|(who, _)| *who == by)?;
        all.get(&Self::cell(row, by[0], threads))
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

fn together(compared: Vec<(String, Comparison)>, margin: Margin) -> Together {
    let verdicts = Family::new(compared.clone(), margin).verdicts();
    let judged = compared.into_iter().zip(verdicts);
    judged.map(|((cell, comparison), verdict)| (cell, (comparison, verdict))).collect()
}
