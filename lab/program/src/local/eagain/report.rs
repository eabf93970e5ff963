// SPDX-License-Identifier: Apache-2.0
//! What was found out.

use super::super::path::LocalPath;
use super::fill::{MESSAGE, Pattern};
use crate::machine::Machine;
use serde::{Deserialize, Serialize};

/// What is asked for by SO_SNDBUF: nothing, less than usual systems give, and more.
pub(super) const BUFFERS: [Option<usize>; 3] = [None, Some(49_152), Some(262_144)];

/// One run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Report {
    pub(super) schema: String,
    pub(super) command: Vec<String>,
    pub(super) started: u64,
    pub(super) seconds: f64,
    pub(super) machine: Machine,
    /// Milliseconds after which a path that still accepts is left alone.
    pub(super) patience_ms: u64,
    pub(super) cells: Vec<Cell>,
}

/// One path, filled once.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Cell {
    pub(super) path: LocalPath,
    pub(super) pattern: Pattern,
    /// By SO_SNDBUF; null leaves the buffer as the system gives it.
    pub(super) asked: Option<usize>,
    /// Bytes, when it was full.
    pub(super) buffer: usize,
    pub(super) writes: u64,
    /// Bytes accepted, and read back.
    pub(super) payload: u64,
    /// It ended with EAGAIN; if not, it accepts more than this.
    pub(super) full: bool,
}

impl Cell {
    /// Payload over buffer.
    pub(super) fn share(&self) -> f64 {
        self.payload as f64 / self.buffer as f64
    }

    /// Bytes of the buffer that one write took.
    pub(super) fn charge(&self) -> f64 {
        self.buffer as f64 / self.writes as f64
    }

    /// Messages that are in whole.
    pub(super) const fn messages(&self) -> u64 {
        self.payload / MESSAGE as u64
    }
}

/// One cell.
pub(super) fn find(
    cells: &[Cell],
    path: LocalPath,
    asked: Option<usize>,
    pattern: Pattern,
) -> Option<&Cell> {
    let wanted = |cell: &&Cell| (cell.path, cell.asked, cell.pattern) == (path, asked, pattern);
    cells.iter().find(wanted)
}
