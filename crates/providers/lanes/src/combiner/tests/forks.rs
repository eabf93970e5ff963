// SPDX-License-Identifier: Apache-2.0

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::super::{Combiner, Failure};
use super::{Doubler, Number, is_idle};

/// Whether `check` holds in a forked child, which is killed when it takes longer than some seconds.
fn in_child(check: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls nothing that depends on other threads but what is tried here, and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: has no preconditions.
        unsafe { libc::alarm(20) };
        let status = i32::from(!check());
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(status) };
    }
    let mut status = -1;
    // SAFETY: the place is ours.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    (waited, status) == (child, 0)
}

#[test]
fn a_child_finds_an_idle_combiner_while_the_parent_computes() {
    static COMBINER: Combiner<Doubler> = Combiner::new(Doubler::new(8, 2, 3_000));
    COMBINER.set_leaders(2);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for value in 0..12 {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let mut number = Number::new(value);
                    COMBINER.run(&mut number).unwrap();
                    assert!(number.is_right());
                    assert!(COMBINER.submit(Number::new(value)).complete().unwrap().is_right());
                }
            });
        }
        for round in 0..60 {
            let right = in_child(|| {
                let idle = is_idle(&COMBINER);
                let mut number = Number::new(7);
                let ran = COMBINER.run(&mut number).is_ok() && number.is_right();
                let tickets: Vec<_> = (0..5).map(|v| COMBINER.submit(Number::new(v))).collect();
                let all = tickets.into_iter().all(|ticket| ticket.complete().unwrap().is_right());
                idle && ran && all && is_idle(&COMBINER) && COMBINER.statistics().batched == 5
            });
            if !right {
                stop.store(true, Ordering::Relaxed);
            }
            assert!(right, "round {round}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(is_idle(&COMBINER));
}

#[test]
fn a_ticket_of_the_parent_is_no_job_in_the_child() {
    static COMBINER: Combiner<Doubler> = Combiner::new(Doubler::new(8, 3, 0));
    let [one, mut other, third] = [1, 2, 3].map(|value| COMBINER.submit(Number::new(value)));
    assert!(in_child(move || {
        let polled = other.poll();
        let new = COMBINER.submit(Number::new(9));
        drop(third);
        polled
            && other.complete() == Err(Failure::Forked)
            && one.complete() == Err(Failure::Forked)
            && new.complete().unwrap().is_right()
            && is_idle(&COMBINER)
    }));
    assert!(is_idle(&COMBINER));
}

/// As on kernels that cannot wipe memory at a fork.
#[test]
fn a_combiner_that_is_told_of_the_fork_forgets_the_parent() {
    let combiner = Combiner::new(Doubler::new(8, 3, 0));
    let ticket = combiner.submit(Number::new(1));
    combiner.forked();
    assert!(is_idle(&combiner));
    assert_eq!(ticket.complete(), Err(Failure::Forked));
    assert!(combiner.submit(Number::new(2)).complete().unwrap().is_right());
}
