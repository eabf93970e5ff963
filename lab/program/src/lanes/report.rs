// SPDX-License-Identifier: Apache-2.0
//! What an experiment says: every sample of every operation, and what follows from them.

use super::rows::{Goal, Operation, ROWS};
use crate::experiment::{Experiment, Sample};
use crate::statistics::{Estimate, median, paired_ratio};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// The factors.
pub(super) const OPERATION: &str = "operation";
pub(super) const WHAT: &str = "what";
/// The level of the second that is no door.
pub(super) const KERNEL: &str = "kernel";
/// The arms.
pub(super) const WITH: &str = "with";
pub(super) const WITHOUT: &str = "without";
/// Counters of a kernel's round, in nanoseconds: the library, so many lanes filled, a kind of instruction.
pub(super) const RAW: &str = "raw_ns";
pub(super) const FILLED: &str = "filled_ns_";
pub(super) const PORT: &str = "port_ns_";
/// The file with what was counted after the last round.
pub(super) const COUNTED: &str = "lanes.json";

/// A kernel's instructions.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Counted {
    /// What the kernel is compared with.
    pub(super) library: String,
    /// How the numbers of instructions are known: `formula` or `executed`.
    pub(super) source: String,
    /// For one operation in full lanes, by kind.
    pub(super) ports: Vec<(String, f64)>,
}

/// Everything that was measured.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Report {
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

impl Report {
    pub(super) fn of(directory: &Path, experiment: &Experiment) -> Self {
        let counted = std::fs::read(directory.join(COUNTED)).ok();
        let counted: Vec<(String, Counted)> =
            counted.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let row = |row: &Operation| {
            let counted = counted.iter().find(|(name, _)| name == row.name);
            let counted = counted.map(|(_, counted)| counted.clone()).unwrap_or_default();
            RowResult::of(experiment, row, counted)
        };
        let names = experiment.plan.levels(OPERATION);
        let measured = |row: &&Operation| names.iter().any(|name| name == row.name);
        Self { rows: ROWS.iter().filter(measured).map(row).collect() }
    }
}

impl RowResult {
    fn of(experiment: &Experiment, row: &Operation, counted: Counted) -> Self {
        let what = experiment.plan.levels(WHAT);
        let has = |kernel: bool| what.iter().any(|level| (level == KERNEL) == kernel);
        Self {
            name: row.name.to_owned(),
            mechanism: row.mechanism().to_owned(),
            kernel_goal: row.kernel,
            blocking_goal: row.blocking,
            asynchronous_goal: row.asynchronous,
            note: row.note.to_owned(),
            kernel: has(true).then(|| KernelResult::of(experiment, row, counted)),
            module: has(false).then(|| ModuleResult::of(experiment, row)),
        }
    }
}

fn cell(row: &Operation, what: &str) -> String {
    format!("{OPERATION}={} {WHAT}={what}", row.name)
}

fn foreign(samples: &[&Sample]) -> Option<f64> {
    let foreign: Vec<f64> = samples.iter().filter_map(|s| s.measured.foreign_cpu).collect();
    (!foreign.is_empty()).then(|| median(&foreign))
}

impl KernelResult {
    fn of(experiment: &Experiment, row: &Operation, counted: Counted) -> Self {
        let cell = cell(row, KERNEL);
        let samples: Vec<&Sample> = experiment.of(&cell, WITH).collect();
        let all = |name: &str| -> Vec<f64> {
            samples.iter().filter_map(|s| s.measured.counters.get(name).copied()).collect()
        };
        let names: BTreeSet<&String> =
            samples.iter().flat_map(|sample| sample.measured.counters.keys()).collect();
        let filled: BTreeSet<usize> =
            names.iter().filter_map(|name| name.strip_prefix(FILLED)?.parse().ok()).collect();
        let port = |(name, instructions): &(String, f64)| PortResult {
            name: name.clone(),
            instructions: *instructions,
            ns: all(&format!("{PORT}{name}")),
        };
        let lanes = |filled| FilledResult { filled, ns: all(&format!("{FILLED}{filled}")) };
        Self {
            available: !experiment
                .plan
                .skipped
                .iter()
                .any(|skipped| skipped.cell == cell && skipped.arm.is_none()),
            library: counted.library,
            raw_ns: all(RAW),
            lanes: filled.into_iter().map(lanes).collect(),
            ports: counted.ports.iter().map(port).collect(),
            source: counted.source,
            foreign_cpu: foreign(&samples),
        }
    }
}

impl ModuleResult {
    fn of(experiment: &Experiment, row: &Operation) -> Self {
        let doors = || experiment.plan.levels(WHAT).iter().filter(|level| *level != KERNEL);
        let why = |arm: Option<&str>| {
            let cell = cell(row, doors().next()?);
            let of = |s: &&crate::experiment::Skipped| s.cell == cell && s.arm.as_deref() == arm;
            experiment.plan.skipped.iter().find(of).map(|skipped| skipped.why.clone())
        };
        let arms = doors().filter_map(|level| Arm::of(experiment, row, level));
        let not_served = why(None);
        let prefix = cell(row, "");
        let samples = experiment.samples.iter().filter(|sample| {
            sample.run.cell.starts_with(&prefix) && !sample.run.cell.ends_with(KERNEL)
        });
        Self {
            not_served_without: why(Some(WITHOUT)).filter(|_| not_served.is_none()),
            not_served,
            arms: arms.collect(),
            foreign_cpu: foreign(&samples.collect::<Vec<_>>()),
        }
    }
}

impl Arm {
    /// Of a level as the plan has it; nothing where nothing was measured.
    fn of(experiment: &Experiment, row: &Operation, level: &str) -> Option<Self> {
        let mut words = level.split(',');
        let door = words.next()?;
        let door = [Door::Blocking, Door::Asynchronous].into_iter().find(|d| d.word() == door)?;
        let mut number = || words.next()?.parse().ok();
        let (threads, keys) = (number()?, number()?);
        let cell = cell(row, level);
        let windows = |arm: &str| experiment.of(&cell, arm).map(Window::of).collect();
        let with: Vec<Window> = windows(WITH);
        let depth = experiment.of(&cell, WITH).next()?.measured.counters.get("depth")?;
        Some(Self { door, threads, keys, depth: whole(*depth), with, without: windows(WITHOUT) })
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "they were counted")]
const fn whole(value: f64) -> usize {
    value as usize
}

impl Window {
    fn of(sample: &Sample) -> Self {
        let measured = &sample.measured;
        let counter = |name: &str| measured.counters.get(name).copied().unwrap_or_default();
        let count = |name: &str| whole(counter(name)) as u64;
        Self {
            operations: whole(measured.work) as u64,
            pending: count("pending"),
            seconds: measured.wall_ns / 1e9,
            cpu_seconds: measured.cpu_ns / 1e9,
            p50_ns: counter("latency_p50_ns"),
            p99_ns: counter("latency_p99_ns"),
            batches: count("batches"),
            batched: count("batched"),
        }
    }

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
