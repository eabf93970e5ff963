// SPDX-License-Identifier: Apache-2.0
//! Handshakes as a scenario: a sample is a run of the clients.

use super::counted::Counted;
use super::load::Running;
use super::options::{Options, Server};
use super::place::{JAVA_KEY, Place};
use super::rows::{Arm, CONNECTIONS, KEY, KEYS, SERVER, TlsKey, WORKERS};
use crate::experiment::{Factor, Measured, Run, level};
use crate::filter::wanted;
use crate::machine::library;
use crate::meter::{Account, Meter};
use crate::scenario::{Head, Scenario};
use crate::speed::{Shape, loops};
use crate::{Failure, Result};
use std::collections::HashMap;
use std::time::Duration;

/// How long all of it takes, where nothing else is said.
pub(super) const SECONDS: f64 = 600.0;
/// How long a server is asked before it is measured; Apache until each of its processes has opened the token.
const WARM_UP: f64 = 0.3;
const WARM_UP_OF_PROCESSES: f64 = 2.0;
/// Until it has compiled what it runs.
const WARM_UP_OF_JAVA: f64 = 8.0;

/// All servers, each started when it is asked first.
pub(super) struct Handshakes {
    options: Options,
    keys: Vec<TlsKey>,
    servers: HashMap<(Server, &'static str, Arm), Running>,
    /// Goes away after those who work in it.
    place: Place,
}

/// One cell.
struct Asked {
    server: Server,
    key: TlsKey,
    connections: usize,
}

impl Handshakes {
    /// Makes what all of them need.
    ///
    /// # Errors
    /// As [`Place::new`].
    pub(super) fn new(options: &Options) -> Result<Self> {
        if !(0.1..=60.0).contains(&options.window) {
            return Err(Failure::new("--window is between 0.1 and 60 seconds"));
        }
        let keys = wanted(&KEYS, |key| key.name, &options.filter, "key")?;
        let place = Place::new(options, &keys)?;
        Ok(Self { options: options.clone(), keys, servers: HashMap::new(), place })
    }

    fn asked(&self, cell: &str) -> Option<Asked> {
        let name = level(cell, KEY)?;
        let key = *self.keys.iter().find(|key| key.name == name)?;
        let connections = level(cell, CONNECTIONS)?.parse().ok()?;
        Some(Asked { server: Server::of(level(cell, SERVER)?)?, key, connections })
    }

    fn arm(cell: &str, arm: &str) -> Result<Arm> {
        Arm::of(arm).ok_or_else(|| Failure::new(format!("{cell}: no arm {arm}")))
    }

    /// The signature alone.
    fn signatures(&self, asked: &Asked, arm: Arm, meter: &Meter) -> Result<(Measured, Counted)> {
        let (command, key) = self.place.signing(&asked.key, arm)?;
        let jobs = if arm == Arm::Jobs { asked.connections } else { 0 };
        let before = Counted::of(&self.place.counters());
        let window = meter.open(Account::Children)?;
        let ran = loops(command, &key, None, Shape { processes: 1, jobs })?;
        let mut measured = window.close(ran.operations)?;
        (measured.cpu_ns, measured.wall_ns) = (ran.cpu_ns, ran.wall_ns);
        Ok((measured, Counted::of(&self.place.counters()).since(before)))
    }

    fn handshakes(
        &mut self,
        asked: &Asked,
        arm: Arm,
        seconds: f64,
        meter: &Meter,
    ) -> Result<(Measured, Counted)> {
        let name = (asked.server, asked.key.name, arm);
        if !self.servers.contains_key(&name) {
            let started = self.place.serve(asked.server, &asked.key, arm)?;
            self.servers.insert(name, started);
        }
        let server = &self.servers[&name];
        server.sample(&self.place.client, asked.connections, seconds, meter)
    }
}

impl Scenario for Handshakes {
    fn head(&self) -> Head {
        let described = library(&self.place.module).unwrap_or_default();
        let settings = [("module", described), (WORKERS, self.options.workers.to_string())];
        Head {
            name: "tls",
            unit: "handshake",
            cpu: format!("of servers {}; of the loop its own clock", Running::source()),
            settings: settings.map(|(name, value)| (name.to_owned(), value)).into(),
        }
    }

    fn factors(&self) -> Vec<Factor> {
        vec![
            Factor::new(SERVER, self.options.servers.iter().map(|server| server.word())),
            Factor::new(KEY, self.keys.iter().map(|key| key.name)),
            Factor::new(CONNECTIONS, &self.options.connections),
        ]
    }

    fn arms(&self) -> Vec<String> {
        Arm::ALL.map(|arm| arm.word().to_owned()).into()
    }

    fn fewest(&self) -> usize {
        3
    }

    fn seconds(&self) -> f64 {
        SECONDS
    }

    fn skip(&self, cell: &str) -> Option<String> {
        let Asked { server, key, connections } = self.asked(cell)?;
        let absent =
            server.program().is_none().then(|| format!("{} is not installed", server.word()));
        // One connection at a time is there for the cost of a pause.
        let alone = connections == 1 && !server.has_jobs() && self.options.connections.len() > 1;
        let other = server == Server::Java && key.name != JAVA_KEY;
        absent
            .or_else(|| alone.then(|| super::view::NO_JOBS.to_owned()))
            .or_else(|| other.then(|| super::view::ONE_KEY.to_owned()))
    }

    fn skip_arm(&self, cell: &str, arm: &str) -> Option<String> {
        let server = self.asked(cell)?.server;
        let senseless = match Arm::of(arm)? {
            Arm::Jobs if !server.has_jobs() => super::view::NO_JOBS,
            Arm::FileJobs if server != Server::Haproxy => super::view::NO_JOBS,
            Arm::Alone if !server.has_threads() => super::view::NO_THREADS,
            Arm::Daemon if !server.has_processes() => super::view::NO_PROCESSES,
            Arm::Daemon if Place::daemon().is_none() => "metaslotd is not beside this program",
            _ => return None,
        };
        Some(senseless.to_owned())
    }

    fn warm(&mut self, cell: &str, arm: &str) -> Result<Duration> {
        let asked = self.asked(cell).ok_or_else(|| Failure::new("no such cell"))?;
        if asked.server == Server::Loop {
            return Ok(Duration::from_millis(800));
        }
        let arm = Self::arm(cell, arm)?;
        let seconds = match asked.server {
            Server::Apache => WARM_UP_OF_PROCESSES,
            Server::Java => WARM_UP_OF_JAVA,
            _ => WARM_UP,
        };
        self.handshakes(&asked, arm, seconds, &Meter::start())?;
        Ok(Duration::from_secs_f64(self.options.window + 0.1))
    }

    fn sample(&mut self, run: &Run, meter: &Meter) -> Result<Measured> {
        let asked = self.asked(&run.cell).ok_or_else(|| Failure::new("no such cell"))?;
        let arm = Self::arm(&run.cell, &run.arm)?;
        let (mut measured, counted) = match asked.server {
            Server::Loop => self.signatures(&asked, arm, meter)?,
            _ => self.handshakes(&asked, arm, self.options.window, meter)?,
        };
        let (did, of) = (counted.signatures, measured.work);
        if arm.is_of_token() && did < of {
            return Err(Failure::new(format!(
                "the module's counters say that it made {did:.0} of {of:.0} signatures"
            )));
        }
        counted.into_sample(&mut measured);
        Ok(measured)
    }

    fn again(&self) -> bool {
        false
    }
}
