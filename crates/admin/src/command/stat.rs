// SPDX-License-Identifier: Apache-2.0
//! `metaslot stat`

use crate::app::App;
use crate::failure::{Failure, Result};

/// Reads the counter pages of every process that uses the module.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Seconds between two reports
    interval: Option<f64>,
}

pub(crate) fn run(_app: &App, _args: &Args) -> Result<()> {
    Err(Failure::failed("no counters yet"))
}
