// SPDX-License-Identifier: Apache-2.0
//! Every order of events of a few threads, as far as three preemptions reach (loom): no thread sleeps for ever, each job is
//! computed exactly once, and what one thread wrote is there for the other.

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread::{self, Thread};

use super::super::core::Core;
use super::super::platform::{Counts, Platform, Word, lock, unlock};
use super::super::ticket::CoreTicket;
use super::super::{Failure, Kernel};

impl Word<u32> for AtomicU32 {
    fn load(&self) -> u32 {
        self.load(Ordering::Acquire)
    }

    fn swap(&self, to: u32) -> u32 {
        self.swap(to, Ordering::AcqRel)
    }

    fn add(&self, what: u32) -> u32 {
        self.fetch_add(what, Ordering::AcqRel)
    }

    fn exchange(&self, from: u32, to: u32) -> bool {
        self.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl Word<u64> for AtomicU64 {
    fn load(&self) -> u64 {
        self.load(Ordering::Acquire)
    }

    fn swap(&self, to: u64) -> u64 {
        self.swap(to, Ordering::AcqRel)
    }

    fn add(&self, what: u64) -> u64 {
        self.fetch_add(what, Ordering::AcqRel)
    }

    fn exchange(&self, from: u64, to: u64) -> bool {
        self.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// A futex: who sleeps where. The kernel, too, compares and queues under one lock.
#[derive(Default)]
struct Sleepers(Mutex<Vec<(usize, Thread)>>);

impl Sleepers {
    fn sleep(&self, word: &AtomicU32, expected: u32) {
        let mut sleepers = self.0.lock().unwrap();
        if word.load(Ordering::Acquire) != expected {
            return;
        }
        sleepers.push((std::ptr::from_ref(word).addr(), thread::current()));
        drop(sleepers);
        thread::park();
    }

    fn wake(&self, word: *const AtomicU32) {
        let mut sleepers = self.0.lock().unwrap();
        if let Some(at) = sleepers.iter().position(|(address, _)| *address == word.addr()) {
            sleepers.swap_remove(at).1.unpark();
        }
    }
}

struct Model {
    state: AtomicU64,
    lock: Mutex<()>,
    sleepers: Sleepers,
    counts: Counts,
    cores: usize,
    company: usize,
    /// Whether all of it has gone, where it may.
    gone: Option<AtomicBool>,
}

impl Model {
    fn new(cores: usize, company: usize) -> Self {
        Self {
            state: AtomicU64::new(0),
            lock: Mutex::new(()),
            sleepers: Sleepers::default(),
            counts: Counts::default(),
            cores,
            company,
            gone: None,
        }
    }
}

impl Platform for Model {
    type Signal = AtomicU32;
    type State = AtomicU64;

    fn signal(value: u32) -> AtomicU32 {
        AtomicU32::new(value)
    }

    fn state(&self) -> &AtomicU64 {
        &self.state
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn epoch(&self) -> u32 {
        1
    }

    fn locked<R>(&self, work: impl FnOnce() -> R) -> R {
        let _held = self.lock.lock().unwrap();
        work()
    }

    fn sleep(&self, word: &AtomicU32, expected: u32) {
        self.sleepers.sleep(word, expected);
    }

    fn wake(&self, word: *const AtomicU32) {
        self.sleepers.wake(word);
    }

    fn cores(&self) -> usize {
        self.cores
    }

    fn company(&self) -> usize {
        let gone = self.gone.as_ref().is_some_and(|gone| gone.load(Ordering::Relaxed));
        if gone { 0 } else { self.company }
    }

    fn step_aside(&self) {
        thread::yield_now();
    }
}

/// Counts how often each job is computed, in a cell that loom watches.
struct Counting {
    lanes: usize,
    break_even: usize,
}

struct Job {
    computed: UnsafeCell<u32>,
    panics: bool,
}

impl Job {
    fn new(panics: bool) -> Self {
        Self { computed: UnsafeCell::new(0), panics }
    }

    fn compute(&self) {
        // SAFETY: loom reports it if another thread has it.
        self.computed.with_mut(|count| unsafe { *count += 1 });
        if self.panics {
            std::panic::resume_unwind(Box::new(()));
        }
    }

    fn count(&self) -> u32 {
        // SAFETY: as above.
        self.computed.with(|count| unsafe { *count })
    }
}

impl Kernel for Counting {
    type Job<'a> = Job;

    fn lanes(&self) -> usize {
        self.lanes
    }

    fn break_even(&self) -> usize {
        self.break_even
    }

    fn one(&self, job: &mut Job) {
        job.compute();
    }

    fn many(&self, jobs: &mut [&mut Job]) {
        if jobs.iter().any(|job| job.panics) {
            std::panic::resume_unwind(Box::new(()));
        }
        for job in jobs {
            job.compute();
        }
    }
}

type Shared = Arc<Core<Counting, Model>>;

fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(model);
}

fn core(cores: usize, lanes: usize, break_even: usize) -> Shared {
    Arc::new(Core::new(Counting { lanes, break_even }, Model::new(cores, 0)))
}

/// The same where so many threads serve others that they may be a crowd.
fn serving(cores: usize, lanes: usize, break_even: usize) -> Shared {
    let model = Model::new(cores, cores * break_even);
    Arc::new(Core::new(Counting { lanes, break_even }, model))
}

fn run_once(core: &Shared, panics: bool) {
    let mut job = Job::new(panics);
    let expected = if panics { Err(Failure::Panicked) } else { Ok(()) };
    assert_eq!(core.run(&mut job), expected);
    assert_eq!(job.count(), 1);
}

/// `first` in the model's own thread, the others each in one of theirs.
fn together(core: &Shared, first: impl FnOnce(&Shared), others: Vec<fn(&Shared)>) {
    let threads: Vec<_> = others
        .into_iter()
        .map(|work| {
            let core = core.clone();
            thread::spawn(move || work(&core))
        })
        .collect();
    first(core);
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(core.platform.state.load(Ordering::Acquire), 0, "nothing stays behind");
}

#[test]
fn three_threads_with_one_leader_are_all_answered() {
    explore(2, || {
        let core = core(1, 2, 2);
        together(&core, |core| run_once(core, false), vec![|core| run_once(core, false); 2]);
    });
}

#[test]
fn three_threads_that_serve_are_all_answered() {
    explore(2, || {
        let core = serving(1, 3, 2);
        together(&core, |core| run_once(core, false), vec![|core| run_once(core, false); 2]);
    });
}

#[test]
fn two_threads_that_serve_and_lead_are_answered_twice() {
    explore(2, || {
        let core = serving(2, 2, 1);
        let twice = |core: &Shared| (0..2).for_each(|_| run_once(core, false));
        together(&core, twice, vec![|core| (0..2).for_each(|_| run_once(core, true))]);
    });
}

#[test]
fn a_thread_whose_company_goes_is_answered() {
    explore(3, || {
        let model = Model { gone: Some(AtomicBool::new(false)), ..Model::new(1, 2) };
        let core = Arc::new(Core::new(Counting { lanes: 3, break_even: 2 }, model));
        let leaves = |core: &Shared| {
            core.platform.gone.as_ref().unwrap().store(true, Ordering::Relaxed);
        };
        together(&core, |core| run_once(core, false), vec![leaves]);
    });
}

#[test]
fn three_threads_with_two_leaders_are_all_answered() {
    explore(2, || {
        let core = core(2, 3, 1);
        together(&core, |core| run_once(core, false), vec![|core| run_once(core, false); 2]);
    });
}

#[test]
fn two_threads_that_come_twice_are_all_answered() {
    explore(3, || {
        let core = core(1, 2, 1);
        let twice = |core: &Shared| (0..2).for_each(|_| run_once(core, false));
        together(&core, twice, vec![|core| (0..2).for_each(|_| run_once(core, false))]);
    });
}

#[test]
fn a_panic_harms_its_own_job_only() {
    explore(2, || {
        let core = core(1, 3, 1);
        let others: Vec<fn(&Shared)> =
            vec![|core| run_once(core, true), |core| run_once(core, false)];
        together(&core, |core| run_once(core, false), others);
    });
}

#[test]
fn tickets_and_waiting_threads_meet() {
    explore(2, || {
        let core = core(1, 2, 2);
        let tickets = |core: &Shared| {
            let [one, other] =
                [false, true].map(|panics| CoreTicket::submit(core, Job::new(panics), false));
            assert_eq!(one.complete().unwrap().count(), 1);
            assert_eq!(other.complete().err(), Some(Failure::Panicked));
        };
        together(&core, tickets, vec![|core| run_once(core, false); 2]);
    });
}

#[test]
fn tickets_can_be_polled_and_dropped_at_any_time() {
    explore(3, || {
        let core = core(1, 3, 2);
        let tickets = |core: &Shared| {
            let dropped = CoreTicket::submit(core, Job::new(false), false);
            let polled = CoreTicket::submit(core, Job::new(false), true);
            let ready = polled.poll();
            drop(dropped);
            let job = polled.complete().unwrap();
            assert_eq!(job.count(), 1);
            let _ = ready;
        };
        together(&core, tickets, vec![|core| run_once(core, false)]);
    });
}

#[test]
fn two_owners_of_tickets_lead_for_each_other() {
    explore(2, || {
        let core = core(1, 2, 2);
        fn one_ticket(core: &Shared) {
            let ticket = CoreTicket::submit(core, Job::new(false), true);
            assert_eq!(ticket.complete().unwrap().count(), 1);
        }
        together(&core, one_ticket, vec![one_ticket; 2]);
    });
}

#[test]
fn the_lock_is_held_by_one_and_wakes_the_next() {
    explore(3, || {
        let shared = Arc::new((AtomicU32::new(0), Sleepers::default(), UnsafeCell::new(0)));
        let add = |shared: &Arc<(AtomicU32, Sleepers, UnsafeCell<u32>)>| {
            let (word, sleepers, sum) = &**shared;
            lock(word, |expected| sleepers.sleep(word, expected));
            // SAFETY: loom says so if the lock does not hold.
            sum.with_mut(|sum| unsafe { *sum += 1 });
            unlock(word, || sleepers.wake(word));
        };
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || add(&shared))
            })
            .collect();
        add(&shared);
        for thread in threads {
            thread.join().unwrap();
        }
        // SAFETY: the others ended.
        assert_eq!(shared.2.with(|sum| unsafe { *sum }), 3);
    });
}
