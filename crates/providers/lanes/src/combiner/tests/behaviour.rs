// SPDX-License-Identifier: Apache-2.0

use std::ffi::c_void;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::super::{Combiner, Failure, Statistics};
use super::{Doubler, Number, is_idle};

#[test]
fn a_thread_alone_computes_at_once() {
    let combiner = Combiner::new(Doubler::new(8, 3, 0));
    let mut number = Number::new(21);
    assert_eq!(combiner.run(&mut number), Ok(()));
    assert!(number.is_right());
    assert_eq!(combiner.statistics(), Statistics { singles: 1, ..Statistics::default() });
}

#[test]
fn tickets_of_one_thread_are_one_batch() {
    let combiner = Combiner::new(Doubler::new(8, 3, 0));
    let tickets: Vec<_> = (0..8).map(|value| combiner.submit(Number::new(value))).collect();
    for (value, ticket) in tickets.into_iter().enumerate().rev() {
        let number = ticket.complete().unwrap();
        assert!(number.is_right() && number.value == value as u64);
    }
    let expected = Statistics { batches: 1, batched: 8, ..Statistics::default() };
    assert_eq!(combiner.statistics(), expected);
    assert!(is_idle(&combiner));
}

#[test]
fn fewer_tickets_than_make_a_batch_are_computed_one_by_one() {
    let combiner = Combiner::new(Doubler::new(8, 3, 0));
    let tickets = [1, 2].map(|value| combiner.submit(Number::new(value)));
    for mut ticket in tickets {
        assert!(ticket.poll() && ticket.poll());
        assert!(ticket.complete().unwrap().is_right());
    }
    assert_eq!(combiner.statistics(), Statistics { singles: 2, ..Statistics::default() });
}

#[test]
fn an_eager_combiner_computes_a_batch_as_soon_as_it_is_full() {
    let combiner = Combiner::eager(Doubler::new(4, 3, 0));
    let tickets: Vec<_> = (0..6).map(|value| combiner.submit(Number::new(value))).collect();
    assert_eq!(combiner.statistics().batched, 4);
    assert!(tickets.into_iter().all(|ticket| ticket.complete().unwrap().is_right()));
}

#[test]
fn a_ticket_that_is_dropped_is_not_computed() {
    let combiner = Combiner::new(Doubler::new(8, 1, 0));
    let mut tickets: Vec<_> = (0..5).map(|value| combiner.submit(Number::new(value))).collect();
    for dropped in [4, 2, 0] {
        drop(tickets.remove(dropped));
    }
    assert!(tickets.into_iter().all(|ticket| ticket.complete().unwrap().is_right()));
    assert_eq!(combiner.statistics().batched, 2);
    assert!(is_idle(&combiner));
}

#[test]
fn a_forgotten_ticket_does_no_harm() {
    let combiner = Combiner::new(Doubler::new(8, 2, 0));
    std::mem::forget(combiner.submit(Number::new(1)));
    assert!(combiner.submit(Number::new(2)).complete().unwrap().is_right());
    assert_eq!(combiner.statistics().batched, 2);
}

#[test]
fn a_panic_in_a_batch_fails_only_the_job_that_panics_again() {
    let combiner = Combiner::new(Doubler::new(8, 3, 0));
    let numbers =
        (0..6).map(|value| Number { panics: value == 1, spoils: value == 3, ..Number::new(value) });
    let tickets: Vec<_> = numbers.map(|number| combiner.submit(number)).collect();
    for (value, ticket) in tickets.into_iter().enumerate() {
        match ticket.complete() {
            Ok(number) => assert!(number.is_right()),
            Err(failure) => assert_eq!((value, failure), (1, Failure::Panicked)),
        }
    }
    let mut number = Number { panics: true, ..Number::new(1) };
    assert_eq!(combiner.run(&mut number), Err(Failure::Panicked));
    assert_eq!(combiner.submit(number).complete(), Err(Failure::Panicked));
    let mut ticket = combiner.submit(number);
    assert!(ticket.poll());
    assert_eq!(ticket.complete(), Err(Failure::Panicked));
    assert!(combiner.run(&mut Number::new(1)).is_ok() && is_idle(&combiner));
}

#[test]
fn a_kernel_without_batches_always_computes_alone() {
    let combiner = Combiner::new(Doubler::new(1, usize::MAX, 1000));
    combiner.set_leaders(1);
    thread::scope(|scope| {
        for value in 0..8 {
            let combiner = &combiner;
            scope.spawn(move || {
                let mut number = Number::new(value);
                (0..100).for_each(|_| combiner.run(&mut number).unwrap());
                assert!(number.is_right());
            });
        }
    });
    assert_eq!(combiner.statistics(), Statistics { singles: 800, ..Statistics::default() });
}

