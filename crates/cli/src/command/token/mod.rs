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
    ///
    /// Sets two PINs: the user's, which opens the keys, and the security officer's (SO), which can
    /// only give the user a new PIN and empty the token.
    Init(init::Args),
    /// List the tokens and their state
    ///
    /// The state says whether a PIN is missing, locked or close to it.
    List(list::Args),
    /// Change a PIN, or give the user a new one
    ///
    /// Without an option the user changes the user PIN.
    Pin(pin::Args),
}

pub(crate) fn run(app: &App, command: Command) -> Result<()> {
    match command {
        Command::Init(args) => init::run(app, &args),
        Command::List(args) => list::run(app, &args),
        Command::Pin(args) => pin::run(app, &args),
    }
}
