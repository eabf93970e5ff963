// SPDX-License-Identifier: Apache-2.0
//! `lab speed --all`: every mechanism of the module's token that digests, signs or encrypts, by size, with
//! lanes and without, and by the raw library where that is called directly.

mod print;
mod recipes;
mod scenario;

use super::Options;
use crate::Result;
use crate::experiment::Experiment;
use crate::scenario::Made;
use std::path::Path;

/// Measures.
pub(crate) fn run(options: &Options) -> Result<Made> {
    scenario::jobs(options)?.make(options)
}

/// The text of an experiment that was made earlier.
pub(crate) fn text(directory: &Path, experiment: &Experiment) -> String {
    print::text(directory, experiment)
}
