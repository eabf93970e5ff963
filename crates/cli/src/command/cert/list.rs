// SPDX-License-Identifier: Apache-2.0
//! `metaslot cert list`

use super::found::{described, key_of};
use crate::app::App;
use crate::certificate::Stored;
use crate::command::arguments::{TokenArg, every_public, key_uri};
use crate::failure::Result;
use crate::find::Object;
use crate::key;
use crate::output::{Report, Table};
use crate::uri::Uri;
use crate::x509::{self, Certificate};
use serde_json::{Value, json};

/// Arguments of `cert list`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Which certificates: a PKCS#11 URI or a label [default: all]
    #[arg(value_name = "URI|LABEL")]
    certificates: Option<String>,
    #[command(flatten)]
    token: TokenArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.certificates.as_deref().map(key_uri).transpose()?.unwrap_or_default();
    let uri = args.token.of(uri)?;
    let mut table = Table::new(&["LABEL", "SUBJECT", "NOT AFTER", "KEY", "URI"], &[]);
    let (mut list, mut uris): (Vec<Value>, _) = (Vec::new(), Vec::new());
    for (token, session) in &every_public(app, &uri)?.sessions {
        let token = token.uri();
        let keys = key::search(session, &Uri::default())?;
        for stored in &Stored::search(session, &uri)? {
            let key = key_of(session, &keys, &stored.der);
            let (subject, until) = match Certificate::read(&stored.der) {
                Some(read) => (x509::shown(read.subject), read.until.iso()),
                None => (None, String::from("-")),
            };
            let unreadable = || String::from("it cannot be read");
            let uri = stored.uri(&token).to_string();
            table.push(vec![
                stored.label.clone(),
                subject.unwrap_or_else(unreadable),
                until,
                key.map_or_else(|| String::from("-"), |key| key.label.clone()),
                uri.clone(),
            ]);
            list.push(described(stored, key, &token));
            uris.push(uri);
        }
    }
    let is_empty = list.is_empty();
    app.output.print(&Report { text: table.text(), json: json!({"certificates": list}), uris })?;
    if is_empty {
        app.output.note("no certificates");
    }
    Ok(())
}
