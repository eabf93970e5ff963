// SPDX-License-Identifier: Apache-2.0
//! `metaslot token`

mod copy;
mod database;
mod delete;
mod examine;
mod identity;
mod import;
pub(crate) mod init;
mod list;
pub(crate) mod pin;
mod place;
mod rename;
mod show;

pub(crate) use list::states;
pub(crate) use place::ADDED;

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
    /// Show all that is known of a token
    ///
    /// What 'metaslot token list --json' says, how many objects there are, the policy, and where it is.
    /// With the PIN private objects are counted, too.
    Show(show::Args),
    /// Give a token another label
    ///
    /// Programs that run see it at once. URIs with the old label name it no longer.
    Rename(rename::Args),
    /// Delete a token, and every key in it
    ///
    /// On a terminal its label is asked for. Takes the SO PIN, and is refused while another process has the token open.
    Delete(delete::Args),
    /// Move what is in another module's token here, through that module
    ///
    /// Keys that can be read or wrapped, certificates and data, with their attributes. The other token is not changed. What is
    /// in this one already is not doubled. What cannot be moved is listed with the reason, and the exit code is then 6.
    Import(import::Args),
    /// Copy a token into a file, while others use it
    ///
    /// The file is sealed as the token is, and opens with the same PINs, so it can be kept anywhere. All of the copy is
    /// looked at before the file appears. Keys made since then are not in it, and keys deleted since are.
    Backup(copy::BackupArgs),
    /// Make the token of a slot that has none from a backup
    ///
    /// All of it is looked at before. What is there already is never replaced. Its PINs are those that it had.
    Restore(copy::RestoreArgs),
    /// Copy a token into a PostgreSQL database, or out of one
    ///
    /// All of it is looked at before it is there. It opens with the same PINs. What counts in its keys, as in those of one-time
    /// signatures, does not go on in the copy by itself.
    Copy(database::Args),
    /// Give the user a new PIN, as security officer
    ///
    /// This also unlocks it, if it is locked: the same as 'metaslot token pin --reset'.
    Unlock(pin::UnlockArgs),
    /// Change a PIN, or give the user a new one
    ///
    /// Without an option the user changes the user PIN.
    Pin(pin::Args),
    /// Add and revoke users with names, each with a PIN of its own
    ///
    /// An identity has what the token gives a user, logs in by C_LoginUser, and is named in the audit log. Each is revoked alone.
    #[command(subcommand)]
    Identity(identity::Command),
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
        Command::Init(args) => match args.at() {
            Some(at) => database::init(app, at, &args.order()),
            None => init::run(app, &args),
        },
        Command::List(args) => list::run(app, &args),
        Command::Show(args) => show::run(app, &args),
        Command::Rename(args) => rename::run(app, &args),
        Command::Delete(args) => delete::run(app, &args),
        Command::Import(args) => import::run(app, &args),
        Command::Backup(args) => copy::backup(app, &args),
        Command::Restore(args) => copy::restore(app, &args),
        Command::Copy(args) => database::copy(app, &args),
        Command::Unlock(args) => pin::unlock(app, &args),
        Command::Pin(args) => pin::run(app, &args),
        Command::Identity(command) => identity::run(app, &command),
        Command::Repair(args) => examine::repair(app, &args),
        Command::Verify(args) => examine::verify(app, &args),
    }
}
