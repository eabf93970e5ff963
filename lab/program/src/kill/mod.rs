// SPDX-License-Identifier: Apache-2.0
//! `lab kill`: what survives `kill -9`.
//!
//! Writers create and destroy token objects and append to a log what they are about to do and,
//! after the C call returned, that it was done. They are killed at random moments and started
//! again. In the end every object whose creation was acknowledged must be there and usable, and
//! every object whose destruction was acknowledged must be gone. A kill does not test what a power
//! cut loses: the system keeps written pages.

mod check;
mod log;
mod options;
mod report;
mod scenario;
mod victim;
mod writer;

pub use options::Options;

use crate::experiment::Experiment;
use crate::random::Random;
use crate::role::Role;
use crate::scenario::{Made, RunOptions, make};
use crate::summary::summary;
use crate::token::own_module;
use crate::{Failure, Result};
use report::Report;
use scenario::Kills;
use serde_json::{Value, json};
use std::path::Path;

/// Kills, or plays one of the parts.
pub(crate) fn run(options: &Options) -> Result<Option<Made>> {
    match Role::of_this_process()? {
        Some(Role::Writer { module, name, log }) => writer::run(&module, &name, &log)?,
        Some(Role::Checker { module, logs }) => check::run(&module, &logs)?,
        Some(Role::Holder { module, .. }) => writer::make_token(&module)?,
        Some(_) => return Err(Failure::new("this process has a part in another experiment")),
        None => return kill(options).map(Some),
    }
    Ok(None)
}

fn kill(options: &Options) -> Result<Made> {
    if options.kills == 0 || options.writers == 0 || options.interval == 0 {
        return Err(Failure::new("--kills, --writers and --interval must be above zero"));
    }
    let module = own_module(options.token.module.as_deref())?;
    let seed = options.token.seed.unwrap_or_else(Random::seed_from_clock);
    let run = RunOptions::of(&options.token);
    let run = RunOptions { seed: Some(seed), repetitions: Some(options.kills), ..run };
    make(&mut Kills::new(options, module, seed)?, &run)
}

/// # Errors
/// The token is not as it was acknowledged.
pub(crate) fn check(made: &Made) -> Result<()> {
    Report::of(&made.directory, &made.experiment).check()
}

/// The text of an experiment that was made earlier.
pub(crate) fn text(directory: &Path, experiment: &Experiment) -> String {
    Report::of(directory, experiment).text(experiment)
}

/// The summary, with what happened to the writers and their objects.
pub(crate) fn json(directory: &Path, experiment: &Experiment) -> Value {
    let mut summary = summary(experiment);
    summary["kill"] = json!(Report::of(directory, experiment));
    summary
}
