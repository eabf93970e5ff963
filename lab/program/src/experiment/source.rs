// SPDX-License-Identifier: Apache-2.0
//! Where an experiment's numbers come from: what two of them must have in common to be compared.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What stands in the manifest about the experiment itself.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Provenance {
    /// What was measured: `copy`, `tcp`, `study-rc4`.
    pub scenario: String,
    /// What a sample's work counts: `byte`, `operation`.
    pub unit: String,
    /// Where the numbers come from, by name: `cpu`, `ticks`, `interrupts`, `profile`.
    pub sources: BTreeMap<String, String>,
    /// Ticks of the time stamp counter in a second: costs in ticks are CPU time times this. Version 1
    /// called it cycles, which these are not: a core's clock is another one.
    #[serde(alias = "cycles_hz")]
    pub ticks_hz: Option<f64>,
    /// Core cycles in a tick before the first run and after the last: published, never applied.
    pub core_factor: [Option<f64>; 2],
    /// What the result may depend on: congestion control, buffer limits, page sizes, versions.
    pub settings: BTreeMap<String, String>,
    /// What two identical arms differed by on this machine today, if that was measured.
    pub floor: Option<Floor>,
}

/// The floor of today's verdicts, on the scale of logarithms.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Floor {
    /// Of CPU time.
    pub cpu: f64,
    /// Of wall time.
    pub wall: f64,
    /// When it was measured, in seconds since 1970.
    pub measured: u64,
}
