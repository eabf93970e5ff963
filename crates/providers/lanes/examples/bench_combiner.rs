// SPDX-License-Identifier: Apache-2.0
//! What meeting in a combiner costs and brings, with kernels that only take time: threads that wait for it beside threads that compute
//! alone, one thread with eight jobs in flight, and one that is alone. `bench_combiner [milliseconds per point]`

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts and times of a short run"
)]

use metaslot_lanes::combiner::{Combiner, Kernel};
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Rounds of nothing for a job, and for a batch, however full.
#[derive(Clone, Copy)]
struct Burner {
    one: u64,
    many: u64,
    break_even: usize,
}

impl Kernel for Burner {
    type Job<'a> = u64;

    fn lanes(&self) -> usize {
        8
    }

    fn break_even(&self) -> usize {
        self.break_even
    }

    fn one(&self, job: &mut u64) {
        *job = burn(self.one) ^ *job ^ 1;
    }

    fn many(&self, jobs: &mut [&mut u64]) {
        let burned = burn(self.many);
        for job in jobs {
            **job ^= burned ^ 1;
        }
    }
}

/// 0, after so many rounds.
#[inline(never)]
fn burn(rounds: u64) -> u64 {
    let mut word = black_box(1_u64);
    for _ in 0..rounds {
        word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(7);
    }
    black_box(word);
    0
}

/// Seconds of the processor.
fn cpu_time(clock: libc::clockid_t) -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is ours.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// What `run` takes of this thread, in seconds.
fn spent(run: impl FnOnce()) -> f64 {
    let start = cpu_time(libc::CLOCK_THREAD_CPUTIME_ID);
    run();
    cpu_time(libc::CLOCK_THREAD_CPUTIME_ID) - start
}

/// `threads` threads call `work` over and over, and its results are checked: jobs in a second, in a second of the processor, and the
/// slowest hundredth's microseconds.
fn measure(threads: usize, time: Duration, work: &(impl Fn(&mut u64) + Sync)) -> String {
    let (stop, barrier) = (AtomicBool::new(false), Barrier::new(threads + 1));
    let worker = |number: u64| {
        let (mut value, mut times) = (number, Vec::with_capacity(1 << 16));
        barrier.wait();
        while !stop.load(Ordering::Relaxed) {
            let (start, before) = (Instant::now(), value);
            work(&mut value);
            assert_eq!(value, before ^ 1, "computed exactly once");
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
        times
    };
    thread::scope(|scope| {
        let worker = &worker;
        let workers: Vec<_> =
            (0..threads as u64).map(|at| scope.spawn(move || worker(2 * at))).collect();
        // Nothing is computed before, however late this thread goes on.
        let (start, cpu) = (Instant::now(), cpu_time(libc::CLOCK_PROCESS_CPUTIME_ID));
        barrier.wait();
        thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        let all = workers.into_iter().flat_map(|worker| worker.join().expect("no panic"));
        let mut times: Vec<f64> = all.collect();
        let wall = start.elapsed().as_secs_f64();
        let cpu = cpu_time(libc::CLOCK_PROCESS_CPUTIME_ID) - cpu;
        times.sort_unstable_by(f64::total_cmp);
        let (count, slow) = (times.len() as f64, times[times.len() * 99 / 100]);
        format!("{:7.0} {:7.0} {slow:7.0}", count / wall, count / cpu)
    })
}

fn table(name: &str, kernel: Burner, time: Duration) {
    println!(
        "\n{name}\nthreads |   alone: /s  /cpu s  p99 us | combined: /s  /cpu s  p99 us | fill, in batches, waits a job"
    );
    for threads in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64] {
        let alone = measure(threads, time, &|job: &mut u64| kernel.one(job));
        let combiner = Combiner::new(kernel);
        let both = measure(threads, time, &|job: &mut u64| combiner.run(job).expect("no panic"));
        let counts = combiner.statistics();
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let (fill, jobs) = (share(counts.batched, counts.batches), counts.singles + counts.batched);
        let (batched, waits) = (100.0 * share(counts.batched, jobs), share(counts.waits, jobs));
        println!("{threads:7} | {alone:>26} | {both:>28} | {fill:.2} {batched:.1} % {waits:.2}");
    }
    let combiner = Combiner::new(kernel);
    let time = spent(|| {
        for _ in 0..300 {
            for ticket in [0; 8].map(|job| combiner.submit(job)) {
                assert_eq!(ticket.complete(), Ok(1));
            }
        }
    });
    println!("one thread with eight tickets: {:.0} /cpu s", 2400.0 / time);
}

fn main() {
    let argument = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let time = Duration::from_millis(argument.unwrap_or(300));
    let quick = Burner { one: 0, many: 0, break_even: 3 };
    let (combiner, mut value) = (Combiner::new(quick), 0);
    let mut least = [f64::MAX; 3];
    for _ in 0..50 {
        let bare = spent(|| (0..200_000).for_each(|_| quick.one(black_box(&mut value))));
        let run = |_| combiner.run(black_box(&mut value)).expect("no panic");
        let times =
            [bare, spent(|| (0..200_000).for_each(run)), spent(|| assert_eq!(burn(1_000_000), 0))];
        least = std::array::from_fn(|at| least[at].min(times[at]));
    }
    println!("one thread: {:.1} ns more than the bare call", (least[1] - least[0]) / 2e-4);
    // A million rounds take as many seconds as one takes microseconds.
    let rounds = |microseconds: f64| (microseconds / least[2]) as u64;
    let kernel =
        |one, many, break_even| Burner { one: rounds(one), many: rounds(many), break_even };
    table("as RSA-2048: one 350 us, a batch of 8 700 us", kernel(350.0, 700.0, 3), time);
    table("as P-256: one 18 us, a batch of 8 50 us", kernel(18.0, 50.0, 5), time);
}
