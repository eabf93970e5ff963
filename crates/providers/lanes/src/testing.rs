// SPDX-License-Identifier: Apache-2.0
//! What the kernels' tests share: random inputs that can be repeated, how many of them, timing classes compared, and the
//! compiled code looked at.

use crate::cpu::{Cpu, cpu};
use std::io::Write as _;
use std::process::Command;
use std::sync::LazyLock;

/// Repeatable random numbers (SplitMix64); the seed comes from `METASLOT_TEST_SEED`, or is fixed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Self {
        let seed = std::env::var("METASLOT_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        Self(seed.unwrap_or(0x6d65_7461_736c_6f74))
    }

    pub(crate) const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.word() % limit as u64).unwrap()
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        let words = (0..length.div_ceil(8)).flat_map(|_| self.word().to_le_bytes());
        words.take(length).collect()
    }
}

/// Whether this processor lacks what a kernel needs, which is used nowhere then. Its test says that it is not run.
pub(crate) fn lacks(needs: Cpu) -> bool {
    let lacks = !cpu().has(needs);
    if lacks {
        let test = std::thread::current().name().map(str::to_owned).unwrap_or_default();
        let reason = "this processor lacks its instructions";
        writeln!(std::io::stdout(), "lanes, {test}: not run: {reason}").expect("it is written");
    }
    lacks
}

/// How many random inputs a differential test takes: `usual`, or `METASLOT_TEST_INPUTS`.
pub(crate) fn inputs(usual: usize) -> usize {
    std::env::var("METASLOT_TEST_INPUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// All instructions of this test program, which take seconds to be printed: once for all tests.
fn whole() -> &'static str {
    static WHOLE: LazyLock<String> = LazyLock::new(|| {
        let program = std::env::current_exe().unwrap();
        let out = Command::new("objdump")
            .args(["--disassemble", "--no-show-raw-insn", "--demangle"])
            .arg(program)
            .output()
            .unwrap();
        assert!(out.status.success(), "objdump failed");
        String::from_utf8(out.stdout).unwrap()
    });
    &WHOLE
}

/// Instructions of this test program's functions whose name contains `name`.
pub(crate) fn disassembly(name: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in whole().lines() {
        if line.ends_with(">:") {
            inside = line.contains(name);
        } else if inside && line.starts_with(' ') {
            found.push(line.to_owned());
        }
    }
    assert!(!found.is_empty(), "no function {name:?} in this program");
    found
}

/// How many of the instructions touch the stack with a 512-bit register: spills that split cache lines.
pub(crate) fn spills(name: &str) -> usize {
    let touches = |line: &String| line.contains("zmm") && line.contains("(%rsp");
    disassembly(name).iter().filter(|line| touches(line)).count()
}

/// From which |t| on two classes are told apart.
const TOLD_APART: f64 = 40.0;

/// Whether the time of `run` keeps the class to itself, and the time of a twin that leaks it on purpose (it works half as long
/// again for class 1, as a kernel would that skips what is zero) does not. Arguments as for [`t_of_timing`].
pub(crate) fn judge(what: &str, random: &mut Random, rounds: usize, mut run: impl FnMut(usize)) {
    let usual = (0..9).map(|_| spent(ticks, || run(0))).min().unwrap();
    // What takes long is interrupted by other programs, which the clock of the thread does not count.
    let clock = if usual > 100_000 { thread_time } else { ticks };
    let mut t = t_of_timing(random, rounds, clock, &mut run);
    // A leak is there each time; what other programs do to the caches and the clock is not.
    for _ in 0..2 {
        if t.abs() >= TOLD_APART {
            println!("{what}: t = {t:.1}, once more");
            t = t_of_timing(random, rounds, clock, &mut run);
        }
    }
    let mut twin = |class| {
        run(class);
        if class == 1 {
            let start = ticks();
            while ticks() - start < usual / 2 {
                std::hint::spin_loop();
            }
        }
    };
    // A busy machine needs more rounds to find even this.
    let mut tries = [1, 2, 4, 8, 16].map(|more| more * rounds).into_iter();
    let mut leaky = 0.0_f64;
    while leaky.abs() < TOLD_APART
        && let Some(rounds) = tries.next()
    {
        leaky = t_of_timing(random, rounds, clock, &mut twin);
    }
    println!("{what}: t = {t:.1}, of a leaking twin {leaky:.1}");
    if cfg!(target_arch = "x86_64") {
        assert!(leaky.abs() >= TOLD_APART, "{what}: a leak is not found, t = {leaky}");
    }
    assert!(t.abs() < TOLD_APART, "{what}: the time tells the classes apart, t = {t}");
}

fn spent(clock: fn() -> u64, run: impl FnOnce()) -> u64 {
    let start = clock();
    run();
    clock() - start
}

/// Welch's t of the time of two classes of inputs (Reparaz, Balasch, Verbauwhede: "Dude, is my code constant time?", DATE 2017). `run` gets the
/// class, 0 or 1, and must do the same work for both; slow outliers are cut at the 90th percentile of all.
fn t_of_timing(
    random: &mut Random,
    rounds: usize,
    clock: fn() -> u64,
    mut run: impl FnMut(usize),
) -> f64 {
    let mut samples = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let class = random.below(2);
        samples.push((class, spent(clock, || run(class))));
    }
    let mut sorted: Vec<u64> = samples.iter().map(|(_, time)| *time).collect();
    sorted.sort_unstable();
    let cut = sorted[sorted.len() * 9 / 10];
    let moments = |class: usize| {
        let kept = samples.iter().filter(|(of, time)| *of == class && *time <= cut);
        let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
        for (_, time) in kept {
            #[expect(clippy::cast_precision_loss, reason = "ticks of one short call")]
            let time = *time as f64;
            count += 1.0;
            let delta: f64 = time - mean;
            mean += delta / count;
            squares += delta * (time - mean);
        }
        (count, mean, squares / (count - 1.0))
    };
    let ((n0, m0, v0), (n1, m1, v1)) = (moments(0), moments(1));
    (m0 - m1) / (v0 / n0 + v1 / n1).sqrt()
}

fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: reads a counter that every x86-64 has.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        0
    }
}

/// Processor time of this thread, in nanoseconds.
fn thread_time() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a structure to be written.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
