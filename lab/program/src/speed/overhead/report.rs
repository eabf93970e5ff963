// SPDX-License-Identifier: Apache-2.0
//! What an experiment says of every cell, and everything that is computed from it.

use super::cells::{CELLS, Cell, Goal};
use super::scenario::{CELL, THREADS};
use crate::experiment::{Experiment, Sample};
use crate::goal::Verdict;
use crate::speed::openssl::{How, rate};
use crate::speed::part::{AGAIN as RAW_AGAIN, ARM, BY, LANES, RAW as BARE, RIVAL as OTHER};
use crate::statistics::{Estimate, median, paired_difference, paired_ratio};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The names of those who are compared.
pub(crate) const RAW: &str = "raw";
/// The raw library a second time: how far two measurements of the same thing lie apart.
pub(crate) const AGAIN: &str = "raw again";
pub(crate) const MODULE: &str = "module";
pub(crate) const RIVAL: &str = "rival";

/// The same as they are called in the plan; the module is measured as it comes, with lanes.
const NAMES: [(&str, &str); 4] = [(BARE, RAW), (RAW_AGAIN, AGAIN), (LANES, MODULE), (OTHER, RIVAL)];

/// Everything that was measured.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Report {
    pub(crate) threads: Vec<usize>,
    pub(crate) cells: Vec<CellResult>,
    pub(crate) openssl: Vec<Check>,
}

/// All samples of one cell.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct CellResult {
    pub(crate) name: String,
    pub(crate) mechanism: String,
    pub(crate) size: usize,
    pub(crate) goal: Option<Goal>,
    pub(crate) scaling_goal: Option<f64>,
    pub(crate) arms: Vec<Arm>,
    /// Who could not do it, and why.
    pub(crate) unsupported: Vec<(String, String)>,
    /// CPU that others used meanwhile, in CPUs.
    pub(crate) foreign_cpu: Option<f64>,
}

/// The samples of one provider at one number of threads, in the order of the repetitions.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Arm {
    pub(crate) provider: String,
    pub(crate) threads: usize,
    /// CPU time per operation, in nanoseconds.
    pub(crate) cpu_ns: Vec<f64>,
    /// Wall time per operation of all threads together, in nanoseconds: the inverse of the rate.
    pub(crate) wall_ns: Vec<f64>,
}

impl Report {
    pub(crate) fn of(directory: &Path, experiment: &Experiment) -> Self {
        let threads: Vec<usize> =
            experiment.plan.levels(THREADS).iter().filter_map(|level| level.parse().ok()).collect();
        let names = experiment.plan.levels(CELL);
        let measured = || CELLS.iter().filter(|cell| names.iter().any(|name| name == cell.name));
        let cells: Vec<_> =
            measured().map(|cell| CellResult::of(experiment, cell, &threads)).collect();
        let checks = cells.iter().zip(measured());
        let checks =
            checks.flat_map(|(result, cell)| Check::of(directory, experiment, result, cell));
        let openssl = checks.collect();
        Self { threads, cells, openssl }
    }
}

impl CellResult {
    fn of(experiment: &Experiment, cell: &Cell, threads: &[usize]) -> Self {
        let (mut arms, mut unsupported, mut foreign) = (Vec::new(), Vec::new(), Vec::new());
        for (by, provider) in NAMES {
            for &threads in threads {
                let name = format!("{CELL}={} {THREADS}={threads} {BY}={by}", cell.name);
                let skipped = &experiment.plan.skipped;
                match skipped.iter().find(|skipped| skipped.cell == name) {
                    Some(skipped) if threads == 1 => {
                        unsupported.push((provider.to_owned(), skipped.why.clone()));
                    }
                    Some(_) => {}
                    None => {
                        let samples: Vec<&Sample> = experiment.of(&name, ARM).collect();
                        foreign.extend(samples.iter().filter_map(|s| s.measured.foreign_cpu));
                        arms.push(Arm::of(provider, threads, &samples));
                    }
                }
            }
        }
        arms.retain(|arm| !arm.cpu_ns.is_empty());
        Self {
            name: cell.name.to_owned(),
            mechanism: cell.mechanism_name().to_owned(),
            size: cell.bytes,
            goal: cell.goal,
            scaling_goal: cell.scaling,
            arms,
            unsupported,
            foreign_cpu: (!foreign.is_empty()).then(|| median(&foreign)),
        }
    }
}

