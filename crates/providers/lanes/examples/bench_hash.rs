// SPDX-License-Identifier: Apache-2.0
//! How fast the hash lanes are, beside AWS-LC one message at a time: `bench_hash [function] [length] [mask]`.
//!
//! Figures are of the thread's CPU time, the median of short batches; the two alternate.

use metaslot_awslc_wrapper::hmac;
use metaslot_lanes::cpu::{self, Cpu};
use metaslot_lanes::hash::{self, Hash, Key, MacRequest, Request};
use std::hint::black_box;

const LENGTHS: [usize; 5] = [16, 64, 256, 1024, 8192];
/// CPU time of a batch of calls, in ns.
const BATCH: f64 = 500_000.0;
const ROUNDS: usize = 9;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |i: usize| arguments.get(i).filter(|text| *text != "-");
    if let Some(mask) = wanted(2) {
        cpu::mask(mask.split(',').filter_map(Cpu::named).fold(Cpu::NONE, Cpu::and));
    }
    println!("{}", cpu::cpu().names().collect::<Vec<_>>().join(" "));
    for hash in Hash::ALL {
        let name = format!("{hash:?}").to_lowercase();
        if wanted(0).is_some_and(|text| !text.split(',').any(|one| one == name)) {
            continue;
        }
        for length in LENGTHS {
            if wanted(1).is_none_or(|text| text.parse() == Ok(length)) {
                of_digest(hash, length);
                of_hmac(hash, length);
            }
        }
    }
}

fn of_digest(hash: Hash, length: usize) {
    let lanes = hash::lanes(hash);
    let data: Vec<Vec<u8>> = (0..=255).take(lanes).map(|i| vec![i; length]).collect();
    let mut outputs = vec![vec![0; hash.length()]; lanes];
    let mut single = |count: usize| {
        let mut out = [0; 64];
        for data in &data[..count] {
            hash.digest(black_box(data), &mut out[..hash.length()]).expect("AWS-LC hashes");
            black_box(&out);
        }
    };
    let mut batch = |count: usize| {
        let mut requests: Vec<_> = data[..count]
            .iter()
            .zip(&mut outputs)
            .map(|(data, output)| Request { data, output })
            .collect();
        hash::digest(hash, black_box(&mut requests));
    };
    report(&format!("{hash:?}"), length, lanes, &mut single, &mut batch);
    for (data, output) in data.iter().zip(&outputs) {
        let mut expected = vec![0; hash.length()];
        hash.digest(data, &mut expected).expect("AWS-LC hashes");
        assert_eq!(&expected, output);
    }
}

fn of_hmac(hash: Hash, length: usize) {
    let lanes = hash::lanes(hash);
    let data: Vec<Vec<u8>> = (0..=255).take(lanes).map(|i| vec![i; length]).collect();
    let mut outputs = vec![vec![0; hash.length()]; lanes];
    let seeds = || (0..=255).take(lanes);
    let theirs: Vec<_> = seeds().map(|i| hmac::Key::new(hash, &[i; 32]).expect("a key")).collect();
    let ours: Vec<_> = seeds().map(|i| Key::new(hash, &[i; 32]).expect("a key")).collect();
    let mut single = |count: usize| {
        let mut out = [0; 64];
        for (data, key) in data[..count].iter().zip(&theirs) {
            key.mac(&[black_box(data)], &mut out[..hash.length()]).expect("AWS-LC hashes");
            black_box(&out);
        }
    };
    let mut batch = |count: usize| {
        let mut requests: Vec<_> = data[..count]
            .iter()
            .zip(&mut outputs)
            .zip(&ours)
            .map(|((data, output), key)| MacRequest { key, data, output })
            .collect();
        hash::hmac(hash, black_box(&mut requests));
    };
    report(&format!("HMAC-{hash:?}"), length, lanes, &mut single, &mut batch);
    for ((data, output), key) in data.iter().zip(&outputs).zip(&theirs) {
        assert!(key.verify(data, output).expect("AWS-LC hashes"));
    }
}

/// One line: ns per message of AWS-LC, of full lanes, their ratio, what full lanes reach in MB/s, and from how many lanes on
/// the batch takes less time.
fn report(
    name: &str,
    length: usize,
    lanes: usize,
    single: &mut dyn FnMut(usize),
    batch: &mut dyn FnMut(usize),
) {
    let (theirs, ours) = alternate(lanes, single, batch);
    let full = ours / lanes as f64;
    let mut even = None;
    for count in 1..=lanes {
        let (one, many) = alternate(count, single, batch);
        if many < one {
            even = Some(count);
            break;
        }
    }
    batch(lanes);
    let each = theirs / lanes as f64;
    println!(
        "{name:16} {length:5} B: AWS-LC {each:8.1} ns, lanes {full:7.1} ns, {:5.2} x, {:7.0} MB/s, wins from {} of {lanes}",
        each / full,
        length as f64 * 1000.0 / full,
        even.map_or_else(|| "-".to_owned(), |count| count.to_string()),
    );
}

/// The times of a call of each for so many messages, in ns.
fn alternate(
    count: usize,
    single: &mut dyn FnMut(usize),
    batch: &mut dyn FnMut(usize),
) -> (f64, f64) {
    let calls = [calls(&mut || single(count)), calls(&mut || batch(count))];
    let (mut one, mut many) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        one.push(time(calls[0], &mut || single(count)));
        many.push(time(calls[1], &mut || batch(count)));
    }
    (median(one), median(many))
}

/// How many calls last about [`BATCH`].
fn calls(run: &mut dyn FnMut()) -> u32 {
    let mut calls = 1;
    while calls < 1 << 20 && time(calls, run) * f64::from(calls) < BATCH {
        calls *= 2;
    }
    calls
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

/// What a call takes, in ns.
fn time(calls: u32, run: &mut dyn FnMut()) -> f64 {
    let start = thread_time();
    for _ in 0..calls {
        run();
    }
    (thread_time() - start) as f64 / f64::from(calls)
}

/// CPU time of this thread in ns.
fn thread_time() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the time to the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    (now.tv_sec * 1_000_000_000 + now.tv_nsec).cast_unsigned()
}
