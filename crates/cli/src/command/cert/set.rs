// SPDX-License-Identifier: Apache-2.0
//! `metaslot cert set`

use super::found::SerialArg;
use crate::app::App;
use crate::certificate::Stored;
use crate::command::arguments::{self, UserArg};
use crate::failure::{Failure, Result};
use crate::output::Report;
use clap::ArgGroup;
use clap::builder::NonEmptyStringValueParser;
use metaslot_ck::*;
use metaslot_client::{Access, Template};
use serde_json::json;

/// Arguments of `cert set`.
#[derive(clap::Args, Debug)]
#[command(group = ArgGroup::new("change").required(true).multiple(true))]
pub(crate) struct Args {
    /// The certificate: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    certificate: String,
    #[command(flatten)]
    serial: SerialArg,
    /// Its name from now on
    #[arg(long, group = "change", value_name = "LABEL", value_parser = NonEmptyStringValueParser::new())]
    label: Option<String>,
    /// Its id in hexadecimal from now on
    #[arg(long, group = "change", value_name = "HEX")]
    id: Option<String>,
    /// As security officer, have programs believe what it certifies
    #[arg(long, group = "change", conflicts_with_all = ["label", "id", "identity"])]
    trusted: bool,
    /// As security officer, have them believe it no more
    #[arg(long, group = "change", conflicts_with_all = ["label", "id", "identity", "trusted"])]
    untrusted: bool,
    /// The SO PIN's place, for --trusted: a file, 'file:/path' or '|command' [default: ask]
    #[arg(long, value_name = "SOURCE")]
    so_pin_source: Option<String>,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let id = args.id.as_deref().map(arguments::id).transpose()?;
    let uri = args.user.key(&args.certificate)?;
    let (session, token) = match args.trusted || args.untrusted {
        true => app.log_in_officer(&uri, args.so_pin_source.as_deref())?,
        false => {
            let login = args.user.login_with(app, &uri)?;
            (app.log_in(&login, Access::ReadWrite)?.0, login.token)
        }
    };
    let token = token.uri();
    let stored = args.serial.one(&session, &token, &uri)?;
    if session.attribute_bool(stored.handle, CKA_MODIFIABLE).is_ok_and(|modifiable| !modifiable) {
        let message = format!("'{}' cannot be changed (CKA_MODIFIABLE)", stored.label);
        return Err(Failure::failed(message));
    }
    let mut changes = Template::new();
    if let Some(label) = &args.label {
        changes = changes.label(label);
    }
    if let Some(id) = &id {
        changes = changes.bytes(CKA_ID, id);
    }
    if args.trusted || args.untrusted {
        changes = changes.bool(CKA_TRUSTED, args.trusted);
    }
    session.set_attributes(stored.handle, &changes)?;
    let label = args.label.clone().unwrap_or_else(|| stored.label.clone());
    let changed = Stored { label, id: id.unwrap_or_else(|| stored.id.clone()), ..stored };
    let name = changed.uri(&token).to_string();
    app.output.print(&Report {
        text: format!("changed {name}\n"),
        json: json!({"changed": name}),
        uris: vec![name],
    })
}
