// SPDX-License-Identifier: Apache-2.0
//! `metaslot key list`

use super::report::report;
use crate::app::App;
use crate::command::arguments::{PinArg, TokenArg, key_uri};
use crate::failure::{Failure, Result};
use crate::key;
use crate::output::Report;
use crate::uri::Class;
use metaslot_client::Access;
use serde_json::{Value, json};

const EXAMPLES: &str = "\
Examples:
  metaslot key list
  metaslot key list site
  metaslot key list --quiet 'pkcs11:token=web;type=private'";

/// Arguments of `key list`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Which keys: a PKCS#11 URI or a label [default: all]
    #[arg(value_name = "URI|LABEL")]
    keys: Option<String>,
    #[command(flatten)]
    token: TokenArg,
    /// Do not log in: list public keys only
    #[arg(long, conflicts_with = "pin_source")]
    public: bool,
    #[command(flatten)]
    pin: PinArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.keys.as_deref().map(key_uri).transpose()?.unwrap_or_default();
    let uri = args.token.of(uri)?;
    let login = args.pin.login(app, &uri)?;
    let (session, logged_in) = if args.public {
        let module = app.host(&uri)?.module();
        (module.open_session(login.token.slot, Access::ReadOnly)?, false)
    } else {
        app.log_in_if_possible(&login, Access::ReadOnly)?
    };
    let found = key::search_all(&session, &uri)?;
    let report = report(&login.token, &found.keys);
    app.output.print(&with_unreadable(report, &found.unreadable))?;
    if found.keys.is_empty() && found.unreadable.is_empty() {
        app.output.note("no keys");
    }
    if !logged_in && !args.public {
        app.output.note(
            "hint: not logged in, so private and secret keys are not shown: give --pin-source",
        );
    }
    match found.unreadable.len() {
        0 => Ok(()),
        number => Err(Failure::failed(format!("objects that cannot be read: {number}"))
            .hint("'metaslot token verify' says what is wrong with each")),
    }
}

/// Below the keys what is known of an object that cannot be read: its class, and why.
fn with_unreadable(mut report: Report, unreadable: &[(Class, Failure)]) -> Report {
    let mut list: Vec<Value> = Vec::new();
    for (class, failure) in unreadable {
        let (class, problem) = (class.name(), failure.message());
        report.text += &format!("cannot be read ({class}): {problem}\n");
        list.push(json!({"class": class, "problem": problem}));
    }
    if !list.is_empty() {
        report.json["unreadable"] = list.into();
    }
    report
}
