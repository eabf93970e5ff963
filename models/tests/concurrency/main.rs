// SPDX-License-Identifier: Apache-2.0
//! Threads and processes at once: random calls, each with the time when it began and ended, beside a
//! model of objects, attributes, logins and handles. A history passes when some order of its calls,
//! each between its beginning and its end, gives the same answers (linearisability).
//!
//! The usual run takes some seconds. Longer, or with one mixture of calls (`calls.rs` has the names),
//! or with one thread, which shows what is wrong without any race:
//!
//! ```text
//! cargo xtask histories 1000000
//! METASLOT_MIXTURE=logout METASLOT_THREADS=1 cargo xtask histories 10000
//! ```

mod calls;
mod checker;
mod history;
mod model;
mod stage;
mod store;

use calls::Mixture;
use history::{Event, shown};
use metaslot_models::chance::{self, Chance};
use stage::{Setting, Stage};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, RwLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Most threads of one history.
const THREADS: usize = 4;

/// What the threads play, and where they meet.
struct Round {
    stage: RwLock<Option<Arc<Stage>>>,
    plan: Mutex<Plan>,
    begin: Barrier,
    end: Barrier,
    ready: AtomicUsize,
    over: AtomicBool,
    events: Mutex<Vec<Event>>,
}

#[derive(Clone)]
struct Plan {
    threads: usize,
    calls: u64,
    mixture: Mixture,
    seed: u64,
}

impl Round {
    fn new() -> Self {
        let mixture = Mixture::new(&mut Chance::new(0), None);
        Self {
            stage: RwLock::new(None),
            plan: Mutex::new(Plan { threads: 0, calls: 0, mixture, seed: 0 }),
            begin: Barrier::new(THREADS + 1),
            end: Barrier::new(THREADS + 1),
            ready: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            events: Mutex::new(Vec::new()),
        }
    }

    /// One thread's part of every history.
    fn serve(&self, thread: usize) {
        loop {
            self.begin.wait();
            if self.over.load(Ordering::SeqCst) {
                return;
            }
            let plan = self.plan.lock().expect("no panic").clone();
            let stage = self.stage.read().expect("no panic").clone();
            if let Some(stage) = stage
                && thread < plan.threads
            {
                let events = self.play(thread, &plan, &stage);
                self.events.lock().expect("no panic").extend(events);
            }
            self.end.wait();
        }
    }

    fn play(&self, thread: usize, plan: &Plan, stage: &Stage) -> Vec<Event> {
        let seed = plan.seed.wrapping_add(thread as u64 + 1);
        let mut chance = Chance::new(seed);
        chance::seed(seed ^ 0x5555);
        let home = u8::from(chance.is(1, 4));
        // All begin at once.
        self.ready.fetch_add(1, Ordering::SeqCst);
        for spins in 0.. {
            if self.ready.load(Ordering::SeqCst) >= plan.threads {
                break;
            }
            // There may be fewer processors than threads.
            if spins > 200 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
        let play = |_| {
            let call = plan.mixture.call(stage, home, &mut chance);
            let event = stage.play(thread + 1, call);
            chance::pause();
            event
        };
        (0..plan.calls).map(play).collect()
    }

    /// One history.
    fn history(&self, seed: u64, setting: Setting) -> Vec<Event> {
        let mut chance = Chance::new(seed);
        let mixture = Mixture::new(&mut chance, named("METASLOT_MIXTURE").as_deref());
        let mixture = if setting.real { mixture.over_a_real_store() } else { mixture };
        let setting = Setting { kinds: mixture.kinds(), ..setting };
        let mut events = Vec::new();
        let stage = Stage::new(&mut chance, setting, &mut events);
        *self.stage.write().expect("no panic") = Some(Arc::new(stage));
        let threads = match number("METASLOT_THREADS", 0) {
            0 => 2 + chance.index(THREADS - 1),
            named => usize::try_from(named).unwrap_or(THREADS).min(THREADS),
        };
        let plan = Plan { threads, calls: 3 + chance.below(4), mixture, seed: chance.next() };
        *self.plan.lock().expect("no panic") = plan;
        self.ready.store(0, Ordering::SeqCst);
        self.begin.wait();
        self.end.wait();
        *self.stage.write().expect("no panic") = None;
        events.append(&mut self.events.lock().expect("no panic"));
        events
    }
}

/// Plays so many histories; gives those that no order explains.
fn play(
    count: u64,
    most: usize,
    setting: impl Fn(&mut Chance) -> Setting,
) -> Vec<(u64, Vec<Event>)> {
    let first = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let mut chance = Chance::new(u64::try_from(first & u128::from(u64::MAX)).unwrap_or(1));
    let round = Round::new();
    let start = Instant::now();
    let mut wrong = Vec::new();
    std::thread::scope(|scope| {
        let round = &round;
        for thread in 0..THREADS {
            scope.spawn(move || round.serve(thread));
        }
        for number in 0..count {
            let events = round.history(chance.next(), setting(&mut chance));
            if !checker::is_linearisable(&events) {
                println!("history {number}, after {:.1?}:\n{}\n", start.elapsed(), shown(&events));
                wrong.push((number, events));
                if wrong.len() >= most {
                    break;
                }
            }
        }
        round.over.store(true, Ordering::SeqCst);
        round.begin.wait();
    });
    println!("{count} histories in {:.1?}", start.elapsed());
    wrong
}

fn named(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

fn number(variable: &str, usual: u64) -> u64 {
    named(variable).and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[test]
fn every_history_can_be_explained_with_a_cache_that_is_full() {
    let count = number("METASLOT_HISTORIES", 4_000);
    let most = usize::try_from(number("METASLOT_WRONG_HISTORIES", 1)).expect("a small number");
    let wrong = play(count, most, |chance| Setting {
        cached: 16,
        filling: 0,
        stride: if chance.is(3, 4) { 16 } else { 1 },
        page: chance.is(7, 8),
        real: false,
        kinds: &[],
    });
    assert!(wrong.is_empty(), "{} of {count} histories cannot be explained", wrong.len());
}

#[test]
fn every_history_can_be_explained_over_a_real_store() {
    let count = number("METASLOT_HISTORIES", 4_000) / 10;
    let setting = Setting { cached: 16, filling: 0, stride: 1, page: true, real: true, kinds: &[] };
    let wrong = play(count, 1, |_| setting);
    assert!(wrong.is_empty(), "{} of {count} histories cannot be explained", wrong.len());
}

#[test]
fn every_history_can_be_explained_with_the_usual_cache() {
    let count = number("METASLOT_HISTORIES", 4_000) / 100;
    let setting =
        Setting { cached: 0, filling: 2_500, stride: 1, page: true, real: false, kinds: &[] };
    let wrong = play(count, 1, |_| setting);
    assert!(wrong.is_empty(), "{} of {count} histories cannot be explained", wrong.len());
}
