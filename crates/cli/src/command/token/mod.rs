// SPDX-License-Identifier: Apache-2.0
//! `metaslot token`

mod examine;
pub(crate) mod init;
mod list;
pub(crate) mod pin;

pub(crate) use list::states;

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
    /// Take out of a token what is damaged
    ///
    /// Says first what that is, as 'metaslot token verify' does. What is taken out is lost: make a copy
    /// of the token's directory before, or restore an older one. A PIN that is not the one that was last
    /// set is never accepted.
    Repair(examine::RepairArgs),
    /// Check every object of a token
    ///
    /// Is each as it was last written, can it be found, and are these all? Says what is wrong object by
    /// object, and then fails.
    Verify(examine::VerifyArgs),
}

pub(crate) fn run(app: &App, command: Command) -> Result<()> {
    match command {
        Command::Init(args) => init::run(app, &args),
        Command::List(args) => list::run(app, &args),
        Command::Pin(args) => pin::run(app, &args),
        Command::Repair(args) => examine::repair(app, &args),
        Command::Verify(args) => examine::verify(app, &args),
    }
}
