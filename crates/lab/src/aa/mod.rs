// SPDX-License-Identifier: Apache-2.0
//! `lab aa`: how small a difference can this machine see today?
//!
//! Two identical arms of a small workload, in pairs as any other experiment. Whatever they seem to
//! differ by is the machine's doing, and no verdict of today should be made of less.

mod print;
mod work;

use crate::clock::{Watch, process_cpu};
use crate::experiment::{Experiment, Factor, Measured, Plan, Recorder, Sample};
use crate::machine::now;
use crate::progress::Progress;
use crate::random::Random;
use crate::verdict::Comparison;
use crate::{Failure, Result};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use work::{Calibrated, KINDS};

/// Wall time of one sample: two ticks of what the system says about foreign work.
const SAMPLE: Duration = Duration::from_millis(20);
/// Fewer pairs decide nothing.
const FEWEST: usize = 6;
/// What may make a sample doubtful: others used more than this share of a CPU.
const FOREIGN: f64 = 0.2;
const CLOCKS: [&str; 2] = ["CPU time of the process (CLOCK_PROCESS_CPUTIME_ID)", "monotonic"];

/// How long, and where to.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// How long to measure, in seconds
    #[arg(
        long, value_name = "S", default_value_t = 10,
        value_parser = clap::value_parser!(u64).range(1..=15)
    )]
    pub seconds: u64,
    /// Random seed of the order, to repeat a run
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The experiment to write, a directory [default: aa-TIME.labx, here]
    #[arg(long, value_name = "NAME.labx")]
    pub output: Option<PathBuf>,
    /// Print the result as JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    let directory =
        options.output.clone().unwrap_or_else(|| PathBuf::from(format!("aa-{}.labx", now())));
    let began = Instant::now();
    let mut works =
        KINDS.iter().map(|kind| Calibrated::new(*kind, SAMPLE)).collect::<Result<Vec<_>>>()?;
    let left = Duration::from_secs(options.seconds).saturating_sub(began.elapsed());
    let pairs = pairs_within(left, works.iter().map(Calibrated::expected).sum());
    let seed = options.seed.unwrap_or_else(Random::seed_from_clock);
    let levels = KINDS.iter().map(|kind| kind.word().to_owned()).collect();
    let factor = Factor { name: "work".to_owned(), levels };
    let plan = Plan::interleaved(vec![factor], ["a", "again"], pairs, seed)?;
    measure(Recorder::create(&directory, CLOCKS, plan)?, &mut works)?;
    let experiment = Experiment::read(&directory)?;
    print::print(&directory, &experiment, &floors(&experiment), options.json)
}

/// How many pairs fit: each is every work twice. A tenth is left for what was not foreseen.
fn pairs_within(time: Duration, each: Duration) -> usize {
    let pairs = time.as_secs_f64() * 0.9 / (2.0 * each.as_secs_f64().max(1e-6));
    // A few hundred: the interval no longer shrinks as fast as people's patience.
    (FEWEST..=400).rev().find(|count| *count as f64 <= pairs).unwrap_or(FEWEST)
}

fn measure(mut recorder: Recorder, works: &mut [Calibrated]) -> Result<()> {
    let (began, progress) = (Instant::now(), Progress::new());
    let since = |began: Instant| u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    recorder.log(&format!("{} runs", recorder.plan().order.len()))?;
    while let Some(run) = recorder.next() {
        progress.say(format_args!("pair {}: {}", run.repetition + 1, run.cell));
        let work = works.iter_mut().find(|work| run.cell.ends_with(work.word()));
        let work = work.ok_or_else(|| Failure::new("the plan has a work that is not there"))?;
        let (watch, start, cpu) = (Watch::start(), since(began), process_cpu());
        work.run()?;
        let cpu = process_cpu().saturating_sub(cpu);
        let end = since(began);
        let foreign_cpu = watch.foreign();
        let contaminated = foreign_cpu.is_some_and(|share| share > FOREIGN);
        recorder.record(Measured {
            window_ns: [start, end],
            work: work.times() as f64,
            cpu_ns: cpu.as_secs_f64() * 1e9,
            wall_ns: (end - start) as f64,
            foreign_cpu,
            flags: contaminated.then(|| "contaminated".to_owned()).into_iter().collect(),
        })?;
    }
    recorder.finish()
}

/// What one work shows by one clock.
struct Floor {
    cell: String,
    clock: &'static str,
    comparison: Comparison,
}

fn floors(experiment: &Experiment) -> Vec<Floor> {
    let floor = |cell: &String, clock, cost: fn(&Sample) -> f64| {
        let comparison = Comparison::of(&experiment.pairs(cell, cost))?;
        Some(Floor { cell: cell.clone(), clock, comparison })
    };
    let of_cell =
        |cell| [floor(cell, "cpu", Sample::cpu_each), floor(cell, "wall", Sample::wall_each)];
    experiment.plan.cells().iter().flat_map(of_cell).flatten().collect()
}

/// The largest of all works by one clock: the floor for whatever is compared by it today.
fn largest(floors: &[Floor], clock: &str) -> f64 {
    let of_clock = floors.iter().filter(|floor| floor.clock == clock);
    of_clock.map(|floor| floor.comparison.floor()).fold(0.0, f64::max)
}

fn shown(directory: &Path) -> String {
    directory.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_pairs_as_fit_but_never_too_few() {
        let pairs =
            |seconds, each| pairs_within(Duration::from_secs(seconds), Duration::from_millis(each));
        assert_eq!(pairs(10, 20), 225);
        assert_eq!(pairs(0, 20), FEWEST);
        assert_eq!(pairs(15, 1), 400);
    }
}
