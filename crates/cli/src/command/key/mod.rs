// SPDX-License-Identifier: Apache-2.0
//! `metaslot key`

mod delete;
mod export;
mod generate;
mod list;
mod report;

use crate::app::App;
use crate::failure::Result;
use clap::Subcommand;

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
    /// Write the public half of a key pair
    ///
    /// The form is SubjectPublicKeyInfo, which OpenSSL, Java and other programs read. Needs no PIN.
    Export(export::Args),
    /// Delete a key, both halves of a pair
    ///
    /// A URI with type=public or type=private deletes that half only. Certificates and data stay.
    Delete(delete::Args),
}

pub(crate) fn run(app: &App, command: Command) -> Result<()> {
    match command {
        Command::Generate(args) => generate::run(app, &args),
        Command::List(args) => list::run(app, &args),
        Command::Export(args) => export::run(app, &args),
        Command::Delete(args) => delete::run(app, &args),
    }
}
