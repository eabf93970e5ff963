// SPDX-License-Identifier: Apache-2.0
//! The result of a run: every sample, and what follows from them.

use super::rows::Goal;
use crate::machine::Machine;
use crate::statistics::{Estimate, median, paired_ratio};
use serde::{Deserialize, Serialize};

/// Of the JSON.
pub(crate) const SCHEMA: &str = "metaslot-lab-lanes/1";

/// Everything that was measured.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Report {
    pub(crate) schema: String,
    pub(crate) command: Vec<String>,
    pub(crate) started: u64,
    pub(crate) seconds: f64,
    pub(crate) machine: Machine,
    pub(crate) seed: u64,
    pub(crate) rounds: usize,
    pub(crate) sample_ms: f64,
    pub(crate) window_ms: f64,
    /// Extensions that the kernels had to do without.
    pub(crate) without: Vec<String>,
    /// The module, where it was measured.
    pub(crate) module: Option<String>,
    pub(crate) commit: Option<String>,
    /// OpenSSL's version, where it judged.
    pub(crate) openssl: Option<String>,
    pub(crate) rows: Vec<RowResult>,
}

/// One row.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct RowResult {
    pub(crate) name: String,
    pub(crate) mechanism: String,
    pub(crate) kernel_goal: Option<f64>,
    pub(crate) blocking_goal: Goal,
    pub(crate) asynchronous_goal: Goal,
    /// Where the rest goes, for kernels far below the limit.
    pub(crate) note: String,
    /// Absent when it was left out.
    pub(crate) kernel: Option<KernelResult>,
    /// Absent when it was left out.
    pub(crate) module: Option<ModuleResult>,
}

/// The kernel by itself, in nanoseconds of CPU time; the same index of two lists is one round.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct KernelResult {
    /// Whether this processor has the instructions.
    pub(crate) available: bool,
    /// What the kernel is compared with.
    pub(crate) library: String,
    /// One operation by the library.
    pub(crate) raw_ns: Vec<f64>,
    pub(crate) lanes: Vec<FilledResult>,
    pub(crate) ports: Vec<PortResult>,
    /// How the numbers of instructions are known: `formula` or `executed`.
    pub(crate) source: String,
    /// CPUs that others used meanwhile.
    pub(crate) foreign_cpu: Option<f64>,
}

/// So many lanes filled.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct FilledResult {
    pub(crate) filled: usize,
    /// One operation.
    pub(crate) ns: Vec<f64>,
}

/// A kind of instruction.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct PortResult {
    pub(crate) name: String,
    /// For one operation in full lanes.
    pub(crate) instructions: f64,
    /// One instruction when nothing else limits it.
    pub(crate) ns: Vec<f64>,
}

/// Through the C ABI.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ModuleResult {
    /// Why the module does not serve the operation.
    pub(crate) not_served: Option<String>,
    /// Why it does not without lanes.
    pub(crate) not_served_without: Option<String>,
    pub(crate) arms: Vec<Arm>,
    /// CPUs that others used meanwhile.
    pub(crate) foreign_cpu: Option<f64>,
}

/// How threads ask.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Door {
    Blocking,
    Asynchronous,
}

impl Door {
    /// As the load wants it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Asynchronous => "asynchronous",
        }
    }
}

/// So many threads at one door, with lanes and without.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Arm {
    pub(crate) door: Door,
    pub(crate) threads: usize,
    pub(crate) keys: usize,
    /// Operations of each thread in flight.
    pub(crate) depth: usize,
    pub(crate) with: Vec<Window>,
    pub(crate) without: Vec<Window>,
}

/// One measured window; its results have been checked.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Window {
    pub(crate) operations: u64,
    /// Whose call returned before the result was there.
    pub(crate) pending: u64,
    pub(crate) seconds: f64,
    /// Of the whole process.
    pub(crate) cpu_seconds: f64,
    pub(crate) p50_ns: f64,
    pub(crate) p99_ns: f64,
    /// Batches, and operations in them, by the module's counters.
    #[serde(default)]
    pub(crate) batches: u64,
    #[serde(default)]
    pub(crate) batched: u64,
}

impl Window {
    /// CPU time of one operation in nanoseconds.
    pub(crate) fn cpu_ns(&self) -> f64 {
        1e9 * self.cpu_seconds / self.operations.max(1) as f64
    }

    /// Operations per second of the wall clock.
    pub(crate) fn rate(&self) -> f64 {
        self.operations as f64 / self.seconds.max(1e-9)
    }
}

impl RowResult {
    /// What was measured through the module.
    pub(crate) fn arms(&self) -> impl Iterator<Item = &Arm> {
        self.module.iter().flat_map(|module| &module.arms)
    }
}

impl KernelResult {
    /// One operation in full lanes, per round.
    pub(crate) fn full(&self) -> &[f64] {
        self.lanes.last().map_or(&[], |lanes| &lanes.ns)
    }

    /// Speed over the library with one of the numbers of lanes filled.
    pub(crate) fn over_raw(&self, ns: &[f64]) -> Option<Estimate> {
        paired_ratio(&self.raw_ns, ns)
    }

