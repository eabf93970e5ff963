// SPDX-License-Identifier: Apache-2.0
//! The engine beside models of it (development only): histories of several threads in
//! `tests/concurrency`, a search for attacks in `tests/search`, and what the engine's own tests share
//! with them.

#![forbid(unsafe_code)]

mod words;

pub mod chance;
pub use words::*;
