// SPDX-License-Identifier: Apache-2.0
//! What is measured, and how long.

use std::time::Duration;

/// How much to measure.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) rounds: usize,
    pub(super) sample: Duration,
    pub(super) window: Duration,
    pub(super) checks: Duration,
    pub(super) threads: Vec<usize>,
    pub(super) keys: Vec<usize>,
    pub(super) processors: usize,
    pub(super) without: Vec<String>,
}
