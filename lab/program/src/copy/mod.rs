// SPDX-License-Identifier: Apache-2.0
//! `lab copy`: which way to copy memory, by the state of the memory, the size, and who reads next.
//!
//! There is no best copy. Stores that allocate lines bring the destination into the cache, which is what a
//! reader wants who comes at once, and waste bandwidth where nobody does. So the size from which on it is
//! better to write past the cache is a figure of its own for every state and reader.

mod area;
mod bench;
mod distance;
mod findings;
mod first;
mod into;
mod json;
mod other;
mod print;
mod scenario;
#[cfg(test)]
mod tests;
mod words;

pub use into::Target;
pub use words::{Consumer, PageSize, State};

use crate::Result;
use crate::experiment::Experiment;
use crate::output::say;
use crate::scenario::{RunOptions, Scenario, measure};
use std::path::Path;

/// What is copied, from where, how, and for whom.
#[derive(Clone, Debug, clap::Args)]
#[command(mut_arg("seconds", |argument| argument.default_value("50")))]
pub struct Options {
    /// States of the memory before the copy [default: all]
    #[arg(long, value_name = "STATE,…", value_enum, value_delimiter = ',')]
    pub states: Vec<State>,
    /// Sizes of pages [default: both]
    #[arg(long, value_name = "SIZE,…", value_enum, value_delimiter = ',', ignore_case = true)]
    pub pages: Vec<PageSize>,
    /// Bytes of a copy, such as 512, 16K or 8M [default: 1K,4K,16K,128K,1M,8M]
    #[arg(long, value_name = "SIZE,…", value_parser = words::size, value_delimiter = ',')]
    pub sizes: Vec<usize>,
    /// Kernels: libc, movsb, avx2, avx512, avx512-back, nt-avx2, nt-avx512, ours [default: what the
    /// processor has]
    #[arg(long, value_name = "KERNEL,…", value_delimiter = ',')]
    pub kernels: Vec<String>,
    /// Who reads what was copied [default: all; other than nobody with 2M pages only, and only where the
    /// destination is not untouched]
    #[arg(long, value_name = "WHO,…", value_enum, value_delimiter = ',')]
    pub consumers: Vec<Consumer>,
    /// Every combination, and copies of 64M too
    #[arg(long)]
    pub full: bool,
    /// Copy into the kernel instead, beside a copy in memory
    #[arg(
        long, value_name = "WHERE,…", value_enum, value_delimiter = ',',
        conflicts_with_all = ["pages", "kernels", "consumers", "full"]
    )]
    pub to: Vec<Target>,
    /// How it is run
    #[command(flatten)]
    pub run: RunOptions,
}

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

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    let directory = options.run.directory("copy");
    let run = RunOptions { output: Some(directory.clone()), ..options.run.clone() };
    let experiment = if options.to.is_empty() {
        measure(&mut scenario::Copies::new(options)?, &run)?
    } else {
        measure(&mut into::Into::new(options)?, &run)?
    };
    say(&if options.run.json {
        serde_json::to_string_pretty(&json::summary(&experiment))? + "\n"
    } else {
        text(&directory, &experiment)
    })
}

/// The same as JSON.
pub(crate) fn json(experiment: &Experiment) -> serde_json::Value {
    json::summary(experiment)
}

/// The text of an experiment that was made earlier.
pub(crate) fn text(directory: &Path, experiment: &Experiment) -> String {
    let body =
        if print::is_into(experiment) { print::into(experiment) } else { print::text(experiment) };
    format!("{}\n{body}\nwritten: {}\n", crate::scenario::heading(experiment), directory.display())
}
