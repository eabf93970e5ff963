// SPDX-License-Identifier: Apache-2.0
//! Figures and comparisons of an experiment, as the studies ask for them.

use crate::experiment::{Experiment, Sample, level};
use crate::scenario;
use crate::verdict::{Comparison, Margin, Verdict};

/// An experiment, to be asked.
pub(super) struct View<'a> {
    pub(super) experiment: &'a Experiment,
    margin: Margin,
}

/// By which clock a version is judged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Clock {
    Cpu,
    Wall,
}

impl<'a> View<'a> {
    pub(super) fn of(experiment: &'a Experiment) -> Self {
        Self { experiment, margin: scenario::margin(experiment) }
    }

    /// The cell with these levels, if it was run.
    pub(super) fn cell(&self, levels: &[(&str, &str)]) -> Option<String> {
        let has = |cell: &String| levels.iter().all(|(name, is)| level(cell, name) == Some(*is));
        self.experiment.plan.cells().into_iter().find(has)
    }

    /// The levels of a factor that was varied.
    pub(super) fn levels(&self, factor: &str) -> Vec<String> {
        let factors = &self.experiment.plan.factors;
        factors.iter().find(|f| f.name == factor).map_or_else(Vec::new, |f| f.levels.clone())
    }

    /// The most threads.
    pub(super) fn most_threads(&self) -> String {
        self.levels(super::bench::THREADS).pop().unwrap_or_else(|| "1".to_owned())
    }

    pub(super) fn has(&self, arm: &str) -> bool {
        self.experiment.plan.arms.iter().any(|planned| planned == arm)
    }

    /// Cycles for a unit: a byte, an operation.
    pub(super) fn cycles(&self, cell: &str, arm: &str) -> f64 {
        let rate = self.experiment.manifest.provenance.cycles_hz.map_or(1.0, |hz| hz / 1e9);
        self.typical(cell, arm, Sample::cpu_each) * rate
    }

    /// Units in a second of CPU time, all threads together; of bytes, millions.
    pub(super) fn cpu_rate(&self, cell: &str, arm: &str) -> f64 {
        self.scaled(1e9 / self.typical(cell, arm, Sample::cpu_each))
    }

    /// Units in a second of wall time; of bytes, millions.
    pub(super) fn wall_rate(&self, cell: &str, arm: &str) -> f64 {
        self.scaled(1e9 / self.typical(cell, arm, Sample::wall_each))
    }

    fn scaled(&self, rate: f64) -> f64 {
        if self.experiment.manifest.provenance.unit == "byte" { rate / 1e6 } else { rate }
    }

    /// The median of a figure; no number where nothing was measured.
    pub(super) fn typical(&self, cell: &str, arm: &str, figure: fn(&Sample) -> f64) -> f64 {
        self.experiment.typical(cell, arm, |sample| Some(figure(sample))).unwrap_or(f64::NAN)
    }

    /// An arm's cost over another one's.
    pub(super) fn compare(
        &self,
        cell: &str,
        arm: &str,
        with: &str,
        clock: Clock,
    ) -> Option<Comparison> {
        let cost = match clock {
            Clock::Cpu => Sample::cpu_each,
            Clock::Wall => Sample::wall_each,
        };
        Comparison::of(&self.experiment.pairs_of(cell, [arm, with], cost))
    }

    /// The ratio of two arms' costs; no number where they were not measured.
    pub(super) fn ratio(&self, cell: &str, arm: &str, with: &str) -> f64 {
        let compared = self.compare(cell, arm, with, Clock::Cpu);
        compared.map_or(f64::NAN, |compared| compared.ratio().value)
    }

    pub(super) fn margin(&self, clock: Clock) -> Margin {
        match clock {
            Clock::Cpu => self.margin,
            Clock::Wall => {
                let floor = &self.experiment.manifest.provenance.floor;
                Margin::new(floor.as_ref().map(|floor| floor.wall))
            }
        }
    }

    pub(super) fn verdict(&self, cell: &str, arm: &str, with: &str, clock: Clock) -> Verdict {
        let compared = self.compare(cell, arm, with, clock);
        compared.map_or(Verdict::Unresolved { more: None }, |c| c.verdict(self.margin(clock)))
    }

    /// A sentence about an effect: that it is there, with its size, or that it is absent.
    pub(super) fn effect(
        &self,
        what: &str,
        cell: &str,
        arms: [&str; 2],
        clock: Clock,
        then: &str,
    ) -> String {
        let [arm, with] = arms;
        let Some(compared) = self.compare(cell, arm, with, clock) else {
            return format!("{what}: not measured here");
        };
        let margin = self.margin(clock);
        let here = match compared.verdict(margin) {
            Verdict::Faster => "",
            Verdict::Slower => "absent, the opposite holds: ",
            Verdict::Same => "absent: ",
            Verdict::Unresolved { .. } => "not seen: ",
        };
        let clock = if clock == Clock::Wall { ", by the wall clock" } else { "" };
        format!("{what}{clock}: {here}{}{then}", compared.sentence(arm, with, margin))
    }
}
