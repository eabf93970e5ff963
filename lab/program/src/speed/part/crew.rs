// SPDX-License-Identifier: Apache-2.0
//! All that can do a job, each in a process of its own, in a place that goes away.

use super::{Listed, Part, Work, Worker};
use crate::experiment::{Measured, level};
use crate::interrupt::Interrupt;
use crate::machine::library;
use crate::meter::{Account, Meter};
use crate::sandbox::Sandbox;
use crate::speed::Options;
use crate::token::{own_module, rival_module};
use crate::{Failure, Result};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// The factor whose levels are those who do it. They are no arms, because not each of them can do everything.
pub(crate) const BY: &str = "by";
/// The only arm.
pub(crate) const ARM: &str = "measured";

/// The raw library.
pub(crate) const RAW: &str = "raw";
/// The raw library a second time: how far two measurements of the same thing lie apart.
pub(crate) const AGAIN: &str = "raw-again";
/// This module without lanes.
pub(crate) const MODULE: &str = "module";
/// This module with them.
pub(crate) const LANES: &str = "lanes";
/// This module, whose lanes and OpenSSL do what is asked and AWS-LC nothing of it.
pub(crate) const ONLY_LANES: &str = "only-lanes";
/// As this.
pub(crate) const ONLY_OPENSSL: &str = "only-openssl";
/// All providers, with the costs that were measured for this run.
pub(crate) const ROUTED: &str = "routed";
/// Another module.
pub(crate) const RIVAL: &str = "rival";

/// All of them.
#[derive(Debug)]
pub(crate) struct Crew {
    workers: Vec<(&'static str, Worker)>,
    /// What they say of themselves, and who is missing.
    pub(crate) settings: BTreeMap<String, String>,
    interrupt: Interrupt,
    /// Goes away after those who work in it.
    _place: Sandbox,
}

impl Crew {
    /// Starts those of these names; a rival only where there is one.
    ///
    /// # Errors
    /// There is no module, or one makes no token.
    pub(crate) fn new(options: &Options, names: &[&'static str]) -> Result<Self> {
        Self::without(options, names, "")
    }

    /// As [`Self::new`]; where one provider does everything, the others do not do these mechanisms, a list as the
    /// configuration has it.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn without(
        options: &Options,
        names: &[&'static str],
        without: &str,
    ) -> Result<Self> {
        // Before there is anything to be taken away again.
        let interrupt = Interrupt::new()?;
        let started = Self::started(options, names, without, interrupt.clone());
        started.map_err(|failure| interrupt.failure().unwrap_or(failure))
    }

    fn started(
        options: &Options,
        names: &[&'static str],
        without: &str,
        interrupt: Interrupt,
    ) -> Result<Self> {
        let place = Sandbox::make(options.token.dir.as_deref(), options.token.keep)?;
        let own = own_module(options.token.module.as_deref())?;
        let (mut workers, mut settings) = (Vec::new(), BTreeMap::new());
        for &name in names {
            let part = match name {
                RAW | AGAIN => Part::Raw,
                RIVAL => match rival_module(options.rival.as_deref(), &own) {
                    Some(path) => Part::Module(path),
                    None => {
                        let asked = options.rival.as_deref() != Some("none");
                        let why = if asked { "not installed" } else { "not asked" };
                        settings.insert(name.to_owned(), why.to_owned());
                        continue;
                    }
                },
                _ => Part::Module(own.clone()),
            };
            let whole = format!("lanes = {}\n", name != MODULE);
            let others =
                others(name, without, workers.iter().any(|(name, _)| *name == ONLY_OPENSSL));
            let store =
                place.configured(name, &whole, &format!("policy = \"legacy\"\n{others}"))?;
            if name == ROUTED
                && let Some(costs) = &options.costs
            {
                std::fs::copy(costs, store.costs())
                    .map_err(|error| Failure::new(format!("{}: {error}", costs.display())))?;
            }
            let path = part.path().map(library).transpose()?;
            let worker = match Worker::start(part, &store) {
                // A module without OpenSSL says so.
                Err(failure) if name == ONLY_OPENSSL => {
                    settings.insert(name.to_owned(), failure.message);
                    continue;
                }
                worker => worker?,
            };
            let said = [Some(worker.name.clone()), path].into_iter().flatten();
            let said = said.collect::<Vec<_>>().join(", ");
            settings.insert(name.to_owned(), said);
            workers.push((name, worker));
        }
        Ok(Self { workers, settings, interrupt, _place: place })
    }

    /// Who there is.
    pub(crate) fn names(&self) -> Vec<String> {
        self.workers.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    /// Keys and sessions for a job by all, whose cells have this name and `by=` behind it. What all
    /// must give alike is compared with the first, which is the raw library where that can do it. The
    /// cells of those who cannot, and what they answer.
    ///
    /// # Errors
    /// One gives another result.
    pub(crate) fn prepare(
        &mut self,
        name: &str,
        work: &Work,
        threads: usize,
    ) -> Result<HashMap<String, String>> {
        let (mut right, mut refused) = (None, HashMap::new());
        for (by, worker) in &mut self.workers {
            self.interrupt.failure().map_or(Ok(()), Err)?;
            let cell = format!("{name} {BY}={by}");
            match worker.prepare(&cell, work, threads) {
                Err(failure) => drop(refused.insert(cell, failure.message)),
                Ok(result) => {
                    if right.is_some() && result.is_some() && right != result {
                        return Err(Failure::new(format!("wrong result: {name} by {by}")));
                    }
                    right = right.or(result);
                }
            }
        }
        // A signal ends them as well, and then they refuse everything.
        self.interrupt.failure().map_or(Ok(refused), Err)
    }

    /// Takes a sample of a cell.
    ///
    /// # Errors
    /// A call failed, or a result is wrong.
    pub(crate) fn run(&mut self, cell: &str, length: Duration, meter: &Meter) -> Result<Measured> {
        let worker = self.worker(level(cell, BY).unwrap_or_default())?;
        let window = meter.open(Account::Process)?;
        let done = worker.run(cell, length);
        let done = done.map_err(|failure| self.interrupt.failure().unwrap_or(failure))?;
        Ok(done.sample(window.close(done.operations)?))
    }

    /// What the module's token can do.
    ///
    /// # Errors
    /// What the module answers.
    pub(crate) fn mechanisms(&mut self) -> Result<Vec<Listed>> {
        self.worker(LANES)?.mechanisms()
    }

    fn worker(&mut self, by: &str) -> Result<&mut Worker> {
        let worker = self.workers.iter_mut().find(|(name, _)| *name == by);
        worker
            .map(|(_, worker)| worker)
            .ok_or_else(|| Failure::new(format!("no process is called {by}")))
    }
}

/// What the configuration says of the providers besides.
fn others(name: &str, without: &str, openssl: bool) -> String {
    let disable = |provider| format!("[provider.{provider}]\ndisable = [{without}]\n");
    match name {
        ONLY_LANES => disable("awslc"),
        ONLY_OPENSSL => {
            format!("{}{}[provider.openssl]\nenabled = true\n", disable("awslc"), disable("lanes"))
        }
        ROUTED if openssl => "[provider.openssl]\nenabled = true\n".to_owned(),
        _ => String::new(),
    }
}
