// SPDX-License-Identifier: Apache-2.0
//! The private operation of RSA: limbs of 32 and 64 bits, the library's assembly, eight lanes; and where
//! the time goes.

mod check;
mod findings;
mod lanes;
mod versions;

pub(super) use findings::findings;

use super::bench::{Counters, Job, Subject, head, number};
use super::page::ABSENT;
use crate::clock::thread_cpu;
use crate::experiment::Factor;
use crate::scenario::Head;
use crate::{Failure, Result};
use lanes::Lanes;
use metaslot_studies::rsa::{Function, Private};
use std::hint::black_box;
use std::time::Duration;
use versions::{BITS, CALLS, LANES, LIBRARY, OWN, SIZES, TIME, key};

/// How long a function is timed beside a sample.
const ALONE: Duration = Duration::from_micros(400);

/// The study; its versions agree with each other and with the library.
pub(super) struct Rsa {
    lanes: Result<Lanes>,
}

impl Rsa {
    /// Checks all versions.
    ///
    /// # Errors
    /// They do not agree.
    pub(super) fn new() -> Result<Self> {
        check::all()?;
        let lanes = Lanes::find();
        if let Ok(lanes) = &lanes {
            lanes.check()?;
        }
        Ok(Self { lanes })
    }
}

impl Subject for Rsa {
    fn head(&self) -> Head {
        let mut head = head("study-rsa", "operation");
        if let Err(failure) = &self.lanes {
            head.settings.insert(ABSENT.to_owned(), format!("{LANES}: {}", failure.message));
        }
        head
    }

    fn factors(&self) -> Vec<Factor> {
        vec![Factor::new(BITS, SIZES)]
    }

    fn arms(&self) -> Vec<String> {
        let lanes = self.lanes.is_ok().then_some(LANES);
        let arms = OWN.iter().map(|(name, _)| *name).chain([LIBRARY]).chain(lanes);
        arms.map(str::to_owned).collect()
    }

    fn job(&self, cell: &str, arm: &str) -> Result<Job> {
        let bits = number(cell, BITS)?;
        match (arm, &self.lanes) {
            (LIBRARY, _) => library(bits),
            (LANES, Ok(lanes)) => lanes.job(bits),
            _ => own(bits, arm),
        }
    }
}

fn library(bits: usize) -> Result<Job> {
    let length = i32::try_from(bits).map_err(|_| Failure::new("too many bits"))?;
    let key = metaslot_bare::Rsa::generate(length)?;
    let mut signature = vec![0; bits / 8];
    Ok(Job::new(1.0, move || {
        black_box(key.sign(black_box(b"a message"), &mut signature).is_ok());
    }))
}

fn own(bits: usize, arm: &str) -> Result<Job> {
    let version = OWN.iter().find(|(name, _)| *name == arm);
    let (_, version) = *version.ok_or_else(|| Failure::new(format!("no RSA by {arm}")))?;
    let private = Private::new(version, &key(bits)?);
    let timed = |mut function: Function| (calibrate(&mut function), function);
    let mut functions: Vec<(u64, Function)> = private.functions().into_iter().map(timed).collect();
    let mut input = vec![7; private.bytes()];
    let job = Job::new(1.0, move || input = black_box(private.apply(&input)));
    Ok(job.with(move || {
        functions.iter_mut().fold(Counters::new(), |mut counters, (times, function)| {
            let each = spent(function, *times).as_secs_f64() * 1e9 / *times as f64;
            let calls = function.calls as f64;
            counters.insert(format!("{CALLS}{}", function.name), calls);
            counters.insert(format!("{TIME}{}", function.name), calls * each);
            counters
        })
    }))
}

/// How often a function is called to be timed.
fn calibrate(function: &mut Function) -> u64 {
    let mut times = 64;
    while spent(function, times) < ALONE && times < 1 << 30 {
        times *= 2;
    }
    times
}

fn spent(function: &mut Function, times: u64) -> Duration {
    let began = thread_cpu();
    (function.repeat)(times);
    thread_cpu().saturating_sub(began)
}
