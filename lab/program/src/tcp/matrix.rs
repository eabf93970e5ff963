// SPDX-License-Identifier: Apache-2.0
//! The matrix of connections, writes and buffers as a scenario. Every cell has a pair of processes of its
//! own, which sleep while another cell is measured.

use super::beside::Other;
use super::cpus::Cpus;
use super::load::{Buffer, Load, short, short_buffer};
use super::pair::Pair;
use super::window::{self, Timing, flag};
use super::words::OWN;
use super::{print, socket, words};
use crate::Result;
use crate::experiment::{Experiment, Factor, Measured, Run};
use crate::meter::{Account, Group, Meter};
use crate::scenario::{Head, Scenario};
use metaslot_perf::Target;
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::time::Duration;

/// What is varied, and what all cells have in common.
#[derive(Debug)]
pub(super) struct Matrix {
    pub(super) base: Load,
    pub(super) connections: Vec<usize>,
    pub(super) writes: Vec<usize>,
    pub(super) buffers: Vec<Buffer>,
    /// Combinations that are not wanted.
    pub(super) without: Vec<String>,
    pub(super) cpus: Cpus,
    pub(super) timing: Timing,
    /// Another generator, the second arm.
    pub(super) beside: Option<Other>,
    pub(super) pairs: BTreeMap<String, Pair>,
}

impl Matrix {
    fn pair(&mut self, cell: &str) -> Result<&mut Pair> {
        if !self.pairs.contains_key(cell) {
            let pair = Pair::start(&self.base.of_cell(cell)?, self.cpus)?;
            self.pairs.insert(cell.to_owned(), pair);
        }
        let gone = || crate::Failure::new("the cell's processes are gone");
        self.pairs.get_mut(cell).ok_or_else(gone)
    }
}

impl Scenario for Matrix {
    fn head(&self) -> Head {
        let mut settings = settings(&self.base, self.cpus);
        let version = |beside: &Other| (beside.name().to_owned(), beside.version.clone());
        settings.extend(self.beside.as_ref().map(version));
        Head { name: "tcp", unit: "byte", cpu: source(), settings }
    }

    fn factors(&self) -> Vec<Factor> {
        vec![
            Factor::new("connections", self.connections.iter().map(usize::to_string)),
            Factor::new("write", self.writes.iter().copied().map(short)),
            Factor::new("buffer", self.buffers.iter().copied().map(short_buffer)),
        ]
    }

    fn arms(&self) -> Vec<String> {
        let beside = self.beside.as_ref().map(|beside| beside.name().to_owned());
        [OWN.to_owned()].into_iter().chain(beside).collect()
    }

    fn fewest(&self) -> usize {
        // Cells are compared with each other.
        self.decisive()
    }

    fn skip(&self, cell: &str) -> Option<String> {
        if self.without.iter().any(|without| without == cell) {
            return Some(words::UNWANTED.to_owned());
        }
        let connections = self.base.of_cell(cell).ok()?.connections;
        if let Some(beside) = &self.beside
            && connections > beside.kind.streams()
        {
            return Some(format!(
                "{} has at most {} streams",
                beside.name(),
                beside.kind.streams()
            ));
        }
        let most = getrlimit(Resource::Nofile).maximum?;
        (connections as u64 + 16 > most).then(|| {
            format!("a process may have {most} descriptors: raise the hard limit (ulimit -Hn)")
        })
    }

    fn warm(&mut self, cell: &str, arm: &str) -> Result<Duration> {
        let timing = self.timing;
        if arm != OWN {
            // It is started for each sample, and may need a while for that.
            return Ok(timing.expected() + Duration::from_millis(200));
        }
        let pair = self.pair(cell)?;
        let began = std::time::Instant::now();
        pair.go()?;
        std::thread::sleep(timing.step);
        pair.pause()?;
        // What is under way when the sender stops still has to arrive.
        Ok(timing.expected() + began.elapsed().saturating_sub(timing.step) / 2)
    }

    fn sample(&mut self, run: &Run, meter: &Meter) -> Result<Measured> {
        let timing = self.timing;
        if let Some(beside) = self.beside.as_mut().filter(|_| run.arm != OWN) {
            return beside.sample(&self.base.of_cell(&run.cell)?, self.cpus, timing, meter);
        }
        let pair = self.pair(&run.cell)?;
        pair.go()?;
        let measured = window::sample(meter, pair.ledger().account(), pair.pids(), timing);
        // A process that has ended knows better why.
        let mut measured = measured.map_err(|failure| pair.pause().err().unwrap_or(failure))?;
        let [sent, received] = pair.pause()?;
        // The kernel counts calls, the processes know which of them could do nothing.
        refuse(&mut measured, "writes", "eagain", sent.again, sent.calls);
        refuse(&mut measured, "reads", "empty_reads", received.again, received.calls);
        flag(&mut measured, "clamped_buffer", pair.clamped());
        Ok(measured)
    }

    fn afresh(&mut self) -> Result<()> {
        self.pairs.clear();
        Ok(())
    }

    fn account(&self) -> Target {
        let lab = std::iter::once(std::process::id());
        Target::Processes(lab.chain(self.pairs.values().flat_map(Pair::pids)).collect())
    }

    fn files(&mut self) -> Result<Vec<(String, Vec<u8>)>> {
        Ok(self.beside.as_mut().map(Other::printed).unwrap_or_default())
    }

    fn glance(&self, experiment: &Experiment) -> String {
        print::table(experiment)
    }
}

/// Splits a counter of calls by the share that was refused.
fn refuse(measured: &mut Measured, calls: &str, refused: &str, again: u64, done: u64) {
    let share = again as f64 / (again + done).max(1) as f64;
    let all = measured.counters.get(calls).copied().unwrap_or(0.0);
    measured.counters.insert(calls.to_owned(), all * (1.0 - share));
    measured.counters.insert(refused.to_owned(), all * share);
}

/// Where CPU time comes from here.
pub(super) fn source() -> String {
    let group = Group::make();
    group.map_or_else(|_| Account::Processes(&[]).source(), |group| Account::Group(&group).source())
}

/// What the result may depend on.
pub(super) fn settings(base: &Load, cpus: Cpus) -> BTreeMap<String, String> {
    let alone =
        if base.path.counts_alone() { "the experiment's alone" } else { "the whole machine's" };
    let mut settings = BTreeMap::from([
        ("placement".to_owned(), cpus.name().to_owned()),
        ("path".to_owned(), base.path.name().to_owned()),
        (
            "congestion".to_owned(),
            base.congestion.clone().unwrap_or_else(socket::default_congestion),
        ),
        ("segments".to_owned(), format!("/proc/net/snmp and netstat: {alone}")),
    ]);
    for name in ["tcp_rmem", "tcp_wmem", "tcp_mem"] {
        if let Ok(text) = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")) {
            settings.insert(name.to_owned(), text.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    settings
}
