// SPDX-License-Identifier: Apache-2.0
//! The combiner, tried by a model checker, by forks and by a crowd.

mod behaviour;
mod forks;
mod model;
mod stress;

use std::hint;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::platform::Platform;
use super::{Combiner, Kernel};

/// Doubles numbers, slowly if asked; panics where a job says so.
#[derive(Default)]
struct Doubler {
    lanes: usize,
    break_even: usize,
    /// Turns of an empty loop per computation.
    work: usize,
    /// Whether every fourth computation sleeps, so that others come meanwhile.
    naps: bool,
    computed: AtomicUsize,
    /// Batches under way.
    leading: AtomicUsize,
    most_leading: AtomicUsize,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Number {
    value: u64,
    doubled: Option<u64>,
    /// Panics in a batch.
    spoils: bool,
    /// Panics in a batch and alone.
    panics: bool,
}

impl Number {
    fn new(value: u64) -> Self {
        Self { value, ..Self::default() }
    }

    fn is_right(&self) -> bool {
        self.doubled == Some(self.value.wrapping_mul(2))
    }
}

impl Doubler {
    const fn new(lanes: usize, break_even: usize, work: usize) -> Self {
        Self {
            lanes,
            break_even,
            work,
            naps: false,
            computed: AtomicUsize::new(0),
            leading: AtomicUsize::new(0),
            most_leading: AtomicUsize::new(0),
        }
    }

    const fn napping(lanes: usize, break_even: usize, work: usize) -> Self {
        Self { naps: true, ..Self::new(lanes, break_even, work) }
    }

    fn work(&self) {
        (0..self.work).for_each(|_| hint::spin_loop());
        if self.naps && self.computed.fetch_add(1, Ordering::Relaxed).is_multiple_of(4) {
            thread::sleep(Duration::from_micros(20));
        }
    }
}

impl Kernel for Doubler {
    type Job<'a> = Number;

    fn lanes(&self) -> usize {
        self.lanes
    }

    fn break_even(&self) -> usize {
        self.break_even
    }

    fn one(&self, job: &mut Number) {
        self.work();
        if job.panics {
            panic_silently();
        }
        job.doubled = Some(job.value.wrapping_mul(2));
    }

    fn many(&self, jobs: &mut [&mut Number]) {
        assert!((2..=self.lanes).contains(&jobs.len()) && jobs.len() >= self.break_even);
        let leading = self.leading.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_leading.fetch_max(leading, Ordering::Relaxed);
        self.work();
        self.leading.fetch_sub(1, Ordering::Relaxed);
        for job in jobs {
            if job.panics || job.spoils {
                panic_silently();
            }
            assert_eq!(job.doubled, None, "computed once");
            job.doubled = Some(job.value.wrapping_mul(2));
        }
    }
}

fn panic_silently() -> ! {
    std::panic::resume_unwind(Box::new("silence"))
}

/// Whether no thread is inside and nothing is queued.
fn is_idle(combiner: &Combiner<impl Kernel>) -> bool {
    combiner.core.platform.state().load(Ordering::SeqCst) == 0
}
