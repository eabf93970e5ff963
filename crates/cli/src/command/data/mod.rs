// SPDX-License-Identifier: Apache-2.0
//! `metaslot data`

mod delete;
mod export;
mod found;
mod import;
mod list;
mod show;

use crate::app::App;
use crate::failure::Result;
use clap::Subcommand;

/// Verbs for data objects.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the data of a token
    ///
    /// What is private is seen only after a login.
    List(list::Args),
    /// Show what is known of data
    ///
    /// Not what is in it: 'metaslot data export' writes that.
    Show(show::Args),
    /// Put a file into the token
    ///
    /// It is private, unless --public is given: nobody sees it without the user's PIN, and in the store it is sealed.
    Import(import::Args),
    /// Write what was put into the token
    Export(export::Args),
    /// Delete data
    Delete(delete::Args),
}

pub(crate) fn run(app: &App, command: Command) -> Result<()> {
    match command {
        Command::List(args) => list::run(app, &args),
        Command::Show(args) => show::run(app, &args),
        Command::Import(args) => import::run(app, &args),
        Command::Export(args) => export::run(app, &args),
        Command::Delete(args) => delete::run(app, &args),
    }
}
