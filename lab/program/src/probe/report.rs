// SPDX-License-Identifier: Apache-2.0
//! Everything that was found out.

use super::ability::Finding;
use super::sources::Source;
use crate::machine::Machine;
use serde::{Deserialize, Serialize};

/// Everything that was found out.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Report {
    pub(super) schema: String,
    pub(super) command: Vec<String>,
    pub(super) started: u64,
    pub(super) seconds: f64,
    pub(super) machine: Machine,
    pub(super) abilities: Vec<Finding>,
    /// Empty where not every ability was tried.
    pub(super) sources: Vec<Source>,
}
