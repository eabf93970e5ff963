// SPDX-License-Identifier: Apache-2.0
//! What meeting in a combiner costs and brings: throughput, fill and latency with kernels that only burn time, against
//! threads that compute alone. `bench_combiner [milliseconds per point]`.
//!
//! Wall clock figures need a quiet machine; "per CPU second" is the process's own processor time and needs less quiet.

use std::fmt;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use metaslot_lanes::combiner::{Combiner, Kernel};

/// Burns `one` microseconds for a job and `many` for a batch, however full.
struct Burner {
    one: u64,
    many: u64,
    lanes: usize,
    break_even: usize,
    rounds_per_us: u64,
}

impl Burner {
    fn burn(&self, microseconds: u64) -> u64 {
        rounds(microseconds * self.rounds_per_us)
    }
}

impl Kernel for Burner {
    type Job<'a> = u64;

    fn lanes(&self) -> usize {
        self.lanes
    }

    fn break_even(&self) -> usize {
        self.break_even
    }

    fn one(&self, job: &mut u64) {
        *job = self.burn(self.one) ^ *job ^ 1;
    }

    fn many(&self, jobs: &mut [&mut u64]) {
        let burned = self.burn(self.many);
        for job in jobs {
            **job ^= burned ^ 1;
        }
    }
}

#[inline(never)]
fn rounds(count: u64) -> u64 {
    let mut word = black_box(1_u64);
    for _ in 0..count {
        word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(7);
    }
    black_box(word);
    0
}

fn cpu_time(clock: libc::clockid_t) -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is ours.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a short run")]
    let seconds = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    seconds
}

fn thread_time() -> f64 {
    cpu_time(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn calibrate() -> u64 {
    let count = 2_000_000_u64;
    let best = (0..9)
        .map(|_| {
            let start = thread_time();
            rounds(count);
            thread_time() - start
        })
        .fold(f64::MAX, f64::min);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "about a thousand"
    )]
    let per_us = (count as f64 / best / 1e6) as u64;
    per_us
}

struct Point {
    per_second: f64,
    per_cpu_second: f64,
    p50: f64,
    p99: f64,
    worst: f64,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { per_second, per_cpu_second, p50, p99, worst } = self;
        write!(f, "{per_second:7.0} {per_cpu_second:7.0} {p50:6.0} {p99:7.0} {worst:7.0}")
    }
}

/// `threads` threads call `work` over and over; the results are checked.
fn measure(threads: usize, time: Duration, work: &(impl Fn(&mut u64) + Sync)) -> Point {
    let stop = AtomicBool::new(false);
    let barrier = Barrier::new(threads + 1);
    let (mut latencies, wall, cpu) = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|number| {
                let (stop, barrier) = (&stop, &barrier);
                scope.spawn(move || {
                    let mut latencies = Vec::with_capacity(1 << 16);
                    barrier.wait();
                    let mut value = number as u64 * 2;
                    while !stop.load(Ordering::Relaxed) {
                        let (start, before) = (Instant::now(), value);
                        work(&mut value);
                        assert_eq!(value, before ^ 1, "computed exactly once");
                        latencies.push(start.elapsed().as_secs_f64() * 1e6);
                    }
                    latencies
                })
            })
            .collect();
        barrier.wait();
        let (start, cpu) = (Instant::now(), cpu_time(libc::CLOCK_PROCESS_CPUTIME_ID));
        thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        let latencies: Vec<f64> =
            workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect();
        (latencies, start.elapsed().as_secs_f64(), cpu_time(libc::CLOCK_PROCESS_CPUTIME_ID) - cpu)
    });
    latencies.sort_unstable_by(f64::total_cmp);
    #[expect(clippy::cast_precision_loss, reason = "a count")]
    let count = latencies.len() as f64;
    Point {
        per_second: count / wall,
        per_cpu_second: count / cpu,
        p50: latencies[latencies.len() / 2],
        p99: latencies[latencies.len() * 99 / 100],
        worst: latencies[latencies.len() - 1],
    }
}

fn table(name: &str, one: u64, many: u64, break_even: usize, rounds_per_us: u64, time: Duration) {
    println!("\n{name}: one {one} us, a batch of 8 {many} us, batches from {break_even}");
    println!("        |             alone                       |             combined");
    println!(
        "threads |     /s  /cpu s    p50     p99 worst us |      /s  /cpu s    p50     p99 worst us | fill in batches waits/job"
    );
    for threads in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64] {
        let kernel = || Burner { one, many, lanes: 8, break_even, rounds_per_us };
        let plain = kernel();
        let alone = measure(threads, time, &|job: &mut u64| plain.one(job));
        let combiner = Combiner::new(kernel());
        let both = measure(threads, time, &|job: &mut u64| combiner.run(job).expect("no panic"));
        let counts = combiner.statistics();
        let jobs = counts.singles + counts.batched;
        println!(
            "{threads:7} | {alone} | {both} | {:4.2} {:8.1} %  {:.2}",
            share(counts.batched, counts.batches),
            100.0 * share(counts.batched, jobs),
            share(counts.waits, jobs),
        );
    }
    tickets(Burner { one, many, lanes: 8, break_even, rounds_per_us });
}

#[expect(clippy::cast_precision_loss, reason = "counts")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// One thread with eight jobs in flight.
fn tickets(kernel: Burner) {
    let combiner = Combiner::new(kernel);
    let rounds = 300;
    let start = thread_time();
    for _ in 0..rounds {
        for ticket in [0; 8].map(|job| combiner.submit(job)) {
            assert_eq!(ticket.complete(), Ok(1));
        }
    }
    let per_second = f64::from(rounds * 8) / (thread_time() - start);
    println!("one thread with eight tickets: {per_second:.0} per CPU second");
}

fn main() {
    let argument = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let time = Duration::from_millis(argument.unwrap_or(300));
    let rounds_per_us = calibrate();
    println!("{} cores", thread::available_parallelism().map_or(1, usize::from));
    overhead();
    table("like RSA-2048", 350, 700, 3, rounds_per_us, time);
    table("like P-256", 18, 50, 5, rounds_per_us, time);
}

/// What the door costs a thread that is alone.
fn overhead() {
    let kernel = || Burner { one: 0, many: 0, lanes: 8, break_even: 3, rounds_per_us: 0 };
    let (plain, combiner) = (kernel(), Combiner::new(kernel()));
    let count = 200_000;
    let mut value = 0;
    let mut best = [f64::MAX; 2];
    for _ in 0..50 {
        let start = thread_time();
        (0..count).for_each(|_| plain.one(black_box(&mut value)));
        let middle = thread_time();
        (0..count).for_each(|_| combiner.run(black_box(&mut value)).expect("no panic"));
        let end = thread_time();
        best = [best[0].min(middle - start), best[1].min(end - middle)];
    }
    println!(
        "one thread: {:.1} ns more than the bare call",
        (best[1] - best[0]) / f64::from(count) * 1e9
    );
}
