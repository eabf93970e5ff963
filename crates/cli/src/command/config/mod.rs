// SPDX-License-Identifier: Apache-2.0
//! `metaslot config`

mod check;
mod settings;
mod show;

use crate::app::App;
use crate::failure::Result;
use clap::Subcommand;

/// Verbs for the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say whether the module takes the configuration
    ///
    /// The module reads all of it. What is wrong is said with its file and line, and the exit code is then 1.
    Check(check::Args),
    /// Show every setting that counts, and where it comes from
    ///
    /// That is a file and line, a variable, or the default.
    Show(show::Args),
}

pub(crate) fn run(app: &App, command: &Command) -> Result<()> {
    match command {
        Command::Check(args) => check::run(app, args),
        Command::Show(args) => show::run(app, args),
    }
}
