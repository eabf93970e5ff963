// SPDX-License-Identifier: Apache-2.0
//! `metaslot key list`

use super::report::of_tokens;
use crate::app::App;
use crate::command::arguments::{self, PinArg, TokenArg, key_uri};
use crate::failure::{Failure, Result};
use crate::key::{self, Key};
use crate::output::Report;
use crate::uri::Uri;
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
    #[arg(long, conflicts_with_all = ["pin_source", "identity"])]
    public: bool,
    #[command(flatten)]
    pin: PinArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.keys.as_deref().map(key_uri).transpose()?.unwrap_or_default();
    let uri = args.token.of(uri)?;
    let mut listed = match args.public {
        true => arguments::every_public(app, &uri)?,
        false => args.pin.every(app, &uri)?,
    };
    let (mut keys, mut unreadable) = (Vec::new(), Vec::new());
    for (token, found) in listed.each(|session| key::search_all(session, &uri))? {
        keys.extend(found.keys.into_iter().map(|key| (token.clone(), key)));
        unreadable.extend(found.unreadable);
    }
    let all: Vec<(Uri, &Key)> = keys.iter().map(|(token, key)| (token.clone(), key)).collect();
    app.output.print(&with_unreadable(of_tokens(&all), &unreadable))?;
    if keys.is_empty() && unreadable.is_empty() {
        app.output.note(if args.keys.is_some() { "no keys match" } else { "no keys" });
    }
    if !args.public {
        listed.note(app, "private and secret keys are");
    }
    match unreadable.len() {
        0 => listed.end(),
        number => Err(Failure::failed(format!("objects that cannot be read: {number}"))
            .hint("'metaslot token verify' says what is wrong with each")),
    }
}

/// Below the keys why objects cannot be read.
fn with_unreadable(mut report: Report, unreadable: &[Failure]) -> Report {
    let mut list: Vec<Value> = Vec::new();
    for failure in unreadable {
        let problem = failure.message();
        report.text += &format!("cannot be read: {problem}\n");
        list.push(json!({"problem": problem}));
    }
    if !list.is_empty() {
        report.json["unreadable"] = list.into();
    }
    report
}
