// SPDX-License-Identifier: Apache-2.0
//! Reading an experiment: a sealed one whole, an interrupted one as far as it came.

use super::plan::Plan;
use super::sample::{self, Sample};
use super::{AGAIN, MANIFEST, Manifest, PLAN, SAMPLES, seal};
use crate::statistics::median;
use crate::verdict::Pairs;
use crate::{Failure, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// Whether it came to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    /// Complete, and as it was when it was sealed.
    Sealed,
    /// It stopped before its end, or is still running.
    Interrupted {
        /// Runs that are there.
        done: usize,
        /// Runs that were planned.
        planned: usize,
        /// A last sample was cut off, and left out.
        torn: bool,
    },
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sealed => f.write_str("sealed"),
            Self::Interrupted { done, planned, torn } => {
                let cut = if *torn { ", and one that was cut off" } else { "" };
                write!(f, "interrupted: {done} of {planned} runs{cut}")
            }
        }
    }
}

/// An experiment as it was found.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Who measured what, where and when.
    pub manifest: Manifest,
    /// What was to be run.
    pub plan: Plan,
    /// What the runs gave, in their order.
    pub samples: Vec<Sample>,
    /// What first arms cost again after all runs, started afresh: how far two runs of the same code lie
    /// apart. Empty where that was not measured.
    pub again: Vec<Sample>,
    /// Whether it came to its end.
    pub state: State,
}

impl Experiment {
    /// Reads a directory, and changes nothing in it.
    ///
    /// # Errors
    /// It is no experiment, is of a newer schema, or a file was changed: the message names it.
    pub fn read(directory: &Path) -> Result<Self> {
        Self::read_files(directory).map_err(|failure| failure.context(directory.display()))
    }

    fn read_files(directory: &Path) -> Result<Self> {
        if !directory.join(MANIFEST).exists() {
            let why =
                if directory.exists() { "is no experiment" } else { "there is no such experiment" };
            return Err(Failure::new(why)
                .hint("an experiment is a directory NAME.labx that the lab has written"));
        }
        let text = seal::read(directory, MANIFEST)?;
        let manifest = Manifest::parse(&String::from_utf8_lossy(&text))
            .map_err(|failure| failure.context(MANIFEST))?;
        let sealed = seal::check(directory)?;
        let text = seal::read(directory, PLAN)?;
        if seal::digest(&text) != manifest.plan_sha256 {
            return Err(Failure::new(format!("{PLAN} was changed after the first run")));
        }
        let plan: Plan =
            serde_json::from_slice(&text).map_err(|error| Failure::from(error).context(PLAN))?;
        let text = seal::read(directory, SAMPLES)?;
        let (samples, torn) =
            sample::parse(&text, &plan.order).map_err(|failure| failure.context(SAMPLES))?;
        let again = match std::fs::read(directory.join(AGAIN)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            other => {
                let text = other.map_err(|error| Failure::file(&directory.join(AGAIN), &error))?;
                sample::again(&text).map_err(|failure| failure.context(AGAIN))?
            }
        };
        let (done, planned) = (samples.len(), plan.order.len());
        let state = if sealed { State::Sealed } else { State::Interrupted { done, planned, torn } };
        Ok(Self { manifest, plan, samples, again, state })
    }

    /// The pairs of a cell's first two arms, by what a sample costs. A run without its partner is left
    /// out.
    #[must_use]
    pub fn pairs(&self, cell: &str, cost: impl Fn(&Sample) -> f64) -> Pairs {
        let arm = |at: usize| self.plan.arms.get(at).map_or("", String::as_str);
        self.pairs_of(cell, [arm(0), arm(1)], cost)
    }

    /// The pairs of two arms of a cell: the first is judged.
    #[must_use]
    pub fn pairs_of(&self, cell: &str, arms: [&str; 2], cost: impl Fn(&Sample) -> f64) -> Pairs {
        self.pairs_between(arms.map(|arm| (cell, arm)), cost)
    }

    /// The pairs of two cells and arms, which are the same in one of both: a repetition visits all of
    /// them. The first is judged.
    #[must_use]
    pub fn pairs_between(
        &self,
        [first, second]: [(&str, &str); 2],
        cost: impl Fn(&Sample) -> f64,
    ) -> Pairs {
        let costs = |(cell, arm): (&str, &str)| -> BTreeMap<usize, f64> {
            self.of(cell, arm).map(|sample| (sample.run.repetition, cost(sample))).collect()
        };
        let (first, second) = (costs(first), costs(second));
        let both = first.iter().filter_map(|(at, cost)| Some((*cost, *second.get(at)?)));
        let (a, b): (Vec<f64>, Vec<f64>) = both.unzip();
        Pairs::of_costs(&a, &b)
    }

    /// The samples of one arm of one cell.
    pub fn of(&self, cell: &str, arm: &str) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| sample.run.cell == cell && sample.run.arm == arm)
    }

    /// The median of a figure over the samples of one arm of one cell; `None` without samples.
    #[must_use]
    pub fn typical(
        &self,
        cell: &str,
        arm: &str,
        figure: impl Fn(&Sample) -> Option<f64>,
    ) -> Option<f64> {
        let values: Vec<f64> = self.of(cell, arm).filter_map(figure).collect();
        (!values.is_empty()).then(|| median(&values))
    }

    /// Ticks of the time stamp for 1024 bytes, or for a unit that is no byte: what the lab's tables
    /// show. CPU time in nanoseconds where there is no counter.
    #[must_use]
    pub fn ticks(&self, sample: &Sample) -> f64 {
        let units = if self.manifest.provenance.unit == "byte" { 1024.0 } else { 1.0 };
        sample.cpu_each() * units * self.manifest.provenance.ticks_hz.map_or(1.0, |hz| hz / 1e9)
    }
}
