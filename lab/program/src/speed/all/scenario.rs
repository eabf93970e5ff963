// SPDX-License-Identifier: Apache-2.0
//! Every mechanism as a scenario.

use super::recipes::{BYTES, FUNCTION, MECHANISM, ONCE, SIZES, jobs};
use crate::experiment::{Factor, Measured, Run, level};
use crate::meter::Meter;
use crate::progress::Progress;
use crate::scenario::{Head, Scenario};
use crate::speed::Options;
use crate::speed::part::{ARM, BY, Crew, Function, Job};
use crate::{Failure, Result};
use metaslot_ck::{CKF_DIGEST, CKF_ENCRYPT, CKF_SIGN, mechanism_name};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// How long it is measured when nobody says, in seconds.
const SECONDS: f64 = 90.0;
/// Repetitions with fewer than which nothing can be told apart.
const FEWEST: usize = 6;
/// So many repetitions are aimed at.
const REPETITIONS: f64 = 16.0;
/// Wall time of one sample.
const SAMPLE: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// What is called, its flag in the list of mechanisms, and its name.
const FUNCTIONS: [(Function, u64, &str); 3] = [
    (Function::Digest, CKF_DIGEST, "digest"),
    (Function::Sign, CKF_SIGN, "sign"),
    (Function::Encrypt, CKF_ENCRYPT, "encrypt"),
];

/// Everybody at work.
pub(super) struct All {
    crew: Crew,
    /// Names of mechanisms, in the token's order.
    mechanisms: Vec<String>,
    /// Cells that can be run, and those that cannot: what was answered.
    cells: HashMap<String, Option<String>>,
    settings: BTreeMap<String, String>,
    sample: Duration,
}

/// A mechanism and a function, and its jobs.
struct Work {
    name: &'static str,
    function: &'static str,
    jobs: Vec<Job>,
}

impl All {
    /// Lists the mechanisms, and makes keys and sessions for each that has a recipe.
    ///
    /// # Errors
    /// There is no module, no mechanism matches, or somebody gives another result.
    pub(super) fn new(options: &Options) -> Result<Self> {
        let mut crew = Crew::new(options, false)?;
        let (works, without) = works(&mut crew, options)?;
        let mut settings = crew.settings.clone();
        if !without.is_empty() {
            settings.insert("no recipe".to_owned(), without.join(", "));
        }
        let mut mechanisms: Vec<String> = works.iter().map(|work| work.name.to_owned()).collect();
        mechanisms.dedup();
        let progress = Progress::new();
        let mut cells = HashMap::new();
        for work in &works {
            progress.say(format_args!("keys and sessions: {}", work.name));
            for job in &work.jobs {
                let Work { name, function, .. } = work;
                let cell =
                    format!("{MECHANISM}={name} {FUNCTION}={function} {BYTES}={}", job.bytes);
                let mut refused = crew.prepare(&cell, *job, 1)?;
                for by in crew.names() {
                    let cell = format!("{cell} {BY}={by}");
                    let why = refused.remove(&cell);
                    cells.insert(cell, why);
                }
            }
        }
        let able = cells.values().filter(|why| why.is_none()).count().max(1) as f64;
        let seconds = options.seconds.unwrap_or(SECONDS) / able / REPETITIONS;
        let sample = Duration::from_secs_f64(seconds).clamp(SAMPLE[0], SAMPLE[1]);
        Ok(Self { crew, mechanisms, cells, settings, sample })
    }
}

/// What there is to do, and mechanisms that would be there if they had recipes.
fn works(crew: &mut Crew, options: &Options) -> Result<(Vec<Work>, Vec<String>)> {
    let (mut works, mut without) = (Vec::new(), Vec::new());
    let wanted = |name: &str| {
        let has = |text: &String| name.contains(&text.to_ascii_uppercase());
        options.filter.is_empty() || options.filter.iter().any(has)
    };
    for listed in crew.mechanisms()? {
        let functions = FUNCTIONS.into_iter().filter(|(_, flag, _)| listed.flags & flag != 0);
        let Some(name) = mechanism_name(listed.mechanism).filter(|name| wanted(name)) else {
            continue;
        };
        for (function, _, called) in functions {
            match jobs(listed.mechanism, function) {
                Some(jobs) => works.push(Work { name, function: called, jobs }),
                None => without.push(format!("{name} {called}")),
            }
        }
    }
    if works.is_empty() {
        let filter = options.filter.join(",");
        let text = format!("no mechanism that digests, signs or encrypts matches {filter}");
        return Err(Failure::new(text).hint("metaslot mechanisms lists them"));
    }
    Ok((works, without))
}

impl Scenario for All {
    fn head(&self) -> Head {
        Head {
            name: "mechanisms",
            unit: "operation",
            cpu: "CLOCK_THREAD_CPUTIME_ID of the working thread".to_owned(),
            settings: self.settings.clone(),
        }
    }

    fn factors(&self) -> Vec<Factor> {
        let factor = |name: &str, levels: Vec<String>| Factor { name: name.to_owned(), levels };
        let functions = FUNCTIONS.map(|(_, _, name)| name.to_owned());
        let mut sizes = SIZES.to_vec();
        sizes.push(ONCE);
        sizes.sort_unstable();
        vec![
            factor(MECHANISM, self.mechanisms.clone()),
            factor(FUNCTION, functions.to_vec()),
            factor(BYTES, sizes.iter().map(usize::to_string).collect()),
            factor(BY, self.crew.names()),
        ]
    }

    fn arms(&self) -> Vec<String> {
        vec![ARM.to_owned()]
    }

    fn fewest(&self) -> usize {
        FEWEST
    }

    fn seconds(&self) -> f64 {
        SECONDS
    }

    fn skip(&self, cell: &str) -> Option<String> {
        let function = level(cell, FUNCTION).unwrap_or_default();
        match self.cells.get(cell) {
            Some(why) => why.clone(),
            None => Some(format!("{}{function}", super::print::SENSELESS)),
        }
    }

    fn warm(&mut self, cell: &str, _arm: &str) -> Result<Duration> {
        let began = Instant::now();
        self.crew.run(cell, self.sample, &Meter::start())?;
        Ok(began.elapsed())
    }

    fn sample(&mut self, run: &Run, meter: &Meter) -> Result<Measured> {
        self.crew.run(&run.cell, self.sample, meter)
    }
}
