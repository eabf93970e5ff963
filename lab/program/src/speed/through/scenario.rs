// SPDX-License-Identifier: Apache-2.0
//! The runs as a scenario: a sample is a run.

use super::place::Place;
use super::program::Shape;
use super::rows::{Doer, JOBS, OPERATION, PROCESSES, ROWS, ThroughRow};
use crate::experiment::{Factor, Measured, Run, level};
use crate::filter::wanted;
use crate::machine::library;
use crate::meter::{Account, Meter, besides};
use crate::progress::Progress;
use crate::scenario::{Head, Scenario};
use crate::speed::Options;
use crate::speed::part::{ARM, BY};
use crate::{Failure, Result};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// How long all of it takes, where nothing else is said.
pub(super) const SECONDS: f64 = 600.0;

/// All of them.
pub(super) struct Through {
    place: Place,
    rows: Vec<ThroughRow>,
    processes: Vec<usize>,
    jobs: Vec<usize>,
    /// Why an operation is not run by one who could be asked.
    refused: HashMap<(&'static str, Doer), String>,
}

impl Through {
    /// Tries every operation by everyone.
    ///
    /// # Errors
    /// No operation matches; or as [`Place::new`].
    pub(super) fn new(options: &Options) -> Result<Self> {
        let rows = wanted(&ROWS, |row| row.name, &options.filter, "operation")?;
        let place = Place::new(options, &rows)?;
        let cpus = std::thread::available_parallelism().map_or(1, Into::into);
        let mut processes = options.threads.clone();
        if processes.is_empty() {
            processes = vec![1, cpus];
        }
        processes.dedup();
        let mut jobs = vec![0];
        jobs.extend(options.jobs.iter().copied().map(usize::from));
        let (mut refused, progress) = (HashMap::new(), Progress::new());
        for row in &rows {
            for doer in Doer::ALL {
                progress.say(format_args!("trying: {} by {}", row.name, doer.word()));
                let once = || place.run(row, doer, Shape { processes: 1, jobs: 0 });
                let why =
                    place.absent(doer).or_else(|| once().err().map(|failure| failure.message));
                refused.extend(why.map(|why| ((row.name, doer), format!("not run: {why}"))));
            }
        }
        Ok(Self { place, rows, processes, jobs, refused })
    }

    fn asked(&self, cell: &str) -> Option<(&ThroughRow, Doer, Shape)> {
        let name = level(cell, OPERATION)?;
        let row = self.rows.iter().find(|row| row.name == name)?;
        let number = |factor| level(cell, factor)?.parse().ok();
        let shape = Shape { processes: number(PROCESSES)?, jobs: number(JOBS)? };
        Some((row, Doer::of(level(cell, BY)?)?, shape))
    }
}

impl Scenario for Through {
    fn head(&self) -> Head {
        let described = library(&self.place.module).unwrap_or_default();
        let settings = [("openssl", &self.place.version), ("module", &described)];
        Head {
            name: "through-openssl",
            unit: "operation",
            cpu: "/proc/PID/schedstat of the processes of openssl speed; the loop's own clock"
                .to_owned(),
            settings: settings.map(|(name, value)| (name.to_owned(), value.clone())).into(),
        }
    }

    fn factors(&self) -> Vec<Factor> {
        vec![
            Factor::new(OPERATION, self.rows.iter().map(|row| row.name)),
            Factor::new(BY, Doer::ALL.map(Doer::word)),
            Factor::new(PROCESSES, &self.processes),
            Factor::new(JOBS, &self.jobs),
        ]
    }

    fn arms(&self) -> Vec<String> {
        vec![ARM.to_owned()]
    }

    fn fewest(&self) -> usize {
        3
    }

    fn seconds(&self) -> f64 {
        SECONDS
    }

    fn skip(&self, cell: &str) -> Option<String> {
        let (row, doer, shape) = self.asked(cell)?;
        let refused = self.refused.get(&(row.name, doer)).cloned();
        let idle = shape.jobs > 0 && !doer.pauses();
        refused.or_else(|| idle.then(|| super::view::NO_PAUSES.to_owned()))
    }

    fn warm(&mut self, cell: &str, _arm: &str) -> Result<Duration> {
        Ok(self.expected(cell, ARM))
    }

    fn expected(&self, cell: &str, _arm: &str) -> Duration {
        let is_speed = self.asked(cell).is_some_and(|(_, doer, _)| doer.is_speed());
        Duration::from_millis(if is_speed { 1_300 } else { 800 })
    }

    fn sample(&mut self, run: &Run, meter: &Meter) -> Result<Measured> {
        let asked = self.asked(&run.cell);
        let (row, doer, shape) = asked.ok_or_else(|| Failure::new("no such cell"))?;
        let window = meter.open(Account::Children)?;
        let began = Instant::now();
        let (ran, counted) = self.place.run(row, doer, shape)?;
        let mut measured = window.close(ran.operations)?;
        // Processes that were ended with their group are nobody's children any more.
        let missing = (ran.cpu_ns - measured.cpu_ns).max(0.0);
        besides(&mut measured, missing);
        measured.counters.insert("whole_ns".to_owned(), began.elapsed().as_secs_f64() * 1e9);
        (measured.cpu_ns, measured.wall_ns) = (ran.cpu_ns, ran.wall_ns);
        counted.into_sample(&mut measured);
        Ok(measured)
    }

    fn again(&self) -> bool {
        false
    }

    fn files(&mut self) -> Result<Vec<(String, Vec<u8>)>> {
        let refused: BTreeMap<String, &String> = self
            .refused
            .iter()
            .map(|((name, doer), why)| (format!("{name} {}", doer.word()), why))
            .collect();
        Ok(vec![("not-run.json".to_owned(), serde_json::to_vec_pretty(&refused)?)])
    }
}
