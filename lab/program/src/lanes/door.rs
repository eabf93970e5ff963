// SPDX-License-Identifier: Apache-2.0
//! Through the C ABI: the load in C with lanes and without, in turns.

use super::plan::Plan;
use super::report::Door;
use super::rows::Operation;
use crate::Result;
use crate::child::{Child, named};
use crate::experiment::Measured;
use crate::meter::{self, Done, besides};
use crate::sandbox::{Sandbox, Store};
use metaslot_counters::{Event, read};
use serde::Deserialize;
use std::path::Path;
use std::process::Command;

/// Operations of a window at most, whatever the check costs: their results are kept in memory.
const MAX_OPERATIONS: f64 = 400_000.0;
/// At least so many, so that every thread has some.
const FEWEST_OPERATIONS: f64 = 256.0;

/// The load's first line.
#[derive(Debug, Deserialize)]
struct Ready {
    served: bool,
    #[serde(default)]
    why: String,
    /// What OpenSSL needs to check one result.
    #[serde(default)]
    check_ns: f64,
}

/// What a window said of itself; its results have been checked.
#[derive(Debug, Deserialize)]
struct Window {
    operations: u64,
    /// Whose call returned before the result was there.
    pending: u64,
    seconds: f64,
    /// Of the whole process.
    cpu_seconds: f64,
    p50_ns: f64,
    p99_ns: f64,
}

/// A process of the load, with the configuration that it runs under.
#[derive(Debug)]
pub(super) struct Load {
    child: Child,
    store: Store,
    check_ns: f64,
}

/// How threads ask.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Asked {
    door: Door,
    threads: usize,
    keys: usize,
    /// As many operations of each thread in flight as the operation wants; if not, one.
    many: bool,
}

impl Asked {
    /// The level of the factor.
    pub(super) fn level(&self) -> String {
        let Self { door, threads, keys, many } = self;
        let depth = if *many { "many" } else { "one" };
        format!("{},{threads},{keys},{depth}", door.word())
    }

    const fn depth(&self, row: &Operation) -> usize {
        if self.many { row.depth } else { 1 }
    }
}

/// Every number of threads with every number of keys; and asynchronous sessions, with one thread that has one operation in flight,
/// with one thread that has many, and with a thread for each processor that has many.
pub(super) fn asked(plan: &Plan) -> Vec<Asked> {
    let (blocking, asynchronous) = (Door::Blocking, Door::Asynchronous);
    let mut all = Vec::new();
    for &keys in &plan.keys {
        for &threads in plan.threads.iter().filter(|threads| keys == 1 || **threads > 1) {
            all.push(Asked { door: blocking, threads, keys, many: false });
        }
    }
    all.push(Asked { door: asynchronous, threads: 1, keys: 1, many: false });
    if plan.processors > 1 {
        all.push(Asked { door: asynchronous, threads: 1, keys: 1, many: true });
    }
    for &keys in &plan.keys {
        all.push(Asked { door: asynchronous, threads: plan.processors, keys, many: true });
    }
    all
}

const fn policy(row: &Operation) -> &'static str {
    if row.legacy { "policy = \"legacy\"\n" } else { "" }
}

impl Load {
    /// Starts it with lanes; the inner error says why the module does not serve the operation.
    pub(super) fn with(
        row: &Operation,
        files: [&Path; 2],
        place: &Sandbox,
        plan: &Plan,
    ) -> Result<std::result::Result<Self, String>> {
        let names: Vec<String> = plan.without.iter().map(|name| format!("{name:?}")).collect();
        let whole = format!("lanes_without = [{}]\n", names.join(", "));
        let name = format!("{}-with", row.name);
        Self::start(row, files, place.configured(&name, &whole, policy(row))?)
    }

    /// The same without lanes.
    pub(super) fn without(
        row: &Operation,
        files: [&Path; 2],
        place: &Sandbox,
    ) -> Result<std::result::Result<Self, String>> {
        let name = format!("{}-without", row.name);
        Self::start(row, files, place.configured(&name, "lanes = false\n", policy(row))?)
    }

    fn start(
        row: &Operation,
        [load, module]: [&Path; 2],
        store: Store,
    ) -> Result<std::result::Result<Self, String>> {
        let mut command = Command::new(load);
        command.arg(module).arg(row.name);
        store.configure(&mut command);
        let mut child = Child::start(command)?;
        let ready: Ready = child.answer()?;
        if !ready.served {
            return Ok(Err(named(&ready.why)));
        }
        Ok(Ok(Self { child, store, check_ns: ready.check_ns }))
    }

