// SPDX-License-Identifier: Apache-2.0
//! `lab speed --through-openssl`: the real `openssl speed`, plain, with this project's provider and with libp11's engine, and its loop
//! with a key that is named; on one process and on several, without jobs and with up to many.

mod place;
mod print;
mod program;
mod rows;
mod scenario;
mod view;

pub(crate) use print::{json, text};
pub(crate) use program::{Shape, loops};

use super::Options;
use crate::Result;
use crate::scenario::{Made, RunOptions, make};

/// Measures.
pub(super) fn run(options: &Options) -> Result<Made> {
    let mut scenario = scenario::Through::new(options)?;
    let run = RunOptions::of(&options.token);
    let seconds = options.seconds.or(Some(scenario::SECONDS));
    make(&mut scenario, &RunOptions { seconds, repetitions: options.repetitions, ..run })
}
