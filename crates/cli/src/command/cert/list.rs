// SPDX-License-Identifier: Apache-2.0
//! `metaslot cert list`

use super::found::{described, key_of, open_for};
use crate::app::App;
use crate::certificate::Stored;
use crate::command::arguments::{UserArg, every_public};
use crate::failure::Result;
use crate::find::Object;
use crate::key;
use crate::output::{Report, Table};
use crate::uri::Uri;
use crate::x509::{self, Certificate};
use metaslot_client::Session;
use serde_json::{Value, json};

/// Arguments of `cert list`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Which certificates: a PKCS#11 URI or a label [default: all]
    #[arg(value_name = "URI|LABEL")]
    certificates: Option<String>,
    /// Those only that the security officer trusts: it takes the user PIN to see which
    #[arg(long)]
    trusted: bool,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.user.keys(args.certificates.as_deref())?;
    let (sessions, logged_in) = sessions(app, &uri, args)?;
    let mut table = Table::new(&["LABEL", "SUBJECT", "NOT AFTER", "KEY", "URI"], &[]);
    let (mut list, mut uris): (Vec<Value>, _) = (Vec::new(), Vec::new());
    for (token, session) in &sessions {
        let keys = key::search(session, &Uri::default())?;
        let mut found = Stored::search(session, &uri)?;
        found.retain(|stored| stored.is_trusted || !args.trusted);
        for stored in &found {
            let key = key_of(session, &keys, &stored.der);
            let (subject, until) = match Certificate::read(&stored.der) {
                Some(read) => (x509::shown(read.subject), read.until.iso()),
                None => (None, String::from("-")),
            };
            let unreadable = || String::from("it cannot be read");
            let uri = stored.uri(token).to_string();
            table.push(vec![
                stored.label.clone(),
                subject.unwrap_or_else(unreadable),
                until,
                key.map_or_else(|| String::from("-"), |key| key.label.clone()),
                uri.clone(),
            ]);
            list.push(described(stored, key, token, logged_in));
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

/// Every token without a login; with one, the token whose PIN it is. The last says which.
fn sessions(app: &App, uri: &Uri, args: &Args) -> Result<(Vec<(Uri, Session)>, bool)> {
    if args.trusted || args.user.names_pin() {
        let (session, token, logged_in) = open_for(app, uri, &args.user, args.trusted)?;
        return Ok((vec![(token, session)], logged_in));
    }
    let every = every_public(app, uri)?.sessions;
    Ok((every.into_iter().map(|(token, session)| (token.uri(), session)).collect(), false))
}
