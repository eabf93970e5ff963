// SPDX-License-Identifier: Apache-2.0
//! `lab speed --all`: every mechanism of the module's token that digests, signs or encrypts, by size, with
//! lanes and without, and by the raw library where that is called directly.

mod print;
mod recipes;
mod scenario;

use super::Options;
use crate::Result;
use crate::experiment::Experiment;
use crate::output::say;
use crate::scenario::{RunOptions, measure};
use crate::summary::summary;
use scenario::All;
use std::path::Path;

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut all = All::new(options)?;
    let (directory, run) = RunOptions::of(&options.output, options.seed, "mechanisms");
    let (seconds, repetitions) = (options.seconds, options.repetitions);
    let run = RunOptions { seconds, repetitions, ..run };
    let experiment = measure(&mut all, &run)?;
    if options.output.json {
        return say(&(serde_json::to_string_pretty(&summary(&experiment))? + "\n"));
    }
    say(&text(&directory, &experiment))
}

/// The text of an experiment that was made earlier.
pub(crate) fn text(directory: &Path, experiment: &Experiment) -> String {
    print::text(directory, experiment)
}
