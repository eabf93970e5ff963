// SPDX-License-Identifier: Apache-2.0
//! A fixed amount of bytes through one connection: by which call, and through one network stack or two.

mod print;

pub(super) use print::sentences;
pub(crate) use print::text;

use super::control::Way;
use super::counts::Segments;
use super::cpus::Cpus;
use super::load::Load;
use super::matrix::{settings, source};
use super::pair::Pair;
use super::path::Path;
use crate::experiment::{Experiment, Factor, Measured, Run};
use crate::meter::Meter;
use crate::scenario::{Head, Scenario};
use crate::{Failure, Result};
use metaslot_system::namespace::{self, Namespaces};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The paths: one stack, two with the machine's among them, two of their own.
const PATHS: [Path; 3] = [Path::Shared, Path::Mixed, Path::Exclusive];
/// Bytes of a warm-up.
const WARM: u64 = 64_000_000;

/// The transfers.
#[derive(Debug)]
pub(super) struct Exchange {
    base: Load,
    cpus: Cpus,
    bytes: u64,
    pairs: BTreeMap<String, Pair>,
}

impl Exchange {
    /// Transfers of so many megabytes.
    pub(super) fn new(base: Load, cpus: Cpus, megabytes: u64) -> Self {
        let base = Load { write: 128 << 10, ..base };
        Self { base, cpus, bytes: megabytes * 1_000_000, pairs: BTreeMap::new() }
    }

    fn transfer(&mut self, cell: &str, arm: &str, bytes: u64) -> Result<&mut Pair> {
        let way = Way::ALL.into_iter().find(|way| way.name() == arm);
        let way = way.ok_or_else(|| Failure::new("the plan has an arm that is not there"))?;
        let pair = self.pairs.get_mut(cell);
        let pair = pair.ok_or_else(|| Failure::new("the cell's processes are gone"))?;
        pair.transfer(way, bytes)?;
        Ok(pair)
    }
}

impl Scenario for Exchange {
    fn head(&self) -> Head {
        let mut settings = settings(&self.base, self.cpus);
        settings.remove("path");
        settings.insert("megabytes".to_owned(), (self.bytes / 1_000_000).to_string());
        Head { name: "transfer", unit: "byte", cpu: source(), settings }
    }

    fn factors(&self) -> Vec<Factor> {
        let levels = PATHS.iter().map(|path| path.name().to_owned()).collect();
        vec![Factor { name: "path".to_owned(), levels }]
    }

    fn arms(&self) -> Vec<String> {
        Way::ALL.iter().map(|way| way.name().to_owned()).collect()
    }

    fn skip(&self, cell: &str) -> Option<String> {
        let path = self.base.of_cell(cell).ok()?.path;
        let (what, tried) = match path {
            Path::Loopback => return None,
            Path::Shared => (
                "a network namespace",
                namespace::unshare(Namespaces::Network)
                    .or_else(|_| namespace::unshare(Namespaces::Both)),
            ),
            Path::Mixed | Path::Exclusive => {
                ("a veth pair between namespaces", namespace::veth(Namespaces::Network))
            }
        };
        let error = tried.err()?;
        Some(format!("{what}: {error}: be root, or unshare -Urn metaslot lab tcp …"))
    }

    fn warm(&mut self, cell: &str, arm: &str) -> Result<Duration> {
        if !self.pairs.contains_key(cell) {
            let pair = Pair::start(&self.base.of_cell(cell)?, self.cpus)?;
            self.pairs.insert(cell.to_owned(), pair);
            self.transfer(cell, arm, WARM.min(self.bytes))?;
        }
        let (bytes, began) = (WARM.min(self.bytes), Instant::now());
        self.transfer(cell, arm, bytes)?;
        Ok(began.elapsed().mul_f64(self.bytes as f64 / bytes as f64))
    }

    fn sample(&mut self, run: &Run, meter: &Meter) -> Result<Measured> {
        let bytes = self.bytes;
        let pair = self.transfer(&run.cell, &run.arm, 0)?;
        let (segments, before) = (Segments::of(pair.pids()), pair.ticks());
        let ledger = pair.ledger();
        let window = meter.open(ledger.account())?;
        let pair = self.transfer(&run.cell, &run.arm, bytes)?;
        let mut measured = window.close(bytes as f64)?;
        let counted = Segments::of(pair.pids()).since(segments);
        measured.counters.extend(counted.map(|(name, value)| (name.to_owned(), value)));
        for (end, (after, before)) in ["tx", "rx"].iter().zip(pair.ticks().iter().zip(before)) {
            measured.counters.insert(format!("{end}_user_ns"), after[0] - before[0]);
            measured.counters.insert(format!("{end}_system_ns"), after[1] - before[1]);
        }
        Ok(measured)
    }

    fn glance(&self, experiment: &Experiment) -> String {
        print::table(experiment)
    }
}
