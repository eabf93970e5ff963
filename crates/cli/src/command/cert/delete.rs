// SPDX-License-Identifier: Apache-2.0
//! `metaslot cert delete`

use crate::app::App;
use crate::certificate::Stored;
use crate::command::arguments::UserArg;
use crate::failure::Result;
use crate::output::Report;
use crate::pin::confirm_deletion;
use serde_json::json;

/// Arguments of `cert delete`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The certificate: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    certificate: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let opened = args.user.open_named::<Stored>(app, &args.certificate)?;
    let name = opened.uri();
    if !args.yes {
        confirm_deletion("the certificate", &format!("delete {name}?"))?;
    }
    opened.session.destroy(opened.it.handle)?;
    app.output.print(&Report {
        text: format!("deleted {name}\n"),
        json: json!({"deleted": [name]}),
        uris: vec![name],
    })
}
