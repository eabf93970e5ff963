// SPDX-License-Identifier: Apache-2.0
//! Sun's table as a scenario: every operation, on one thread and on several, by each one who can do it.

use super::openssl::{self, Readings};
use super::operations::{ROWS, Row};
use super::{BY, LANES, MODULE, OPERATION, RAW, RIVAL, THREADS};
use crate::experiment::{Factor, Measured, Run, level};
use crate::meter::{Account, Meter};
use crate::place::Place;
use crate::scenario::{Head, Scenario};
use crate::speed::Options;
use crate::speed::part::{Part, Worker};
use crate::token::{own_module, rival_module};
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
    workers: Vec<(&'static str, Worker)>,
    /// Cells that nobody can run, and what was answered.
    refused: HashMap<String, String>,
    settings: BTreeMap<String, String>,
    sample: Duration,
    readings: Readings,
    repetition: usize,
    /// Goes away after those who work in it.
    _place: Place,
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
        let place = Place::make(options.dir.as_deref(), options.keep)?;
        let (workers, mut settings) = workers(options, &place)?;
        let installed = if options.no_openssl { None } else { openssl::version() };
        let readings = match &installed {
            None => Readings::default(),
            Some(_) => Readings::of(&rows, threads[threads.len() - 1]),
        };
        let absent = if options.no_openssl { "not asked" } else { "not installed" };
        settings.insert("openssl".to_owned(), installed.unwrap_or_else(|| absent.to_owned()));
        settings.insert("hardware threads per core".to_owned(), siblings());
        let samples = (rows.len() * threads.len() * workers.len()) as f64 * REPETITIONS;
        let seconds = options.seconds.unwrap_or(SECONDS) - readings.seconds();
        let sample = Duration::from_secs_f64(seconds.max(0.0) / samples);
        let mut sun = Self {
            rows,
            threads,
            workers,
            refused: HashMap::new(),
            settings,
            sample: sample.clamp(SAMPLE[0], SAMPLE[1]),
            readings,
            repetition: 0,
            _place: place,
        };
        sun.prepare()?;
        Ok(sun)
    }

    /// How long `openssl speed` takes, all runs of it.
    pub(super) fn openssl_seconds(&self) -> f64 {
        self.readings.seconds()
    }

    /// Keys and sessions for every cell. What all must give alike is compared with the raw library, which
    /// is the first.
    fn prepare(&mut self) -> Result<()> {
        for row in &self.rows {
            for threads in &self.threads {
                let mut right: Option<Vec<u8>> = None;
                for (by, worker) in &mut self.workers {
                    let cell = format!("{OPERATION}={} {THREADS}={threads} {BY}={by}", row.name);
                    match worker.prepare(&cell, row.job, *threads) {
                        Err(failure) => drop(self.refused.insert(cell, failure.message)),
                        Ok(result) => {
                            if right.is_some() && result.is_some() && right != result {
                                let text = format!("wrong result: {} by {by}", row.name);
                                return Err(Failure::new(text));
                            }
                            right = right.or(result);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn run(&mut self, cell: &str, meter: &Meter) -> Result<Measured> {
        let (by, length) = (level(cell, BY).unwrap_or_default(), self.sample);
        let worker = self.workers.iter_mut().find(|(name, _)| *name == by);
        let (_, worker) = worker.ok_or_else(|| Failure::new(format!("nobody is {by}")))?;
        let processes = [worker.pid()];
        let window = meter.open(Account::Processes(&processes))?;
        let done = worker.run(cell, length)?;
        let mut measured = window.close(done.operations)?;
        // Without the way there and back, which is the lab's.
        (measured.cpu_ns, measured.wall_ns) = (done.cpu_ns, done.wall_ns);
        Ok(measured)
    }
}

/// Each one who can do it, in a process of its own, and what they say of themselves.
type Workers = (Vec<(&'static str, Worker)>, BTreeMap<String, String>);

fn workers(options: &Options, place: &Place) -> Result<Workers> {
    let own = own_module(options.module.as_deref())?;
    let rival = rival_module(options.rival.as_deref(), &own);
    let start = |name: &str, lanes: bool, part: Part| {
        let whole = format!("lanes = {lanes}\n");
        Worker::start(part, &place.configured(name, &whole, "policy = \"legacy\"\n")?)
    };
    let mut workers = vec![
        (RAW, start(RAW, true, Part::Raw)?),
        (MODULE, start(MODULE, false, Part::Module(own.clone()))?),
        (LANES, start(LANES, true, Part::Module(own))?),
    ];
    let absent = match (&rival, options.rival.as_deref()) {
        (Some(_), _) => None,
        (None, Some("none")) => Some("not asked"),
        (None, _) => Some("not installed"),
    };
    if let Some(path) = rival {
        workers.push((RIVAL, start(RIVAL, true, Part::Module(path))?));
    }
    let says = workers.iter().map(|(name, worker)| ((*name).to_owned(), worker.name.clone()));
    let mut settings: BTreeMap<String, String> = says.collect();
    settings.extend(absent.map(|why| (RIVAL.to_owned(), why.to_owned())));
    Ok((workers, settings))
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
            factor(BY, self.workers.iter().map(|(name, _)| (*name).to_owned()).collect()),
        ]
    }

    fn arms(&self) -> Vec<String> {
        vec![super::ARM.to_owned()]
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
        self.run(cell, &Meter::start())?;
        Ok(began.elapsed())
    }

    fn sample(&mut self, run: &Run, meter: &Meter) -> Result<Measured> {
        // One run of the other tool between two repetitions: whatever the machine does falls on it as well.
        if run.repetition != self.repetition {
            self.repetition = run.repetition;
            self.readings.take();
        }
        self.run(&run.cell, meter)
    }

    fn glance(&self, experiment: &crate::experiment::Experiment) -> String {
        super::print::glance(experiment)
    }

    fn files(&mut self) -> Result<Vec<(String, Vec<u8>)>> {
        Ok(self.readings.printed())
    }
}