/// Twenty-four threads, four lanes: each thread that comes finds six batches before it. Compared are the medians of how many jobs
/// ended while a thread had one inside, so that a thread without a core for a while does not count.
#[test]
fn no_thread_waits_much_longer_than_another() {
    const THREADS: usize = 24;
    const ROUNDS: usize = 200;
    let combiner = Combiner::new(Doubler::new(4, 2, 20_000));
    combiner.set_leaders(1);
    let (start, total) = (Barrier::new(THREADS), AtomicUsize::new(0));
    let waits: Vec<usize> = thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    let mut waits = Vec::new();
                    let mut before = total.load(Ordering::Relaxed);
                    while before < THREADS * ROUNDS {
                        let mut number = Number::new(before as u64);
                        combiner.run(&mut number).unwrap();
                        assert!(number.is_right());
                        waits.push(total.fetch_add(1, Ordering::Relaxed) - before);
                        before = total.load(Ordering::Relaxed);
                    }
                    waits.sort_unstable();
                    waits[waits.len() / 2]
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
    println!("usual waits from {least} to {most} jobs; {:?}", combiner.statistics());
    assert!(*most < 2 * least && *most < 2 * THREADS, "from {least} to {most}");
    assert_eq!(combiner.kernel().most_leading.load(Ordering::Relaxed), 1);
    assert!(is_idle(&combiner));
}

/// Two leaders with eight lanes have room for all sixteen threads: the leader would always be the first to come back, to
/// an empty queue, if it did not let the threads go first that it woke.
#[test]
fn batches_are_filled_by_as_many_threads_as_fit() {
    let combiner = Combiner::new(Doubler::new(8, 3, 20_000));
    combiner.set_leaders(2);
    let start = Barrier::new(16);
    thread::scope(|scope| {
        for value in 0..16 {
            let (combiner, start) = (&combiner, &start);
            scope.spawn(move || {
                start.wait();
                for _ in 0..200 {
                    let mut number = Number::new(value);
                    combiner.run(&mut number).unwrap();
                    assert!(number.is_right());
                }
            });
        }
    });
    let counts = combiner.statistics();
    println!("{counts:?}");
    assert!(counts.batched > 4 * counts.batches && counts.batched > counts.singles);
}

/// A thread that is cancelled while it waits comes out with its result first.
#[test]
fn a_thread_that_is_cancelled_waits_for_its_result() {
    static COMBINER: Combiner<Doubler> = Combiner::new(Doubler::new(8, 2, 3_000_000));
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    static RIGHT: AtomicUsize = AtomicUsize::new(0);

    extern "C-unwind" fn once(_: *mut c_void) -> *mut c_void {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        let mut number = Number::new(4);
        if COMBINER.run(&mut number).is_ok() && number.is_right() {
            RIGHT.fetch_add(1, Ordering::SeqCst);
        }
        loop {
            // SAFETY: has no preconditions; here the thread ends.
            unsafe { libc::pause() };
        }
    }

    unsafe extern "C" {
        fn pthread_cancel(thread: libc::pthread_t) -> libc::c_int;
        fn pthread_create(
            thread: *mut libc::pthread_t,
            attributes: *const libc::pthread_attr_t,
            start: extern "C-unwind" fn(*mut c_void) -> *mut c_void,
            argument: *mut c_void,
        ) -> libc::c_int;
    }

    COMBINER.set_leaders(1);
    let mut threads = [0; 6];
    for thread in &mut threads {
        let (attributes, argument) = (std::ptr::null(), std::ptr::null_mut());
        // SAFETY: the place is ours, and the function has the type that is required.
        assert_eq!(unsafe { pthread_create(thread, attributes, once, argument) }, 0);
    }
    while INSIDE.load(Ordering::SeqCst) < threads.len() {
        thread::sleep(Duration::from_millis(1));
    }
    for thread in threads {
        // SAFETY: the thread was not joined yet.
        assert_eq!(unsafe { pthread_cancel(thread) }, 0);
    }
    for thread in threads {
        // SAFETY: it is joined once.
        assert_eq!(unsafe { libc::pthread_join(thread, std::ptr::null_mut()) }, 0);
    }
    assert_eq!(RIGHT.load(Ordering::SeqCst), threads.len());
    assert!(is_idle(&COMBINER));
}
