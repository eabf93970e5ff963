// SPDX-License-Identifier: Apache-2.0
//! Jobs as a scenario: each by everyone who can do it, in turns.

use super::crew::{ARM, BY, Crew};
use super::job::Work;
use crate::Result;
use crate::experiment::{Experiment, Factor, Measured, Run};
use crate::meter::Meter;
use crate::progress::Progress;
use crate::scenario::{Head, Made, RunOptions, Scenario, make};
use crate::speed::Options;
use crate::speed::openssl::Readings;
use crate::verdict::fewest;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Wall time of one sample.
const SAMPLE: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(40)];

/// What is to be measured.
pub(crate) struct Plan {
    /// The scenario's name.
    pub(crate) name: &'static str,
    /// All factors but who does it.
    pub(crate) factors: Vec<Factor>,
    /// Cells of these factors: each has its work, and a number of threads that do it.
    pub(crate) cells: Vec<(String, Work, usize)>,
    /// Why combinations of levels that are no cell are not measured.
    pub(crate) absent: &'static str,
    pub(crate) settings: BTreeMap<String, String>,
    /// How long it is measured by default, in seconds, and how many repetitions that is meant for.
    pub(crate) seconds: f64,
    pub(crate) repetitions: f64,
    /// What the first repetition says.
    pub(crate) glance: fn(&Experiment) -> String,
    /// Runs of `openssl speed` between the repetitions.
    pub(crate) readings: Readings,
}

/// All at work.
pub(crate) struct Jobs {
    plan: Plan,
    crew: Crew,
    /// Cells that can be run, and those that cannot: what was answered.
    cells: HashMap<String, Option<String>>,
    sample: Duration,
    repetition: usize,
}

impl Jobs {
    /// Makes keys and sessions for every cell, and compares what all must give alike.
    ///
    /// # Errors
    /// One gives another result.
    pub(crate) fn new(mut plan: Plan, mut crew: Crew, options: &Options) -> Result<Self> {
        plan.settings.extend(crew.settings.clone());
        plan.seconds =
            (options.seconds.unwrap_or(plan.seconds) - plan.readings.seconds()).max(0.01);
        let progress = Progress::new();
        let mut cells = HashMap::new();
        for (cell, work, threads) in &plan.cells {
            progress.say(format_args!("keys and sessions: {cell}"));
            let mut refused = crew.prepare(cell, work, *threads)?;
            for by in crew.names() {
                let cell = format!("{cell} {BY}={by}");
                let why = refused.remove(&cell);
                cells.insert(cell, why);
            }
        }
        let able = cells.values().filter(|why| why.is_none()).count().max(1) as f64;
        let sample = Duration::from_secs_f64(plan.seconds / able / plan.repetitions);
        let sample = sample.clamp(SAMPLE[0], SAMPLE[1]);
        Ok(Self { plan, crew, cells, sample, repetition: 0 })
    }

    /// Measures.
    ///
    /// # Errors
    /// As [`make`].
    pub(crate) fn make(mut self, options: &Options) -> Result<Made> {
        let run = RunOptions::of(&options.token);
        let (seconds, repetitions) = (Some(self.plan.seconds), options.repetitions);
        make(&mut self, &RunOptions { seconds, repetitions, ..run })
    }
}

impl Scenario for Jobs {
    fn head(&self) -> Head {
        Head {
            name: self.plan.name,
            unit: "operation",
            cpu: "CLOCK_THREAD_CPUTIME_ID of the working threads, all together".to_owned(),
            settings: self.plan.settings.clone(),
        }
    }

    fn factors(&self) -> Vec<Factor> {
        let by = Factor { name: BY.to_owned(), levels: self.crew.names() };
        self.plan.factors.iter().cloned().chain([by]).collect()
    }

    fn arms(&self) -> Vec<String> {
        vec![ARM.to_owned()]
    }

    fn fewest(&self) -> usize {
        fewest(self.plan.cells.len())
    }

    fn skip(&self, cell: &str) -> Option<String> {
        self.cells.get(cell).map_or_else(|| Some(self.plan.absent.to_owned()), Clone::clone)
    }

    fn warm(&mut self, cell: &str, _arm: &str) -> Result<Duration> {
        let began = Instant::now();
        self.crew.run(cell, self.sample, &Meter::start())?;
        Ok(began.elapsed())
    }

    fn sample(&mut self, run: &Run, meter: &Meter) -> Result<Measured> {
        // One run of the other tool between two repetitions: whatever the machine does falls on it as well.
        if run.repetition != self.repetition {
            self.repetition = run.repetition;
            self.plan.readings.take();
        }
        self.crew.run(&run.cell, self.sample, meter)
    }

    fn glance(&self, experiment: &Experiment) -> String {
        (self.plan.glance)(experiment)
    }

    fn files(&mut self) -> Result<Vec<(String, Vec<u8>)>> {
        Ok(self.plan.readings.printed())
    }
}
