// SPDX-License-Identifier: Apache-2.0
//! The port's limit of SLH-DSA, for which `metaslot lab lanes` has no row: the vector instructions that a tree of eight leaves
//! executes, counted step by step, and what they take at least. Its chains are as those of all sets of its hash function.

use metaslot_lanes::peak::{self, Port};
use metaslot_lanes::slh_dsa::{self, Set};
use std::time::{Duration, Instant};

/// What is scarce for one hash function or the other.
const KINDS: [Port; 2] = [Port::Vector, Port::Shift];
/// How long each is timed.
const WINDOW: Duration = Duration::from_millis(200);
/// Turns of a port's loop.
const TURNS: u64 = 100_000;

/// Nanoseconds of a call, the shortest of many: others may use the machine.
fn shortest(mut run: impl FnMut()) -> f64 {
    let begun = Instant::now();
    let mut least = f64::INFINITY;
    while begun.elapsed() < WINDOW {
        let start = Instant::now();
        run();
        least = least.min(start.elapsed().as_nanos() as f64);
    }
    least
}

fn row(name: &str, per_instruction: &[f64; 2], mut run: impl FnMut()) -> std::io::Result<()> {
    let took = shortest(&mut run);
    let counts = peak::count(&KINDS, run)?;
    let limits = counts.iter().zip(per_instruction).map(|(count, each)| *count as f64 * each);
    let limits = limits.zip(KINDS).zip(&counts);
    let Some(((limit, port), count)) = limits.max_by(|a, b| a.0.0.total_cmp(&b.0.0)) else {
        return Ok(());
    };
    println!(
        "{name:<26} {:<13} {count:>9} {:>10.2} µs {:>10.2} µs {:>6.0} %",
        port.name(),
        limit / 1e3,
        took / 1e3,
        100.0 * limit / took
    );
    Ok(())
}

fn main() -> std::io::Result<()> {
    if KINDS.iter().any(|kind| !kind.available()) {
        println!("this processor has no vectors of 512 bits");
        return Ok(());
    }
    let per_instruction =
        KINDS.map(|kind| shortest(|| peak::run(kind, TURNS)) / (TURNS * peak::TURN) as f64);
    println!(
        "tree                       scarce            number      limit     shortest   reached"
    );
    for set in Set::all().iter().filter(|set| set.name.ends_with("128f")) {
        row(set.name, &per_instruction, || {
            std::hint::black_box(slh_dsa::root(set, &[1; 16], &[2; 16]));
        })?;
    }
    Ok(())
}
