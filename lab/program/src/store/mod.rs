// SPDX-License-Identifier: Apache-2.0
//! `lab store`: what a token on disk costs as it grows.
//!
//! One store per number of objects, each held by a process of its own, because a process has one
//! configuration. The processes take turns, in random order: so stores of ten and of a million
//! objects are compared within one run. Raw SQLite gets a copy of the store's own file, and inserts
//! rows of the same tables, number and sizes in transactions of the same kind.

mod cold;
mod holder;
mod options;
mod print;
mod report;
mod scenario;
mod sqlite;
mod syncs;

pub use options::Options;

use crate::experiment::Experiment;
use crate::random::Random;
use crate::role::Role;
use crate::scenario::{Made, RunOptions, make};
use crate::summary::summary;
use crate::token::own_module;
use crate::{Failure, Result};
use report::Report;
use scenario::Stores;
use serde_json::{Value, json};
use std::path::Path;

/// Measures, or plays one of the parts.
pub(crate) fn run(options: &Options) -> Result<Option<Made>> {
    match Role::of_this_process()? {
        Some(Role::Holder { module, make }) => holder::run(&module, make)?,
        Some(Role::ColdStart { module }) => cold::run(&module)?,
        Some(_) => return Err(Failure::new("this process has a part in another experiment")),
        None => return ask(options).map(Some),
    }
    Ok(None)
}

fn ask(options: &Options) -> Result<Made> {
    if options.objects.is_empty() || options.rounds == 0 || options.threads == 0 {
        return Err(Failure::new("--objects, --rounds and --threads must be above zero"));
    }
    let module = own_module(options.token.module.as_deref())?;
    let seed = options.token.seed.unwrap_or_else(Random::seed_from_clock);
    let run = RunOptions::of(&options.token);
    let run = RunOptions { seed: Some(seed), repetitions: Some(options.rounds), ..run };
    make(&mut Stores::new(options, module, seed)?, &run)
}

/// The text of an experiment that was made earlier.
pub(crate) fn text(directory: &Path, experiment: &Experiment) -> String {
    print::text(experiment, &Report::of(directory, experiment))
}

/// The summary, with every store's samples.
pub(crate) fn json(directory: &Path, experiment: &Experiment) -> Value {
    let mut summary = summary(experiment);
    summary["store"] = json!(Report::of(directory, experiment));
    summary
}
