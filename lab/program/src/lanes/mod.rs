// SPDX-License-Identifier: Apache-2.0
//! `lab lanes`: what the kernels reach, by themselves and through the C ABI.
//!
//! The kernels run in a program of their own (`metaslot-kernels`), the load through the C ABI is a program in C that is
//! compiled for the run. Both take turns with what they are compared with; both compare their results. Nothing here needs to be
//! trusted to be quiet: a ratio is made of neighbours, the two arms of a cell.

mod compile;
mod door;
#[cfg(test)]
mod example;
mod finding;
mod kernel;
mod options;
mod plan;
mod print;
mod report;
mod rows;
mod scenario;

pub(crate) use kernel::program;
pub use options::Options;
pub(crate) use print::text;

use crate::experiment::Experiment;
use crate::filter::wanted;
use crate::scenario::{Made, RunOptions, make, margin};
use crate::summary::summary;
use crate::{Failure, Result};
use plan::Plan;
use report::Report;
use rows::ROWS;
use scenario::Lanes;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// Lists, or measures.
pub(crate) fn run(options: &Options) -> Result<Option<Made>> {
    let rows = wanted(ROWS, |row| row.name, &options.only, "row")?;
    if options.list {
        return print::list(&rows, options.goals).list(options.token.json).map(|()| None);
    }
    let plan = plan(options)?;
    let run = RunOptions::of(&options.token);
    let run = RunOptions { repetitions: Some(plan.rounds), ..run };
    let made = make(&mut Lanes::new(options, rows, plan)?, &run)?;
    Ok(Some(Made { goals: options.goals, ..made }))
}

/// What it comes to, in one sentence.
pub(crate) fn finding(directory: &Path, experiment: &Experiment) -> Option<String> {
    finding::sentence(&Report::of(directory, experiment), margin(experiment))
}

/// The summary, with every operation's samples.
pub(crate) fn json(directory: &Path, experiment: &Experiment) -> Value {
    let mut summary = summary(experiment);
    summary["lanes"] = json!(Report::of(directory, experiment));
    summary
}

/// The tables of a run whose file is JSON.
///
/// # Errors
/// It is not of this kind.
pub(crate) fn earlier(file: Value, goals: bool) -> Result<String> {
    Ok(print::tables(&serde_json::from_value(file)?, goals))
}

fn plan(options: &Options) -> Result<Plan> {
    let or = |value: Option<f64>, usual, quick| {
        value.unwrap_or(if options.quick { quick } else { usual })
    };
    let list = |given: &[usize], usual: &[usize], quick: &[usize]| match (given, options.quick) {
        ([], true) => quick.to_vec(),
        ([], false) => usual.to_vec(),
        (given, _) => given.to_vec(),
    };
    let threads = list(&options.threads, &[1, 2, 8, 16, 64], &[1, 16]);
    let keys = list(&options.keys, &[1, 16], &[1]);
    if threads.iter().any(|threads| !(1..=256).contains(threads)) {
        return Err(Failure::new("--threads wants numbers from 1 to 256")
            .hint("for example --threads 1,2,16"));
    }
    if keys.iter().any(|keys| !(1..=16).contains(keys)) {
        return Err(
            Failure::new("--keys wants numbers from 1 to 16").hint("for example --keys 1,16")
        );
    }
    let times = [
        or(options.sample, 5.0, 0.5) / 1e3,
        or(options.window, 200.0, 20.0) / 1e3,
        or(options.checks, 1.0, 0.05),
    ];
    let rounds = options.rounds.unwrap_or(if options.quick { 3 } else { 11 });
    if rounds == 0 || times.iter().any(|time| !(1e-6..=3600.0).contains(time)) {
        return Err(Failure::new("--rounds, --sample, --window and --checks must be above zero")
            .hint("--quick has small values for all of them"));
    }
    let [sample, window, checks] = times.map(Duration::from_secs_f64);
    let processors = std::thread::available_parallelism().map_or(1, Into::into);
    let without = options.without.clone();
    Ok(Plan { rounds, sample, window, checks, threads, keys, processors, without })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(line: &str) -> Options {
        Line::parse_from(std::iter::once("lanes").chain(line.split_whitespace())).options
    }

    #[test]
    fn quick_is_short_and_what_is_said_counts() {
        let usual = plan(&options("")).unwrap();
        assert_eq!((usual.rounds, usual.threads.len(), usual.keys.len()), (11, 5, 2));
        let quick = plan(&options("--quick --threads 4 --sample 2")).unwrap();
        assert_eq!((quick.rounds, &quick.threads[..], &quick.keys[..]), (3, &[4][..], &[1][..]));
        assert_eq!(quick.sample, Duration::from_millis(2));
        assert_eq!(quick.window, Duration::from_millis(20));
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused_with_a_hint() {
        for line in ["--threads 0", "--threads 257", "--keys 17", "--rounds 0", "--window 0"] {
            assert!(plan(&options(line)).unwrap_err().hint.is_some(), "{line}");
        }
    }
}
