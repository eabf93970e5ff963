// SPDX-License-Identifier: Apache-2.0
//! `lab local`: what a local path costs when its peer reads, by the size of the writes.
//!
//! Sizes are the cells of an experiment and paths its arms, so each repetition takes one sample of every
//! path with every size, in random order: whatever else the machine does falls on all alike. The verdicts
//! judge CPU time of both ends; throughput is shown, but it depends on what the other processors are busy
//! with.

mod print;
mod sample;
mod words;

pub(crate) use print::text;

use super::Options;
use super::path::LocalPath;
use crate::experiment::{Experiment, Factor, Measured, Run, level};
use crate::meter::{Account, Meter};
use crate::scenario::{Head, Made, Scenario, make};
use crate::summary::summary;
use crate::{Failure, Result};
use sample::{carries, sample};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use words::SIZE;

/// Largest write.
const MAX_WRITE: usize = 1 << 24;

/// Measures.
pub(super) fn run(options: &Options) -> Result<Made> {
    make(&mut Flow::new(options)?, &options.run)
}

/// The summary, with the sentences.
pub(crate) fn json(experiment: &Experiment) -> Value {
    let mut summary = summary(experiment);
    summary["findings"] = words::sentences(experiment).into();
    summary
}

/// Paths and sizes.
#[derive(Debug)]
struct Flow {
    paths: Vec<LocalPath>,
    sizes: Vec<usize>,
    length: Duration,
    /// Paths that are not here, and why.
    absent: Vec<String>,
}

impl Flow {
    fn new(options: &Options) -> Result<Self> {
        let mut sizes = options.sizes.clone();
        sizes.sort_unstable();
        sizes.dedup();
        if options.sample == 0 || sizes.is_empty() {
            return Err(Failure::new("--sample and --sizes must be above zero"));
        }
        if sizes[0] == 0 || sizes.iter().any(|size| *size > MAX_WRITE) {
            return Err(Failure::new(format!("--sizes must be between 1 and {MAX_WRITE} bytes")));
        }
        let (mut paths, mut absent) = (Vec::new(), Vec::new());
        for path in LocalPath::ALL.into_iter().filter(|path| options.paths.contains(path)) {
            match path.ends() {
                // The only one that wants rights.
                Err(failure) if path == LocalPath::Sockmap => {
                    absent.push(format!("not run: {}: root may do it", failure.message));
                }
                Err(failure) => return Err(failure),
                Ok(_) => paths.push(path),
            }
        }
        if paths.is_empty() {
            return Err(Failure::new(absent.join(", ")));
        }
        Ok(Self { paths, sizes, length: Duration::from_millis(options.sample), absent })
    }

    fn once(&self, cell: &str, arm: &str) -> Result<sample::Sample> {
        let path = self.paths.iter().find(|path| path.word() == arm);
        let size = level(cell, SIZE).and_then(|text| text.parse().ok());
        let (path, size) =
            path.zip(size).ok_or_else(|| Failure::new("the plan has a path that is not there"))?;
        sample(*path, size, self.length)
    }
}

impl Scenario for Flow {
    fn head(&self) -> Head {
        let mut settings = BTreeMap::from([("congestion".to_owned(), congestion())]);
        if !self.absent.is_empty() {
            settings.insert("absent".to_owned(), self.absent.join(", "));
        }
        let cpu = "CLOCK_THREAD_CPUTIME_ID of the writing and of the reading thread".to_owned();
        Head { name: "local", unit: "byte", cpu, settings }
    }

    fn factors(&self) -> Vec<Factor> {
        let levels = self.sizes.iter().map(usize::to_string).collect();
        vec![Factor { name: SIZE.to_owned(), levels }]
    }

    fn arms(&self) -> Vec<String> {
        self.paths.iter().map(|path| path.word().to_owned()).collect()
    }

    fn skip(&self, cell: &str) -> Option<String> {
        let size = level(cell, SIZE)?.parse().ok()?;
        let refuses = |path: &&LocalPath| matches!(carries(**path, size), Ok(false));
        let path = self.paths.iter().find(refuses)?;
        Some(format!("{} does not carry writes of this size: leave it out of --paths", path.name()))
    }

    fn warm(&mut self, cell: &str, arm: &str) -> Result<Duration> {
        let began = Instant::now();
        self.once(cell, arm)?;
        Ok(began.elapsed())
    }

    fn sample(&mut self, run: &Run, meter: &Meter) -> Result<Measured> {
        let window = meter.open(Account::Process)?;
        let sample = self.once(&run.cell, &run.arm)?;
        let mut measured = window.close(sample.bytes())?;
        // Only what both ends did after their warming up counts.
        sample.replace(&mut measured);
        Ok(measured)
    }

    fn glance(&self, experiment: &Experiment) -> String {
        print::tables(experiment)
    }
}

/// TCP's congestion control, on which the loopback interface depends too.
fn congestion() -> String {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    text.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}
