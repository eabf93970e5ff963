// SPDX-License-Identifier: Apache-2.0
//! `metaslot data delete`

use super::found::ApplicationArg;
use crate::app::App;
use crate::command::arguments::UserArg;
use crate::failure::Result;
use crate::find::{self, Object};
use crate::output::Report;
use crate::pin::confirm_deletion;
use metaslot_client::Access;
use serde_json::json;

/// Arguments of `data delete`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The data: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    data: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    application: ApplicationArg,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.user.key(&args.data)?;
    let login = args.user.login(app, &uri)?;
    let (session, _) = app.log_in(&login, Access::ReadWrite)?;
    let token = login.token.uri();
    let stored = find::only(args.application.search(&session, &uri)?, &uri, &token)?;
    let name = stored.uri(&token).to_string();
    if !args.yes {
        confirm_deletion("the data", &format!("delete {name}? there is no way back"))?;
    }
    session.destroy(stored.handle)?;
    app.output.print(&Report {
        text: format!("deleted {name}\n"),
        json: json!({"deleted": [name]}),
        uris: vec![name],
    })
}
