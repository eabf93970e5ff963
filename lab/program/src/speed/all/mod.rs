// SPDX-License-Identifier: Apache-2.0
//! `lab speed --all`: every mechanism of the module's token that digests, signs or encrypts, by size, with
//! lanes and without, and by the raw library where that is called directly.

mod print;
mod recipes;
mod scenario;

use super::Options;
use crate::Result;
use crate::experiment::Experiment;
use crate::scenario::{Made, RunOptions, make};
use scenario::All;
use std::path::Path;

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<Made> {
    let mut all = All::new(options)?;
    let (seconds, repetitions) = (options.seconds, options.repetitions);
    let run = RunOptions::of(&options.output, options.seed);
    make(&mut all, &RunOptions { seconds, repetitions, ..run })
}

/// The text of an experiment that was made earlier.
pub(crate) fn text(directory: &Path, experiment: &Experiment) -> String {
    print::text(directory, experiment)
}
