// SPDX-License-Identifier: Apache-2.0
//! Threads that serve others, and sleep between two requests, meet all the same.

use metaslot_lanes::combiner::{Combiner, Company, Kernel};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

const SERVERS: usize = 16;
const REQUESTS: usize = 200;

/// Takes about as long as a signature, and computes nothing.
struct Slow;

impl Kernel for Slow {
    type Job<'a> = ();

    fn lanes(&self) -> usize {
        8
    }

    fn break_even(&self) -> usize {
        3
    }

    fn one(&self, (): &mut ()) {
        (0..20_000).for_each(|_| std::hint::spin_loop());
    }

    fn many(&self, jobs: &mut [&mut ()]) {
        jobs.iter_mut().for_each(|job| self.one(job));
    }
}

static COMBINER: Combiner<Slow> = Combiner::new(Slow);

/// All threads that begin from now on share one core, so that none computes while another waits for its own.
fn share_a_core() {
    let all = sched_getaffinity(None).expect("the kernel says where");
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|at| all.is_set(*at)).expect("there is one"));
    sched_setaffinity(None, &one).expect("it is one of ours");
    COMBINER.set_leaders(1);
}

fn serve(requests: &Receiver<()>, answers: &Sender<()>) {
    let _company = Company::one_more();
    for () in requests {
        COMBINER.run(&mut ()).expect("nothing panics");
        answers.send(()).expect("its client waits");
    }
}

#[test]
fn threads_that_sleep_between_requests_are_computed_together() {
    share_a_core();
    thread::scope(|scope| {
        for _ in 0..SERVERS {
            let (ask, requests) = channel();
            let (answers, answer) = channel();
            scope.spawn(move || serve(&requests, &answers));
            scope.spawn(move || {
                for _ in 0..REQUESTS {
                    ask.send(()).expect("it is served");
                    answer.recv().expect("it is answered");
                }
            });
        }
    });
    let statistics = COMBINER.statistics();
    let all = statistics.singles + statistics.batched;
    assert_eq!(all, (SERVERS * REQUESTS) as u64);
    assert!(statistics.batched > all / 2, "{statistics:?}");
}

#[test]
fn a_thread_whose_company_sleeps_steps_aside_less_and_less_often() {
    static ALONE: Combiner<Slow> = Combiner::new(Slow);
    const JOBS: u64 = 1000;
    ALONE.set_leaders(1);
    let _company: Vec<_> = (0..SERVERS).map(|_| Company::one_more()).collect();
    (0..JOBS).for_each(|_| ALONE.run(&mut ()).expect("nothing panics"));
    let statistics = ALONE.statistics();
    assert_eq!(statistics.singles, JOBS);
    assert!((1..JOBS / 32).contains(&statistics.asides), "{statistics:?}");
}
