// SPDX-License-Identifier: Apache-2.0
//! SHA-1: where the message is expanded.

use super::bench::{Job, Subject, head, leave_out, number};
use super::findings::Findings;
use super::page::{by_wall, versions};
use super::pin::Cpus;
use super::view::{Clock, View};
use crate::experiment::Factor;
use crate::random::Random;
use crate::scenario::Head;
use crate::table::digits;
use crate::verdict::Verdict;
use crate::{Failure, Result};
use metaslot_studies::sha1::{Parts, Version, digest, digest_by_two};
use std::hint::black_box;

const BYTES: &str = "bytes";
const LENGTHS: [usize; 3] = [1024, 65_536, 1_048_576];
const BLOCK: usize = 64;

const INLINE: &str = "inline";
const VECTORS: &str = "in vectors";
const PAIR: &str = "second thread";
const INSTRUCTIONS: &str = "instructions";
const LIBRARY: &str = "library";
const EXPANSION: &str = "only expansion";
const ROUNDS: &str = "only rounds";

/// The study's own versions by name.
const ARMS: [(&str, Version); 4] = [
    (INLINE, Version::Inline),
    (VECTORS, Version::Vectors),
    (PAIR, Version::Pair),
    (INSTRUCTIONS, Version::Instructions),
];

/// The study; its versions agree with each other and with the library.
pub(super) struct Sha1;

impl Sha1 {
    /// Checks all versions against AWS-LC.
    ///
    /// # Errors
    /// They do not agree.
    pub(super) fn new() -> Result<Self> {
        let mut random = Random::new(Random::seed_from_clock());
        for length in [0, 1, 55, 56, 64, 1000, 20_000] {
            let mut message = vec![0; length];
            random.fill(&mut message);
            let mut expected = [0; 20];
            metaslot_bare::sha1(&message, &mut expected);
            for (name, version) in ARMS {
                if digest(version, &message).is_some_and(|digest| digest != expected) {
                    return Err(Failure::new(format!("SHA-1 {name} gives another digest")));
                }
            }
        }
        Ok(Self)
    }
}

impl Subject for Sha1 {
    fn head(&self) -> Head {
        let mut head = head("study-sha1", "byte");
        let absent = ARMS.iter().filter(|(_, version)| !version.available());
        leave_out(&mut head, absent.map(|(name, _)| *name));
        head
    }

    fn factors(&self) -> Vec<Factor> {
        vec![Factor::new(BYTES, LENGTHS)]
    }

    fn arms(&self) -> Vec<String> {
        let own = ARMS.iter().filter(|(_, version)| version.available()).map(|(name, _)| *name);
        own.chain([LIBRARY, EXPANSION, ROUNDS]).map(str::to_owned).collect()
    }

    fn job(&self, cell: &str, arm: &str) -> Result<Job> {
        let length = number(cell, BYTES)?;
        let (message, units) = (vec![b'm'; length], length as f64);
        let mut parts = Parts::default();
        parts.expand(&message);
        Ok(match arm {
            LIBRARY => Job::new(units, move || {
                metaslot_bare::sha1(black_box(&message), black_box(&mut [0; 20]));
            }),
            EXPANSION => Job::new(units, move || parts.expand(black_box(&message))),
            ROUNDS => Job::new(units, move || {
                black_box(black_box(&parts).rounds(length / BLOCK));
            }),
            PAIR => {
                let cpus = Cpus::allowed();
                let digest = move || {
                    black_box(digest_by_two(black_box(&message), || cpus.pin(1)));
                };
                Job::new(units, digest).paired()
            }
            _ => {
                let version = ARMS.iter().find(|(name, _)| *name == arm);
                let (_, version) =
                    *version.ok_or_else(|| Failure::new(format!("no SHA-1 {arm}")))?;
                Job::new(units, move || {
                    black_box(digest(version, black_box(&message)));
                })
            }
        })
    }
}

/// What the experiment says.
pub(super) fn findings(view: &View<'_>) -> Findings {
    let cell = |bytes: usize| view.cell(&[(BYTES, &bytes.to_string())]).unwrap_or_default();
    let [short, middle, long] = LENGTHS.map(cell);
    let shown = [("64 KiB", middle.clone()), ("1 MiB", long.clone()), ("1 KiB", short)];
    let tables = versions(
        view,
        "Ticks of the time stamp for a byte of CPU time, all threads, by length; CPU cost over the first \
         version at 64 KiB",
        &shown,
    ) + &by_wall(
        view,
        "MB/s by the wall clock; time over the first version at 1 MiB",
        &[("1 MiB", long.clone()), shown[0].clone(), shown[2].clone()],
    );
    let effect = |what: &str, arm, clock| {
        let cell = if clock == Clock::Wall { &long } else { &middle };
        view.effect(what, cell, [arm, INLINE], clock)
    };
    let mut effects = vec![
        effect("expansion in vectors beside the rounds", VECTORS, Clock::Cpu),
        effect("expansion in a second thread, at 1 MiB", PAIR, Clock::Wall),
    ];
    if view.has(INSTRUCTIONS) {
        effects.push(effect("instructions for SHA-1", INSTRUCTIONS, Clock::Cpu));
        effects.push(view.effect("the library", &middle, [LIBRARY, INSTRUCTIONS], Clock::Cpu));
    }
    Findings {
        tables,
        sun: vec![
            "expansion in the other pipeline: 2 instructions a cycle became almost 4, 1.7 times the speed"
                .to_owned(),
            "8192 bytes on a Xeon X5560: 356 MB/s with 1 thread, 2,545 MB/s with 16; 32 Gb/s by the \
             units of an UltraSPARC T2"
                .to_owned(),
        ],
        effects,
        reason: [overlap(view, &middle), second(view, &long)],
    }
}

/// How much of the expansion is hidden behind the rounds by itself.
fn overlap(view: &View<'_>, cell: &str) -> String {
    let ticks = |arm: &str| view.ticks(cell, arm);
    let (expansion, rounds, inline) = (ticks(EXPANSION), ticks(ROUNDS), ticks(INLINE));
    let hidden = ((expansion + rounds - inline) / expansion * 100.0).clamp(0.0, 100.0);
    let left = if view.verdict(cell, VECTORS, INLINE, Clock::Cpu) == Verdict::Faster {
        "the vector units still save some of the rest"
    } else {
        "the vector units have nothing left to save"
    };
    format!(
        "The expansion alone takes {} ticks a byte and the rounds alone {}, both inline {}: {hidden:.0} % \
         of the expansion already run beside the rounds, by the processor's own reordering, and {left} \
         ({}).",
        digits(expansion),
        digits(rounds),
        digits(inline),
        digits(ticks(VECTORS)),
    )
}

/// What a second thread may gain, and what it costs.
fn second(view: &View<'_>, cell: &str) -> String {
    let ticks = |arm: &str| view.ticks(cell, arm);
    format!(
        "A second thread could take away at most what inline has above the rounds alone, {} of {} ticks; \
         passing 80 words a block from one to the other makes the CPU cost {} times that of inline, and \
         the wall time {} times.",
        digits((ticks(INLINE) - ticks(ROUNDS)).max(0.0)),
        digits(ticks(INLINE)),
        digits(ticks(PAIR) / ticks(INLINE)),
        digits(view.wall_rate(cell, INLINE) / view.wall_rate(cell, PAIR)),
    )
}
