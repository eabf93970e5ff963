// SPDX-License-Identifier: Apache-2.0
//! A small mutator, and runs of a target over what it makes: repeatable, without instrumentation. Inputs whose answer is
//! new join the corpus.

use crate::Target;
use metaslot_models::chance::Chance;
use std::collections::HashSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// No input is longer, in bytes.
const LONGEST: usize = 4096;
/// No input may take longer, on a machine however busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the process may have held at most, in KiB.
const MEMORY: u64 = 1 << 20;

/// Runs the corpus of a target, then so many inputs made from it.
///
/// # Errors
/// Where the input lies that harms, and why it does.
pub fn run(target: Target, inputs: usize, seed: u64) -> Result<(), String> {
    let mut corpus = corpus(target.name);
    let (guard, mut answers) = (Guard::new(target), HashSet::new());
    for input in corpus.clone() {
        answers.insert(guard.run(&input)?);
    }
    let mut chance = Chance::new(seed);
    for _ in 0..inputs {
        let input = mutant(&corpus, &mut chance);
        if answers.insert(guard.run(&input)?) {
            corpus.push(input);
        }
    }
    println!("{}: {inputs} inputs, {} different answers", target.name, answers.len());
    if peak() < MEMORY { Ok(()) } else { Err(format!("{}: {} KiB of memory", target.name, peak())) }
}

/// The inputs that are kept with the sources, in the order of their names; one that is empty at least.
#[must_use]
pub fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/fuzz").join(name);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let mut inputs: Vec<_> = paths.iter().filter_map(|path| fs::read(path).ok()).collect();
    inputs.push(Vec::new());
    inputs
}

fn mutant(corpus: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    let mut input = corpus[chance.index(corpus.len())].clone();
    for _ in 0..=chance.below(5) {
        let (at, rest) = (chance.index(input.len() + 1), 1 + chance.index(16));
        let end = (at + rest).min(input.len());
        match chance.below(8) {
            0 if end > at => input[at] ^= 1 << chance.below(8),
            1 if end > at => input[at] = byte(chance),
            2 if end > at => drop(input.drain(at..end)),
            3 => drop(input.splice(at..at, (0..rest).map(|_| byte(chance)))),
            4 => drop(input.splice(at..end, (0..rest).map(|_| byte(chance)))),
            5 if end > at => {
                let copy = input[at..end].repeat(1 + chance.index(4));
                let place = chance.index(input.len());
                drop(input.splice(place..place, copy));
            }
            6 => {
                let other = &corpus[chance.index(corpus.len())];
                let from = chance.index(other.len() + 1);
                let length = chance.index(other.len() - from + 1);
                drop(input.splice(at..end, other[from..from + length].iter().copied()));
            }
            _ => {
                let number =
                    chance.one_of(&[0, 1, 0x7f, 0x80, 0xff, 0xffff, u64::MAX >> 1, u64::MAX]);
                let bytes = number.to_be_bytes();
                drop(input.splice(at..end, bytes[chance.index(8)..].iter().copied()));
            }
        }
        input.truncate(LONGEST);
    }
    input
}

fn byte(chance: &mut Chance) -> u8 {
    chance.below(256).to_le_bytes()[0]
}

/// What runs, and since when.
type Now = Option<(Instant, Vec<u8>)>;

/// Says which input it was, when one panics or does not come back.
struct Guard {
    target: Target,
    now: Arc<Mutex<Now>>,
    over: Arc<AtomicBool>,
}

impl Guard {
    fn new(target: Target) -> Self {
        let guard = Self { target, now: Arc::default(), over: Arc::default() };
        let (now, over) = (Arc::clone(&guard.now), Arc::clone(&guard.over));
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(200));
                let now = now.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((began, input)) = &*now
                    && began.elapsed() > PATIENCE
                {
                    eprintln!("{}: no end, {}", target.name, keep(target.name, input));
                    std::process::abort();
                }
            }
        });
        guard
    }

    fn run(&self, input: &[u8]) -> Result<u64, String> {
        let now = |what| *self.now.lock().unwrap_or_else(PoisonError::into_inner) = what;
        now(Some((Instant::now(), input.to_vec())));
        let answer = catch_unwind(AssertUnwindSafe(|| (self.target.run)(input)));
        now(None);
        answer.map_err(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            format!(
                "{}: {}, {}",
                self.target.name,
                text.unwrap_or("a panic"),
                keep(self.target.name, input)
            )
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Writes an input to a place where it can be looked at.
fn keep(name: &str, input: &[u8]) -> String {
    let path = std::env::temp_dir().join(format!("metaslot-fuzz-{name}-{}", std::process::id()));
    match fs::write(&path, input) {
        Ok(()) => format!("the input is in {}", path.display()),
        Err(error) => format!("the input cannot be kept: {error}"),
    }
}

/// The most that the process has held, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
