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
mod run;
mod sqlite;
mod syncs;

use crate::place::Place;
use crate::role::Role;
use crate::token::own_module;
use crate::{Failure, Result};
pub use options::Options;

/// Measures, or plays one of the parts.
pub(crate) fn run(options: &Options) -> Result<()> {
    match Role::of_this_process()? {
        Some(Role::Holder { module, make }) => holder::run(&module, make),
        Some(Role::ColdStart { module }) => cold::run(&module),
        Some(_) => Err(Failure::new("this process has a part in another experiment")),
        None => {
            if options.objects.is_empty() || options.rounds == 0 || options.threads == 0 {
                return Err(Failure::new("--objects, --rounds and --threads must be above zero"));
            }
            let module = own_module(options.module.as_deref())?;
            run::run(options, &module, &Place::guarded(options.dir.as_deref(), options.keep)?)
        }
    }
}
