// SPDX-License-Identifier: Apache-2.0
//! The port's limit of what `metaslot lab lanes` has no row for: SLH-DSA, a tree of eight leaves, whose chains are as those of all
//! sets of its hash function, and ML-KEM. The vector instructions that one executes are counted step by step; the limit is what they
//! take at least. Registers of 256 and of 512 bits are different instructions of the same units: what both take is added. Loads, stores,
//! moves and whatever computes in other registers are not counted.

use metaslot_awslc_wrapper::ml_kem::MlKemKey;
use metaslot_awslc_wrapper::seeded::SeededKey;
use metaslot_lanes::ml_kem::{self, PrivateKey, PublicKey};
use metaslot_lanes::peak::{self, Port};
use metaslot_lanes::slh_dsa::{self, Set};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// What may be scarce: units that do one kind of work, by the instructions of 512 and of 256 bits that take them.
const UNITS: [(&str, [Option<Port>; 2]); 3] = [
    ("vector ALU", [Some(Port::Vector), Some(Port::ShortVector)]),
    ("vector shift", [Some(Port::Shift), Some(Port::ShortShift)]),
    ("16-bit product", [None, Some(Port::Multiply16)]),
];
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

/// Nanoseconds of an instruction of each kind.
struct Each(Vec<(Port, f64)>);

impl Each {
    fn measured() -> Self {
        let ports = UNITS.into_iter().flat_map(|(_, ports)| ports).flatten();
        let each = |port| shortest(|| peak::run(port, TURNS)) / (TURNS * peak::TURN) as f64;
        Self(ports.map(|port| (port, each(port))).collect())
    }

    /// Prints what `run` executes and takes, which is timed `at_once` times in a row.
    fn row(&self, name: &str, at_once: u32, mut run: impl FnMut()) -> std::io::Result<()> {
        let took = shortest(|| (0..at_once).for_each(|_| run())) / f64::from(at_once);
        let kinds: Vec<Port> = self.0.iter().map(|(port, _)| *port).collect();
        let counts = peak::count(&kinds, run)?;
        let of = |port: Option<Port>| {
            let at = kinds.iter().position(|kind| Some(*kind) == port);
            at.map_or((0, 0.0), |at| (counts[at], counts[at] as f64 * self.0[at].1))
        };
        for (unit, ports) in UNITS {
            let [(long, one), (short, other)] = ports.map(of);
            let limit = one + other;
            println!(
                "{name:<26} {unit:<14} {long:>9} {short:>9} {:>10.2} µs {:>10.2} µs {:>6.0} %",
                limit / 1e3,
                took / 1e3,
                100.0 * limit / took
            );
        }
        Ok(())
    }
}

fn main() -> std::io::Result<()> {
    if UNITS.iter().flat_map(|(_, ports)| ports).flatten().any(|port| !port.available()) {
        println!("this processor has no vectors of 512 bits");
        return Ok(());
    }
    let each = Each::measured();
    println!(
        "what                       scarce           512 bits  256 bits         limit      shortest  reached"
    );
    for set in [ml_kem::Set::Ml512, ml_kem::Set::Ml768, ml_kem::Set::Ml1024] {
        let pair = MlKemKey::of_seed(set, &[7; 64]).expect("a seed of 64 bytes");
        let public = pair.public_bytes().expect("the key has a public half");
        let private = pair.expanded().expect("the key has a private half");
        let key = PrivateKey::new(set, private.expose()).expect("the key is whole");
        let other = PublicKey::new(set, &public).expect("the key is whole");
        let mut ciphertext = vec![0; set.ciphertext_length()];
        let name = |what: &str| format!("ML-KEM-{} {what}", 256 * set.rank());
        each.row(&name("encapsulate"), 100, || {
            black_box(other.encapsulate(&mut ciphertext).expect("the length is right"));
        })?;
        each.row(&name("decapsulate"), 100, || {
            black_box(key.decapsulate(&ciphertext).expect("the length is right"));
        })?;
        each.row(&name("key"), 10, || {
            black_box(PrivateKey::new(set, private.expose()).expect("the key is whole"));
        })?;
    }
    for set in Set::all().iter().filter(|set| set.name.ends_with("128f")) {
        each.row(set.name, 1, || {
            black_box(slh_dsa::root(set, &[1; 16], &[2; 16]));
        })?;
    }
    Ok(())
}