    /// What one operation would take if nothing but the scarcest kind of instruction counted, and that kind.
    pub(crate) fn limit(&self) -> Option<(f64, &PortResult)> {
        let limits = self.ports.iter().map(|port| (port.instructions * median(&port.ns), port));
        limits
            .filter(|(limit, _)| limit.is_finite() && *limit > 0.0)
            .max_by(|(left, _), (right, _)| left.total_cmp(right))
    }

    /// The share of the limit that full lanes reach: the median of the rounds' shares, because the machine's speed changes.
    pub(crate) fn reached(&self) -> Option<f64> {
        let (_, port) = self.limit()?;
        let rounds = port.ns.iter().zip(self.full());
        let shares: Vec<f64> =
            rounds.map(|(port_ns, ns)| port.instructions * port_ns / ns).collect();
        let share = median(&shares);
        share.is_finite().then_some(share)
    }
}

impl Arm {
    /// Speed with lanes over that without, by CPU time.
    pub(crate) fn over_plain(&self) -> Option<Estimate> {
        paired_ratio(&each(&self.without, Window::cpu_ns), &each(&self.with, Window::cpu_ns))
    }

    /// The slowest hundredth's time without lanes over that with.
    pub(crate) fn shorter(&self) -> Option<Estimate> {
        let p99 = |window: &Window| window.p99_ns;
        paired_ratio(&each(&self.without, p99), &each(&self.with, p99))
    }

    /// Speed over the plain library called directly, by CPU time. The two were not measured in the same moments, so the ratio is
    /// one of medians.
    pub(crate) fn over_raw(&self, raw: Option<f64>) -> Option<f64> {
        Some(raw? / self.middle(Window::cpu_ns)?)
    }

    /// The median of a figure with lanes.
    pub(crate) fn middle(&self, figure: impl Fn(&Window) -> f64) -> Option<f64> {
        (!self.with.is_empty()).then(|| median(&each(&self.with, figure)))
    }

    /// The same without.
    pub(crate) fn middle_without(&self, figure: impl Fn(&Window) -> f64) -> Option<f64> {
        (!self.without.is_empty()).then(|| median(&each(&self.without, figure)))
    }

    /// Operations in a batch on average; `None` when there were no batches.
    pub(crate) fn fill(&self) -> Option<f64> {
        let batches: u64 = self.with.iter().map(|window| window.batches).sum();
        let batched: u64 = self.with.iter().map(|window| window.batched).sum();
        (batches > 0).then(|| batched as f64 / batches as f64)
    }

    /// The share of operations that went through batches.
    pub(crate) fn batched_share(&self) -> f64 {
        let batched: u64 = self.with.iter().map(|window| window.batched).sum();
        let all: u64 = self.with.iter().map(|window| window.operations).sum();
        batched as f64 / all.max(1) as f64
    }

    /// The goal that is about this arm, in the row's words.
    pub(crate) fn goal(&self, row: &RowResult) -> Option<Goal> {
        match (self.door, self.threads, self.depth) {
            (Door::Blocking, 1, _) => Some(Goal::OverPlain(0.98)),
            (Door::Blocking, 16.., _) => Some(row.blocking_goal),
            (Door::Asynchronous, _, 1) => Some(Goal::OverPlain(0.95)),
            (Door::Asynchronous, ..) => Some(row.asynchronous_goal),
            _ => None,
        }
    }

    /// What it reaches of the goal's kind.
    pub(crate) fn against(&self, goal: Goal, raw: Option<f64>) -> Option<(f64, f64)> {
        match goal {
            Goal::OverRaw(goal) => Some((self.over_raw(raw)?, goal)),
            Goal::OverPlain(goal) => Some((self.over_plain()?.value, goal)),
        }
    }
}

fn each(windows: &[Window], figure: impl Fn(&Window) -> f64) -> Vec<f64> {
    windows.iter().map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::super::example::{arm, kernel};
    use super::*;

    #[test]
    fn the_scarcest_kind_of_instruction_is_the_limit() {
        let kernel = kernel();
        let (limit, port) = kernel.limit().unwrap();
        assert_eq!(port.name, "vector shift");
        assert!((limit - 60.0).abs() < 1e-9);
        assert!((kernel.reached().unwrap() - 0.6).abs() < 1e-9);
        assert!((kernel.over_raw(kernel.full()).unwrap().value - 4.0).abs() < 1e-9);
    }

    #[test]
    fn a_kernel_without_its_instructions_has_no_limit() {
        let kernel = KernelResult { available: false, ports: Vec::new(), ..kernel() };
        assert!(kernel.limit().is_none() && kernel.reached().is_none());
    }

    #[test]
    fn both_speeds_are_by_cpu_time() {
        let arm = arm(16, 0.1e-3, 0.3e-3);
        assert!((arm.middle(Window::cpu_ns).unwrap() - 100.0).abs() < 1e-9);
        assert!((arm.over_plain().unwrap().value - 3.0).abs() < 1e-9);
        assert!((arm.over_raw(Some(250.0)).unwrap() - 2.5).abs() < 1e-9);
        assert_eq!(arm.over_raw(None), None);
        assert!((arm.fill().unwrap() - 8.0).abs() < 1e-9);
        assert!((arm.batched_share() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_without_lanes_is_no_ratio() {
        let mut arm = arm(2, 1.0, 1.0);
        arm.without.clear();
        assert!(arm.over_plain().is_none() && arm.middle_without(Window::rate).is_none());
    }
}
