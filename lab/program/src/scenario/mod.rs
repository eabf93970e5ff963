// SPDX-License-Identifier: Apache-2.0
//! What all scenarios have in common: a plan, runs in its order, samples on disk, and an end in good
//! order whatever happens.

mod again;
mod floor;
mod options;
mod origin;
mod profiled;
mod runs;

pub(crate) use floor::{keep as keep_floor, margin};
pub(crate) use options::rate;
pub use options::{RunOptions, SamplingOptions, TokenOptions};
pub(crate) use origin::{DOUBT, Doubtful, core_factor, doubtful, heading, lab_share, provenance};
pub(crate) use runs::{Made, make, measure};

use crate::Result;
use crate::experiment::{Experiment, Factor, Measured, Provenance, Run, cells};
use crate::meter::Meter;
use crate::verdict::fewest;
use metaslot_perf::Target;
use std::collections::BTreeMap;
use std::time::Duration;

/// What is measured, and how one sample is taken.
pub(crate) trait Scenario {
    /// What stands in the manifest.
    fn head(&self) -> Head;

    /// What is varied: the cells are all combinations.
    fn factors(&self) -> Vec<Factor>;

    /// What is compared within a cell; a single one where the cells themselves are the matter.
    fn arms(&self) -> Vec<String>;

    /// Repetitions that there must be however long they take: with fewer, nothing that is compared can be
    /// told apart.
    fn fewest(&self) -> usize {
        if self.arms().len() > 1 { self.decisive() } else { 1 }
    }

    /// As many repetitions as it takes before a verdict can hold with all cells in view.
    fn decisive(&self) -> usize {
        let run = cells(&self.factors()).into_iter().filter(|cell| self.skip(cell).is_none());
        fewest(run.count())
    }

    /// Why a cell cannot be run here, or makes no sense.
    fn skip(&self, _cell: &str) -> Option<String> {
        None
    }

    /// Why a cell is not run by one arm, which others run.
    fn skip_arm(&self, _cell: &str, _arm: &str) -> Option<String> {
        None
    }

    /// Does a run once, unmeasured, and says how long a sample takes: called for each cell and arm
    /// before the plan is fixed, so that the number of repetitions can fit the time. Nothing where that
    /// number was asked for.
    ///
    /// # Errors
    /// The cell cannot be run.
    fn warm(&mut self, _cell: &str, _arm: &str) -> Result<Duration> {
        Ok(Duration::ZERO)
    }

    /// Takes one sample.
    ///
    /// # Errors
    /// The run failed; the experiment ends there and stays readable.
    fn sample(&mut self, run: &Run, meter: &Meter) -> Result<Measured>;

    /// How long a sample takes where nothing was warmed up and the number of repetitions was asked for.
    /// Nothing where that is not known.
    fn expected(&self, _cell: &str, _arm: &str) -> Duration {
        Duration::ZERO
    }

    /// Starts afresh whatever lives from one sample to the next: processes, connections, areas of memory.
    ///
    /// # Errors
    /// It cannot be started.
    fn afresh(&mut self) -> Result<()> {
        Ok(())
    }

    /// Whether a sample can be taken once more when all are done, and means the same.
    fn again(&self) -> bool {
        true
    }

    /// How long it is measured by default, in seconds.
    fn seconds(&self) -> f64 {
        SECONDS
    }

    /// What the first repetition says, for people who wait. Empty: nothing.
    fn glance(&self, _experiment: &Experiment) -> String {
        String::new()
    }

    /// Whom to sample for a profile: by default this process, and all that it has started or will
    /// start.
    fn account(&self) -> Target {
        Target::Processes(vec![std::process::id()])
    }

    /// What is done when all samples are taken, and for how long is not known before. Empty: nothing.
    fn afterwards(&self) -> String {
        String::new()
    }

    /// Files to be kept beside the samples, when all runs are done: profiles, what others printed.
    ///
    /// # Errors
    /// They cannot be made.
    fn files(&mut self) -> Result<Vec<(String, Vec<u8>)>> {
        Ok(Vec::new())
    }
}

/// What an experiment is.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    /// The scenario's name, and the start of the directory's.
    pub(crate) name: &'static str,
    /// What work counts: `byte`, `operation`, `block`.
    pub(crate) unit: &'static str,
    /// Where CPU time comes from.
    pub(crate) cpu: String,
    /// What the result may depend on.
    pub(crate) settings: BTreeMap<String, String>,
}

/// How long a scenario runs when neither it nor anybody else says, in seconds.
pub(crate) const SECONDS: f64 = 30.0;

impl Provenance {
    /// The name of what [`Experiment::ticks`] gives.
    #[must_use]
    pub fn cost(&self) -> String {
        let cost = if self.ticks_hz.is_some() { "ticks" } else { "CPU ns" };
        if self.unit == "byte" { format!("{cost}/KB") } else { format!("{cost} each") }
    }
}
