// SPDX-License-Identifier: Apache-2.0
//! The kills as a scenario: a sample is a kill, and the new start of whom it hit.

use super::log::{self, Event};
use super::options::Options;
use super::report::{END, End, INSIDE_CREATE, INSIDE_DESTROY, MODULE, WHILE_STARTING, WRITERS};
use super::victim::Victim;
use crate::experiment::{Factor, Measured, Run};
use crate::machine::library;
use crate::meter::{Account, Meter};
use crate::random::Random;
use crate::role::Role;
use crate::sandbox::{Sandbox, Store};
use crate::scenario::{Head, Scenario};
use crate::{Failure, Result};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// Writers that may fail by themselves before the run is given up.
const TOO_MANY: usize = 50;

/// The killer, and those whom it kills.
pub(super) struct Kills {
    options: Options,
    module: PathBuf,
    /// The module, as people know it.
    described: String,
    random: Random,
    store: Store,
    writers: Vec<Victim>,
    kills: usize,
    end: End,
    /// Goes away after those who write in it.
    _place: Sandbox,
}

impl Kills {
    /// Makes the token, and starts all writers.
    ///
    /// # Errors
    /// The module makes no token.
    pub(super) fn new(options: &Options, module: PathBuf, seed: u64) -> Result<Self> {
        let place = Sandbox::guarded(options.token.dir.as_deref(), options.token.keep)?;
        let store = place.store("kill")?;
        let role = Role::Holder { module: module.clone(), make: true };
        if !store.command(&role)?.status()?.success() {
            return Err(Failure::new("the token could not be made"));
        }
        let start = |number| Victim::start(&store, &module, format!("start{number}"));
        let writers = (0..options.writers).map(start).collect::<Result<_>>()?;
        Ok(Self {
            options: options.clone(),
            described: library(&module)?,
            module,
            random: Random::new(seed),
            store,
            writers,
            kills: 0,
            end: End::default(),
            _place: place,
        })
    }

    /// Waits for a random moment, and chooses a process.
    fn choose(&mut self) -> Result<usize> {
        let starting = self.options.starting;
        let any = starting != 0 && self.random.below(starting) == 0;
        loop {
            let wait = self.random.below(self.options.interval * 1000);
            std::thread::sleep(Duration::from_micros(wait));
            self.attend()?;
            let candidate = |at: &usize| any || self.writers[*at].ready;
            let candidates: Vec<usize> = (0..self.writers.len()).filter(candidate).collect();
            if !candidates.is_empty() {
                let which = self.random.below(candidates.len() as u64);
                return Ok(candidates[usize::try_from(which).unwrap_or(0)]);
            }
        }
    }

    /// Looks after all writers: one that failed is noted and replaced.
    fn attend(&mut self) -> Result<()> {
        for writer in &mut self.writers {
            match writer.look() {
                Ok(took) => self.end.opened(took),
                Err(failure) => {
                    self.end.failed.push(failure.message);
                    let count = self.end.failed.len();
                    if count >= TOO_MANY {
                        let first = &self.end.failed[0];
                        let why = format!("{TOO_MANY} writers failed; the first: {first}");
                        return Err(Failure::new(why));
                    }
                    *writer = Victim::start(&self.store, &self.module, format!("again{count}"))?;
                }
            }
        }
        Ok(())
    }

    /// Kills, and says what the writer was doing.
    fn kill(&mut self) -> Result<Option<&'static str>> {
        let at = self.choose()?;
        let victim = &mut self.writers[at];
        victim.end()?;
        let last = log::read(&victim.log)?.last().map(|(event, _)| *event);
        self.kills += 1;
        let name = format!("kill{}", self.kills);
        self.writers[at] = Victim::start(&self.store, &self.module, name)?;
        Ok(match last {
            None => Some(WHILE_STARTING),
            Some(Event::Creating) => Some(INSIDE_CREATE),
            Some(Event::Destroying) => Some(INSIDE_DESTROY),
            Some(_) => None,
        })
    }
}

impl Scenario for Kills {
    fn head(&self) -> Head {
        let settings = [
            (MODULE, self.described.clone()),
            ("interval, ms", self.options.interval.to_string()),
            ("one in so many kills while starting", self.options.starting.to_string()),
        ];
        Head {
            name: "kill",
            unit: "kill",
            cpu: Account::Children.source(),
            settings: settings.map(|(name, value)| (name.to_owned(), value)).into(),
        }
    }

    fn factors(&self) -> Vec<Factor> {
        vec![Factor::new(WRITERS, [self.options.writers])]
    }

    fn arms(&self) -> Vec<String> {
        vec!["killed".to_owned()]
    }

    fn sample(&mut self, _run: &Run, meter: &Meter) -> Result<Measured> {
        let window = meter.open(Account::Children)?;
        let inside = self.kill()?;
        let mut measured = window.close(1.0)?;
        // The others on the machine are the writers.
        (measured.foreign_cpu, measured.flags) = (None, Vec::new());
        let counted = |name: &'static str| (name.to_owned(), f64::from(inside == Some(name)));
        measured.counters.extend([WHILE_STARTING, INSIDE_CREATE, INSIDE_DESTROY].map(counted));
        Ok(measured)
    }

    /// One more kill would be one more finding.
    fn again(&self) -> bool {
        false
    }

    /// Compares the token with the logs.
    fn files(&mut self) -> Result<Vec<(String, Vec<u8>)>> {
        // Those that were killed last must open the token as well.
        while self.writers.iter().any(|writer| !writer.ready) {
            std::thread::sleep(Duration::from_millis(20));
            self.attend()?;
        }
        self.writers.clear();
        let role = Role::Checker { module: self.module.clone(), logs: self.store.file("") };
        let output = self.store.command(&role)?.stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(Failure::new("the token does not open after the kills"));
        }
        self.end.findings = serde_json::from_slice(&output.stdout)?;
        Ok(vec![(END.to_owned(), serde_json::to_vec_pretty(&self.end)?)])
    }
}
