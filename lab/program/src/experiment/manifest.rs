// SPDX-License-Identifier: Apache-2.0
//! Who measured what, where and when.

use super::{Provenance, SCHEMA, VERSION};
use crate::machine::{Machine, command_line, commit_around, environment, now};
use crate::{Failure, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// `manifest.json`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Manifest {
    pub(super) schema: String,
    /// Of the program that measured.
    pub version: String,
    /// What it was built from, where that is known; `+`: the tree had changes.
    pub commit: Option<String>,
    /// The command line, to be repeated.
    pub command: Vec<String>,
    /// What the command took from its environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Seconds since 1970.
    pub started: u64,
    /// Seconds since 1970; absent while the experiment runs, and for ever if it was interrupted.
    pub stopped: Option<u64>,
    pub(crate) machine: Machine,
    /// The clock of `cpu_ns` and of `wall_ns`.
    pub clocks: [String; 2],
    /// SHA-256 of `plan.json`.
    pub plan_sha256: String,
    /// What was measured, and where its numbers come from.
    #[serde(flatten)]
    pub provenance: Provenance,
}

impl Manifest {
    /// A manifest of an experiment that begins now, in this process, on this machine.
    #[must_use]
    pub(super) fn begin(provenance: Provenance, clocks: [&str; 2], plan_sha256: String) -> Self {
        let program = std::env::current_exe().ok();
        Self {
            schema: format!("{SCHEMA}{VERSION}"),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: program.as_deref().and_then(commit_around),
            command: command_line(),
            environment: environment(),
            started: now(),
            stopped: None,
            machine: Machine::this(),
            clocks: clocks.map(str::to_owned),
            plan_sha256,
            provenance,
        }
    }

    /// Reads a manifest. The schema comes first: nothing else of a newer one can be relied on.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text)?;
        let schema = value["schema"].as_str().unwrap_or_default();
        let version = schema.strip_prefix(SCHEMA).and_then(|number| number.parse::<u64>().ok());
        match version {
            Some(1..=VERSION) => Ok(serde_json::from_value(value)?),
            Some(newer) if newer > VERSION => Err(Failure::new(format!(
                "was made by a newer version (schema {newer}); this one reads up to {VERSION}"
            ))
            .hint("use the newer metaslot; the experiment was left as it is")),
            _ => Err(Failure::new(format!("{schema:?} is not an experiment's schema"))),
        }
    }

    /// One line about the machine.
    #[must_use]
    pub fn machine_line(&self) -> String {
        self.machine.line()
    }
}
