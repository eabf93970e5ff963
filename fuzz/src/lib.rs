// SPDX-License-Identifier: Apache-2.0
//! Fuzz targets (development only): functions from bytes, which never panic, hang or take memory without bounds, whatever the
//! bytes are, and which check what must hold of every answer.
//!
//! `tests/targets.rs` runs each for a while, over the corpus in `testdata/fuzz` and what a small mutator makes of it;
//! `cargo xtask fuzz` runs them under libFuzzer for as long as one likes.

#![forbid(unsafe_code)]

mod configuration;
mod der;
mod input;
mod keyfile;
mod lane;
pub mod mutate;
mod parameter;
mod row;
mod template;
mod tokens;
mod uri;

/// One kind of input.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of its folder in `testdata/fuzz`.
    pub name: &'static str,
    /// Runs one input. The answer stands for what was seen: inputs with new answers are worth keeping.
    pub run: fn(&[u8]) -> u64,
    /// Inputs of a short run.
    pub inputs: usize,
}

/// All of them.
pub const TARGETS: [Target; 8] = [
    Target { name: "template", run: template::run, inputs: 3_000 },
    Target { name: "parameter", run: parameter::run, inputs: 8_000 },
    Target { name: "configuration", run: configuration::run, inputs: 6_000 },
    Target { name: "der", run: der::run, inputs: 1_000 },
    Target { name: "uri", run: uri::run, inputs: 30_000 },
    Target { name: "keyfile", run: keyfile::run, inputs: 2_000 },
    Target { name: "row", run: row::run, inputs: 3_000 },
    Target { name: "lane", run: lane::run, inputs: 20_000 },
];
