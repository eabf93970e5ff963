// SPDX-License-Identifier: Apache-2.0
//! Sun's table as a scenario: every operation, on one thread and on several, by each one who can do it.

use super::openssl::{self, Readings};
use super::operations::{OPERATION, ROWS, Row, THREADS};
use crate::experiment::{Factor, Measured, Run};
use crate::meter::Meter;
use crate::scenario::{Head, Scenario};
use crate::speed::Options;
use crate::speed::part::{ARM, BY, Crew};
use crate::{Failure, Result};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long it is measured when nobody says, in seconds.
pub(super) const SECONDS: f64 = 60.0;
/// Repetitions with fewer than which nothing can be told apart.
const FEWEST: usize = 6;
/// So many repetitions are aimed at.
const REPETITIONS: f64 = 16.0;
/// Wall time of one sample.
const SAMPLE: [Duration; 2] = [Duration::from_millis(4), Duration::from_millis(40)];

/// Everybody at work.
pub(super) struct Sun {
    rows: Vec<Row>,
    threads: Vec<usize>,
    crew: Crew,
    /// Cells that nobody can run, and what was answered.
    refused: HashMap<String, String>,
    settings: BTreeMap<String, String>,
    sample: Duration,
    readings: Readings,
    repetition: usize,
}

impl Sun {
    /// Starts a process for each one, makes keys, and compares what they give with the raw library.
    ///
    /// # Errors
    /// There is no module, or somebody gives another result.
    pub(super) fn new(options: &Options) -> Result<Self> {
        let wanted = |row: &Row| {
            options.filter.is_empty() || options.filter.iter().any(|text| row.name.contains(text))
        };
        let rows: Vec<Row> = ROWS.into_iter().filter(wanted).collect();
        if rows.is_empty() {
            let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
            let filter = options.filter.join(",");
            return Err(Failure::new(format!("no operation of Sun's table matches {filter}"))
                .hint(format!("there are {}", names.join(", "))));
        }
        let cpus = std::thread::available_parallelism().map_or(1, Into::into);
        let mut threads = vec![1, options.threads.iter().copied().max().unwrap_or(cpus)];
        threads.dedup();
        let crew = Crew::new(options, true)?;
        let mut settings = crew.settings.clone();
        let installed = if options.no_openssl { None } else { openssl::version() };
        let readings = match &installed {
            None => Readings::default(),
            Some(_) => Readings::of(&rows, threads[threads.len() - 1]),
        };
        let absent = if options.no_openssl { "not asked" } else { "not installed" };
        settings.insert("openssl".to_owned(), installed.unwrap_or_else(|| absent.to_owned()));
        settings.insert("hardware threads per core".to_owned(), siblings());
        let samples = (rows.len() * threads.len() * crew.names().len()) as f64 * REPETITIONS;
        let seconds = options.seconds.unwrap_or(SECONDS) - readings.seconds();
        let sample = Duration::from_secs_f64(seconds.max(0.0) / samples);
        let mut sun = Self {
            rows,
            threads,
            crew,
            refused: HashMap::new(),
            settings,
            sample: sample.clamp(SAMPLE[0], SAMPLE[1]),
            readings,
            repetition: 0,
        };
        sun.prepare()?;
        Ok(sun)
    }

    /// How long `openssl speed` takes, all runs of it.
    pub(super) fn openssl_seconds(&self) -> f64 {
        self.readings.seconds()
    }

    /// Keys and sessions for every cell.
    fn prepare(&mut self) -> Result<()> {
        for row in &self.rows {
            for threads in &self.threads {
                let name = format!("{OPERATION}={} {THREADS}={threads}", row.name);
                self.refused.extend(self.crew.prepare(&name, row.job, *threads)?);
            }
        }
        Ok(())
    }
}

/// Hardware threads that share the first CPU's core, as far as the system shows them.
fn siblings() -> String {
    let path = Path::new("/sys/devices/system/cpu/cpu0/topology/thread_siblings");
    let Ok(mask) = std::fs::read_to_string(path) else { return "unknown".to_owned() };
    let digits = mask.chars().filter_map(|digit| digit.to_digit(16));
    digits.map(u32::count_ones).sum::<u32>().to_string()
}

impl Scenario for Sun {
    fn head(&self) -> Head {
        Head {
            name: "speed",
            unit: "operation",
            cpu: "CLOCK_THREAD_CPUTIME_ID of the working threads, all together".to_owned(),
            settings: self.settings.clone(),
        }
    }

    fn factors(&self) -> Vec<Factor> {
        let factor = |name: &str, levels: Vec<String>| Factor { name: name.to_owned(), levels };
        vec![
            factor(OPERATION, self.rows.iter().map(|row| row.name.to_owned()).collect()),
            factor(THREADS, self.threads.iter().map(usize::to_string).collect()),
            factor(BY, self.crew.names()),
        ]
    }

    fn arms(&self) -> Vec<String> {
        vec![ARM.to_owned()]
    }

    fn fewest(&self) -> usize {
        FEWEST
    }

    fn seconds(&self) -> f64 {
        SECONDS
    }

    fn skip(&self, cell: &str) -> Option<String> {
        self.refused.get(cell).cloned()
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
            self.readings.take();
        }
        self.crew.run(&run.cell, self.sample, meter)
    }

    fn glance(&self, experiment: &crate::experiment::Experiment) -> String {
        super::print::glance(experiment)
    }

    fn files(&mut self) -> Result<Vec<(String, Vec<u8>)>> {
        Ok(self.readings.printed())
    }
}
