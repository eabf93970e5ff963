// SPDX-License-Identifier: Apache-2.0
//! A study as a scenario: each version is an arm, and each sample repeats its job for some
//! milliseconds, on one thread or on several.

use super::pin::Cpus;
use super::view::threads;
use crate::experiment::{Factor, Measured, Run, level};
use crate::meter::{Account, Meter};
use crate::scenario::{Head, RunOptions, SECONDS, Scenario};
use crate::{Failure, Result};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Wall time of one sample, where there is time enough: two ticks of what the system says about
/// foreign work.
const LONGEST: Duration = Duration::from_millis(20);
/// And where there is not.
const SHORTEST: Duration = Duration::from_millis(1);
/// So many repetitions are aimed at.
const REPETITIONS: f64 = 12.0;

/// What a study measures.
pub(super) trait Subject {
    /// What stands in the manifest.
    fn head(&self) -> Head;

    /// What is varied. A factor named `threads` is the number of threads that each do the job.
    fn factors(&self) -> Vec<Factor>;

    /// The versions; the first is what the others are compared with.
    fn arms(&self) -> Vec<String>;

    /// Why a cell is not run.
    fn skip(&self, _cell: &str) -> Option<String> {
        None
    }

    /// One thread's work.
    ///
    /// # Errors
    /// The cell or the arm cannot be run.
    fn job(&self, cell: &str, arm: &str) -> Result<Job>;
}

pub(super) type Counters = BTreeMap<String, f64>;

/// Something that is repeated.
pub(super) struct Job {
    work: Work,
    units: f64,
    /// It has a second thread of its own.
    paired: bool,
    beside: Option<Box<dyn FnMut() -> Counters + Send>>,
}

enum Work {
    /// Done here so often.
    Here(Box<dyn FnMut(u64) + Send>),
    /// Done by another process, which says what a unit took it: nanoseconds of its CPU time.
    There(Box<dyn FnMut() -> Result<f64> + Send>),
}

impl Job {
    /// Work that does so many units at a time.
    pub(super) fn new(units: f64, mut once: impl FnMut() + Send + 'static) -> Self {
        let work = move |times| (0..times).for_each(|_| once());
        Self { work: Work::Here(Box::new(work)), units, paired: false, beside: None }
    }

    /// Work of another process, which is asked for a sample: nanoseconds of CPU time for a unit.
    pub(super) fn there(ask: impl FnMut() -> Result<f64> + Send + 'static) -> Self {
        Self { work: Work::There(Box::new(ask)), units: 1.0, paired: false, beside: None }
    }

    /// The same, with something that is measured after each sample: counters for one unit.
    pub(super) fn with(mut self, beside: impl FnMut() -> Counters + Send + 'static) -> Self {
        self.beside = Some(Box::new(beside));
        self
    }

    /// The same, and the work starts a second thread, which keeps away from the first allowed CPU.
    pub(super) fn paired(self) -> Self {
        Self { paired: true, ..self }
    }

    fn repeat(&mut self, times: u64) {
        if let Work::Here(work) = &mut self.work {
            work(times);
        }
    }

    fn timed(&mut self, times: u64) -> Duration {
        let began = Instant::now();
        self.repeat(times);
        began.elapsed()
    }
}

/// A job for each thread, and how often it is done for a sample.
struct Prepared {
    jobs: Vec<Job>,
    times: u64,
}

impl Prepared {
    /// Finds out how often one thread does its job in the time of a sample. On a busy machine a single
    /// try may be long for no fault of its own: the shortest of three tells how much work it takes.
    fn new(mut jobs: Vec<Job>, sample: Duration) -> Self {
        let here = |job: &&mut Job| matches!(job.work, Work::Here(_));
        let Some(job) = jobs.first_mut().filter(here) else { return Self { jobs, times: 1 } };
        let mut times = 1;
        loop {
            let tries = [job.timed(times), job.timed(times), job.timed(times)];
            let spent = tries.into_iter().min().unwrap_or(sample).max(Duration::from_nanos(1));
            if spent * 8 >= sample || times >= 1 << 40 {
                let fitting = times as f64 * sample.as_secs_f64() / spent.as_secs_f64();
                return Self { jobs, times: whole(fitting) };
            }
            times *= 4;
        }
    }