impl Arm {
    fn of(provider: &str, threads: usize, samples: &[&Sample]) -> Self {
        Self {
            provider: provider.to_owned(),
            threads,
            cpu_ns: samples.iter().map(|sample| sample.cpu_each()).collect(),
            wall_ns: samples.iter().map(|sample| sample.wall_each()).collect(),
        }
    }
}

impl CellResult {
    pub(crate) fn arm(&self, provider: &str, threads: usize) -> Option<&Arm> {
        self.arms.iter().find(|arm| arm.provider == provider && arm.threads == threads)
    }

    /// CPU time per operation: the median of the rounds.
    pub(crate) fn cpu_ns(&self, provider: &str) -> Option<f64> {
        self.arm(provider, 1).map(|arm| median(&arm.cpu_ns))
    }

    /// Speed over the raw library: above 1 is faster.
    pub(crate) fn ratio(&self, provider: &str) -> Option<Estimate> {
        paired_ratio(&self.arm(RAW, 1)?.cpu_ns, &self.arm(provider, 1)?.cpu_ns)
    }

    /// CPU time added to the raw library's.
    pub(crate) fn added(&self, provider: &str) -> Option<Estimate> {
        paired_difference(&self.arm(provider, 1)?.cpu_ns, &self.arm(RAW, 1)?.cpu_ns)
    }

    /// The highest number of threads, if there is more than one.
    pub(crate) fn most_threads(&self) -> Option<usize> {
        self.arms.iter().map(|arm| arm.threads).max().filter(|threads| *threads > 1)
    }

    /// Rate at the highest number of threads over the rate at one, by the wall clock.
    pub(crate) fn scaling(&self, provider: &str) -> Option<Estimate> {
        let most = self.most_threads()?;
        paired_ratio(&self.arm(provider, 1)?.wall_ns, &self.arm(provider, most)?.wall_ns)
    }

    /// Scaling over raw's own scaling in the same rounds, by the wall clock.
    pub(crate) fn scaling_over_raw(&self, provider: &str) -> Option<Estimate> {
        self.over_raw(provider, |arm| &arm.wall_ns)
    }

    /// The same by the CPU clock: blind to waiting, but also to other processes.
    pub(crate) fn cpu_scaling_over_raw(&self, provider: &str) -> Option<Estimate> {
        self.over_raw(provider, |arm| &arm.cpu_ns)
    }

    fn over_raw(&self, provider: &str, samples: impl Fn(&Arm) -> &[f64]) -> Option<Estimate> {
        let most = self.most_threads()?;
        let scaling = |name: &str| -> Option<Vec<f64>> {
            let (one, many) = (self.arm(name, 1)?, self.arm(name, most)?);
            let pairs = samples(one).iter().zip(samples(many));
            Some(pairs.map(|(one, many)| one / many).collect())
        };
        paired_ratio(&scaling(provider)?, &scaling(RAW)?)
    }

    /// CPU time per operation at the highest number of threads over that at one.
    pub(crate) fn cpu_growth(&self, provider: &str) -> Option<Estimate> {
        let most = self.most_threads()?;
        paired_ratio(&self.arm(provider, most)?.cpu_ns, &self.arm(provider, 1)?.cpu_ns)
    }

    /// How the module stands to the cell's goal.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        match self.goal? {
            Goal::Ratio(goal) => Some(Verdict::at_least(self.ratio(MODULE)?, goal)),
            Goal::AddedNs(goal) => Some(Verdict::at_most(self.added(MODULE)?, goal)),
            Goal::CpuGrowth(goal) => Some(Verdict::at_most(self.cpu_growth(MODULE)?, goal)),
        }
    }

    /// How the module's scaling stands to its goal.
    pub(crate) fn scaling_verdict(&self) -> Option<Verdict> {
        Some(Verdict::at_least(self.scaling_over_raw(MODULE)?, self.scaling_goal?))
    }
}

