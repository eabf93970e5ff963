// SPDX-License-Identifier: Apache-2.0
//! The timing: one worker thread per subject and thread number, batches in random order, so that
//! whatever else the machine does falls on all subjects alike.

use super::cell::Cell;
use super::report::{Arm, CellResult};
use super::subject::{Operation, Subject};
use crate::clock::{Spent, Watch, measure, wait};
use crate::random::Random;
use crate::statistics::median;
use crate::{Failure, Result};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How much to measure.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    /// CPU time of one sample.
    pub(crate) sample: Duration,
    /// CPU time of one batch; a sample is the median of its batches.
    pub(crate) batch: Duration,
    pub(crate) threads: Vec<usize>,
}

/// A batch for one worker: so many operations, once everybody of the batch is there.
struct Job {
    times: u64,
    gate: Arc<AtomicUsize>,
}

/// A worker as the main thread sees it.
struct Worker {
    jobs: Sender<Job>,
    results: Receiver<Result<Spent>>,
}

/// A subject's workers and what they have delivered.
struct Lane {
    workers: Vec<Worker>,
    times: u64,
    arms: Vec<Arm>,
}

/// Measures one cell on every subject. A subject that cannot do the work gets no samples but a
/// reason.
///
/// # Errors
/// A result was wrong: then no number of the run is worth anything.
pub(crate) fn cell(
    cell: &Cell,
    subjects: &[(&str, &dyn Subject)],
    plan: &Plan,
    random: &mut Random,
) -> Result<CellResult> {
    let threads: &[usize] = if cell.threads { &plan.threads } else { &[1] };
    let most = threads.iter().copied().max().unwrap_or(1);
    let watch = Watch::start();
    let (arms, unsupported) = std::thread::scope(|scope| {
        let mut lanes = Vec::new();
        let mut unsupported = Vec::new();
        for (name, subject) in subjects {
            let start =
                || (0..most).map(|_| spawn(scope, *subject, cell)).collect::<Result<Vec<_>>>();
            match start().and_then(|workers| Lane::calibrated(name, workers, threads, plan)) {
                Ok(lane) => lanes.push(lane),
                Err(failure) => unsupported.push(((*name).to_owned(), failure.message)),
            }
        }
        rounds(&mut lanes, threads, plan, random)?;
        let arms = lanes.into_iter().flat_map(|lane| lane.arms).collect();
        Ok::<_, Failure>((arms, unsupported))
    })?;
    Ok(CellResult {
        name: cell.name.to_owned(),
        mechanism: cell.mechanism.to_owned(),
        size: cell.size,
        goal: cell.goal,
        scaling_goal: cell.scaling,
        arms,
        unsupported,
        foreign_cpu: watch.foreign(),
    })
}

/// All rounds: each measures every subject at every number of threads once, in random order.
fn rounds(lanes: &mut [Lane], threads: &[usize], plan: &Plan, random: &mut Random) -> Result<()> {
    let mut order: Vec<(usize, usize)> = Vec::new();
    for lane in 0..lanes.len() {
        order.extend((0..threads.len()).map(|arm| (lane, arm)));
    }
    for _ in 0..plan.rounds {
        random.shuffle(&mut order);
        for &(lane, arm) in &order {
            lanes[lane].sample(arm, plan)?;
        }
    }
    Ok(())
}

/// Starts a worker and waits until its operation is ready and has been checked once.
fn spawn<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    subject: &'scope dyn Subject,
    cell: &Cell,
) -> Result<Worker> {
    let cell = *cell;
    let (jobs, received) = channel::<Job>();
    let (sender, results) = channel();
    scope.spawn(move || {
        let prepared = subject.operation(&cell).and_then(|mut operation| {
            operation.repeat(1)?;
            operation.check()?;
            Ok(operation)
        });
        match prepared {
            Ok(operation) => {
                let nothing = Spent { cpu: Duration::ZERO, wall: Duration::ZERO };
                if sender.send(Ok(nothing)).is_ok() {
                    work(operation, &received, &sender);
                }
            }
            // A receiver that is gone has stopped caring.
            Err(failure) => drop(sender.send(Err(failure))),
        }
    });
    let worker = Worker { jobs, results };
    worker.receive()?;
    Ok(worker)
}

/// The worker's life: a batch, its time, a check of its last result.
fn work(
    mut operation: Box<dyn Operation + '_>,
    jobs: &Receiver<Job>,
    results: &Sender<Result<Spent>>,
) {
    for Job { times, gate } in jobs {
        wait(&gate);
        let (result, spent) = measure(|| operation.repeat(times));
        let checked = result.and_then(|()| operation.check()).map(|()| spent);
        if results.send(checked).is_err() {
            return;
        }
    }
}

impl Worker {
    fn receive(&self) -> Result<Spent> {
        self.results.recv().map_err(|_| Failure::new("a worker thread ended early"))?
    }
}

impl Lane {
    fn calibrated(
        name: &str,
        workers: Vec<Worker>,
        threads: &[usize],
        plan: &Plan,
    ) -> Result<Self> {
        let arm = |threads: &usize| Arm::new(name, *threads);
        let mut lane = Self { workers, times: 1, arms: threads.iter().map(arm).collect() };
        // The first batches also warm caches and the subject's own prepared keys.
        loop {
            let spent = lane.batch(1)?;
            let cpu = spent[0].cpu.max(Duration::from_nanos(1));
            if cpu * 2 >= plan.batch || lane.times >= 1 << 40 {
                let per_operation = cpu.as_secs_f64() / count(lane.times);
                lane.times = whole(plan.batch.as_secs_f64() / per_operation).max(1);
                return Ok(lane);
            }
            lane.times *= 2;
        }
    }

    /// One batch on the first `threads` workers at once.
    fn batch(&self, threads: usize) -> Result<Vec<Spent>> {
        let gate = Arc::new(AtomicUsize::new(threads));
        for worker in &self.workers[..threads] {
            let job = Job { times: self.times, gate: Arc::clone(&gate) };
            worker.jobs.send(job).map_err(|_| Failure::new("a worker thread ended early"))?;
        }
        self.workers[..threads].iter().map(Worker::receive).collect()
    }

    /// One sample: the median of as many batches as fit.
    fn sample(&mut self, arm: usize, plan: &Plan) -> Result<()> {
        let threads = self.arms[arm].threads;
        let (mut cpu, mut wall) = (Vec::new(), Vec::new());
        let mut used = Duration::ZERO;
        while used < plan.sample {
            let spent = self.batch(threads)?;
            used += spent[0].cpu.max(Duration::from_micros(1));
            let all = count(self.times) * threads as f64;
            let total: f64 = spent.iter().map(|spent| spent.cpu.as_secs_f64()).sum();
            let rate: f64 =
                spent.iter().map(|spent| count(self.times) / spent.wall.as_secs_f64()).sum();
            cpu.push(total / all * 1e9);
            wall.push(1e9 / rate);
        }
        let arm = &mut self.arms[arm];
        arm.operations += self.times * (cpu.len() * threads) as u64;
        arm.batches += cpu.len();
        arm.cpu_ns.push(median(&cpu));
        arm.wall_ns.push(median(&wall));
        Ok(())
    }
}

/// Operations as a number to divide by.
const fn count(times: u64) -> f64 {
    times as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive count")]
const fn whole(value: f64) -> u64 {
    value as u64
}
