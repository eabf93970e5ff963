// SPDX-License-Identifier: Apache-2.0
//! `lab copy`: which way to copy memory, by the state of the memory, the size, and who reads next.
//!
//! There is no best copy. Stores that allocate lines bring the destination into the cache, which is what a
//! reader wants who comes at once, and waste bandwidth where none does. So the size from which on it is
//! better to write past the cache is a figure of its own for every state and reader.

mod area;
mod bench;
mod distance;
mod findings;
mod first;
mod into;
mod json;
mod options;
mod other;
mod print;
mod scenario;
#[cfg(test)]
mod tests;
mod words;

pub use options::Options;
pub use words::{Consumer, PageSize, State, Target};

use crate::Result;
use crate::experiment::Experiment;
use crate::scenario::{Made, RunOptions, Scenario, make};

/// A small one, for the control with two identical arms: the C library's copy of cached and of
/// streaming memory.
pub(crate) fn small() -> Result<Box<dyn Scenario>> {
    let options = Options {
        states: vec![State::Cached, State::Memory],
        pages: vec![PageSize::Small],
        sizes: vec![64 << 10],
        kernels: vec!["libc".to_owned()],
        consumers: vec![Consumer::Nobody],
        full: false,
        to: Vec::new(),
        run: RunOptions::default(),
    };
    Ok(Box::new(scenario::Copies::new(&options)?))
}

/// Measures.
pub(crate) fn run(options: &Options) -> Result<Made> {
    if options.to.is_empty() {
        make(&mut scenario::Copies::new(options)?, &options.run)
    } else {
        make(&mut into::Into::new(options)?, &options.run)
    }
}

/// The same as JSON.
pub(crate) fn json(experiment: &Experiment) -> serde_json::Value {
    json::summary(experiment)
}

/// What it comes to, in one sentence.
pub(crate) fn finding(experiment: &Experiment) -> Option<String> {
    if words::is_into(experiment) { None } else { print::finding(experiment) }
}

/// The text of an experiment that was made earlier.
pub(crate) fn text(experiment: &Experiment) -> String {
    let body =
        if words::is_into(experiment) { print::into(experiment) } else { print::text(experiment) };
    format!("{}\n{body}", crate::scenario::heading(experiment))
}
