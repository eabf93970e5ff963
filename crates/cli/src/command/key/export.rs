// SPDX-License-Identifier: Apache-2.0
//! `metaslot key export`

use crate::app::App;
use crate::command::arguments::{PinArg, TokenArg};
use crate::command::payload;
use crate::encoding::pem;
use crate::failure::{Failure, Result};
use crate::key;
use crate::output::Report;
use crate::uri::Class;
use clap::ValueEnum;
use metaslot_client::Access;
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `key export`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The key: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    key: String,
    /// PEM or DER
    #[arg(long, short, value_enum, default_value_t = Format::Pem)]
    format: Format,
    /// Where the key goes [default: standard output]
    #[arg(long = "out", short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    token: TokenArg,
    #[command(flatten)]
    pin: PinArg,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Format {
    /// Text between BEGIN and END lines
    Pem,
    /// Bytes
    Der,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.token.key(&args.key)?;
    let login = args.pin.login_with(app, &uri)?;
    let token = login.token.uri();
    let module = app.host(&uri)?.module();
    let session = module.open_session(login.token.slot, Access::ReadOnly)?;
    let keys = key::search(&session, &uri)?;
    if keys.is_empty() {
        let failure = Failure::not_found(format!("no public key matches {}", uri.key_part()));
        return Err(failure.hint("'metaslot key list --public' shows the public keys of a token"));
    }
    let key = key::only(keys, &uri, &token)?;
    let handle = key.part(Class::Public).ok_or_else(|| {
        Failure::not_found(format!("the token has no public half of key '{}'", key.label))
    })?;
    let der = key::public_key(&session, &key, handle)?;
    let pem = pem("PUBLIC KEY", &der);
    let name = key.uri(&token).to_string();
    let report = Report {
        json: json!({"key": name, "type": key.kind.to_string(), "public_key": pem}),
        ..Report::default()
    };
    let bytes = if args.format == Format::Pem { pem.into_bytes() } else { der };
    payload::write_beside(&app.output, args.output.as_deref(), &bytes, &report)
}
