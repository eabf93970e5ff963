// SPDX-License-Identifier: Apache-2.0
//! What is found along an axis.

use super::axis::Axis;
use super::cliff::Cliff;
use crate::crossover::Crossover;
use serde::Serialize;

/// Everything that was found.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(super) schema: &'static str,
    #[serde(skip)]
    pub(crate) axis: Axis,
    pub(super) x: String,
    pub(crate) crossovers: Vec<Crossing>,
    pub(crate) cliffs: Vec<Fall>,
    pub(super) curves: usize,
}

/// Two arms of one curve.
#[derive(Debug, Serialize)]
pub(crate) struct Crossing {
    pub(crate) series: String,
    /// The first way of the crossover.
    pub(crate) arm: String,
    /// The second way.
    pub(crate) against: String,
    #[serde(flatten)]
    pub(crate) crossover: Crossover,
}

/// A cliff of one curve.
#[derive(Debug, Serialize)]
pub(crate) struct Fall {
    pub(crate) series: String,
    pub(crate) arm: String,
    #[serde(flatten)]
    pub(crate) cliff: Cliff,
}
