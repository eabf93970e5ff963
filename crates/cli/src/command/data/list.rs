// SPDX-License-Identifier: Apache-2.0
//! `metaslot data list`

use super::found::ApplicationArg;
use crate::app::App;
use crate::command::arguments::UserArg;
use crate::failure::Result;
use crate::find::Object;
use crate::output::{Report, Table};
use serde_json::{Value, json};

/// Arguments of `data list`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Which data: a PKCS#11 URI or a label [default: all]
    #[arg(value_name = "URI|LABEL")]
    data: Option<String>,
    #[command(flatten)]
    application: ApplicationArg,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.user.keys(args.data.as_deref())?;
    let mut listed = args.user.every(app, &uri)?;
    let mut found = Vec::new();
    for (token, data) in listed.each(|session| args.application.search(session, &uri))? {
        found.extend(data.into_iter().map(|stored| (token.clone(), stored)));
    }
    let mut table = Table::new(&["LABEL", "APPLICATION", "BYTES", "PRIVATE", "URI"], &[2]);
    for (token, stored) in &found {
        table.push(vec![
            stored.label.clone(),
            stored.application.clone(),
            stored.bytes.to_string(),
            String::from(if stored.is_private { "yes" } else { "no" }),
            stored.uri(token).to_string(),
        ]);
    }
    let json: Vec<Value> = found.iter().map(|(token, stored)| stored.json(token)).collect();
    app.output.print(&Report {
        text: table.text(),
        json: json!({"data": json}),
        uris: found.iter().map(|(token, stored)| stored.uri(token).to_string()).collect(),
    })?;
    if found.is_empty() {
        app.output.note(if args.data.is_some() { "no data match" } else { "no data" });
    }
    listed.note(app, "private data is");
    listed.end()
}
