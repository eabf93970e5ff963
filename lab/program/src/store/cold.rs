// SPDX-License-Identifier: Apache-2.0
//! A cold start: a fresh process loads the module, opens a session and finds a public object.

use super::holder::PUBLIC;
use crate::role::Role;
use crate::sandbox::Store;
use crate::token::slot_of_token;
use crate::{Failure, Result};
use metaslot_ck::CKA_LABEL;
use metaslot_client::{Access, Module, Template};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// What a start took: milliseconds of its parts, and of all from before the load to after the find; the
/// highest resident memory of the whole process in KiB, and what it was before the load.
pub(crate) const PARTS: [&str; 7] = [
    "load_ms",
    "initialize_ms",
    "open_ms",
    "find_ms",
    "total_ms",
    "resident_kib",
    "resident_before_kib",
];

/// The parts by name.
pub(crate) type Start = BTreeMap<String, f64>;

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
    let (after, before) = (resident()?, resident_before_kib);
    let values = [load_ms, initialize_ms, open_ms, find_ms, total_ms, after, before];
    let start: Start = PARTS.map(str::to_owned).into_iter().zip(values).collect();
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
