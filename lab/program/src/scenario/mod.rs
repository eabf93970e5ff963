// SPDX-License-Identifier: Apache-2.0
//! What all scenarios have in common: a plan, runs in its order, samples on disk, and an end in good
//! order whatever happens.

mod floor;
mod options;
mod origin;
mod profiled;

pub(crate) use floor::{keep as keep_floor, margin};
pub(crate) use options::rate;
pub use options::{RunOptions, SamplingOptions};
pub(crate) use origin::{core_factor, lab_share, provenance};

use crate::experiment::{
    Experiment, Factor, Measured, Plan, Provenance, Recorder, Run, Skipped, cells,
};
use crate::interrupt::Interrupt;
use crate::meter::Meter;
use crate::progress::Progress;
use crate::random::Random;
use crate::{Failure, Result};
use metaslot_perf::Target;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

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
        if self.arms().len() > 1 { FEWEST } else { 1 }
    }

    /// Why a cell cannot be run here, or makes no sense.
    fn skip(&self, _cell: &str) -> Option<String> {
        None
    }

    /// Does a run once, unmeasured, and says how long a sample takes: called for each cell and arm
    /// before the plan is fixed, so that the number of repetitions can fit the time.
    ///
    /// # Errors
    /// The cell cannot be run.
    fn warm(&mut self, cell: &str, arm: &str) -> Result<Duration>;

    /// Takes one sample.
    ///
    /// # Errors
    /// The run failed; the experiment ends there and stays readable.
    fn sample(&mut self, run: &Run, meter: &Meter) -> Result<Measured>;

    /// How long it is measured when nobody says, in seconds.
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
    /// The scenario's name, and the begin of the directory's.
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
/// Fewer repetitions decide nothing between two arms.
pub(crate) const FEWEST: usize = 6;
/// More narrow an interval no longer as fast as people's patience goes.
const MOST: usize = 400;

/// Runs a scenario to its end and reads what was written.
///
/// # Errors
/// A run failed or the experiment was interrupted: what was measured until then stays readable, and
/// the error says where.
pub(crate) fn measure(scenario: &mut dyn Scenario, options: &RunOptions) -> Result<Experiment> {
    let (interrupt, progress) = (Interrupt::new()?, Progress::new());
    let plan = plan(scenario, options, &interrupt, &progress)?;
    let head = scenario.head();
    let directory = options.directory(head.name);
    let clocks = [head.cpu.clone(), "monotonic".to_owned()];
    let mut provenance = provenance(head);
    provenance.sources.extend(profiled::source(options));
    let mut recorder = Recorder::create(&directory, provenance, [&clocks[0], &clocks[1]], plan)?;
    let done = runs(scenario, &mut recorder, &interrupt, &progress)
        .and_then(|()| profiled::profile(scenario, &mut recorder, options, &interrupt, &progress));
    drop(progress);
    let kept = |failure: Failure| {
        let shown = directory.display();
        match failure.hint {
            None => {
                failure.hint(format!("what was measured is in {shown}: metaslot lab print {shown}"))
            }
            Some(_) => failure,
        }
    };
    done.map_err(kept)?;
    for (name, bytes) in scenario.files()? {
        recorder.attach(&name, &bytes)?;
    }
    recorder.core_factor_after(core_factor());
    recorder.finish()?;
    Experiment::read(&directory)
}

/// Everything that there is to run, as often as the time allows.
fn plan(
    scenario: &mut dyn Scenario,
    options: &RunOptions,
    interrupt: &Interrupt,
    progress: &Progress,
) -> Result<Plan> {
    let (factors, arms) = (scenario.factors(), scenario.arms());
    let all = cells(&factors);
    let why = |cell: &String| Some(Skipped { cell: cell.clone(), why: scenario.skip(cell)? });
    let skipped: Vec<Skipped> = all.iter().filter_map(why).collect();
    if let Some(first) = skipped.first().filter(|_| skipped.len() == all.len()) {
        let Skipped { cell, why } = first;
        return Err(Failure::new(format!("nothing of this can be run here: {cell}: {why}")));
    }
    let left = all.iter().filter(|cell| !skipped.iter().any(|skipped| skipped.cell == **cell));
    let (began, mut round) = (Instant::now(), Duration::ZERO);
    for cell in left {
        for arm in &arms {
            progress.say(format_args!("warming up: {cell} {arm}"));
            round += scenario.warm(cell, arm).map_err(|failure| failure.context(cell))?;
            interrupt.failure().map_or(Ok(()), Err)?;
        }
    }
    let time = Duration::from_secs_f64(options.seconds.unwrap_or_else(|| scenario.seconds()))
        .saturating_sub(began.elapsed());
    let fitting = time.as_secs_f64() * 0.9 / round.as_secs_f64().max(1e-6);
    let fewest = scenario.fewest();
    let fitting = (fewest..=MOST).rev().find(|count| *count as f64 <= fitting).unwrap_or(fewest);
    let repetitions = options.repetitions.unwrap_or(fitting);
    let seed = options.seed.unwrap_or_else(Random::seed_from_clock);
    let arms: Vec<&str> = arms.iter().map(String::as_str).collect();
    Plan::without(skipped, factors, &arms, repetitions, seed)
}

/// All runs, in the plan's order.
fn runs(
    scenario: &mut dyn Scenario,
    recorder: &mut Recorder,
    interrupt: &Interrupt,
    progress: &Progress,
) -> Result<()> {
    let (meter, all) = (Meter::start(), recorder.plan().order.len());
    let first = all / recorder.plan().repetitions().max(1);
    recorder.log(&format!("{all} runs"))?;
    let mut done = 0;
    while let Some(run) = recorder.next().cloned() {
        interrupt.failure().map_or(Ok(()), Err)?;
        progress.say(format_args!("{done} of {all}: {} {}", run.cell, run.arm));
        let what = format!("{} {}", run.cell, run.arm);
        let sample = scenario.sample(&run, &meter).map_err(|failure| {
            // A signal ends what the experiment has started as well.
            interrupt.failure().unwrap_or_else(|| failure.context(what))
        })?;
        recorder.record(sample)?;
        done += 1;
        if done == first && all > first && progress.is_shown() {
            let text = scenario.glance(&Experiment::read(recorder.directory())?);
            progress.interject(&text);
        }
    }
    Ok(())
}

/// What every scenario's text begins with: the machine, where the numbers come from, the state.
pub(crate) fn heading(experiment: &Experiment) -> String {
    origin::heading(experiment)
}

impl Provenance {
    /// The name of what [`Experiment::cycles`] gives.
    #[must_use]
    pub fn cost(&self) -> String {
        let cost = if self.cycles_hz.is_some() { "cycles" } else { "CPU ns" };
        if self.unit == "byte" { format!("{cost}/KB") } else { format!("{cost} each") }
    }
}
