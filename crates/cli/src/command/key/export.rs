// SPDX-License-Identifier: Apache-2.0
//! `metaslot key export`

use crate::app::App;
use crate::command::arguments::{Opened, UserArg};
use crate::command::payload;
use crate::encoding::{hex_line, pem};
use crate::failure::{Failure, Result};
use crate::key::{self, Key};
use crate::output::Report;
use crate::uri::Class;
use clap::ValueEnum;
use metaslot_client::Access;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  metaslot key export site --out site.pub.pem
  metaslot key export me --format ssh >> ~/.ssh/authorized_keys";

/// Arguments of `key export`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The key: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    key: String,
    /// The form
    #[arg(long, short, value_enum, default_value_t = Format::Pem)]
    format: Format,
    /// Where the key goes [default: standard output]
    #[arg(long = "out", short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    user: UserArg,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Format {
    /// The public half as text between BEGIN and END lines
    Pem,
    /// The public half as bytes
    Der,
    /// The public half as OpenSSH has it in one line, with the label behind it
    Ssh,
    /// The bytes of a readable secret key
    Raw,
    /// The same in hexadecimal
    Hex,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    match args.format {
        Format::Pem | Format::Der | Format::Ssh => public(app, args),
        Format::Raw | Format::Hex => secret(app, args),
    }
}

fn public(app: &App, args: &Args) -> Result<()> {
    let uri = args.user.key(&args.key)?;
    let login = args.user.login_with(app, &uri)?;
    let token = login.token.uri();
    let module = app.host(&uri)?.module();
    let session = module.open_session(login.token.slot, Access::ReadOnly)?;
    let keys = key::search(&session, &uri)?;
    if keys.is_empty() {
        let failure = Failure::not_found(format!("no public key matches {}", uri.key_part()));
        return Err(failure.hint(
            "'metaslot key list --public' shows the public keys of a token, and --format raw writes a secret key",
        ));
    }
    let key = key::only(keys, &uri, &token)?;
    let handle = key.part(Class::Public).ok_or_else(|| {
        Failure::not_found(format!("the token has no public half of key '{}'", key.label))
    })?;
    let der = key::public_key(&session, &key, handle)?;
    let pem = pem("PUBLIC KEY", &der);
    let name = key.uri(&token).to_string();
    let mut json = json!({"key": name, "type": key.kind.to_string(), "public_key": pem});
    let bytes = match args.format {
        Format::Der => der,
        Format::Ssh => {
            let line = key::ssh_line(&key.kind, &der, &key.label)?;
            json["ssh"] = line.clone().into();
            format!("{line}\n").into_bytes()
        }
        _ => pem.into_bytes(),
    };
    let report = Report { json, ..Report::default() };
    payload::write_beside(&app.output, args.output.as_deref(), &bytes, &report)
}

fn secret(app: &App, args: &Args) -> Result<()> {
    let opened = args.user.open::<Key>(app, &args.key, Access::ReadOnly)?;
    let name = opened.uri();
    let Opened { session, it: key, .. } = opened;
    let handle = key.part(Class::Secret).ok_or_else(|| not_secret(&key))?;
    if let Some(reason) = stays_because(&key) {
        return Err(Failure::failed(format!(
            "the value of '{}' does not leave the token: {reason}",
            key.label
        ))
        .hint("'metaslot wrap' takes a key out under another one, where it is extractable"));
    }
    let value = key::value(&session, handle)?;
    let report = Report {
        json: json!({"key": name, "type": key.kind.to_string(), "bytes": value.len()}),
        ..Report::default()
    };
    let written = if args.format == Format::Raw { value } else { hex_line(&value) };
    payload::write_secret(&app.output, args.output.as_deref(), &written, &report)
}

fn not_secret(key: &Key) -> Failure {
    let message = format!(
        "'{}' is a key pair, whose private half does not leave the token as it is",
        key.label
    );
    Failure::failed(message).hint(
        "'metaslot key export' without --format writes the public half, 'metaslot wrap' takes the private one out \
         under another key, where it is extractable",
    )
}

/// Why a value cannot be read, by the attributes that say so.
const fn stays_because(key: &Key) -> Option<&'static str> {
    match (key.sensitive, key.extractable) {
        (Some(true), Some(false)) => {
            Some("it is sensitive (CKA_SENSITIVE) and not extractable (CKA_EXTRACTABLE)")
        }
        (Some(true), _) => Some("it is sensitive (CKA_SENSITIVE)"),
        (_, Some(false)) => Some("it is not extractable (CKA_EXTRACTABLE)"),
        _ => None,
    }
}
