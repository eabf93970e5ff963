// SPDX-License-Identifier: Apache-2.0
//! `metaslot data show`

use super::found::{ApplicationArg, Stored};
use crate::app::App;
use crate::command::arguments::UserArg;
use crate::encoding::{hex, printable};
use crate::failure::Result;
use crate::find::Object;
use crate::output::Report;
use metaslot_ck::*;

/// Arguments of `data show`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The data: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    data: String,
    #[command(flatten)]
    application: ApplicationArg,
    #[command(flatten)]
    user: UserArg,
}

/// An attribute that is said by a sentence: its name in JSON, what is said where it is not set.
const FACTS: [(CK_ATTRIBUTE_TYPE, &str, &str); 2] = [
    (CKA_MODIFIABLE, "modifiable", "cannot be changed"),
    (CKA_DESTROYABLE, "destroyable", "cannot be deleted"),
];

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.user.key(&args.data)?;
    let login = args.user.login_with(app, &uri)?;
    let (session, stored) = args.application.one(app, &login)?;
    let token = login.token.uri();
    let mut json = stored.json(&token);
    let identifier = session.attribute(stored.handle, CKA_OBJECT_ID).unwrap_or_default();
    let mut facts = vec![stored.seen()];
    for (attribute, name, unset) in FACTS {
        // What a module does not know of it is not said.
        if let Ok(value) = session.attribute_bool(stored.handle, attribute) {
            json[name] = value.into();
            facts.extend((!value).then_some(unset));
        }
    }
    let dash = |text: &str| String::from(if text.is_empty() { "-" } else { text });
    let mut rows = vec![
        ("label", dash(&stored.label)),
        ("application", dash(&stored.application)),
        ("bytes", stored.bytes.to_string()),
        ("value", facts.join(", ")),
    ];
    if !identifier.is_empty() {
        json["object_id"] = hex(&identifier).into();
        rows.push(("object id", hex(&identifier)));
    }
    let uri = stored.uri(&token).to_string();
    rows.push(("URI", uri.clone()));
    let row = |(what, value): &(&str, String)| format!("{what:<11} {}\n", printable(value));
    app.output.print(&Report { text: rows.iter().map(row).collect(), json, uris: vec![uri] })
}

impl Stored {
    const fn seen(&self) -> &'static str {
        if self.is_private { "seen after a login only" } else { "seen by everybody" }
    }
}
