// SPDX-License-Identifier: Apache-2.0
//! What `metaslot lab lanes` and the program that times the kernels (`metaslot-kernels`) say to each other: lines of JSON.

pub use crate::buffer::Buffer;

use crate::clock;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The first line: what there is to measure.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Ready {
    /// Whether this processor has the kernel's instructions; if not, no other line comes.
    pub available: bool,
    /// Numbers of filled lanes; the last is all of them.
    pub lanes: Vec<usize>,
    /// The kinds of instructions that may be the limit.
    pub ports: Vec<String>,
    /// Whether the plain library can do it.
    pub raw: bool,
}

/// One round, in nanoseconds of CPU time.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Sample {
    /// For one instruction of each kind when nothing else limits it.
    pub ports: Vec<f64>,
    /// For one operation by the plain library.
    pub raw: Option<f64>,
    /// For one operation, at each number of filled lanes.
    pub lanes: Vec<f64>,
}

/// The last line, after the results were compared.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct End {
    /// Instructions of each kind for one operation in full lanes.
    pub instructions: Vec<f64>,
    /// How that is known: `formula`, or `executed`, step by step.
    pub source: String,
    /// What only OpenSSL can judge.
    pub claims: Vec<Claim>,
}

/// A signature that should verify.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Claim {
    /// The curve's name.
    pub curve: String,
    /// The public point (SEC 1 §2.3.3).
    pub point: Vec<u8>,
    /// What was signed.
    pub digest: Vec<u8>,
    /// r and s.
    pub signature: Vec<u8>,
}

/// CPU time of the calling thread so far.
#[must_use]
pub fn thread_cpu() -> Duration {
    clock::thread_cpu()
}
