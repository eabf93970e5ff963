// SPDX-License-Identifier: Apache-2.0
//! What the engine tells the counters.

/// One operation ended.
pub(crate) fn operation(_provider: u8, _mechanism: u16, _bytes: usize, _ok: bool) {}

/// Data of an operation that goes on.
pub(crate) fn bytes(_provider: u8, _mechanism: u16, _bytes: usize) {}
