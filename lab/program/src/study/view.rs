// SPDX-License-Identifier: Apache-2.0
//! Figures and comparisons of an experiment, as the studies ask for them.

use crate::experiment::{Experiment, Sample, level};
use crate::judged::Judged;
use crate::scenario;
use crate::table::digits;
use crate::verdict::{Comparison, Margin, Verdict};

/// An experiment, to be asked.
pub(super) struct View<'a> {
    pub(super) experiment: &'a Experiment,
    margin: Margin,
    judged: Judged,
}

/// By which clock a version is judged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Clock {
    Cpu,
    Wall,
}

impl<'a> View<'a> {
    pub(super) fn of(experiment: &'a Experiment) -> Self {
        Self { experiment, margin: scenario::margin(experiment), judged: Judged::of(experiment) }
    }

    fn is_first(&self, arm: &str) -> bool {
        self.experiment.plan.arms.first().is_some_and(|first| first == arm)
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
        self.levels(THREADS).pop().unwrap_or_else(|| "1".to_owned())
    }

    pub(super) fn has(&self, arm: &str) -> bool {
        self.experiment.plan.arms.iter().any(|planned| planned == arm)
    }

    /// Ticks for a unit: a byte, an operation.
    pub(super) fn ticks(&self, cell: &str, arm: &str) -> f64 {
        let rate = self.experiment.manifest.provenance.ticks_hz.map_or(1.0, |hz| hz / 1e9);
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
        // Over the first version there is one verdict, for every caller.
        let judged = self.judged.over_first(cell, arm);
        if let Some(judged) = judged.filter(|_| clock == Clock::Cpu && self.is_first(with)) {
            return judged.verdict;
        }
        let compared = self.compare(cell, arm, with, clock);
        compared.map_or(Verdict::Unresolved { more: None }, |c| c.verdict(self.margin(clock)))
    }

    /// A sentence about an effect: that it is there, with its size, or that it is absent.
    pub(super) fn effect(&self, what: &str, cell: &str, arms: [&str; 2], clock: Clock) -> String {
        let [arm, with] = arms;
        let Some(compared) = self.compare(cell, arm, with, clock) else {
            return format!("{what}: not measured here");
        };
        let margin = self.margin(clock);
        let verdict = self.verdict(cell, arm, with, clock);
        let here = match verdict {
            Verdict::Faster => "",
            Verdict::Slower => "absent, the opposite holds: ",
            Verdict::Same => "absent: ",
            Verdict::Unresolved { .. } => "not seen: ",
        };
        let clock = if clock == Clock::Wall { ", by the wall clock" } else { "" };
        let times = digits(1.0 / compared.ratio().value);
        let sentence = compared.sentence_of(verdict, arm, with, margin);
        format!("{what}{clock}: {here}{sentence}, {times} times the rate")
    }
}

/// The factor whose level is a number of threads.
pub(super) const THREADS: &str = "threads";

/// Threads of a cell; one where they are not varied.
pub(super) fn threads(cell: &str) -> usize {
    level(cell, THREADS).and_then(|threads| threads.parse().ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Factor, Measured, Plan, Provenance, Recorder};
    use std::collections::BTreeMap;

    /// An experiment in which the second arm costs `ratio` of the first.
    fn experiment(name: &str, ratio: f64) -> Experiment {
        let factor = Factor { name: "bytes".to_owned(), levels: vec!["64".to_owned()] };
        let plan = Plan::interleaved(vec![factor], &["plain", "other"], 12, 1).unwrap();
        let directory =
            std::env::temp_dir().join(format!("view-{name}-{}.labx", std::process::id()));
        let provenance = Provenance { unit: "byte".to_owned(), ..Provenance::default() };
        let mut recorder =
            Recorder::create(&directory, provenance, ["process CPU", "monotonic"], plan).unwrap();
        while let Some(run) = recorder.next() {
            let cost = if run.arm == "plain" { 1.0 } else { ratio };
            // A little noise, so that no two pairs are equal.
            let cost = cost * (1.0 + run.repetition as f64 * 1e-4) * 1e6;
            let measured = Measured {
                window_ns: [0, 1],
                work: 1e6,
                cpu_ns: cost,
                wall_ns: 2.0 * cost,
                foreign_cpu: None,
                counters: BTreeMap::new(),
                flags: Vec::new(),
            };
            recorder.record(measured).unwrap();
        }
        recorder.finish().unwrap();
        let experiment = Experiment::read(&directory).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        experiment
    }

    fn sentence(name: &str, ratio: f64) -> String {
        let experiment = experiment(name, ratio);
        let view = View::of(&experiment);
        let cell = view.cell(&[("bytes", "64")]).unwrap();
        view.effect("an effect", &cell, ["other", "plain"], Clock::Cpu)
    }

    #[test]
    fn an_effect_that_is_not_there_is_absent() {
        let there = sentence("faster", 0.5);
        assert!(there.starts_with("an effect: other is faster than plain"), "{there}");
        assert!(there.ends_with(", 2.00 times the rate"), "{there}");
        let same = sentence("same", 1.0);
        assert!(same.starts_with("an effect: absent: other and plain are the same"), "{same}");
        let opposite = sentence("slower", 2.0);
        assert!(opposite.starts_with("an effect: absent, the opposite holds: "), "{opposite}");
    }

    #[test]
    fn figures_are_those_of_the_samples() {
        let experiment = experiment("figures", 0.5);
        let view = View::of(&experiment);
        let cell = "bytes=64";
        // Without a counter of ticks they are nanoseconds; 1 ns a byte are 1000 MB/s.
        assert!((view.ticks(cell, "plain") - 1.0).abs() < 0.01);
        assert!((view.cpu_rate(cell, "other") - 2000.0).abs() < 20.0);
        assert!((view.wall_rate(cell, "other") - 1000.0).abs() < 10.0);
        assert!((view.ratio(cell, "other", "plain") - 0.5).abs() < 1e-9);
        assert!(view.ratio(cell, "none", "plain").is_nan() && !view.has("none"));
        assert_eq!((view.cell(&[("bytes", "65")]), view.most_threads()), (None, "1".to_owned()));
    }
}
