// SPDX-License-Identifier: Apache-2.0
//! `metaslot cert`

mod crl;
mod csr;
mod delete;
mod export;
mod found;
mod import;
mod issue;
mod list;
mod selfsign;
mod set;
mod show;
mod sign;
mod who;

use crate::app::App;
use crate::failure::Result;
use clap::Subcommand;

/// Verbs for certificates.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List certificates
    ///
    /// KEY says whether the token has the certificate's key: its public half is looked for. Private ones alone need a PIN: --pin-source.
    List(list::Args),
    /// Show what stands in a certificate
    ///
    /// Nothing is said of whether it is to be trusted: its signature is not checked. A private one alone needs a PIN: --pin-source.
    Show(show::Args),
    /// Put a certificate into the token
    ///
    /// It gets the CKA_ID of its key, so that programs find one by the other, where the token has that key.
    Import(import::Args),
    /// Write a certificate
    ///
    /// A private one alone needs a PIN: --pin-source.
    Export(export::Args),
    /// Make a certificate that a key gives to itself
    ///
    /// For a server that is known by its certificate, for tests, and for a CA's root.
    Selfsign(selfsign::Args),
    /// Make a request for a certificate, which a CA signs
    Csr(csr::Args),
    /// Sign a request as a CA
    ///
    /// The request must be signed by its own key. The names that it asks for are certified and told, unless names
    /// are said here; of the rest that it asks for nothing is taken over: --for says what the certificate is for.
    Sign(sign::Args),
    /// List the certificates that a CA has revoked
    ///
    /// Each list takes over the entries of the one before, and has a number greater by one.
    Crl(crl::Args),
    /// Change what a certificate is called, and whether it is trusted
    ///
    /// CKA_TRUSTED is the security officer's word; NSS and GnuTLS look at it.
    Set(set::Args),
    /// Delete a certificate
    ///
    /// Its key stays.
    Delete(delete::Args),
}

pub(crate) fn run(app: &App, command: Command) -> Result<()> {
    match command {
        Command::List(args) => list::run(app, &args),
        Command::Show(args) => show::run(app, &args),
        Command::Import(args) => import::run(app, &args),
        Command::Export(args) => export::run(app, &args),
        Command::Selfsign(args) => selfsign::run(app, &args),
        Command::Csr(args) => csr::run(app, &args),
        Command::Sign(args) => sign::run(app, &args),
        Command::Crl(args) => crl::run(app, &args),
        Command::Set(args) => set::run(app, &args),
        Command::Delete(args) => delete::run(app, &args),
    }
}
