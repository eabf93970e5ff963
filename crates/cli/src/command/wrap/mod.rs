// SPDX-License-Identifier: Apache-2.0
//! `metaslot wrap`

pub(crate) mod open;
mod way;

use super::arguments::{Opened, UserArg};
use super::payload;
use crate::app::App;
use crate::encoding::base64;
use crate::failure::{Failure, Result};
use crate::find;
use crate::host::Token;
use crate::key::Key;
use crate::output::Report;
use crate::uri::Class;
use metaslot_client::Access;
use serde_json::json;
use std::io::{IsTerminal, stdout};
use std::path::PathBuf;
use way::Way;
pub(super) use way::ways;

const EXAMPLES: &str = "\
Examples:
  metaslot wrap backup --with kek --out backup.wrapped
  metaslot wrap backup --with partner -m oaep --hash sha256 --out backup.wrapped";

/// Arguments of `wrap`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The key that leaves: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    key: String,
    /// The key that wraps it, in the same token
    #[arg(long = "with", value_name = "URI|LABEL")]
    by: String,
    #[command(flatten)]
    way: way::WayArg,
    /// Where the wrapped key goes [default: standard output]
    #[arg(long = "out", short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The form of the wrapped key [default: raw; base64 on a terminal]
    #[arg(long, short, value_enum)]
    format: Option<Form>,
    #[command(flatten)]
    user: UserArg,
}

/// Forms of a wrapped key.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Form {
    /// Bytes
    Raw,
    /// One line of base64
    Base64,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let by = args.user.key(&args.by)?;
    let opened = args.user.open::<Key>(app, &args.key, Access::ReadOnly)?;
    let (name, token) = (opened.uri(), opened.token.uri());
    let Opened { session, token: Token { slot, .. }, it: key, .. } = opened;
    let by = find::one::<Key>(&session, &token, &by)?;
    let leaves = key.part(Class::Secret).or_else(|| key.part(Class::Private));
    let leaves = leaves.ok_or_else(|| {
        Failure::failed(format!(
            "'{}' is a public half alone: 'metaslot key export' writes it",
            key.label
        ))
    })?;
    if key.extractable == Some(false) {
        return Err(Failure::failed(format!("'{}' is not extractable (CKA_EXTRACTABLE): it leaves in no form", key.label))
            .hint("whether a key can leave is decided when it is made: 'metaslot key generate --extractable'"));
    }
    let wraps = by.part(Class::Secret).or_else(|| by.part(Class::Public)).ok_or_else(|| {
        Failure::not_found(format!("the token has no half of '{}' that wraps", by.label))
    })?;
    let way = Way::choose(&by.kind, &args.way, &session, slot)?;
    let wrapped = session.wrap(&way.mechanism(), wraps, leaves);
    let wrapped = wrapped.map_err(|error| way.explained(error.into(), &key.kind, &by.kind))?;
    let report = Report {
        json: json!({
            "key": name,
            "with": by.uri(&token).to_string(),
            "mechanism": way.name(),
            "type": key.kind.to_string(),
            "wrapped": base64(&wrapped),
        }),
        ..Report::default()
    };
    let is_text = match args.format {
        Some(form) => form == Form::Base64,
        None => args.output.is_none() && stdout().is_terminal(),
    };
    let bytes = if is_text { format!("{}\n", base64(&wrapped)).into_bytes() } else { wrapped };
    payload::write_beside(&app.output, args.output.as_deref(), &bytes, &report)
}
