// SPDX-License-Identifier: Apache-2.0

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::super::{Combiner, Failure};
use super::{Doubler, Number, is_idle};
use crate::testing::Random;

fn number(random: &mut Random) -> Number {
    let (panics, spoils) = (random.below(200) == 0, random.below(100) == 0);
    Number { panics, spoils, ..Number::new(random.word()) }
}

static COMBINERS: [Combiner<Doubler>; 4] = [
    Combiner::new(Doubler::napping(4, 1, 200)),
    Combiner::eager(Doubler::new(8, 3, 1000)),
    Combiner::new(Doubler::napping(16, 2, 500)),
    Combiner::new(Doubler::napping(3, 3, 2000)),
];

/// Jobs that were submitted and not taken back.
static SUBMITTED: AtomicU64 = AtomicU64::new(0);

fn judge(asked: Number, answer: Result<Number, Failure>) {
    SUBMITTED.fetch_add(1, Ordering::Relaxed);
    match answer {
        Ok(number) => assert!(number.is_right() && number.value == asked.value && !asked.panics),
        Err(failure) => assert!(failure == Failure::Panicked && asked.panics),
    }
}

/// The life of a thread: some calls, then its end.
fn live(seed: u64) {
    let mut random = Random::seeded(seed);
    for _ in 0..random.below(80) {
        let combiner = &COMBINERS[random.below(4)];
        match random.below(10) {
            0 => thread::sleep(Duration::from_micros(random.word() % 200)),
            1..=2 => tickets(combiner, &mut random),
            _ => {
                let asked = number(&mut random);
                let mut number = asked;
                let result = combiner.run(&mut number);
                judge(asked, result.map(|()| number));
            }
        }
    }
}

fn tickets(combiner: &'static Combiner<Doubler>, random: &mut Random) {
    let count = random.below(20);
    let mut tickets: Vec<_> = (0..count)
        .map(|_| {
            let asked = number(random);
            (asked, combiner.submit(asked))
        })
        .collect();
    while !tickets.is_empty() {
        let at = random.below(tickets.len());
        match random.below(8) {
            0 => drop(tickets.swap_remove(at)),
            1 => {
                let ready = tickets[at].1.poll();
                assert!(!ready || tickets[at].1.poll());
            }
            2 => {
                // Another thread ends what this one began.
                let (asked, ticket) = tickets.swap_remove(at);
                thread::spawn(move || judge(asked, ticket.complete())).join().unwrap();
            }
            _ => {
                let (asked, ticket) = tickets.swap_remove(at);
                judge(asked, ticket.complete());
            }
        }
    }
}

#[test]
fn a_crowd_that_panics_sleeps_and_dies_gets_every_result() {
    for (combiner, leaders) in COMBINERS.iter().zip([0, 1, 2, 5]) {
        combiner.set_leaders(leaders);
    }
    thread::scope(|scope| {
        for place in 0..64 {
            scope.spawn(move || {
                for life in 0..12 {
                    thread::spawn(move || live(place * 1000 + life)).join().unwrap();
                }
            });
        }
    });
    let mut computed = 0;
    for combiner in &COMBINERS {
        println!("{:?}", combiner.statistics());
        assert!(is_idle(combiner));
        assert!(combiner.statistics().batches > 0 && combiner.statistics().waits > 0);
        computed += combiner.statistics().singles + combiner.statistics().batched;
    }
    println!("{} jobs", SUBMITTED.load(Ordering::Relaxed));
    assert!(computed >= SUBMITTED.load(Ordering::Relaxed));
}
