// SPDX-License-Identifier: Apache-2.0
//! `metaslot data delete`

use super::found::Stored;
use crate::app::App;
use crate::command::arguments::UserArg;
use crate::failure::Result;
use crate::output::Report;
use crate::pin::confirm_deletion;
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
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let opened = args.user.open_named::<Stored>(app, &args.data)?;
    let name = opened.uri();
    if !args.yes {
        confirm_deletion("the data", &format!("delete {name}? there is no way back"))?;
    }
    opened.session.destroy(opened.it.handle)?;
    app.output.print(&Report {
        text: format!("deleted {name}\n"),
        json: json!({"deleted": [name]}),
        uris: vec![name],
    })
}
