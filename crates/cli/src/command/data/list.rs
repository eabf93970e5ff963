// SPDX-License-Identifier: Apache-2.0
//! `metaslot data list`

use super::found::ApplicationArg;
use crate::app::App;
use crate::command::arguments::UserArg;
use crate::failure::Result;
use crate::find::Object;
use crate::output::{Report, Table};
use metaslot_client::Access;
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
    let login = args.user.login(app, &uri)?;
    let (session, logged_in) = app.log_in_if_possible(&login, Access::ReadOnly)?;
    let token = login.token.uri();
    let found = args.application.search(&session, &uri)?;
    let mut table = Table::new(&["LABEL", "APPLICATION", "BYTES", "PRIVATE", "URI"], &[2]);
    for stored in &found {
        table.push(vec![
            stored.label.clone(),
            stored.application.clone(),
            stored.bytes.to_string(),
            String::from(if stored.is_private { "yes" } else { "no" }),
            stored.uri(&token).to_string(),
        ]);
    }
    app.output.print(&Report {
        text: table.text(),
        json: json!({"data": found.iter().map(|it| it.json(&token)).collect::<Vec<Value>>()}),
        uris: found.iter().map(|it| it.uri(&token).to_string()).collect(),
    })?;
    if found.is_empty() {
        app.output.note("no data");
    }
    if !logged_in {
        app.output.note("hint: not logged in, so private data is not shown: give --pin-source");
    }
    Ok(())
}
