// SPDX-License-Identifier: Apache-2.0
//! The result as a file, and everything that is computed from it.

use super::cell::Goal;
use crate::machine::Machine;
use crate::statistics::{Estimate, median, paired_difference, paired_ratio};
use serde::{Deserialize, Serialize};

/// The names of the subjects.
pub(crate) const RAW: &str = "raw";
/// The raw library a second time: how far two measurements of the same thing lie apart.
pub(crate) const AGAIN: &str = "raw again";
pub(crate) const MODULE: &str = "module";
pub(crate) const RIVAL: &str = "rival";

/// The schema's name; a change that breaks readers changes the number.
pub(crate) const SCHEMA: &str = "metaslot-lab-speed/1";

/// One run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Report {
    pub(crate) schema: String,
    pub(crate) command: Vec<String>,
    /// Seconds since 1970.
    pub(crate) started: u64,
    pub(crate) seconds: f64,
    pub(crate) machine: Machine,
    /// The clock of `cpu_ns` and of `wall_ns`.
    pub(crate) clocks: [String; 2],
    pub(crate) seed: u64,
    pub(crate) rounds: usize,
    pub(crate) batch_ms: f64,
    pub(crate) threads: Vec<usize>,
    pub(crate) providers: Vec<Provider>,
    pub(crate) cells: Vec<CellResult>,
    pub(crate) openssl: Vec<Check>,
}

/// Who did the work.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Provider {
    pub(crate) name: String,
    /// The library's own description.
    pub(crate) description: String,
    pub(crate) path: Option<String>,
    pub(crate) commit: Option<String>,
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

/// The samples of one provider at one number of threads, in the order of the rounds.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Arm {
    pub(crate) provider: String,
    pub(crate) threads: usize,
    pub(crate) operations: u64,
    pub(crate) batches: usize,
    /// CPU time per operation, in nanoseconds.
    pub(crate) cpu_ns: Vec<f64>,
    /// Wall time per operation of all threads together, in nanoseconds: the inverse of the rate.
    pub(crate) wall_ns: Vec<f64>,
}

impl Arm {
    pub(crate) fn new(provider: &str, threads: usize) -> Self {
        Self {
            provider: provider.to_owned(),
            threads,
            operations: 0,
            batches: 0,
            cpu_ns: Vec::new(),
            wall_ns: Vec::new(),
        }
    }
}

/// Whether a goal was reached, as far as the interval allows to say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    Met,
    Missed,
    /// The interval holds the goal: more rounds are needed.
    Unresolved,
}

impl Verdict {
    fn at_least(estimate: Estimate, goal: f64) -> Self {
        if estimate.low >= goal {
            Self::Met
        } else if estimate.high < goal {
            Self::Missed
        } else {
            Self::Unresolved
        }
    }

    fn at_most(estimate: Estimate, goal: f64) -> Self {
        if estimate.high <= goal {
            Self::Met
        } else if estimate.low > goal {
            Self::Missed
        } else {
            Self::Unresolved
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "MISSED",
            Self::Unresolved => "unresolved",
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

/// One comparison.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Check {
    pub(crate) cell: String,
    pub(crate) version: String,
    /// `cpu` or `wall`
    pub(crate) clock: String,
    pub(crate) raw_per_second: f64,
    pub(crate) openssl_per_second: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(provider: &str, threads: usize, cpu: f64, wall: f64) -> Arm {
        let mut arm = Arm::new(provider, threads);
        arm.cpu_ns = vec![cpu; 9];
        arm.wall_ns = vec![wall; 9];
        arm
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

    #[test]
    fn an_interval_around_the_goal_decides_nothing() {
        let around = Estimate { value: 0.97, low: 0.95, high: 0.99, confidence: 0.95 };
        assert_eq!(Verdict::at_least(around, 0.97), Verdict::Unresolved);
        assert_eq!(Verdict::at_most(around, 0.97), Verdict::Unresolved);
    }
}
