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
use crate::scenario::{RunOptions, SamplingOptions, measure};
use crate::summary::summary;
use scenario::All;
use std::path::Path;

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut all = All::new(options)?;
    let mut run = RunOptions {
        seconds: options.seconds,
        repetitions: options.repetitions,
        seed: options.seed,
        output: options.output.output.clone(),
        json: options.output.json,
        sampling: SamplingOptions::default(),
    };
    let directory = run.directory("mechanisms");
    run.output = Some(directory.clone());
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