    /// One window.
    ///
    /// # Errors
    /// A result is wrong, or the load fails.
    pub(super) fn window(
        &mut self,
        row: &Operation,
        asked: &Asked,
        plan: &Plan,
        window: meter::Window<'_>,
    ) -> Result<Measured> {
        let (batches, cpu) = (self.batches(), self.child.cpu());
        let (Asked { door, threads, keys, .. }, depth) = (asked, asked.depth(row));
        let milliseconds = plan.window.as_secs_f64() * 1e3;
        let most = most(self.check_ns, plan);
        let line = format!("{} {threads} {keys} {depth} {milliseconds} {most}", door.word());
        let said: Window = self.child.ask(line)?;
        let operations = said.operations.max(1) as f64;
        let mut measured = window.close(operations)?;
        // Its checks are no stranger's work either.
        let cpu = self.child.cpu().saturating_sub(cpu).as_secs_f64() * 1e9;
        besides(&mut measured, (cpu - said.cpu_seconds * 1e9).max(0.0));
        let (cpu_ns, wall_ns) = (said.cpu_seconds * 1e9, said.seconds * 1e9);
        let mut measured = Done { operations, cpu_ns, wall_ns }.sample(measured);
        let after = self.batches();
        let counted = [
            ("depth", depth as f64),
            ("pending", said.pending as f64),
            ("latency_p50_ns", said.p50_ns),
            ("latency_p99_ns", said.p99_ns),
            ("batches", (after.0 - batches.0) as f64),
            ("batched", (after.1 - batches.1) as f64),
        ];
        measured.counters.extend(counted.map(|(name, value)| (name.to_owned(), value)));
        Ok(measured)
    }

    /// Lets it end.
    ///
    /// # Errors
    /// It fails in the end.
    pub(super) fn end(self) -> Result<()> {
        self.child.end()
    }

    /// Batches and operations in them so far, by the page of counters.
    fn batches(&self) -> (u64, u64) {
        let prefix = format!("{}-", self.child.pid());
        let Ok(entries) = std::fs::read_dir(self.store.counters()) else { return (0, 0) };
        let pages = entries
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
            .filter_map(|entry| read::process(&entry.path()).ok());
        let mut sums = (0, 0);
        for (event, count) in pages.flat_map(|page| page.events) {
            match event {
                Event::LaneBatch => sums.0 += count,
                Event::LaneBatched => sums.1 += count,
                _ => {}
            }
        }
        sums
    }
}

/// Operations of a window at most: as many as OpenSSL checks in the time that is meant for it.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between the limits")]
fn most(check_ns: f64, plan: &Plan) -> u64 {
    let time = plan.checks.as_secs_f64() * 1e9 * plan.processors as f64;
    (time / check_ns.max(1.0)).clamp(FEWEST_OPERATIONS, MAX_OPERATIONS) as u64
}

#[cfg(test)]
mod tests {
    use super::super::rows::ROWS;
    use super::*;
    use std::time::Duration;

    fn plan() -> Plan {
        Plan {
            rounds: 1,
            sample: Duration::from_millis(1),
            window: Duration::from_millis(20),
            checks: Duration::from_secs(1),
            threads: vec![1, 16],
            keys: vec![1, 16],
            processors: 2,
            without: Vec::new(),
        }
    }

    #[test]
    fn one_thread_needs_one_key() {
        let levels: Vec<String> = asked(&plan()).iter().map(Asked::level).collect();
        assert_eq!(levels[..3], ["blocking,1,1,one", "blocking,16,1,one", "blocking,16,16,one"]);
        assert_eq!(levels[3..5], ["asynchronous,1,1,one", "asynchronous,1,1,many"]);
        assert_eq!(levels[5..], ["asynchronous,2,1,many", "asynchronous,2,16,many"]);
        let depths: Vec<_> = asked(&plan()).iter().map(|asked| asked.depth(&ROWS[0])).collect();
        assert_eq!(depths[3..], [1, ROWS[0].depth, ROWS[0].depth, ROWS[0].depth]);
        let alone = asked(&Plan { processors: 1, ..plan() });
        let levels: Vec<String> = alone.iter().map(Asked::level).collect();
        assert_eq!(levels[3..5], ["asynchronous,1,1,one", "asynchronous,1,1,many"]);
        assert_eq!(levels.len(), 6);
    }

    #[test]
    fn what_takes_long_to_check_is_done_less_often() {
        assert_eq!(most(100_000.0, &plan()), 20_000);
        assert_eq!(most(1.0, &plan()), 400_000);
        assert_eq!(most(1e9, &plan()), 256);
    }
}
