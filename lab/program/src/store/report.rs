// SPDX-License-Identifier: Apache-2.0
//! What a run found out.

use super::cold::Start;
use crate::machine::Machine;
use serde::{Deserialize, Serialize};

/// One run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Report {
    pub(crate) schema: String,
    pub(crate) command: Vec<String>,
    pub(crate) started: u64,
    pub(crate) seconds: f64,
    pub(crate) machine: Machine,
    pub(crate) module: String,
    pub(crate) commit: Option<String>,
    pub(crate) seed: u64,
    pub(crate) threads: usize,
    /// `write` and `fdatasync` of 4 KiB at the end of a file, per second: what this disk allows to
    /// a writer that commits alone.
    pub(crate) disk_syncs: Vec<f64>,
    pub(crate) stores: Vec<Level>,
}

/// One store's samples, in the order of the rounds.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Level {
    pub(crate) objects: u64,
    pub(crate) populated_per_second: f64,
    pub(crate) database_bytes: u64,
    pub(crate) find_cpu_ns: Vec<f64>,
    pub(crate) find_wall_ns: Vec<f64>,
    pub(crate) sign_cpu_ns: Vec<f64>,
    pub(crate) starts: Vec<Start>,
    /// Keys per second.
    pub(crate) create: Vec<f64>,
    pub(crate) create_threads: Vec<f64>,
    /// The same rows by raw SQLite; empty for a module with another kind of store.
    pub(crate) raw: Vec<f64>,
    pub(crate) raw_threads: Vec<f64>,
    pub(crate) syncs_per_create: Option<f64>,
}
