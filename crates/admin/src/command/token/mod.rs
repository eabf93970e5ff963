// SPDX-License-Identifier: Apache-2.0
//! `metaslot token`

mod init;
mod list;
mod pin;

use crate::app::App;
use crate::failure::Result;
use clap::Subcommand;

/// Verbs for tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a token, or empty one that exists
    Init(init::Args),
    /// List the tokens and their state
    List(list::Args),
    /// Change a PIN, or give the user a new one
    Pin(pin::Args),
}

pub(crate) fn run(app: &App, command: Command) -> Result<()> {
    match command {
        Command::Init(args) => init::run(app, &args),
        Command::List(args) => list::run(app, &args),
        Command::Pin(args) => pin::run(app, &args),
    }
}