/// The raw library beside `openssl speed`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Check {
    pub(crate) cell: String,
    pub(crate) version: String,
    /// `cpu` or `wall`
    pub(crate) clock: String,
    pub(crate) raw_per_second: f64,
    pub(crate) openssl_per_second: f64,
    /// Absent where the module does not do it, and in older files.
    #[serde(default)]
    pub(crate) module_per_second: Option<f64>,
}

impl Check {
    /// By both clocks: as it comes it divides by its user CPU time, with `-elapsed` by the wall clock.
    fn of(
        directory: &Path,
        experiment: &Experiment,
        result: &CellResult,
        cell: &Cell,
    ) -> Vec<Self> {
        let version = experiment.manifest.provenance.settings.get("openssl");
        let check = |how, clock: &str, samples: &dyn Fn(&Arm) -> f64| {
            Some(Self {
                cell: cell.name.to_owned(),
                version: version?.clone(),
                clock: clock.to_owned(),
                raw_per_second: 1e9 / samples(result.arm(RAW, 1)?),
                openssl_per_second: rate(directory, cell.openssl, &cell.job()?, how)?,
                module_per_second: result.arm(MODULE, 1).map(|arm| 1e9 / samples(arm)),
            })
        };
        let cpu = check(How::Default, "cpu", &|arm| median(&arm.cpu_ns));
        let wall = check(How::Elapsed, "wall", &|arm| median(&arm.wall_ns));
        cpu.into_iter().chain(wall).collect()
    }

    /// Raw over OpenSSL.
    pub(crate) fn ratio(&self) -> f64 {
        self.raw_per_second / self.openssl_per_second
    }

    /// What the ratio means for anyone who trusts the raw figures: a raw library that is slower than
    /// it should be would flatter the module.
    pub(crate) fn verdict(&self) -> &'static str {
        match self.ratio() {
            ratio if ratio < 0.95 => "MORE THAN 5 % SLOWER",
            ratio if ratio > 1.05 => "more than 5 % faster",
            _ => "within 5 %",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(provider: &str, threads: usize, cpu: f64, wall: f64) -> Arm {
        let (cpu_ns, wall_ns) = (vec![cpu; 9], vec![wall; 9]);
        Arm { provider: provider.to_owned(), threads, cpu_ns, wall_ns }
    }

    fn result(arms: Vec<Arm>, goal: Goal) -> CellResult {
        CellResult {
            name: "cell".into(),
            mechanism: "CKM_SHA256".into(),
            size: 16,
            goal: Some(goal),
            scaling_goal: Some(0.97),
            arms,
            unsupported: Vec::new(),
            foreign_cpu: None,
        }
    }

    #[test]
    fn ratios_and_additions_come_from_pairs() {
        let arms = vec![arm(RAW, 1, 100.0, 100.0), arm(MODULE, 1, 125.0, 125.0)];
        let cell = result(arms, Goal::AddedNs(30.0));
        assert!((cell.ratio(MODULE).unwrap().value - 0.8).abs() < 1e-9);
        assert!((cell.added(MODULE).unwrap().value - 25.0).abs() < 1e-9);
        assert_eq!(cell.verdict(), Some(Verdict::Met));
        assert_eq!(cell.scaling(MODULE), None);
    }

    #[test]
    fn scaling_is_judged_against_raws_own() {
        let arms = vec![
            arm(RAW, 1, 100.0, 100.0),
            arm(RAW, 2, 100.0, 52.0),
            arm(MODULE, 1, 200.0, 200.0),
            arm(MODULE, 2, 300.0, 156.0),
        ];
        let cell = result(arms, Goal::CpuGrowth(1.1));
        assert!((cell.scaling(RAW).unwrap().value - 100.0 / 52.0).abs() < 1e-9);
        let over = cell.scaling_over_raw(MODULE).unwrap().value;
        assert!((over - (200.0 / 156.0) / (100.0 / 52.0)).abs() < 1e-9);
        assert_eq!(cell.scaling_verdict(), Some(Verdict::Missed));
        assert_eq!(cell.verdict(), Some(Verdict::Missed));
    }
}
