// SPDX-License-Identifier: Apache-2.0
//! `lab speed --all`: every mechanism of the module's token that digests, signs or encrypts, by size, with
//! lanes and without, and by the raw library where that is called directly.

mod print;
mod recipes;
mod scenario;

use super::Options;
pub(crate) use print::text;

use crate::Result;
use crate::scenario::Made;

/// Measures.
pub(crate) fn run(options: &Options) -> Result<Made> {
    scenario::jobs(options)?.make(options)
}
