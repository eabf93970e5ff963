// SPDX-License-Identifier: Apache-2.0
//! One line of `samples.jsonl`.

use super::plan::Run;
use crate::{Failure, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one run gave.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Measured {
    /// Begin and end of the run, in nanoseconds since the experiment's.
    pub window_ns: [u64; 2],
    /// How much was done: operations, or what the experiment counts.
    pub work: f64,
    /// CPU time of all of it.
    pub cpu_ns: f64,
    /// Wall time of all of it.
    pub wall_ns: f64,
    /// CPUs that others used meanwhile, where the system says.
    pub foreign_cpu: Option<f64>,
    /// What else was counted meanwhile, by name: `user_ns`, `system_ns` of the experiment's own CPU time,
    /// `machine_usr` and its like in CPUs, `lab_ns` of the lab itself, segments, faults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, f64>,
    /// What makes the sample doubtful. It counts all the same: nothing is left out after the fact.
    pub flags: Vec<String>,
}

impl Measured {
    /// JSON has no word for what is no number, and such a line could not be read again.
    pub(super) fn check(&self) -> Result<()> {
        let numbers = [self.work, self.cpu_ns, self.wall_ns, self.foreign_cpu.unwrap_or(0.0)];
        if numbers.iter().chain(self.counters.values()).all(|number| number.is_finite()) {
            Ok(())
        } else {
            Err(Failure::new("a sample is not a number"))
        }
    }
}

/// What one run gave, and which it was.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Sample {
    /// Its place in the plan's order.
    pub order: usize,
    /// Which run it was.
    #[serde(flatten)]
    pub run: Run,
    /// What it gave.
    #[serde(flatten)]
    pub measured: Measured,
}

impl Sample {
    /// CPU time of one unit of work.
    #[must_use]
    pub fn cpu_each(&self) -> f64 {
        self.measured.cpu_ns / self.measured.work
    }

    /// A counter for one unit of work.
    #[must_use]
    pub fn counted_each(&self, counter: &str) -> Option<f64> {
        Some(self.measured.counters.get(counter)? / self.measured.work)
    }

    /// Wall time of one unit of work.
    #[must_use]
    pub fn wall_each(&self) -> f64 {
        self.measured.wall_ns / self.measured.work
    }
}

/// Reads all lines, and says whether the last one was cut off. A line is whole when it has its end: it
/// is written at once, so only the last one of an interrupted experiment can be without.
pub(super) fn parse(text: &[u8], order: &[Run]) -> Result<(Vec<Sample>, bool)> {
    let (samples, torn) = lines(text)?;
    for (number, sample) in samples.iter().enumerate() {
        if sample.order != number || order.get(number) != Some(&sample.run) {
            let why = "is not the run that the plan has in this place";
            return Err(Failure::new(format!("line {}: {why}", number + 1)));
        }
    }
    Ok((samples, torn))
}

/// Reads the samples outside of the plan.
pub(super) fn again(text: &[u8]) -> Result<Vec<Sample>> {
    lines(text).map(|(samples, _)| samples)
}

fn lines(text: &[u8]) -> Result<(Vec<Sample>, bool)> {
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let lines = text[..whole].split_inclusive(|byte| *byte == b'\n').enumerate();
    let sample = |(number, line): (usize, &[u8])| {
        serde_json::from_slice(line)
            .map_err(|error| Failure::new(format!("line {}: {error}", number + 1)))
    };
    Ok((lines.map(sample).collect::<Result<_>>()?, whole < text.len()))
}
