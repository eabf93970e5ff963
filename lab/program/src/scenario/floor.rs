// SPDX-License-Identifier: Apache-2.0
//! The floor that `lab aa` has found, kept for the commands after it: for this machine, until it is
//! started again or a day has passed.

use crate::experiment::{Experiment, Floor};
use crate::machine::now;
use crate::verdict::Margin;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// So long it is "today's".
const DAY: u64 = 24 * 60 * 60;

#[derive(Debug, Deserialize, Serialize)]
struct Kept {
    boot: String,
    floor: Floor,
}

/// Keeps it. That it cannot be kept is no failure: the commands after this one then go by 2 %.
pub(crate) fn keep(floor: Floor) {
    let (Some(path), Some(boot)) = (path(), boot()) else { return };
    let Ok(text) = serde_json::to_string_pretty(&Kept { boot, floor }) else { return };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).ok();
    }
    std::fs::write(path, text).ok();
}

/// Today's, if there is one.
pub(super) fn known() -> Option<Floor> {
    let text = std::fs::read_to_string(path()?).ok()?;
    let kept: Kept = serde_json::from_str(&text).ok()?;
    let fresh = now().saturating_sub(kept.floor.measured) < DAY;
    (fresh && Some(kept.boot) == boot()).then_some(kept.floor)
}

/// The margin of an experiment's verdicts by CPU time.
pub(crate) fn margin(experiment: &Experiment) -> Margin {
    Margin::new(experiment.manifest.provenance.floor.as_ref().map(|floor| floor.cpu))
}

fn path() -> Option<PathBuf> {
    let state =
        std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    Some(state.or_else(home)?.join("metaslot/lab-floor.json"))
}

fn boot() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}