    /// Every thread does its job so often.
    fn repeat(&mut self) {
        let (times, cpus) = (self.times, Cpus::allowed());
        let Some((own, others)) = self.jobs.split_first_mut() else { return };
        if others.is_empty() && !own.paired {
            return own.repeat(times);
        }
        std::thread::scope(|scope| {
            for (number, other) in (1..).zip(others) {
                scope.spawn(move || {
                    cpus.pin(number);
                    other.repeat(times);
                });
            }
            cpus.pin(0);
            own.repeat(times);
        });
        cpus.release();
    }

    fn sample(&mut self, meter: &Meter) -> Result<Measured> {
        if let [Job { work: Work::There(ask), .. }] = self.jobs.as_mut_slice() {
            let window = meter.open(Account::Process)?;
            let each = ask()?;
            let mut measured = window.close(1.0)?;
            (measured.cpu_ns, measured.wall_ns) = (each, each);
            return Ok(measured);
        }
        let mut measured = meter.process(|| {
            self.repeat();
            Ok(self.units())
        })?;
        if let Some(beside) = self.jobs.first_mut().and_then(|job| job.beside.as_mut()) {
            let each = beside().into_iter();
            measured.counters.extend(each.map(|(name, each)| (name, each * measured.work)));
        }
        Ok(measured)
    }

    fn units(&self) -> f64 {
        self.jobs.iter().map(|job| job.units).sum::<f64>() * self.times as f64
    }
}

/// A study that can be run.
pub(super) struct Bench {
    subject: Box<dyn Subject>,
    prepared: HashMap<(String, String), Prepared>,
    sample: Duration,
}

impl Bench {
    /// Samples are as long as lets the wished time hold enough of them.
    pub(super) fn new(subject: Box<dyn Subject>, options: &RunOptions) -> Self {
        let cells = crate::experiment::cells(&subject.factors());
        let runs = cells.iter().filter(|cell| subject.skip(cell).is_none()).count();
        let round = (runs * subject.arms().len()).max(1) as f64;
        let sample =
            Duration::from_secs_f64(options.seconds.unwrap_or(SECONDS) / round / REPETITIONS);
        Self { subject, prepared: HashMap::new(), sample: sample.clamp(SHORTEST, LONGEST) }
    }
}

impl Scenario for Bench {
    fn head(&self) -> Head {
        self.subject.head()
    }

    fn factors(&self) -> Vec<Factor> {
        self.subject.factors()
    }

    fn arms(&self) -> Vec<String> {
        self.subject.arms()
    }

    fn skip(&self, cell: &str) -> Option<String> {
        self.subject.skip(cell)
    }

    fn warm(&mut self, cell: &str, arm: &str) -> Result<Duration> {
        let jobs = (0..threads(cell)).map(|_| self.subject.job(cell, arm));
        let mut prepared = Prepared::new(jobs.collect::<Result<_>>()?, self.sample);
        let began = Instant::now();
        prepared.sample(&Meter::start())?;
        self.prepared.insert((cell.to_owned(), arm.to_owned()), prepared);
        Ok(began.elapsed())
    }

    fn sample(&mut self, run: &Run, meter: &Meter) -> Result<Measured> {
        let key = (run.cell.clone(), run.arm.clone());
        let prepared = self.prepared.get_mut(&key);
        let prepared = prepared.ok_or_else(|| Failure::new("a run that was not warmed up"))?;
        prepared.sample(meter)
    }

    fn glance(&self, experiment: &crate::experiment::Experiment) -> String {
        super::page::glance(experiment)
    }
}

