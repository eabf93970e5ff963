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
mod run;
mod writer;

use crate::place::Place;
use crate::role::Role;
use crate::token::own_module;
use crate::{Failure, Result};
pub use options::Options;

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
