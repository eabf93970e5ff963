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
mod run;
mod writer;

use crate::output::Output;
use crate::place::Place;
use crate::role::Role;
use crate::token::own_module;
use crate::{Failure, Result};
use std::path::PathBuf;

/// How many writers, how many kills.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The module to test [default: libmetaslot.so beside this program, or installed]
    #[arg(long, value_name = "PATH")]
    pub module: Option<PathBuf>,
    /// How many writers are killed
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub kills: u64,
    /// How many write at the same time
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub writers: usize,
    /// Longest time between two kills, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 60)]
    pub interval: u64,
    /// One in so many kills may also hit a writer that is still logging in; 0 for none
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub starting: u64,
    /// Random seed, to repeat the order of a run
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Where the result goes
    #[command(flatten)]
    pub output: Output,
    /// Where the token is made for the run [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Keep the token and the logs
    #[arg(long)]
    pub keep: bool,
}

/// Kills and checks, or plays one of the parts.
pub(crate) fn run(options: &Options) -> Result<()> {
    match Role::of_this_process()? {
        Some(Role::Writer { module, name, log }) => writer::run(&module, &name, &log),
        Some(Role::Checker { module, logs }) => check::run(&module, &logs),
        Some(Role::Holder { module, .. }) => writer::make_token(&module),
        Some(_) => Err(Failure::new("this process has a part in another experiment")),
        None => {
            if options.writers == 0 || options.interval == 0 {
                return Err(Failure::new("--writers and --interval must be above zero"));
            }
            let module = own_module(options.module.as_deref())?;
            run::run(options, &module, &Place::guarded(options.dir.as_deref(), options.keep)?)
        }
    }
}
