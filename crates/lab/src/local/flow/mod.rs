// SPDX-License-Identifier: Apache-2.0
//! `lab local`: what a local path costs when its peer reads, by the size of the writes.
//!
//! Every round takes one sample of every path and size, in random order, so that whatever else the
//! machine does falls on all alike. The verdicts judge CPU time of both ends and pair the rounds;
//! throughput is shown, but it depends on what the other processors are busy with.

mod print;
mod sample;
mod words;

use super::path::LocalPath;
use super::{Options, publish};
use crate::clock::Watch;
use crate::machine::{Machine, command_line, now};
use crate::progress::Progress;
use crate::random::Random;
use crate::statistics::median;
use crate::{Failure, Result};
use sample::{Sample, carries, sample};
use serde::{Deserialize, Serialize};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Largest write.
const MOST: usize = 1 << 24;

/// One run.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Report {
    schema: String,
    command: Vec<String>,
    started: u64,
    seconds: f64,
    machine: Machine,
    /// TCP's congestion control, on which the loopback interface depends too.
    congestion: Option<String>,
    seed: u64,
    rounds: usize,
    sample_ms: u64,
    /// CPUs that other processes used meanwhile.
    foreign_cpu: Option<f64>,
    cells: Vec<Cell>,
    /// Paths that are not here, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<String>,
}

/// One path and size; the same index of all lists is one round.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Cell {
    path: LocalPath,
    /// Bytes of one write.
    size: usize,
    /// Whether the path takes writes of this size; the lists are empty if not.
    carried: bool,
    /// CPU time for 1024 bytes.
    writer_ns: Vec<f64>,
    reader_ns: Vec<f64>,
    gbps: Vec<f64>,
    /// Writes that had returned and were not read yet.
    outstanding_mean: Vec<f64>,
    outstanding_most: Vec<f64>,
}

impl Cell {
    const fn new(path: LocalPath, size: usize, carried: bool) -> Self {
        Self {
            path,
            size,
            carried,
            writer_ns: Vec::new(),
            reader_ns: Vec::new(),
            gbps: Vec::new(),
            outstanding_mean: Vec::new(),
            outstanding_most: Vec::new(),
        }
    }

    fn take(&mut self, sample: &Sample) {
        self.writer_ns.push(sample.writer_ns());
        self.reader_ns.push(sample.reader_ns());
        self.gbps.push(sample.gbps());
        self.outstanding_mean.push(sample.outstanding.mean());
        self.outstanding_most.push(sample.outstanding.most);
    }

    /// CPU time of both ends for 1024 bytes, per round.
    fn cost(&self) -> Vec<f64> {
        self.writer_ns.iter().zip(&self.reader_ns).map(|(writer, reader)| writer + reader).collect()
    }

    /// The figure of a table, where there are samples.
    fn typical(values: &[f64]) -> Option<f64> {
        (!values.is_empty()).then(|| median(values))
    }
}

/// Measures.
pub(super) fn run(options: &Options) -> Result<()> {
    let (cells, skipped) = cells(options)?;
    let seed = options.seed.unwrap_or_else(Random::seed_from_clock);
    let mut report = Report {
        schema: "metaslot-lab-local/1".to_owned(),
        command: command_line(),
        started: now(),
        seconds: 0.0,
        machine: Machine::this(),
        congestion: congestion(),
        seed,
        rounds: 0,
        sample_ms: options.sample,
        foreign_cpu: None,
        cells,
        skipped,
    };
    let (started, watch) = (Instant::now(), Watch::start());
    let (progress, mut random) = (Progress::new(), Random::new(seed));
    for _ in 0..options.rounds {
        round(&mut report, options, &mut random, &progress)?;
        report.rounds += 1;
        report.seconds = started.elapsed().as_secs_f64();
        report.foreign_cpu = watch.foreign();
        if report.rounds == 1 && options.rounds > 1 && std::io::stderr().is_terminal() {
            progress.say("");
            eprintln!("after the first round, without intervals:\n\n{}", print::tables(&report));
        }
    }
    drop(progress);
    publish(options, &report, print::text)
}

/// Every path with every size, once; and why a path is left out that needs rights.
fn cells(options: &Options) -> Result<(Vec<Cell>, Vec<String>)> {
    let mut sizes = options.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    if options.rounds == 0 || options.sample == 0 || sizes.is_empty() {
        return Err(Failure::new("--rounds, --sample and --sizes must be above zero"));
    }
    if sizes[0] == 0 || sizes.iter().any(|size| *size > MOST) {
        return Err(Failure::new(format!("--sizes must be between 1 and {MOST} bytes")));
    }
    let (mut cells, mut skipped) = (Vec::new(), Vec::new());
    for path in LocalPath::ALL.into_iter().filter(|path| options.paths.contains(path)) {
        if path == LocalPath::Sockmap
            && let Err(failure) = path.ends()
        {
            skipped.push(format!("not run: {}: root may do it", failure.message));
            continue;
        }
        for &size in &sizes {
            cells.push(Cell::new(path, size, carries(path, size)?));
        }
    }
    if cells.is_empty() {
        return Err(Failure::new(skipped.join(", ")));
    }
    Ok((cells, skipped))
}

/// One sample of each cell, in random order.
fn round(
    report: &mut Report,
    options: &Options,
    random: &mut Random,
    progress: &Progress,
) -> Result<()> {
    let carried = |at: &usize| report.cells[*at].carried;
    let mut order: Vec<usize> = (0..report.cells.len()).filter(carried).collect();
    random.shuffle(&mut order);
    let (number, all) = (report.rounds + 1, order.len());
    for (done, at) in order.into_iter().enumerate() {
        let cell = &mut report.cells[at];
        let name = cell.path.name();
        progress.say(format_args!("round {number} of {}: {done} of {all}, {name}", options.rounds));
        let sample = sample(cell.path, cell.size, Duration::from_millis(options.sample));
        cell.take(&sample.map_err(|failure| failure.context(name))?);
    }
    Ok(())
}

fn congestion() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").ok()?;
    Some(text.trim().to_owned())
}
