// SPDX-License-Identifier: Apache-2.0
//! `metaslot key`

mod copy;
mod delete;
mod export;
mod generate;
mod import;
mod list;
mod report;
mod set;
mod show;
mod test;

use crate::app::App;
use crate::failure::Result;
use clap::Subcommand;
pub(super) use report::report;

/// Verbs for keys.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Generate a key or a key pair in the token
    ///
    /// The key is made in the token and stays there: it is sensitive and, without --extractable,
    /// leaves it in no form.
    Generate(generate::Args),
    /// List keys
    ///
    /// Private and secret keys are seen only after a login. VALUE says whether a key's value can
    /// leave the token: 'sealed' never, 'wrappable' only encrypted by another key, 'readable' at any
    /// time.
    List(list::Args),
    /// Show what is known of a key
    ///
    /// Never a secret. Private and secret keys are seen only after a login.
    Show(show::Args),
    /// Try whether a key works
    ///
    /// Signs a text of the command's own and verifies it, by what 'metaslot sign' would take, or encrypts and decrypts it.
    Test(test::Args),
    /// Bring a key of a file into the token
    ///
    /// Of a pair both halves are made, and certificates that are in the file, too. A private key is sensitive in the token and,
    /// without --extractable, leaves it in no form; the file stays as it was. All of it is stored, or nothing.
    Import(import::Args),
    /// Write the public half of a key pair, or the value of a readable secret key
    ///
    /// A public half is written as SubjectPublicKeyInfo, which OpenSSL, Java and other programs read, or as a line for OpenSSH.
    /// It needs no PIN; the value of a secret key does, and is written only where the key is neither sensitive nor unextractable.
    Export(export::Args),
    /// Make another key of the same value in the token
    ///
    /// Of a pair both halves are copied, under a new label and a new id. The copy may do less than the key, and never more.
    Copy(copy::Args),
    /// Change what a key is called, what it is for, and how it is kept
    ///
    /// Both halves of a pair are changed. What protects a key goes one way: a key that is hidden or kept in the token stays so. A
    /// usage can be switched off, and by the default policy not on.
    Set(set::Args),
    /// Delete a key, both halves of a pair
    ///
    /// A URI with type=public or type=private deletes that half only. Certificates and data stay.
    Delete(delete::Args),
}

pub(crate) fn run(app: &App, command: Command) -> Result<()> {
    match command {
        Command::Generate(args) => generate::run(app, &args),
        Command::List(args) => list::run(app, &args),
        Command::Show(args) => show::run(app, &args),
        Command::Test(args) => test::run(app, &args),
        Command::Import(args) => import::run(app, &args),
        Command::Export(args) => export::run(app, &args),
        Command::Copy(args) => copy::run(app, &args),
        Command::Set(args) => set::run(app, &args),
        Command::Delete(args) => delete::run(app, &args),
    }
}
