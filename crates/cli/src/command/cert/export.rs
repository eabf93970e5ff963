// SPDX-License-Identifier: Apache-2.0
//! `metaslot cert export`

use super::found::{SerialArg, open_for};
use crate::app::App;
use crate::certificate;
use crate::command::arguments::{NO_LOGIN, UserArg};
use crate::command::payload::write_beside;
use crate::encoding::pem;
use crate::failure::{Failure, Result};
use crate::output::Report;
use clap::ValueEnum;
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `cert export`.
#[derive(clap::Args, Debug)]
#[command(mut_arg("pin_source", |it| it.help(NO_LOGIN)))]
pub(crate) struct Args {
    /// The certificate: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    certificate: String,
    #[command(flatten)]
    serial: SerialArg,
    /// PEM or DER
    #[arg(long, short, value_enum, default_value_t = Format::Pem)]
    format: Format,
    /// And those of its issuers that the token has, up to the root
    #[arg(long)]
    chain: bool,
    /// Where the certificate goes [default: standard output]
    #[arg(long = "out", short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    user: UserArg,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Format {
    /// Text between BEGIN and END lines
    Pem,
    /// Bytes
    Der,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.user.key(&args.certificate)?;
    let (session, token, _) = open_for(app, &uri, &args.user)?;
    let stored = args.serial.one(&session, &token, &uri)?;
    certificate::read(&stored.der)?;
    if args.chain && args.format == Format::Der {
        return Err(Failure::usage("several certificates in one file are PEM: drop --format der"));
    }
    let issuers = match args.chain {
        true => certificate::issuers(&session, &stored.der)?,
        false => Vec::new(),
    };
    let text = pem("CERTIFICATE", &stored.der);
    let chain: Vec<String> = issuers.iter().map(|issuer| pem("CERTIFICATE", &issuer.der)).collect();
    let uri = stored.uri(&token).to_string();
    let json = match args.chain {
        true => json!({"uri": uri, "certificate": text, "issuers": chain}),
        false => json!({"uri": uri, "certificate": text}),
    };
    let report = Report { json, ..Report::default() };
    let bytes = match args.format {
        Format::Pem => (text + &chain.concat()).into_bytes(),
        Format::Der => stored.der,
    };
    write_beside(&app.output, args.output.as_deref(), &bytes, &report)
}
