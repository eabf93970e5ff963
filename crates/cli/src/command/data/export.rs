// SPDX-License-Identifier: Apache-2.0
//! `metaslot data export`

use super::found::ApplicationArg;
use crate::app::App;
use crate::command::arguments::UserArg;
use crate::command::payload;
use crate::failure::Result;
use crate::output::Report;
use metaslot_ck::CKA_VALUE;
use metaslot_memory::Secret;
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `data export`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The data: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    data: String,
    /// Where it goes, for its owner alone to read [default: standard output]
    #[arg(long = "out", short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    application: ApplicationArg,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.user.key(&args.data)?;
    let login = args.user.login_with(app, &uri)?;
    let (session, stored) = args.application.one(app, &login)?;
    let token = login.token.uri();
    let value = Secret::taken(session.attribute(stored.handle, CKA_VALUE)?);
    let report = Report { json: json!({"exported": stored.json(&token)}), ..Report::default() };
    payload::write_secret(&app.output, args.output.as_deref(), &value, &report)
}
