// SPDX-License-Identifier: Apache-2.0
//! Figures of an experiment, as the table, the sentences and the JSON ask for them.

use super::options::Server;
use super::rows::{Arm, BATCHED, BATCHES, CONNECTIONS, KEY, P99, SERVER, WORKERS};
use crate::experiment::{Experiment, Sample};
use crate::judged::{Judged, OverFirst};

/// Why combinations that make no sense are left out.
pub(super) const NO_JOBS: &str = "it has no jobs of OpenSSL's";
pub(super) const NO_THREADS: &str = "its signatures do not wait for each other";
pub(super) const NO_PROCESSES: &str = "its processes are not to find each other in a daemon";
/// Why Java has no other keys.
pub(super) const ONE_KEY: &str = "its example has the key rsa2048";

/// An experiment, to be asked.
pub(super) struct View<'a> {
    pub(super) experiment: &'a Experiment,
    judged: Judged,
}

/// One cell.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) server: Server,
    pub(super) key: String,
    pub(super) connections: usize,
}

impl Cell {
    fn name(&self) -> String {
        let Self { server, key, connections } = self;
        format!("{SERVER}={} {KEY}={key} {CONNECTIONS}={connections}", server.word())
    }
}

/// What an event loop can gain from batches, and what it gains. Times are of the processor for each handshake, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gain {
    /// With the key in a file, and the signature alone by libcrypto.
    pub(super) whole: f64,
    pub(super) signing: f64,
    /// The signature alone in the batches that so many jobs give.
    pub(super) batched: f64,
    /// What a pause adds to a server that has one connection.
    pub(super) pause: Option<f64>,
    /// How many times as many handshakes the same processor time is for, with batches.
    pub(super) measured: f64,
}

impl Gain {
    /// The share of the signature.
    pub(super) fn share(&self) -> f64 {
        self.signing / self.whole
    }

    /// Amdahl's: the signature costs what it costs in a batch, and all else what it did.
    pub(super) fn limit(&self) -> f64 {
        self.whole / (self.whole - self.signing + self.batched)
    }

    /// The same, when every handshake pauses as well.
    pub(super) fn limit_with_pause(&self) -> Option<f64> {
        Some(self.whole / (self.whole - self.signing + self.batched + self.pause?.max(0.0)))
    }
}

impl<'a> View<'a> {
    pub(super) fn of(experiment: &'a Experiment) -> Self {
        Self { experiment, judged: Judged::of(experiment) }
    }

    /// All that was measured.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let plan = &self.experiment.plan;
        let mut cells = Vec::new();
        for server in plan.levels(SERVER).iter().filter_map(|word| Server::of(word)) {
            for key in plan.levels(KEY) {
                for connections in plan.levels(CONNECTIONS).iter().filter_map(|n| n.parse().ok()) {
                    cells.push(Cell { server, key: key.clone(), connections });
                }
            }
        }
        cells.retain(|cell| self.cpu(cell, Arm::File).is_some());
        cells
    }

    fn typical(
        &self,
        cell: &Cell,
        arm: Arm,
        figure: impl Fn(&Sample) -> Option<f64>,
    ) -> Option<f64> {
        self.experiment.typical(&cell.name(), arm.word(), figure)
    }

    /// CPU time of a handshake, in nanoseconds.
    pub(super) fn cpu(&self, cell: &Cell, arm: Arm) -> Option<f64> {
        self.typical(cell, arm, |sample| Some(sample.cpu_each()))
    }

    /// Handshakes in a second.
    pub(super) fn rate(&self, cell: &Cell, arm: Arm) -> Option<f64> {
        Some(1e9 / self.typical(cell, arm, |sample| Some(sample.wall_each()))?)
    }

    /// The longest of 99 in 100, in milliseconds.
    pub(super) fn p99(&self, cell: &Cell, arm: Arm) -> Option<f64> {
        self.typical(cell, arm, |sample| sample.measured.counters.get(P99).copied())
    }

    /// Signatures of one batch in the mean.
    pub(super) fn fill(&self, cell: &Cell, arm: Arm) -> Option<f64> {
        let counted = |name: &str, sample: &Sample| sample.measured.counters.get(name).copied();
        self.typical(cell, arm, |sample| {
            let batches = counted(BATCHES, sample).filter(|batches| *batches > 0.0)?;
            Some(counted(BATCHED, sample)? / batches)
        })
    }

    /// CPU time over that with the key in a file.
    pub(super) fn over_file(&self, cell: &Cell, arm: Arm) -> Option<OverFirst<'_>> {
        self.judged.over_first(&cell.name(), arm.word())
    }

    /// What batches gain a server with jobs, or one whose processes a daemon serves.
    pub(super) fn gain(&self, cell: &Cell) -> Option<Gain> {
        if cell.server == Server::Loop || cell.connections == 1 {
            return None;
        }
        let alone = Cell { connections: 1, ..cell.clone() };
        let pause = || Some(self.cpu(&alone, Arm::Jobs)? - self.cpu(&alone, Arm::Token)?);
        let signing = Cell { server: Server::Loop, ..cell.clone() };
        // Processes meet where there are several.
        let settings = &self.experiment.manifest.provenance.settings;
        let alone = settings.get(WORKERS).is_none_or(|workers| workers == "1");
        let arm = match cell.server.has_processes() {
            true if alone => return None,
            true => Arm::Daemon,
            false => Arm::Jobs,
        };
        let ratio = self.over_file(cell, arm)?.comparison.ratio();
        Some(Gain {
            whole: self.cpu(cell, Arm::File)?,
            signing: self.cpu(&signing, Arm::File)?,
            batched: self.cpu(&signing, Arm::Jobs)?,
            pause: pause(),
            measured: 1.0 / ratio.value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_amdahls() {
        let gain = Gain {
            whole: 500.0,
            signing: 250.0,
            batched: 50.0,
            pause: Some(100.0),
            measured: 1.25,
        };
        assert_eq!((gain.share(), gain.limit()), (0.5, 500.0 / 300.0));
        assert_eq!(gain.limit_with_pause(), Some(1.25));
    }
}