/// One thread, and one for each CPU.
pub(super) fn thread_counts() -> Vec<String> {
    let all = std::thread::available_parallelism().map_or(1, Into::into);
    let mut counts = vec![1, all];
    counts.dedup();
    counts.iter().map(usize::to_string).collect()
}

/// A head of the process's CPU time.
pub(super) fn head(name: &'static str, unit: &'static str) -> Head {
    Head { name, unit, cpu: Account::Process.source(), settings: BTreeMap::new() }
}

/// The names of versions that this processor has no instructions for go into the head.
pub(super) fn leave_out<'a>(head: &mut Head, absent: impl Iterator<Item = &'a str>) {
    let absent: Vec<&str> = absent.collect();
    if !absent.is_empty() {
        let text = format!("{}: this processor has no such instructions", absent.join(", "));
        head.settings.insert(super::page::ABSENT.to_owned(), text);
    }
}

/// A cell's level as a number.
pub(super) fn number(cell: &str, factor: &str) -> Result<usize> {
    let number = level(cell, factor).and_then(|level| level.parse().ok());
    number.ok_or_else(|| Failure::new(format!("no {factor} in {cell}")))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive count")]
fn whole(value: f64) -> u64 {
    value.max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::super::view::THREADS;
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Counts what it is asked to do.
    struct Counting(Arc<AtomicU64>);

    impl Subject for Counting {
        fn head(&self) -> Head {
            head("study-counting", "operation")
        }

        fn factors(&self) -> Vec<Factor> {
            vec![Factor::new(THREADS, [1, 3])]
        }

        fn arms(&self) -> Vec<String> {
            vec!["here".to_owned(), "there".to_owned()]
        }

        fn job(&self, _cell: &str, arm: &str) -> Result<Job> {
            if arm == "there" {
                return Ok(Job::there(|| Ok(125.0)));
            }
            let counter = Arc::clone(&self.0);
            let job = Job::new(2.0, move || {
                counter.fetch_add(1, Ordering::Relaxed);
                std::hint::black_box((0..100).sum::<u64>());
            });
            Ok(job.with(|| Counters::from([("calls".to_owned(), 7.0)])))
        }
    }

    fn bench(counter: &Arc<AtomicU64>) -> Bench {
        Bench {
            subject: Box::new(Counting(Arc::clone(counter))),
            prepared: HashMap::new(),
            sample: SHORTEST,
        }
    }

    fn sample(bench: &mut Bench, cell: &str, arm: &str) -> Measured {
        let run = Run { cell: cell.to_owned(), repetition: 0, arm: arm.to_owned() };
        bench.sample(&run, &Meter::start()).unwrap()
    }

    #[test]
    fn work_is_what_all_threads_did() {
        let counter = Arc::new(AtomicU64::new(0));
        let mut bench = bench(&counter);
        for cell in ["threads=1", "threads=3"] {
            bench.warm(cell, "here").unwrap();
            let before = counter.load(Ordering::Relaxed);
            let measured = sample(&mut bench, cell, "here");
            let done = counter.load(Ordering::Relaxed) - before;
            assert_eq!(measured.work, 2.0 * done as f64, "{cell}");
            assert_eq!(done % threads(cell) as u64, 0);
            assert_eq!(measured.counters["calls"], 7.0 * measured.work);
        }
    }

    #[test]
    fn what_another_process_measured_is_the_sample() {
        let counter = Arc::new(AtomicU64::new(0));
        let mut bench = bench(&counter);
        bench.warm("threads=1", "there").unwrap();
        let measured = sample(&mut bench, "threads=1", "there");
        assert_eq!((measured.work, measured.cpu_ns, measured.wall_ns), (1.0, 125.0, 125.0));
        let failure = bench.sample(
            &Run { cell: "threads=3".to_owned(), repetition: 0, arm: "there".to_owned() },
            &Meter::start(),
        );
        assert_eq!(failure.unwrap_err().message, "a run that was not warmed up");
    }
}
