// SPDX-License-Identifier: Apache-2.0
//! `metaslot cert delete`

use super::found::SerialArg;
use crate::app::App;
use crate::command::arguments::UserArg;
use crate::failure::Result;
use crate::output::Report;
use crate::pin::confirm_deletion;
use metaslot_client::Access;
use serde_json::json;

/// Arguments of `cert delete`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The certificate: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    certificate: String,
    #[command(flatten)]
    serial: SerialArg,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.user.key(&args.certificate)?;
    let login = args.user.login(app, &uri)?;
    let (session, _) = app.log_in(&login, Access::ReadWrite)?;
    let token = login.token.uri();
    let stored = args.serial.one(&session, &token, &uri)?;
    let name = stored.uri(&token).to_string();
    if !args.yes {
        confirm_deletion("the certificate", &format!("delete {name}?"))?;
    }
    session.destroy(stored.handle)?;
    app.output.print(&Report {
        text: format!("deleted {name}\n"),
        json: json!({"deleted": [name]}),
        uris: vec![name],
    })
}
