// SPDX-License-Identifier: Apache-2.0
//! `metaslot cert csr`

use super::issue::{HashArg, Signer};
use super::who::{Names, Purposes};
use crate::app::App;
use crate::command::arguments::UserArg;
use crate::command::payload::write_beside;
use crate::encoding::pem;
use crate::failure::Result;
use crate::key::Key;
use crate::output::Report;
use crate::x509::{self, Subject};
use metaslot_client::Access;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  metaslot cert csr site --dns www.example.org --dns example.org --out site.csr";

/// Arguments of `cert csr`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The key: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    key: String,
    #[command(flatten)]
    names: Names,
    #[command(flatten)]
    purposes: Purposes,
    #[command(flatten)]
    hash: HashArg,
    /// Where the request goes, in PEM [default: standard output]
    #[arg(long = "out", short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let others = args.names.others()?;
    let opened = args.user.open::<Key>(app, &args.key, Access::ReadOnly)?;
    let key = &opened.it;
    let signer = Signer::new((&opened.session, &opened.pin), key, &args.hash)?;
    let name = args.names.subject(key)?;
    let extensions =
        [args.purposes.extensions(key.kind.family)?, x509::names(&others, false)].concat();
    let public_key = signer.public_key.clone();
    let der = x509::request(&Subject { name, public_key, extensions }, signer.how())?;
    let text = pem("CERTIFICATE REQUEST", &der);
    let json = json!({"request": text, "key": opened.uri()});
    let report = Report { json, ..Report::default() };
    write_beside(&app.output, args.output.as_deref(), text.as_bytes(), &report)
}
