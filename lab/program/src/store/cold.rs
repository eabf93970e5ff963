// SPDX-License-Identifier: Apache-2.0
//! A cold start: a fresh process loads the module, opens a session and finds a public object.

use super::holder::PUBLIC;
use crate::experiment::Sample;
use crate::place::Store;
use crate::role::Role;
use crate::token::slot_of_token;
use crate::{Failure, Result};
use metaslot_ck::CKA_LABEL;
use metaslot_client::{Access, Module, Template};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// What one start took.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Start {
    pub(crate) load_ms: f64,
    pub(crate) initialize_ms: f64,
    pub(crate) open_ms: f64,
    pub(crate) find_ms: f64,
    /// From before the load to after the find.
    pub(crate) total_ms: f64,
    /// Highest resident memory of the whole process, and what it was before the load.
    pub(crate) resident_kib: f64,
    pub(crate) resident_before_kib: f64,
}

impl Start {
    /// Several starts, to be divided by their number.
    pub(crate) fn add(&mut self, other: &Self) {
        self.load_ms += other.load_ms;
        self.initialize_ms += other.initialize_ms;
        self.open_ms += other.open_ms;
        self.find_ms += other.find_ms;
        self.total_ms += other.total_ms;
        self.resident_kib += other.resident_kib;
        self.resident_before_kib += other.resident_before_kib;
    }

    /// As a sample has it: the fields by their names.
    pub(crate) fn counters(&self) -> BTreeMap<String, f64> {
        let value = serde_json::to_value(self).and_then(serde_json::from_value);
        value.unwrap_or_default()
    }

    /// From a sample's counters.
    pub(crate) fn of(sample: &Sample) -> Self {
        let each = |name: &str| sample.counted_each(name).unwrap_or(f64::NAN);
        Self {
            load_ms: each("load_ms"),
            initialize_ms: each("initialize_ms"),
            open_ms: each("open_ms"),
            find_ms: each("find_ms"),
            total_ms: each("total_ms"),
            resident_kib: each("resident_kib"),
            resident_before_kib: each("resident_before_kib"),
        }
    }
}

/// Starts a process for one cold start.
pub(crate) fn start(store: &Store, module: &Path) -> Result<Start> {
    let role = Role::ColdStart { module: module.to_owned() };
    let output = store.command(&role)?.stderr(std::process::Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(Failure::new("a cold start failed"));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The fresh process.
pub(crate) fn run(module: &Path) -> Result<()> {
    let resident_before_kib = resident()?;
    let mut clock = Clock { started: Instant::now(), last: Instant::now() };
    let module = Module::load(module)?;
    let load_ms = clock.lap();
    module.initialize()?;
    let initialize_ms = clock.lap();
    let session = module.open_session(slot_of_token(&module)?, Access::ReadOnly)?;
    let open_ms = clock.lap();
    let found = session.find_one(&Template::new().bytes(CKA_LABEL, PUBLIC))?;
    let find_ms = clock.lap();
    let total_ms = clock.started.elapsed().as_secs_f64() * 1e3;
    found.ok_or_else(|| Failure::new("the public object was not found"))?;
    let start = Start {
        load_ms,
        initialize_ms,
        open_ms,
        find_ms,
        total_ms,
        resident_kib: resident()?,
        resident_before_kib,
    };
    println!("{}", serde_json::to_string(&start)?);
    Ok(())
}

struct Clock {
    started: Instant,
    last: Instant,
}

impl Clock {
    /// Milliseconds since the last call.
    fn lap(&mut self) -> f64 {
        let now = Instant::now();
        let lap = now.duration_since(self.last).as_secs_f64() * 1e3;
        self.last = now;
        lap
    }
}

/// The highest resident memory so far, in KiB.
fn resident() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
    number.ok_or_else(|| Failure::new("/proc/self/status has no VmHWM"))
}
