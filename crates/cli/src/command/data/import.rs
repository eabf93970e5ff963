// SPDX-License-Identifier: Apache-2.0
//! `metaslot data import`

use super::found::Stored;
use crate::app::App;
use crate::command::arguments::UserArg;
use crate::command::payload::Payload;
use crate::failure::{Failure, Result};
use crate::find::{self, Object};
use crate::output::Report;
use crate::uri::Uri;
use clap::builder::NonEmptyStringValueParser;
use metaslot_ck::*;
use metaslot_client::{Access, Template};
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `data import`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The file; '-' is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Its name in the token
    #[arg(long, value_name = "LABEL", value_parser = NonEmptyStringValueParser::new())]
    label: String,
    /// Which program it is of
    #[arg(long, value_name = "TEXT")]
    application: Option<String>,
    /// Let it be seen without a login
    #[arg(long)]
    public: bool,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.user.uri()?;
    let login = args.user.login(app, &uri)?;
    let value = Payload::short_secret(&args.file)?;
    let (session, _) = app.log_in(&login, Access::ReadWrite)?;
    let named = Uri { object: Some(args.label.clone()), ..Uri::default() };
    if !Stored::search(&session, &named)?.is_empty() {
        return Err(Failure::failed(format!("the token already has data '{}'", args.label))
            .hint("choose another label, or delete it: 'metaslot data delete'"));
    }
    let template = Template::new()
        .class(CKO_DATA)
        .token(true)
        .bool(CKA_PRIVATE, !args.public)
        .label(&args.label)
        .bytes(CKA_APPLICATION, args.application.as_deref().unwrap_or_default())
        .bytes(CKA_VALUE, value.expose());
    session.create(&template)?;
    let token = login.token.uri();
    let stored = find::one::<Stored>(&session, &token, &named)?;
    let name = stored.uri(&token).to_string();
    app.output.print(&Report {
        text: format!("imported {} bytes\n{name}\n", value.len()),
        json: json!({"imported": stored.json(&token)}),
        uris: vec![name],
    })
}
