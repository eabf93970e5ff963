// SPDX-License-Identifier: Apache-2.0
//! What an experiment says of each store: its samples, in the order of the rounds.

use super::cold::{PARTS, Start};
use crate::experiment::{Experiment, Sample};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The factors.
pub(super) const OBJECTS: &str = "objects";
pub(super) const WHAT: &str = "what";
/// Levels of the second.
pub(super) const FIND: &str = "find";
pub(super) const SIGN: &str = "sign";
pub(super) const START: &str = "start";
pub(super) const CREATE: &str = "create";
pub(super) const CREATE_THREADS: &str = "create-threads";
pub(super) const RAW: &str = "raw";
pub(super) const RAW_THREADS: &str = "raw-threads";
pub(super) const DISK: &str = "disk";
/// The settings.
pub(super) const MODULE: &str = "module";
pub(super) const THREADS: &str = "threads";
/// The file with what was found out before and after the rounds.
pub(super) const FILLED: &str = "stores.json";

/// What is known of a store besides its samples.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Filled {
    pub(super) populated_per_second: f64,
    pub(super) database_bytes: u64,
    pub(super) syncs_per_create: Option<f64>,
}

/// All stores.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    pub(super) threads: String,
    /// `write` and `fdatasync` of 4 KiB at the end of a file, per second.
    pub(super) disk_syncs: Vec<f64>,
    pub(super) stores: Vec<Level>,
}

/// One store's samples, in the order of the rounds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Level {
    pub(super) objects: u64,
    /// Not of an experiment that was interrupted.
    #[serde(flatten)]
    pub(super) filled: Option<Filled>,
    pub(super) find_cpu_ns: Vec<f64>,
    pub(super) find_wall_ns: Vec<f64>,
    pub(super) sign_cpu_ns: Vec<f64>,
    pub(super) starts: Vec<Start>,
    /// Keys per second.
    pub(super) create: Vec<f64>,
    pub(super) create_threads: Vec<f64>,
    /// The same rows by raw SQLite; empty for a module with another kind of store.
    pub(super) raw: Vec<f64>,
    pub(super) raw_threads: Vec<f64>,
}

impl Report {
    pub(super) fn of(directory: &Path, experiment: &Experiment) -> Self {
        let filled = std::fs::read(directory.join(FILLED)).ok();
        let filled: Vec<(u64, Filled)> =
            filled.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let levels = experiment.plan.levels(OBJECTS);
        let all: Vec<u64> = levels.iter().filter_map(|level| level.parse().ok()).collect();
        let threads = experiment.manifest.provenance.settings.get(THREADS).cloned();
        let of = |objects: &u64| {
            let filled = filled.iter().find(|(other, _)| other == objects);
            Level::of(experiment, *objects, filled.map(|(_, filled)| *filled))
        };
        Self {
            threads: threads.unwrap_or_else(|| "some".to_owned()),
            disk_syncs: all
                .first()
                .map_or_else(Vec::new, |objects| samples(experiment, *objects, DISK, per_second)),
            stores: all.iter().map(of).collect(),
        }
    }
}

impl Level {
    fn of(experiment: &Experiment, objects: u64, filled: Option<Filled>) -> Self {
        let all = |what, figure: fn(&Sample) -> f64| samples(experiment, objects, what, figure);
        Self {
            objects,
            filled,
            find_cpu_ns: all(FIND, Sample::cpu_each),
            find_wall_ns: all(FIND, Sample::wall_each),
            sign_cpu_ns: all(SIGN, Sample::cpu_each),
            starts: samples(experiment, objects, START, started),
            create: all(CREATE, per_second),
            create_threads: all(CREATE_THREADS, per_second),
            raw: all(RAW, per_second),
            raw_threads: all(RAW_THREADS, per_second),
        }
    }
}

/// A figure of every round.
fn samples<T>(
    experiment: &Experiment,
    objects: u64,
    what: &str,
    figure: impl Fn(&Sample) -> T,
) -> Vec<T> {
    let cell = format!("{OBJECTS}={objects} {WHAT}={what}");
    let of = experiment.samples.iter().filter(|sample| sample.run.cell == cell);
    of.map(figure).collect()
}

fn started(sample: &Sample) -> Start {
    let each = |name: &&str| Some(((*name).to_owned(), sample.counted_each(name)?));
    PARTS.iter().filter_map(each).collect()
}

fn per_second(sample: &Sample) -> f64 {
    1e9 / sample.wall_each()
}
