// SPDX-License-Identifier: Apache-2.0
//! An experiment on disk: a directory `name.labx`, described in `docs/format-labx.md`.
//!
//! The plan is written before the first run and never changed, samples are appended line by line, and
//! the digests of all files seal the whole. What was interrupted has no seal and can be read all the
//! same. Samples are raw: everything that is computed from them is made again when it is wanted.

mod manifest;
mod plan;
mod read;
mod record;
mod sample;
mod seal;
mod source;

pub use manifest::Manifest;
pub(crate) use plan::cells;
pub use plan::{Factor, Plan, Run, Skipped, Stop, level};
pub use read::{Experiment, State};
pub use record::Recorder;
pub use sample::{Measured, Sample};
pub use source::{Floor, Provenance};

/// The schema's name without its number.
const SCHEMA: &str = "metaslot-labx/";
/// The schema that is written, and the newest that can be read.
const VERSION: u64 = 2;

const MANIFEST: &str = "manifest.json";
const PLAN: &str = "plan.json";
const SAMPLES: &str = "samples.jsonl";
/// What the first arm cost again, when all was done and it was started afresh: samples outside of the plan.
const AGAIN: &str = "again.jsonl";
const LOG: &str = "log.txt";
const SEAL: &str = "seal.json";
/// What was made from the rest afterwards, and is no part of it.
const DERIVED: &str = "analysis.json";
